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

MORE = "── more: Space next page, Enter next line, a all, q stop ──"
LINE = ("\r", "\n", "j", "\x1b[B")
STOP = ("q", "Q", "\x1b", "\x03", "\x04")

Keys = Callable[[TextIO, str], str]  # shows a question on a stream, gives the key pressed, and takes it away again


class PagerClosedError(Exception):
    """The reader wants no more of this answer."""


class PagedTerminal(Screen):
    """A terminal that waits for a key whenever it is full."""

    def __init__(self, keys: Keys, height: int, *, name: str, out: TextIO | None = None) -> None:
        super().__init__(name=name, out=out)
        self._keys = keys
        self._page = max(1, height - 1)  # the last line is for the question
        self._room = self._page
        self._all = False

    def write(self, line: list[StyledText]) -> None:
        """Prints one line; raises EnoughError where the reader stops."""
        columns = sum(wide(span.text) for span in line)
        needed = max(1, -(-columns // (self.width or columns or 1)))
        if needed > self._room and not self._all:
            self._ask(needed)
        super().write(line)
        self._room -= needed

    def _ask(self, needed: int) -> None:
        key = self._keys(self.out, MORE)
        if key in STOP:
            raise PagerClosedError
        self._all = key in ("a", "A", "G")
        self._room = needed if key in LINE else self._page


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


def height() -> int:
    """The lines of the terminal."""
    return shutil.get_terminal_size().lines
