"""The debugger's page: opening it and scrubbing through a long session in a browser."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import serving
from browser import browser
from page import PAGE

from benches.debug import scrubbed
from benches.parts import stores
from benches.parts.rounds import LOWER, Act, Bench, Goal, MissingError, Row, row

OPENED = Goal("opened before 1,000 calls and 10,000 pages, to the first painted call: ms", 1_000, LOWER)
STEP = Goal("one step, from the key to the painted frame: ms", 50, LOWER)
TEN = Goal("ten calls, from the key to the painted frame: ms", 50, LOWER)
ANYWHERE = Goal("the scrubber drawn to any call, to the painted frame: ms", 50, LOWER)
BUNDLE = Goal("what a browser loads, bytes", 200_000, LOWER)
PACKED = Goal("the same, packed, bytes", 70_000, LOWER)
GOALS = (OPENED, STEP, TEN, ANYWHERE, BUNDLE, PACKED)

CALLS = (1_000, 40)
OPENINGS = (5, 2)
ROUNDS = (31, 3)
SETTLED_MS = 250  # texts that came into view are there, and what is done when idle is done

# A task posted within a frame runs once that frame was laid out and painted.
PAINTED = """
window.painted = (then) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => then(performance.now());
  port2.postMessage(0);
});
window.opened = new Promise((told) => {
  new MutationObserver((_, watch) => {
    if (!document.querySelector(".say")) return;
    watch.disconnect();
    painted(told);
  }).observe(document, { childList: true, subtree: true });
});
"""
# The clock of an event starts where the browser was told of it, before any script ran.
AWAITED = """kind => {
  window.seen = new Promise((told) => {
    const heard = (event) => painted((now) => told(now - event.timeStamp));
    addEventListener(kind, heard, { capture: true, once: true });
  });
}"""


def measure(bench: Bench) -> Iterator[Row]:
    """Opens the page again and again, each time of a server that was asked nothing yet, then scrubs."""
    loaded = [(PAGE / name).read_bytes() for name in ("index.html", "page.js", "page.css")]
    with chromium() as context:
        count = bench.size(*CALLS)
        path = stores.built(bench, f"scrubbed-{count}", lambda place: scrubbed(place, count))
        opened = bench.race({"open": lambda: opening(context, path)}, bench.size(*OPENINGS))
        yield row(OPENED, in_ms(opened["open"]))
        with serving.served(path, stores.SESSION) as url, window(context, f"{url}&call={count // 2}") as page:
            for goal, times in scrubs(bench, page):
                yield row(goal, in_ms(times))
    yield row(BUNDLE, [sum(map(len, loaded))])
    yield row(PACKED, [sum(len(gzip.compress(item, 9)) for item in loaded)])


def opening(chromium: Any, path: Path) -> float:
    """Seconds until the first call is painted."""
    with serving.served(path, stores.SESSION) as url, window(chromium, url) as page:
        return float(page.evaluate("opened")) / 1e3


def scrubs(bench: Bench, page: Any) -> Iterator[tuple[Goal, list[float]]]:
    """The seconds of each scrub, by goal."""
    rounds = bench.size(*ROUNDS)
    page.evaluate("opened")
    page.wait_for_timeout(4 * SETTLED_MS)

    def taken(name: str, kind: str, does: Callable[[], None]) -> list[float]:
        def run() -> float:
            does()
            return float(page.evaluate("seen")) / 1e3

        act = Act(run, lambda: page.evaluate(AWAITED, kind), lambda: page.wait_for_timeout(SETTLED_MS))
        return bench.race({name: act}, rounds)[name]

    yield STEP, taken("step", "keydown", lambda: page.keyboard.press("j"))
    yield TEN, taken("ten", "keydown", lambda: page.keyboard.press("PageDown"))
    box = page.locator(".scrubber").bounding_box()
    shares = random.Random(1)

    def draw() -> None:
        page.mouse.move(box["x"] + 8 + (box["width"] - 16) * shares.random(), box["y"] + box["height"] / 2)

    draw()
    page.mouse.down()
    page.wait_for_timeout(SETTLED_MS)
    yield ANYWHERE, taken("anywhere", "pointermove", draw)
    page.mouse.up()


def in_ms(seconds: list[float]) -> list[float]:
    """Milliseconds of seconds."""
    return [1e3 * each_seconds for each_seconds in seconds]


def chromium() -> AbstractContextManager[Any]:
    """A browser without a screen; MissingError where there is none."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        raise MissingError("playwright drives the browser; run: pip install 'playwright>=1.50'") from None
    place = browser()
    if place is None:
        raise MissingError("there is no Chromium on this machine; run: python3 tools/browser.py")
    return serving.chromium(place)


@contextmanager
def window(chromium: Any, url: str) -> Iterator[Any]:
    """A window of its own that remembers nothing, on its way to an address."""
    actual = chromium.new_context(viewport={"width": 1280, "height": 800})
    actual.add_init_script(PAINTED)
    page = actual.new_page()
    page.goto(url, wait_until="commit")
    try:
        yield page
    finally:
        actual.close()
