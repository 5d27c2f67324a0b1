"""The page is read: the session as a conversation, the list of sessions, and keys that go where they are meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from serving import served

import vmstore
from tests.debug.page.browsing import HOSTILE, Reader, reading
from tests.debug.page.test_scrub import COMPACTION

TALK = "airline"
OVERRIDE = "\u202edesrever"
TABLE = "| a | b |\n|---|---|\n| 1 | `2` |"
ANSWER = f"# Plan\n\n1. take **{TALK}**\n\n```py\nprint(1)\n```\n\n{TABLE}\n\n{HOSTILE}\n\n{OVERRIDE}"


def talk(store: vmstore.Store) -> None:
    """A session with a tool call, a long result and an answer in Markdown."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "theme.md"}'}}
    records: list[dict[str, Any]] = [{"role": "user", "content": "What is in it?"}]
    store.record(TALK, {"model": "m-1", "messages": list(records)})
    records += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "\n".join(f"line {n}" for n in range(200))},
    ]
    store.record(TALK, {"model": "m-1", "messages": list(records)})
    records += [{"role": "assistant", "content": ANSWER}, {"role": "user", "content": "Go on."}]
    store.record(TALK, {"model": "m-1", "messages": list(records)})


def test_a_session_reads_as_a_conversation(chromium: Any, tmp_path: Path) -> None:
    """Markdown is shown as such and runs nothing, a tool call is a line, a long result is folded."""
    path = tmp_path / "talk.vms"
    with vmstore.open(path) as store:
        talk(store)
    with served(path) as url, reading(chromium, url) as reader:
        reader.open(show="", events="")
        reader.until(lambda: reader.page.locator(".say .md table td code").count() == 1)
        talked = reader.page.locator(".talk")
        assert [row.inner_text() for row in talked.locator(".asked").all()] == ['→ read({"path": "theme.md"})']
        assert talked.locator(".md-heading").inner_text() == "Plan"
        assert talked.locator(".md b").first.inner_text() == TALK
        assert talked.locator("img, script, svg").count() == 0
        assert reader.page.evaluate("window.ran") is None
        assert "line 199" not in talked.inner_text()
        talked.get_by_text("more lines").click()
        reader.until(lambda: "line 199" in talked.inner_text())
        assert talked.locator(".stand.new").count() == 2, "the answer and the question are new in the last call"
        assert reader.text(".here-line b") == "Call 3"
        reader.press("t")
        preview = reader.page.locator(".preview", has_text=TALK)
        assert preview.evaluate("one => getComputedStyle(one).unicodeBidi") == "isolate", "it turns nothing around it"


def test_a_compaction_is_a_break_in_the_conversation(reader: Reader) -> None:
    """The conversation says what a compaction replaced; a click shows what that was, and `t` the prompt."""
    reader.open(session="planning-220", call=COMPACTION, show="", events="")
    reader.until(lambda: reader.page.locator(".break").count() == 1)
    text = reader.text(".break")
    assert "832 pages, 49,858 tokens replaced by a summary of 1,398" in text, text
    reader.page.locator(".break").get_by_text("what it took away").click()
    reader.until(lambda: reader.page.locator(".taken-row").count() > 5)
    reader.press("t")
    reader.until(lambda: reader.page.locator(".page.chosen, .page.new").count() > 0)
    reader.press("t")
    reader.until(lambda: reader.page.locator(".break").count() == 1)


def test_a_store_opens_with_its_sessions(reader: Reader) -> None:
    """The first view lists all sessions; it is filtered, searched, and a click and Back go there and come back."""
    reader.page.goto(reader.url)
    rows = reader.page.locator(".overview tbody tr")
    reader.until(lambda: rows.count() == 6)
    reader.press("/")
    reader.page.keyboard.type("plan")
    reader.until(lambda: rows.count() == 1)
    reader.press("ControlOrMeta+a")
    reader.page.keyboard.type("Cassandra")
    reader.press("Enter")
    reader.until(lambda: reader.page.locator(".found mark").count() > 0)
    reader.press("ControlOrMeta+a", "Delete")
    reader.until(lambda: rows.count() == 6)
    rows.filter(has_text="managed").first.click()
    reader.until(lambda: reader.page.locator(".talk .say").count() > 0)
    reader.page.go_back()
    reader.until(lambda: rows.count() == 6)


def test_an_open_list_takes_the_keys(reader: Reader) -> None:
    """What is typed into the box of sessions chooses one and does nothing else; Escape comes back."""
    reader.open(session="managed", call=12)
    reader.page.locator("button.session-name").click()
    reader.page.wait_for_selector(".menu input:focus")
    reader.page.keyboard.type("plan")
    reader.press("Enter")
    reader.until(lambda: "session=planning-220" in reader.place)
    reader.until(lambda: reader.page.locator("button.session-name", has_text="planning").count() == 1)
    reader.page.locator("button.session-name").click()
    reader.press("Escape")
    assert reader.page.locator(".menu").count() == 0
    reader.page.go_back()
    reader.until(lambda: "session=managed" in reader.place and reader.call == 12)


def test_keys_are_not_swallowed_by_fields(reader: Reader) -> None:
    """After a key that opens a pane with a field the next one still acts; a field for a number passes letters on."""
    reader.open(session="managed", call=12)
    reader.press("d", "w")
    reader.until(lambda: "pane=why" in reader.place)
    reader.press("s")
    reader.until(lambda: reader.page.get_by_label("budget", exact=True).count() == 1)
    reader.page.get_by_label("budget", exact=True).click()
    reader.page.keyboard.type("40w")
    reader.until(lambda: "pane=why" in reader.place)
    reader.press("Escape")
    reader.until(lambda: "pane=" not in reader.place)
    assert reader.call == 12


def test_back_undoes_a_run_of_steps(reader: Reader) -> None:
    """Some steps through calls are one entry of the history: Back returns to where they began."""
    reader.open(session="planning-220", call=100)
    reader.press("j", "j", "j")
    reader.until(lambda: reader.call == 103 and "call=103" in reader.place)
    reader.page.go_back()
    reader.until(lambda: reader.call == 100)


def test_an_export_opens_where_it_was_made(reader: Reader, chromium: Any, tmp_path: Path) -> None:
    """The exported file opens at the call, the page and the pane that were in view."""
    reader.open(session="managed", call=7, pane="history", page="p4", show="")
    reader.until(lambda: reader.page.locator(".say.chosen").count() == 1)
    with reader.page.expect_download() as download:
        reader.page.get_by_role("link", name="export").click()
    file = tmp_path / "managed.html"
    download.value.save_as(file)
    with reading(chromium, file.as_uri(), offline=True) as alone:
        alone.page.goto(file.as_uri())
        alone.until(lambda: alone.page.locator('[data-pane="history"]').count() == 1)
        assert alone.call == 7
        alone.until(lambda: alone.page.locator('.say.chosen[data-page="p4"]').count() == 1)


def test_a_phone_has_one_column_that_scrolls(reader: Reader) -> None:
    """At 390 pixels nothing is wider than the window, and what a call took away is reached by scrolling."""
    reader.page.set_viewport_size({"width": 390, "height": 844})
    reader.open(session="planning-220", call=COMPACTION, pane="taken", show="", events="")
    reader.until(lambda: reader.page.locator(".taken-row").count() > 0)
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 390
    reader.page.locator(".taken-row").first.scroll_into_view_if_needed()
    assert reader.page.locator(".taken-row").first.is_visible()
    assert reader.page.evaluate("scrollY") > 0
    reader.page.set_viewport_size({"width": 1280, "height": 800})
