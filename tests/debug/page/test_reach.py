"""Everything can be reached: by keyboard alone, and in a window of any width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import served

import vmstore
from tests.debug.page.browsing import Reader, reading
from tests.debug.page.conftest import managed
from tests.debug.page.test_scrub import COMPACTION
from vmstore.shell.demo.demo import SHIPPED

LONG = "a-session-named-by-a-machine-ffae836b-9420-4060-ac13-7745215f90ff"
WIDTHS = (1280, 800, 420)
# What of the page lies beyond the right edge of what holds it, and cannot be scrolled to.
BEYOND = """() => [
  ...document.querySelectorAll("main, .panel, .top *, .legend *, .tabs *, .panel > header *, .side-heads *"),
]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.className || one.textContent)"""


@pytest.fixture(scope="module")
def narrow(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A window on a store of two sessions, one of which has a long name."""
    path = tmp_path_factory.mktemp("reach") / "reach.vms"
    with vmstore.open(path) as store:
        managed(store)
        store.session("managed").fork(LONG, turn=20)
    with served(path) as url, reading(chromium, url) as reader:
        yield reader


def focused(reader: Reader) -> str:
    """What has the focus, in the page's own words."""
    return str(reader.page.evaluate("document.activeElement.parentElement?.textContent ?? ''"))


def test_policies_are_chosen_by_keyboard(reader: Reader) -> None:
    """A sweep of three policies is asked for and its best opened without a mouse, and the cursor stays."""
    reader.open(session="managed", call=20)
    reader.until(lambda: reader.page.locator(".context .page").count() > 0)
    reader.press("i")
    reader.until(lambda: focused(reader) == "default")
    reader.press("Tab", "Tab", " ")
    assert reader.page.locator("fieldset input:checked").count() == 3
    for _ in range(20):
        reader.press("Tab")
        if reader.page.evaluate("document.activeElement.ariaLabel") == "budgets":
            break
    reader.press("ControlOrMeta+a")
    reader.page.keyboard.type("3000, 4000")
    reader.press("Enter")
    reader.until(lambda: reader.page.locator(".sweep tbody tr").count() == 7)
    assert "call=20" in reader.place.split("&")
    reader.press("Escape", "ArrowDown", "ArrowDown", "Enter")
    reader.until(lambda: "pane=sides" in reader.place and "opolicy=" in reader.place)


def test_a_jump_goes_on_around_the_end(reader: Reader) -> None:
    """Where the page opens, at the last call, C finds the first compaction as it does from anywhere, and says so."""
    reader.open(session="planning-220")
    reader.press("c")
    reader.until(lambda: reader.call == COMPACTION)
    assert "the first" in reader.text(".said")
    reader.press("c")
    reader.until(lambda: "no other compaction" in reader.text(".said"))
    assert reader.call == COMPACTION


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(narrow: Reader, width: int) -> None:
    """However narrow the window and long the session's name, every button and panel is within it."""
    narrow.page.set_viewport_size({"width": width, "height": 800})
    for place in ({}, {"pane": "whatif"}, {"policy": "lru"}, {"pane": "sides", "other": "managed"}):
        narrow.open(session=LONG, **place)
        narrow.page.wait_for_selector(".side-heads" if "other" in place else ".event")
        assert narrow.page.evaluate(BEYOND) == [], place


def test_what_was_erased_comes_not_back_as_nothing(chromium: Any, tmp_path: Path) -> None:
    """What is copied to uncompact says of an erased page that it was erased."""
    path = tmp_path / "erased.vms"
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
        vmstore.erase(store, page="p216", in_session="planning-220")
    with served(path) as url, reading(chromium, url) as reader:
        reader.open(session="planning-220", call=COMPACTION, pane="taken")
        reader.page.get_by_role("button", name="Uncompact").click()
        reader.until(lambda: reader.page.locator(".said").count() > 0)
        value = reader.clipboard.partition("[p216")[2].partition("\n[p")[0]
        assert "erased" in value
