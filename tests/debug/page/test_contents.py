"""Whatever a session holds, the page shows it and lives: scripts, 5 MB, nothing, more by the second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from serving import served

import vmstore
from tests.debug.page.browsing import HOSTILE, LONG_BYTES, SCRIPT, Reader, reading


def test_contents_are_text_and_never_run(reader: Reader) -> None:
    """Scripts and HTML in contents, models and messages are shown as they are written, and nothing runs."""
    for pane in ("why", "request", "taken", "search"):
        reader.open(session="hostile", open="p4", pane=pane, page="p4", find="script")
        reader.until(lambda: HOSTILE in reader.page.inner_text(".page-rows"))
        reader.page.wait_for_timeout(300)
        assert reader.page.evaluate("window.ran") is None
        assert reader.page.locator("svg, .content img, main script").count() == 0
    reader.open(session="hostile", pane="vmql", q="CONTEXT MESSAGES")
    reader.until(lambda: SCRIPT in reader.text(".pane"))
    assert reader.page.evaluate("window.ran") is None


def test_a_page_of_five_megabytes_is_cut(reader: Reader) -> None:
    """A long content comes cut, with all of it a click away."""
    reader.open(session="hostile")
    reader.until(lambda: len(reader.pages) > 2)
    reader.open(session="hostile", open=reader.pages[-1])
    more = reader.page.get_by_text("show all").first
    reader.until(lambda: more.count() > 0)
    length = "Math.max(...[...document.querySelectorAll('.page-rows .content')].map(e => e.textContent.length))"
    assert reader.page.evaluate(length) < 70_000
    more.click()
    reader.until(lambda: reader.page.evaluate(length) == LONG_BYTES)


def test_a_session_without_calls_says_so(reader: Reader) -> None:
    """A session nobody answered yet is told as such, and its pages can be read."""
    reader.open(session="empty")
    reader.until(lambda: "no model calls" in reader.text(".context"))
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


def test_an_open_page_forgets_what_is_erased(chromium: Any, tmp_path: Path) -> None:
    """A request that was shown and a search that found are asked again after an erasure, and say it no more."""
    secret = "the kestrel flies at dawn"
    path = tmp_path / "erased.vms"
    with vmstore.open(path) as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": secret}]}, None)
        with served(path) as url, reading(chromium, url) as reader:
            reader.open(session="s", call=1, pane="request")
            reader.until(lambda: secret in reader.text(".pane"))
            reader.open(session="s", call=1, pane="search", q="kestrel", find="kestrel")
            reader.until(lambda: reader.page.locator(".hit").count() == 1)
            reader.press("r")
            reader.until(lambda: secret in reader.text(".pane"))
            vmstore.erase(store, page="p4", in_session="s")
            reader.until(lambda: secret not in reader.text("body"))
            reader.press("/")
            reader.until(lambda: reader.page.evaluate("document.activeElement.tagName") == "INPUT")
            reader.press("Escape")
            reader.until(lambda: "0, best first" in reader.text(".pane"))


def test_a_search_goes_with_a_growing_session(chromium: Any, tmp_path: Path) -> None:
    """The same words find what was said since they were searched first."""
    path = tmp_path / "live.vms"
    messages = [{"role": "user", "content": "a kestrel"}]
    with vmstore.open(path) as store:
        store.record("s", {"model": "m", "messages": messages}, None)
        with served(path) as url, reading(chromium, url) as reader:
            reader.open(session="s", pane="search", find="kestrel")
            reader.until(lambda: reader.page.locator(".hit").count() == 1)
            messages.append({"role": "user", "content": "and another kestrel"})
            store.record("s", {"model": "m", "messages": messages}, None)
            reader.until(lambda: reader.page.locator(".hit").count() == 2)


def test_a_recorded_session_of_others(chromium: Any, tmp_path: Path, data: Path) -> None:
    """The pi session opens, says that it is reconstructed, and its first compaction gives back what it took."""
    path = tmp_path / "pi.vms"
    with vmstore.open(path) as store:
        store.import_file(next((data / "pi").glob("*.jsonl")))
    with served(path) as url, reading(chromium, url) as reader:
        reader.open()
        reader.until(lambda: reader.page.locator(".top .fidelity").count() == 1)
        assert reader.text(".top .fidelity") == "reconstructed"
        reader.press("Home", "c", "u")
        reader.until(lambda: reader.page.locator(".taken-row").count() > 5)
