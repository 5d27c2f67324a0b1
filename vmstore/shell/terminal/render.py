"""Puts sheets on the terminal: in colour through rich where it is installed, else as plain text.

Data goes to stdout and everything else to stderr. In a pipe the text is plain and never cut.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from vmstore.core.text.visible import visible
from vmstore.shell.terminal.format import ASCII
from vmstore.shell.terminal.layout import Block, Line, StyledText, TextTable, lines_of, spans

if TYPE_CHECKING:
    import argparse

    from vmstore.shell.terminal.sign_of_life import WaitingSign

PATIENCE_S = 1.2  # work that is done by then needs no progress bar
REFRESH_S = 0.1
WIDTH_MIN = 40

STYLES = {
    "bold": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "name": "cyan",
    "head": "bold cyan",
}

Tell = Callable[[int, int], None]


class Screen:
    """The output of a command: answers to stdout or a given stream, remarks to stderr."""

    def __init__(self, *, quiet: bool = False, name: str = "vmstore", out: TextIO | None = None) -> None:
        self.quiet = quiet
        self.terminal = (out or sys.stdout).isatty()
        self._name = name
        self._out = out
        self._coloured = (self.terminal or bool(os.environ.get("FORCE_COLOR"))) and "NO_COLOR" not in os.environ
        self._consoles: dict[int, Any] = {}
        self._waiting: WaitingSign | None = None

    def wait(self, label: str) -> None:
        """Shows that something is under way, where it takes over a second, until the first word of the answer."""
        from vmstore.shell.terminal.sign_of_life import WaitingSign

        if not self.quiet:
            self._waiting = WaitingSign(label).start()

    def awake(self) -> None:
        """Takes the sign of life away."""
        if self._waiting is not None:
            self._waiting.stop()

    @property
    def out(self) -> TextIO:
        """The stream of the answer."""
        return self._out or sys.stdout

    @property
    def width(self) -> int | None:
        """The columns of the terminal; None in a pipe, where nothing is cut."""
        if not self.terminal:
            return None
        import shutil

        return max(shutil.get_terminal_size().columns, WIDTH_MIN)

    def show(self, *blocks: Block) -> None:
        """Prints blocks."""
        for block in blocks:
            lines = lines_of(block, self.width)
            if isinstance(block, TextTable) and lines and any(column.title for column in block.columns):
                self.heading(lines.pop(0))
            for line in lines:
                self.write(line)

    def heading(self, line: list[StyledText]) -> None:
        """Prints the titles of a table."""
        self.write(line)

    def finish(self) -> None:
        """Ends an answer."""

    def write(self, line: list[StyledText]) -> None:
        """Prints one line of spans."""
        self._write(self.out, line)

    def note(self, line: Line = "", *, style: str = "dim") -> None:
        """Prints a remark to stderr, unless only the answer is wanted."""
        if not self.quiet:
            self._write(sys.stderr, spans(line, style if sys.stderr.isatty() else ""))

    def warn(self, line: Line) -> None:
        """Prints a warning or error to stderr, always."""
        self._write(sys.stderr, [StyledText(f"{self._name}: "), *spans(line)])

    def json(self, value: Any, *, one_line: bool = False) -> None:
        """Prints an answer as one JSON object, on one line if more may follow."""
        from vmstore.namespace.results import to_json

        self.awake()
        text = json_text(to_json(value), getattr(self.out, "encoding", None))
        self.out.write((text.replace("\n", "") if one_line else text) + "\n")

    def answer(self, arguments: argparse.Namespace, value: Any, *blocks: Block) -> int:
        """Prints an answer as JSON with --json, else as blocks unless --quiet; the exit code 0."""
        if arguments.json:
            self.json(value)
        elif not self.quiet:
            self.show(*blocks)
        return 0

    def raw(self, content: bytes) -> None:
        """Writes exact bytes."""
        self.awake()
        self.out.flush()
        buffer = getattr(self.out, "buffer", None)
        if buffer is None:  # a stdout that somebody replaced by a text stream
            self.out.write(content.decode("utf-8", "backslashreplace"))
        else:
            buffer.write(content)
            buffer.flush()

    def _write(self, stream: TextIO, line: list[StyledText]) -> None:
        self.awake()
        console = self._console(stream) if self._coloured and any(span.style for span in line) else None
        if console is None:
            stream.write(_readable("".join(span.text for span in line), stream).rstrip() + "\n")
            return
        from rich.text import Text

        text = Text.assemble(*((_readable(span.text, stream), STYLES.get(span.style, "")) for span in line))
        console.print(text, soft_wrap=True)

    def _console(self, stream: TextIO) -> Any:
        """The rich console of a stream, None where rich is not installed or the stream is no terminal."""
        if not (stream.isatty() or os.environ.get("FORCE_COLOR")):
            return None
        if id(stream) not in self._consoles:
            try:
                from rich.console import Console
            except ImportError:
                self._consoles[id(stream)] = None
            else:
                self._consoles[id(stream)] = Console(file=stream, highlight=False, markup=False, emoji=False)
        return self._consoles[id(stream)]

    @contextlib.contextmanager
    def progress(self, label: str) -> Iterator[Tell | None]:
        """A progress bar on stderr for work that takes a while; nothing where nobody watches."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        self.awake()
        bar = _bar(label)
        try:
            yield bar.tell
        finally:
            bar.close()


class _Plain:
    """A percentage that overwrites itself."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = self._shown = time.monotonic()
        self._painted = False

    def tell(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._start < PATIENCE_S or now - self._shown < REFRESH_S:
            return
        self._shown, self._painted = now, True
        self.paint(done, max(total, 1))

    def paint(self, done: int, total: int) -> None:
        sys.stderr.write(f"\r{self._label} {100 * done // total} %")
        sys.stderr.flush()

    def close(self) -> None:
        if self._painted:
            sys.stderr.write("\r" + " " * (len(self._label) + 6) + "\r")


class _Rich(_Plain):
    """A bar with the time it still takes."""

    def __init__(self, label: str, progress: Any) -> None:
        super().__init__(label)
        self._progress = progress
        self._task: Any = None

    def paint(self, done: int, total: int) -> None:
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task(self._label, total=total)
        self._progress.update(self._task, completed=done, total=total)

    def close(self) -> None:
        if self._task is not None:
            self._progress.stop()


def _bar(label: str) -> _Plain:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    except ImportError:
        return _Plain(label)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return _Rich(label, Progress(*columns, console=Console(stderr=True), transient=True))


def json_text(value: Any, encoding: str | None = "utf-8") -> str:
    """JSON of which each entry of a list stands on its own line; escaped where the encoding lacks a character."""
    text = _json(value, ascii_only=False)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        text = _json(value, ascii_only=True)
    return text


def _json(value: Any, *, ascii_only: bool) -> str:
    def one(item: Any) -> str:
        return json.dumps(item, ensure_ascii=ascii_only, default=_plain)

    if not isinstance(value, dict):
        return one(value)
    fields = []
    for key, item in value.items():
        if isinstance(item, list) and item and isinstance(item[0], dict):
            entries = ",\n   ".join(map(one, item))
            fields.append(f"{one(key)}: [\n   {entries}\n ]")
        else:
            fields.append(f"{one(key)}: {one(item)}")
    return "{" + ",\n ".join(fields) + "}"


def _plain(value: Any) -> Any:
    """Bytes in JSON stand as their hexadecimal digits."""
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _readable(text: str, stream: TextIO) -> str:
    """A text whose every character the terminal shows and none drives it."""
    text = visible(text)
    return text if text.isascii() or _encodes(stream, "├█…") else text.translate(ASCII)


def _encodes(stream: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
