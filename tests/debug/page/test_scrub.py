"""The page scrubs: keys, list and scrubber agree, and the URL brings everything back."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from serving import CHECKOUT

import vmstore
from tests.debug.page.browsing import Reader, reading

COMPACTION = 366  # the demo's first
FILLED = """() => [...document.querySelectorAll(".event-rows, .page-rows")].every((list) => {
  const box = list.getBoundingClientRect();
  const bottom = Math.min(box.bottom, list.lastElementChild.getBoundingClientRect().bottom);
  const rows = [box.top + 5, (box.top + bottom) / 2, bottom - 5];
  const filled = rows.every((y) => document.elementFromPoint(box.left + 30, y).closest(".rows-row"));
  const now = document.querySelector(".event.now")?.getBoundingClientRect();
  const events = document.querySelector(".event-rows").getBoundingClientRect();
  return filled && (!now || (now.bottom > events.top && now.top < events.bottom));
})"""


def test_it_opens_at_the_end_of_the_session(reader: Reader) -> None:
    """The page opens the session named, at its last call, and says that its calls are reconstructed."""
    reader.open(session="planning-220")
    assert reader.call == 525
    assert reader.text(".top .fidelity") == "reconstructed"
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


def test_a_jump_leaves_no_list_blank(reader: Reader) -> None:
    """Wherever the cursor jumps, both lists are filled from top to bottom, and what led to the call is in view."""
    reader.open(session="planning-220", call=100)
    for call in (500, 3, 270, 271, 260, 525):
        reader.page.locator(".scrubber").fill(str(call - 1))
        reader.until(lambda call=call: reader.call == call and reader.page.evaluate(FILLED))
        assert reader.marked <= {call}


def test_a_row_with_the_focus_is_not_handed_on(reader: Reader) -> None:
    """An event that was clicked and went out of view takes the focus with it: no other event has it instead."""
    reader.open(session="planning-220", call=100)
    reader.page.locator('.event[data-call="100"]').first.click()
    assert reader.page.evaluate("document.activeElement.dataset.call") == "100"
    reader.page.keyboard.press("End")
    reader.until(lambda: reader.call == 525 and reader.marked == {525})
    assert reader.page.evaluate("document.activeElement === document.body")


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
    hits = re.search(r"([\d,]+) pages \(([\d,]+) tokens\)", reader.text(".taken-sum"))
    assert hits is not None
    reader.page.get_by_role("button", name="Uncompact").click()
    reader.until(lambda: reader.page.locator(".said").count() > 0)
    copied = reader.clipboard
    assert "[p216 claim_storage_2, tool, turn 10]\nDecision recorded: storage/2" in copied
    assert len(re.findall(r"^\[p\d+", copied, re.MULTILINE)) >= int(hits[1].replace(",", ""))


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
    reader.page.get_by_role("button", name="Add note").click()
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
    """? shows every key as specs/page.md has them, and Escape closes it; what is typed into a field is no key."""
    reader.open(session="planning-220", call=10)
    reader.press("?")
    reader.until(lambda: reader.page.locator(".help").count() == 1)
    rows = (
        "rows => rows.map(row => [[...row.querySelectorAll('kbd')].map(k => k.textContent), row.lastChild.textContent])"
    )
    helped = [(tuple(keys), does) for keys, does in reader.page.locator(".help dl > div").evaluate_all(rows)]
    keys = (CHECKOUT / "specs" / "page.md").read_text().partition("## Keys")[2].partition("## ")[0]
    matches = re.findall(r"^\| (`.+`) \| (.+) \|$", keys, re.MULTILINE)
    assert helped == [(tuple(re.findall(r"`(.+?)`", names)), does) for names, does in matches]
    reader.press("Escape")
    reader.until(lambda: reader.page.locator(".help").count() == 0)
    reader.press("/")
    reader.page.get_by_label("search", exact=True).press_sequentially("jjj?")
    assert reader.call == 10
    assert reader.page.locator(".help").count() == 0


def test_scrubbing_asks_for_texts_alone(reader: Reader) -> None:
    """Where the cursor goes the film knows: nothing is asked but the texts that come into view."""
    reader.open(session="planning-220", call=100)
    reader.until(lambda: reader.page.locator(".preview:not(.wait)").count() > 5)
    reader.asked.clear()
    reader.press(*["j"] * 20, "PageDown", "C", "End")
    reader.until(lambda: reader.call == 525)
    reader.page.wait_for_timeout(300)
    assert {urlsplit(url).path for url in reader.asked} == {"/api/texts"}


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
