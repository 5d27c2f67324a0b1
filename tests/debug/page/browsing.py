"""Somebody before the page, in a real browser: what the tests of the page stand on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

WAIT_MS = 15_000
SCRIPT = "<script>window.ran = 1</script>"
HOSTILE = f"{SCRIPT}<img src=x onerror='window.ran = 2'></pre></script><svg onload='window.ran = 3'>"
LONG_BYTES = 5 << 20


class Reader:
    """Somebody before the page: presses keys, clicks, reads, and keeps what the browser complained of."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda value: self.complaints.append(value.text) if value.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.set_default_timeout(WAIT_MS)

    def open(self, **place: object) -> None:
        """Opens the page at a place, with the events and the pages of the prompt in view unless it says otherwise."""
        place = {"show": "prompt", "events": 1, **place}
        text = "&".join(f"{name}={value}" for name, value in place.items())
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#{text}")
        self.page.wait_for_selector("main")

    def press(self, *keys: str) -> None:
        """Presses keys, one after another."""
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def call(self) -> int:
        """The call at the cursor, as the context's head names it."""
        return int(self.text(".context h2").removeprefix("Call "))

    @property
    def marked(self) -> set[int]:
        """The calls of the events that are marked as the cursor's."""
        values = self.page.locator(".event.now").evaluate_all("rows => rows.map(row => row.dataset.call)")
        return {int(value) for value in values}

    @property
    def pages(self) -> list[str]:
        """The pages in view in the context, in order."""
        texts: list[str] = self.page.locator(".context .page").evaluate_all("rows => rows.map(row => row.dataset.page)")
        return texts

    @property
    def place(self) -> str:
        """What the URL says of the place."""
        return urlsplit(self.page.url).fragment

    def text(self, selector: str) -> str:
        """The text of the first element that is found."""
        return str(self.page.locator(selector).first.inner_text())

    def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds; what never does is an error."""
        for _ in range(WAIT_MS // 25):
            if holds():
                return
            self.page.wait_for_timeout(25)
        raise AssertionError(f"it never held; the page shows: {self.page.inner_text('body')[:2000]}")

    @property
    def clipboard(self) -> str:
        """What was copied last."""
        return str(self.page.evaluate("navigator.clipboard.readText()"))


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
