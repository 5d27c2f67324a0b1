"""Where answers go: stdout, a file, another program, or a terminal that is read page by page."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

from vmstore.errors import InputError
from vmstore.shell.terminal.layout import Line
from vmstore.shell.terminal.pager import STOP, Keys, PagedTerminal, height
from vmstore.shell.terminal.render import Screen

NAME = "vmql"


class Outputs:
    """The way out of each answer; remarks and errors go to stderr whatever the way.

    `keys` gives the key a reader presses to go on; without it nothing is read page by page.
    """

    def __init__(self, *, quiet: bool = False, keys: Keys | None = None) -> None:
        self.interactive = keys is not None
        self._remarks = Screen(quiet=quiet, name=NAME)
        self._errors = Screen(name=NAME, out=sys.stderr)
        self._keys = keys
        self._file: TextIO | None = None
        self._once: str | None = None

    @property
    def on_terminal(self) -> bool:
        """Whether the next answer is shown to a reader at a terminal."""
        return self.interactive and self._file is None and self._once is None and sys.stdout.isatty()

    def flush(self) -> None:
        """Flushes what is written so far, for a reader that waits for it."""
        (self._file or sys.stdout).flush()

    def note(self, line: Line) -> None:
        """Says something that is no answer."""
        self._remarks.note(line)

    def warn(self, line: Line) -> None:
        """Says what went wrong."""
        self._remarks.warn(line)

    def point(self, line: str) -> None:
        """Shows a line that belongs to what went wrong."""
        self._errors.show(line)

    def go_on(self, question: str) -> bool:
        """Whether the reader wants more; nobody is asked where answers are not read at a terminal."""
        if self._keys is None or not sys.stdout.isatty():
            return True
        return self._keys(sys.stderr, question) not in STOP

    def to(self, path: str | None) -> None:
        """Sends every answer from now on to a file, overwritten; None brings them back."""
        if self._file is not None:
            self._file.close()
        self._file = None if path is None else _opened(path)

    def once(self, target: str) -> None:
        """Sends the next answer to a file, overwritten, or to a program: `| COMMAND`."""
        self._once = target

    def close(self) -> None:
        """Closes the file."""
        self.to(None)

    @contextlib.contextmanager
    def screen(self, pager: str = "off") -> Iterator[Screen]:
        """The screen of the next answer."""
        target, self._once = self._once, None
        if target is not None and target.startswith("|"):
            with _piped(target[1:]) as stream:
                yield Screen(name=NAME, out=stream)
        elif target is not None:
            with _opened(target) as stream:
                yield Screen(name=NAME, out=stream)
        elif self._file is not None:
            yield Screen(name=NAME, out=self._file)
            self._file.flush()
        elif self._keys is None or pager == "off" or not sys.stdout.isatty():
            yield Screen(name=NAME)
            sys.stdout.flush()
        elif pager == "on":
            screen = PagedTerminal(self._keys, height(), name=NAME)
            yield screen
            screen.finish()
            sys.stdout.flush()
        else:
            with _piped(pager) as stream:
                yield Screen(name=NAME, out=stream)


def _opened(path: str) -> TextIO:
    try:
        return Path(path).expanduser().open("w", encoding="utf-8", errors="backslashreplace", newline="")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written ({error}); name another file") from None


@contextlib.contextmanager
def _piped(command: str) -> Iterator[TextIO]:
    """The standard input of a program, which is waited for; one that stops reading is no fault."""
    import shlex
    import subprocess  # which loads slowly, and is seldom needed

    words = shlex.split(command)
    if not words:
        raise InputError("no program to send the answer to; name one: \\once | less")
    try:
        program = subprocess.Popen(words, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"{words[0]} cannot be run ({error.strerror}); name another program") from None
    stream = cast(TextIO, program.stdin)
    try:
        with contextlib.suppress(BrokenPipeError):
            yield stream
    finally:
        with contextlib.suppress(BrokenPipeError):
            stream.close()
        program.wait()
