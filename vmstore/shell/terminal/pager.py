"""Shows long answers a page at a time, the rest one key away."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import TextIO

from vmstore.shell.terminal.format import wide
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

MORE = "── more: Space, Enter; / search, n next; a all, q stop ──"
LINE = ("\r", "\n", "j", "\x1b[B")
PAGE = (" ", "f", "\x1b[6~", "d")
ALL = ("a", "A", "G", "\x1b[F")
STOP = ("q", "Q", "\x1b", "\x03", "\x04")

Keys = Callable[[TextIO, str], str]  # shows a question on a stream, gives the key pressed, and takes it away again


class PagerClosedError(Exception):
    """The reader wants no more of this answer."""


class PagedTerminal(Screen):
    """A terminal that waits for a key whenever it is full; `words` reads what is searched for."""

    def __init__(
        self,
        keys: Keys,
        height: int,
        *,
        name: str = "vmstore",
        out: TextIO | None = None,
        quiet: bool = False,
        words: Keys | None = None,
    ) -> None:
        super().__init__(quiet=quiet, name=name, out=out)
        self._keys = keys
        self._words = words or read_words
        self._page = max(1, height - 1)  # the last line is for the question
        self._room = self._page
        self._all = False
        self._sought = ""
        self._skipped = 0
        self._heading: list[StyledText] = []

    def heading(self, line: list[StyledText]) -> None:
        """Prints the titles of a table, which are shown again at the top of each page that follows."""
        self.write(line)
        self._heading = line

    def write(self, line: list[StyledText]) -> None:
        """Prints one line; raises PagerClosedError where the reader stops."""
        text = "".join(span.text for span in line)
        if self._sought and self._skipped >= 0:
            if self._sought.lower() not in text.lower():
                self._skipped += 1
                return
            self._found()
        needed = max(1, -(-wide(text) // (self.width or wide(text) or 1)))
        if needed > self._room and not self._all:
            self._ask(needed)
            if self._skipped >= 0 and self._sought:
                self.write(line)
                return
        super().write(line)
        self._room -= needed

    def finish(self) -> None:
        """Says that nothing more was found, where the reader searched to the end."""
        if self._sought and self._skipped >= 0:
            super().write([StyledText(f"no more lines with {self._sought!r}", "warn")])

    def _found(self) -> None:
        """Goes on with a line that was searched for."""
        skipped, self._skipped = self._skipped, -1
        if skipped:
            super().write([StyledText(f"… {skipped:,} lines further on", "dim")])
        self._room = self._page - 1

    def _ask(self, needed: int) -> None:
        question = MORE
        while True:
            key = self._keys(self.out, question)
            if key in STOP:
                raise PagerClosedError
            if key in LINE:
                self._room = needed
                return
            if key in PAGE or key in ALL:
                self._all = key in ALL
                self._room = self._page
                if self._heading and not self._all:
                    super().write(self._heading)
                    self._room -= 1
                return
            if key == "/":
                self._sought = self._words(self.out, "/").strip()
            if key in ("/", "n") and self._sought:
                self._skipped = 0
                return
            question = "── Space next page, Enter next line, / n a q ──"


def read_key(stream: TextIO, question: str) -> str:
    """One key from the terminal, without waiting for Enter; arrows and the like are sequences of characters."""
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSADRAIN)  # before anybody is asked: who answers at once is heard
        stream.write(question)
        stream.flush()
        return os.read(keyboard, 16).decode("utf-8", "replace")
    except KeyboardInterrupt:
        return "\x03"
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        stream.write("\r" + " " * len(question) + "\r")


def read_words(stream: TextIO, question: str) -> str:
    """A line that is typed after a question."""
    stream.write(question)
    stream.flush()
    try:
        return sys.stdin.readline()
    except KeyboardInterrupt:
        return ""


def height() -> int:
    """The lines of the terminal."""
    return shutil.get_terminal_size().lines
