"""Long answers wait for a key."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TextIO

import pytest

from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.pager import MORE, PagedTerminal, PagerClosedError


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Says so."""
        return True


def shown(keys: str | list[str], lines: int, *, height: int = 5, text: str = "line") -> tuple[list[str], int, bool]:
    """The lines that came through, how often a key was asked for, whether the reader stopped."""
    pressed: Iterator[str] = iter(keys)
    asked = 0

    def key(_: TextIO, question: str) -> str:
        assert question == MORE
        nonlocal asked
        asked += 1
        return next(pressed)

    stream = Terminal()
    screen = PagedTerminal(key, height, name="vmql", out=stream)
    stopped = False
    try:
        for number in range(lines):
            screen.write([StyledText(f"{text} {number}")])
    except PagerClosedError:
        stopped = True
    return stream.getvalue().splitlines(), asked, stopped


@pytest.mark.parametrize(
    ("keys", "lines", "asked"),
    [("", 4, 0), (" ", 5, 1), ("  ", 12, 2), ("a", 400, 1), ("\n\n ", 9, 3), (["\x1b[B", "\x1b[6~"], 9, 2)],
)
def test_a_page_waits_for_a_key(keys: str | list[str], lines: int, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Space gives a page, Enter a line, `a` everything; an answer that fits asks for nothing."""
    monkeypatch.setenv("COLUMNS", "80")
    assert shown(keys, lines) == ([f"line {n}" for n in range(lines)], asked, False)


@pytest.mark.parametrize("key", ["q", "\x1b", "\x03"])
def test_a_reader_may_stop(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`q`, Escape and Ctrl-C end the answer after the page that is shown."""
    monkeypatch.setenv("COLUMNS", "80")
    assert shown([key], 99) == ([f"line {n}" for n in range(4)], 1, True)


def test_long_lines_count_as_they_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that takes three rows of the terminal counts as three."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    lines, asked, _ = shown("  ", 3, height=5, text="x" * 100)
    assert (len(lines), asked) == (3, 2)


def test_a_reader_may_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """`/` goes on at the next line that holds the words, `n` at the one after it; the end says that there is none."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    keys = iter(["/", "n", "n", "n"])
    stream = Terminal()
    screen = PagedTerminal(lambda *_: next(keys), 5, out=stream, words=lambda *_: "7\n")
    screen.heading([StyledText("title")])
    for number in range(35):
        screen.write([StyledText(f"line {number}")])
    screen.finish()
    lines = stream.getvalue().splitlines()
    assert lines[:6] == ["title", "line 0", "line 1", "line 2", "… 4 lines further on", "line 7"]
    assert "line 17" in lines and "line 14" not in lines and lines[-1] == "no more lines with '7'"
