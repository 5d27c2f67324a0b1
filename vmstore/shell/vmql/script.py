"""Cuts a text into statements and shell commands, and says what each stretch of it is.

Nothing here knows the grammar: a stretch is recognised by its first characters, so half a statement can
be coloured, and a text can be cut at its `;` before anybody knows whether it means something.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vmstore.errors import InputError

MARKS = ("\\", ".")  # what a shell command begins with
PLAIN = ("help", "quit", "exit", "?")  # commands without a mark, alone on their line: what everybody tries first

STRETCH = re.compile(
    r"""
    (?P<comment>--[^\n]*)
    |(?P<text>'(?:[^']|'')*(?:'|\Z))
    |(?P<quoted>"[^"]*(?:"|\Z))
    |(?P<param>\$\w*)
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w))
    |(?P<word>\w+(?:[.-]\w+)*)
    |(?P<space>\s+)
    |(?P<end>;)
    |(?P<sign>.)
    """,
    re.VERBOSE,
)

BLANK = re.compile(r"(?:\s+|--[^\n]*)*")


class ScriptToken(NamedTuple):
    """Some characters of one kind: comment, text, quoted, param, number, word, space, end, sign."""

    kind: str
    text: str
    start: int


class ScriptPiece(NamedTuple):
    """A statement without its `;`, or a shell command with its mark; `start` is its place in the text."""

    text: str
    start: int
    command: bool = False
    closed: bool = True  # a statement that the text's end cut off is not


def stretches(text: str) -> Iterator[ScriptToken]:
    """The stretches of a text, in order and without a gap."""
    for match in STRETCH.finditer(text):
        assert match.lastgroup is not None
        yield ScriptToken(match.lastgroup, match[0], match.start())


def pieces(text: str) -> Iterator[ScriptPiece]:
    """The statements and commands of a text; those that hold nothing but blanks and comments are left out.

    A command begins a line, where no statement is under way, and ends with the line.
    """
    at = 0
    while at < len(text):
        piece = _command(text, at) or _statement(text, at)
        if piece.command or _has_content(piece.text):
            yield piece
        at = piece.start + len(piece.text) + (not piece.command and piece.closed)


def is_whole(text: str) -> bool:
    """Whether nothing more is needed: every statement has its `;`, or there is none."""
    return all(piece.closed for piece in pieces(text))


def open_quote(text: str) -> str:
    """The quote that the text's last statement leaves open; nothing where there is none."""
    last = [*stretches(text)][-1:]
    for stretch in last:
        if stretch.kind == "text" and (len(stretch.text) - len(stretch.text.replace("'", ""))) % 2:
            return "'"
        if stretch.kind == "quoted" and (stretch.text == '"' or not stretch.text.endswith('"')):
            return '"'
    return ""


def _command(text: str, at: int) -> ScriptPiece | None:
    blank = BLANK.match(text, at)
    start = blank.end() if blank else at
    if at and "\n" not in text[at:start]:
        return None
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end].rstrip()
    marked = line.startswith(MARKS) or line.rstrip("; ").lower() in PLAIN
    return ScriptPiece(line, start, command=True) if marked else None


def _statement(text: str, at: int) -> ScriptPiece:
    for match in STRETCH.finditer(text, at):
        if match.lastgroup == "end":
            return ScriptPiece(text[at : match.start()], at)
    return ScriptPiece(text[at:], at, closed=not _has_content(text[at:]))


def _has_content(text: str) -> bool:
    return any(stretch.kind not in ("comment", "space") for stretch in stretches(text))


def file_text(path: Path) -> str:
    """What a file of statements holds, `-` being standard input; raises InputError where it is none."""
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); name a file of statements") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"{'standard input' if str(path) == '-' else path} is no text; name a file of statements")
    return text
