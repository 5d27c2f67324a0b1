"""What the text under the cursor looks like: keywords, texts, numbers, comments, quotes left open."""

from __future__ import annotations

from collections.abc import Container

from vmstore.shell.vmql.script import pieces, stretches

STYLES = {
    "comment": "italic ansibrightblack",
    "text": "ansigreen",
    "quoted": "ansired",  # VMQL has no double quotes
    "param": "ansimagenta",
    "number": "ansicyan",
    "keyword": "bold ansiblue",
    "command": "bold ansiyellow",
    "sign": "ansibrightblack",
    "end": "ansibrightblack",
}


def fragments(text: str, keywords: Container[str]) -> list[tuple[str, str]]:
    """The stretches of a text, each with the kind it is shown as; `keywords` in capitals."""
    found: list[tuple[str, str]] = []
    at = 0
    for piece in pieces(text):
        if piece.command:
            found += _told(text[at : piece.start], keywords)
            found.append(("command", piece.text))
            at = piece.start + len(piece.text)
    return found + _told(text[at:], keywords)


def _told(text: str, keywords: Container[str]) -> list[tuple[str, str]]:
    return [(_kind(one.kind, one.text, keywords), one.text) for one in stretches(text)]


def _kind(kind: str, text: str, keywords: Container[str]) -> str:
    return "keyword" if kind == "word" and text.upper() in keywords else kind
