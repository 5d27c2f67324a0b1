"""The debugger's page in a browser: it loads, scrubs, asks, searches, copies, and comes back to where it was."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browser import browser

import vmstore
from tests.debug.browsing import Reader, served
from vmstore.shell.demo import SHIPPED

CHROMIUM = browser()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; python3 tools/browser.py")

COMPACTION = 366  # the demo's first compaction
SCRIPT = "<script>window.ran = 1</script>"
HOSTILE = f"{SCRIPT}<img src=x onerror='window.ran = 2'></pre></script><svg onload='window.ran = 3'>"
LONG_BYTES = 5 << 20


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests of this file."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the demo session, of one that manages its memory, of one with bad intentions and an empty one."""
    path = tmp_path_factory.mktemp("page") / "demo.vms"
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
        managed(store)
        hostile(store)
        store.session("empty", l0_tokens_max=3000).user("nobody answers")
    with served(path) as url:
        yield url


def managed(store: vmstore.Store) -> None:
    """A session of 30 turns in a budget that holds a few of them."""
    session = store.session("managed", l0_tokens_max=3000, system="You are brief.")
    for turn in range(30):
        session.user(f"Question {turn}: " + f"what of topic {turn} and its neighbours? " * 12)
        session.pack()
        session.assistant(f"Answer {turn}. " + f"Topic {turn} is settled, and we go on. " * 12)


def hostile(store: vmstore.Store) -> None:
    """A session whose every text is a script, with one page of 5 MB."""
    said = [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": SCRIPT}]
    store.record("hostile", {"model": HOSTILE, "messages": said[:1]}, None)
    long = {"role": "user", "content": "0123456789abcde\n" * (LONG_BYTES // 16)}
    store.record("hostile", {"model": SCRIPT, "messages": [*said, long]}, None)


@contextmanager
def reading(chromium: Any, address: str, **how: Any) -> Iterator[Reader]:
    """A reader in a window of their own."""
    window = chromium.new_context(viewport={"width": 1280, "height": 800}, **how)
    window.grant_permissions(["clipboard-read", "clipboard-write"])
    reader = Reader(window.new_page(), address)
    yield reader
    window.close()
    content(reader)


def content(reader: Reader) -> None:
    """Nothing was complained of, and nobody but the server was asked."""
    assert reader.complaints == []
    assert {urlsplit(url).netloc for url in reader.asked} == {urlsplit(reader.url).netloc}


@pytest.fixture(scope="module")
def window(chromium: Any, address: str) -> Iterator[Reader]:
    """One window for all who need none of their own."""
    with reading(chromium, address) as found:
        yield found


@pytest.fixture
def reader(window: Reader) -> Iterator[Reader]:
    """Somebody before the page, who remembers nothing of those before."""
    window.page.goto(window.url)
    window.page.evaluate("localStorage.clear()")
    window.complaints.clear()
    yield window
    content(window)


def test_it_opens_at_the_end_of_the_session(reader: Reader) -> None:
    """The page opens the session named, at its last call, and says that its calls are derived."""
    reader.open(session="planning-220")
    assert reader.call == 525
    assert reader.text(".top .fidelity") == "derived"
    assert reader.text(".context .fidelity") == "derived"
    assert reader.marked == {525}
    assert len(reader.pages) > 10


def test_scrubber_list_and_keys_agree(reader: Reader) -> None:
    """Whichever moves the cursor, the head, the scrubber and the marked events name one call."""
    reader.open(session="planning-220", call=100)

    def agreed(call: int) -> bool:
        at = int(reader.page.locator(".scrubber").input_value()) + 1
        return reader.call == call == at and reader.marked <= {call}

    assert agreed(100)
    reader.press("j", "j", "ArrowRight", "k")
    reader.until(lambda: agreed(102))
    reader.page.locator('.event[data-call="103"]').first.click()
    reader.until(lambda: agreed(103))
    assert reader.page.locator(".event.chosen").count() == 1
    reader.page.locator(".scrubber").fill("199")
    reader.until(lambda: agreed(200))
    box = reader.page.locator(".plot").bounding_box()
    assert box is not None
    reader.page.mouse.click(box["x"] + 92 + (box["width"] - 138) * 300.5 / 525, box["y"] + 60)
    reader.until(lambda: agreed(301))
    reader.press("Home")
    reader.until(lambda: agreed(1))
    reader.press("End")
    reader.until(lambda: agreed(525))


def test_the_context_is_the_stores(reader: Reader, demo: vmstore.Session) -> None:
    """The pages of a call stand there in the order of the prompt, and all of them can be scrolled to."""
    call = demo.context(call=370)
    reader.open(session="planning-220", call=370)
    reader.until(lambda: len(reader.pages) > 0)
    listed = [page.page for page in call.pages]
    seen: list[str] = []
    height = reader.page.locator(".page-rows").evaluate("element => element.scrollHeight")
    for top in range(0, height, 300):
        reader.page.locator(".page-rows").evaluate("(element, top) => { element.scrollTop = top }", top)
        reader.page.wait_for_timeout(40)
        seen += [page for page in reader.pages if page not in seen]
    assert seen == listed
    assert reader.text(".sum-line b").replace(",", "").split()[0] == str(call.tokens)


def test_a_page_is_read_where_it_stands(reader: Reader, demo: vmstore.Session) -> None:
    """A page in hand opens with Enter to its text, exactly."""
    reader.open(session="planning-220", call=39, page="p8")
    reader.press("Enter")
    text = demo.content("p8").decode()
    reader.until(lambda: reader.page.locator('.page[data-page="p8"] .content pre').count() > 0)
    assert reader.page.locator('.page[data-page="p8"] .content').evaluate("e => e.textContent") == text


def test_keys_jump_to_compactions(reader: Reader) -> None:
    """C goes back to the compaction, and the pane says what it took away and copies all of it."""
    reader.open(session="planning-220")
    reader.press("C")
    reader.until(lambda: reader.call == COMPACTION)
    reader.press("u")
    reader.until(lambda: reader.page.locator(".taken-row").count() > 5)
    told = re.search(r"([\d,]+) pages, ([\d,]+) tokens", reader.text(".taken-sum"))
    assert told is not None
    reader.page.get_by_role("button", name="Uncompact").click()
    reader.until(lambda: reader.page.locator(".said").count() > 0)
    copied = reader.clipboard
    assert "[p216 claim_storage_2, tool, turn 10]\nDecision recorded: storage/2" in copied
    assert len(re.findall(r"^\[p\d+", copied, re.MULTILINE)) >= int(told[1].replace(",", ""))


def test_why_and_why_not(reader: Reader) -> None:
    """A page of the context is told why it is in; one that left, why it is out, with its reasons from the log."""
    reader.open(session="planning-220", call=400, page="claim_storage_4")
    reader.until(lambda: "no page claim_storage_4" in reader.text(".pane"))
    reader.open(session="planning-220", call=400, page="p359")
    reader.until(lambda: "no request since it left had it again" in reader.text(".pane"))
    assert reader.text(".verdict") == "not in call 400"
    reader.open(session="planning-220", call=100, page="p359")
    reader.until(lambda: "in the context of call 100" in reader.text(".pane"))


def test_why_tells_the_contest(reader: Reader) -> None:
    """Where a kernel decided, the page shows who lost and by how much, against which budget."""
    reader.open(session="managed", show="out")
    reader.press("e")
    reader.press("Home", "e")
    reader.until(lambda: reader.page.locator('.event.now[data-kind="evict"]').count() > 0)
    reader.page.locator('.event.now[data-kind="evict"]').first.click()
    reader.until(lambda: reader.page.locator(".contest").count() > 0)
    told = reader.text(".contest")
    assert "of 3,000 tokens used" in told
    assert "the cutoff" in told
    assert reader.page.locator(".scores tr").count() >= 3


def test_vmql_answers_lead_somewhere(reader: Reader) -> None:
    """A query is answered as a table; its calls and pages can be clicked; a mistake says where it is."""
    reader.open(session="planning-220", pane="vmql")
    field = reader.page.get_by_role("textbox", name="VMQL")
    field.fill("CALLS call, tokens ORDER BY tokens DESC LIMIT 3")
    field.press("Enter")
    reader.until(lambda: reader.page.locator(".table-row").count() == 3)
    first = reader.page.locator(".table-row").first.locator("button").first
    call = int(first.inner_text())
    first.click()
    reader.until(lambda: reader.call == call)
    field.fill("PAGES WHERE typ = claim")
    field.press("Enter")
    reader.until(lambda: reader.page.locator(".pane .problem").count() == 1)
    assert reader.text(".wrong mark") == "typ"
    reader.complaints.clear()  # the browser tells of every answer that is an error


def test_vmql_completes(reader: Reader) -> None:
    """What is begun is completed from what the store knows."""
    reader.open(session="planning-220", pane="vmql")
    field = reader.page.get_by_role("textbox", name="VMQL")
    field.press_sequentially("PAG")
    reader.until(lambda: reader.page.locator(".offer li", has_text="PAGES").count() > 0)
    field.press("Tab")
    reader.until(lambda: field.input_value().strip() == "PAGES")


def test_search_finds_by_words_and_by_name(reader: Reader) -> None:
    """Pages are found by their names at once, by their words through the store."""
    reader.open(session="planning-220")
    reader.press("/")
    field = reader.page.get_by_label("search", exact=True)
    reader.until(lambda: bool(field.evaluate("e => e === document.activeElement")))
    field.fill("claim_storage_4")
    reader.until(lambda: reader.page.locator(".hit b").first.inner_text() == "p359")
    field.fill("Cassandra")
    field.press("Enter")
    reader.until(lambda: "best first" in reader.text(".pane"))
    reader.until(lambda: reader.page.locator(".hit").count() > 0)
    reader.page.locator(".hit").first.click()
    reader.press("Escape")


def test_messages_are_copied_exactly(reader: Reader, demo: vmstore.Session) -> None:
    """The messages of the call are copied with one click, equal to what the store says."""
    reader.open(session="planning-220", call=40, pane="request")
    reader.page.get_by_role("button", name="Copy JSON").click()
    reader.until(lambda: reader.page.locator(".said").count() > 0)
    assert json.loads(reader.clipboard) == demo.messages(call=40)


def test_the_url_brings_everything_back(reader: Reader) -> None:
    """A reload, a link and the back button lead to the same view."""
    reader.open(session="planning-220", call=120)
    reader.press("j", "w", "ArrowDown", "ArrowDown")
    reader.page.get_by_role("button", name="level", exact=True).click()
    reader.page.locator(".kinds button", has_text="create").click()
    reader.until(lambda: "hide=create" in reader.place and "call=121" in reader.place)
    place, pages = reader.place, reader.pages
    chosen = reader.page.locator(".page.chosen").get_attribute("data-page")
    assert {"by=level", f"page={chosen}", "pane=why"} <= set(place.split("&"))
    reader.page.reload()
    reader.page.wait_for_selector("main")
    reader.until(lambda: reader.pages == pages)
    assert reader.place == place
    assert reader.page.locator(".page.chosen").get_attribute("data-page") == chosen
    reader.page.get_by_role("tab", name="VMQL").click()
    reader.page.go_back()
    reader.until(lambda: reader.place == place)
    assert reader.page.locator('[data-pane="why"]').count() == 1


def test_notes_stay_in_this_browser(reader: Reader) -> None:
    """A note is there after a reload, is jumped to, and is copied as JSON; the store is not asked to keep it."""
    reader.open(session="planning-220", call=77)
    reader.press("n")
    reader.page.get_by_label("note", exact=True).fill("the plan turns here")
    reader.page.get_by_role("button", name="Note it").click()
    reader.page.reload()
    reader.page.wait_for_selector(".noted li")
    reader.page.locator("h2").first.click()
    reader.press("End", "[")
    reader.until(lambda: reader.call == 77)
    reader.page.get_by_role("button", name="copy JSON").click()
    reader.until(lambda: reader.page.locator(".said").count() > 0)
    (note,) = json.loads(reader.clipboard)["notes"]
    assert (note["call"], note["text"]) == (77, "the plan turns here")


def test_help_names_the_keys(reader: Reader) -> None:
    """? shows every key and Escape closes it; what is typed into a field is no key."""
    reader.open(session="planning-220", call=10)
    reader.press("?")
    reader.until(lambda: reader.page.locator(".help").count() == 1)
    assert "next call" in reader.text(".help")
    reader.press("Escape")
    reader.until(lambda: reader.page.locator(".help").count() == 0)
    reader.press("/")
    reader.page.get_by_label("search", exact=True).press_sequentially("jjj?")
    assert reader.call == 10
    assert reader.page.locator(".help").count() == 0


def test_dark_follows_the_system_and_the_switch(chromium: Any, address: str) -> None:
    """Dark where the system is dark; the switch turns it over and is remembered."""
    with reading(chromium, address, color_scheme="dark") as reader:
        reader.open(session="planning-220")
        lightness = "getComputedStyle(document.querySelector('.panel')).backgroundColor"
        dark = reader.page.evaluate(lightness)
        reader.press("l")
        reader.until(lambda: reader.page.evaluate(lightness) == "rgb(255, 255, 255)" != dark)
        reader.page.reload()
        reader.page.wait_for_selector("main")
        assert reader.page.evaluate(lightness) == "rgb(255, 255, 255)"


def test_contents_are_text_and_never_run(reader: Reader) -> None:
    """Scripts and HTML in contents, models and messages are shown as they are written, and nothing runs."""
    for pane in ("why", "request", "taken", "search"):
        reader.open(session="hostile", read=1, pane=pane, page="p4", find="script")
        reader.until(lambda: HOSTILE in reader.page.inner_text(".page-rows"))
        reader.page.wait_for_timeout(300)
        assert reader.page.evaluate("window.ran") is None
        assert reader.page.locator("svg, .content img, main script").count() == 0
    reader.open(session="hostile", pane="vmql", q="CONTEXT MESSAGES")
    reader.until(lambda: SCRIPT in reader.text(".pane"))
    assert reader.page.evaluate("window.ran") is None


def test_a_page_of_five_megabytes_is_cut(reader: Reader) -> None:
    """A long content comes cut, with all of it a click away."""
    reader.open(session="hostile", read=1)
    more = reader.page.get_by_text("show all").first
    reader.until(lambda: more.count() > 0)
    length = "Math.max(...[...document.querySelectorAll('.page-rows .content')].map(e => e.textContent.length))"
    assert reader.page.evaluate(length) < 70_000
    more.click()
    reader.until(lambda: reader.page.evaluate(length) == LONG_BYTES)


def test_a_session_without_calls_says_so(reader: Reader) -> None:
    """A session nobody answered yet is told as such, and its pages can be read."""
    reader.open(session="empty")
    reader.until(lambda: "no call yet" in reader.text(".context"))
    reader.press("o")
    reader.until(lambda: len(reader.pages) > 0)


def test_an_unknown_session_names_the_nearest(reader: Reader) -> None:
    """A link to a session that is not there gives the store's own error, with its remedy."""
    reader.page.goto(f"{reader.url}#session=planing-220")
    reader.until(lambda: "planing-220" in reader.page.inner_text("#page"))
    reader.until(lambda: reader.page.locator("#page > .problem").count() == 1)
    reader.complaints.clear()  # the browser tells of every answer that is an error


def test_a_growing_session_is_followed(chromium: Any, tmp_path: Path) -> None:
    """At the end the page goes with a session that grows; elsewhere the cursor stays."""
    path = tmp_path / "live.vms"
    messages = [{"role": "user", "content": "one"}]
    with vmstore.open(path) as store:
        store.record("s", {"model": "m", "messages": messages}, None)
        with served(path) as url, reading(chromium, url) as reader:
            reader.open(session="s")
            reader.until(lambda: reader.call == 1)
            messages.append({"role": "user", "content": "two"})
            store.record("s", {"model": "m", "messages": messages}, None)
            reader.until(lambda: reader.call == 2)
            reader.press("k")
            reader.until(lambda: reader.call == 1)
            messages.append({"role": "user", "content": "three"})
            store.record("s", {"model": "m", "messages": messages}, None)
            reader.until(lambda: "3 calls" in reader.text(".top"))
            assert reader.call == 1


def test_a_recorded_session_of_others(chromium: Any, tmp_path: Path, data: Path) -> None:
    """The pi session opens, says that it is derived, and its first compaction gives back what it took."""
    path = tmp_path / "pi.vms"
    with vmstore.open(path) as store:
        store.import_file(next((data / "pi").glob("*.jsonl")))
    with served(path) as url, reading(chromium, url) as reader:
        reader.open()
        reader.until(lambda: reader.page.locator(".top .fidelity").count() == 1)
        assert reader.text(".top .fidelity") == "derived"
        reader.press("Home", "c", "u")
        reader.until(lambda: reader.page.locator(".taken-row").count() > 5)


@pytest.fixture(scope="module")
def demo() -> Iterator[vmstore.Session]:
    """The demo session as the store tells it."""
    with vmstore.memory_store() as store:
        store.import_file(SHIPPED)
        yield store.session("planning-220")
