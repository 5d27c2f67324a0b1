"""A text as the kernel reads it: so many characters at most, in pieces that are kept whole or left out.

A piece is a sentence, an item of a list, a heading, a quotation or a block of code. Every pattern here
looks at a character a fixed number of times, so that reading grows with the text and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

CHARS_MAX = 200_000  # a longer text is read at its beginning and its end
MARKDOWN_INDENT = 4
WRAPPED_CHARS = 60  # lines that are wrapped are at least so long


class PieceKind(IntEnum):
    """The kind of a piece of text."""

    SENTENCE = 0
    ITEM = 1
    HEADING = 2
    QUOTE = 3
    CODE = 4


class TextPiece(NamedTuple):
    """One piece of a text, as it stands there."""

    kind: PieceKind
    text: str
    line: int  # the line it begins in, from 0: pieces of one line are set beside each other


def readable(content: bytes) -> str | None:
    """The text of some bytes without what is no character to read; None where they are no UTF-8."""
    try:
        return without_controls(content.decode())
    except UnicodeDecodeError:
        return None


def without_controls(text: str) -> str:
    """A text without control characters and terminal colours; only its line ends and tabs stay."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _COLOUR.sub("", text)) if _CONTROL.search(text) else text


def bounded(text: str, chars_max: int = CHARS_MAX) -> tuple[str, str]:
    """The beginning and the end of a text, together `chars_max` characters at most; the end is empty where all fits."""
    if len(text) <= chars_max:
        return text, ""
    tail = chars_max // 4
    return text[: chars_max - tail], text[-tail:]


def pieces(text: str) -> list[TextPiece]:
    """The pieces of a text in order."""
    found: list[TextPiece] = []
    for kind, first, lines in _blocks(text.split("\n")):
        if kind is PieceKind.SENTENCE:
            found += _sentences_of(first, lines)
        elif block := "\n".join(lines).strip("\n"):
            found.append(TextPiece(kind, block if kind is PieceKind.CODE else block.strip(), first))
    return found


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph; a point inside a number, a name, a path or an abbreviation ends none."""
    found: list[str] = []
    start = 0
    for end in _ENDING.finditer(paragraph):
        after = paragraph[end.end() : end.end() + 1]
        if after and not after.isspace() and end[0][0] not in "。！？":
            continue
        following = _NEXT.match(paragraph, end.end())
        if following is not None and following[1].islower() and end[0][:2] in ("..", "…"):
            continue
        if end[0] == "." and _abbreviated(paragraph, start, end.start()):
            continue
        found.append(paragraph[start : end.end()].strip())
        start = end.end()
    found.append(paragraph[start:].strip())
    return [sentence for sentence in found if sentence]


def looks_like_code(line: str) -> bool:
    """Whether a line is of a program, of a table or of what a program printed, and not of prose."""
    bare = line.strip()
    if not bare or len(bare) > 2_000:
        return len(bare) > 2_000 and bare.count(" ") * 20 < len(bare)
    if _CODE_START.match(bare) or _CODE_END.search(bare[-80:]) or _NUMBERED.match(bare):
        return True
    return len(bare) > 8 and (bare.count("_") + len(_SIGN.findall(bare))) * 4 > len(bare)


def runs_on(line: str, following: str) -> bool:
    """Whether a sentence continues from a line into the next one: a long line without its end, not one of a list."""
    if line.rstrip()[-1:] in tuple(".!?:;…") or _LABEL.match(following):
        return False
    begins, goes_on = _FIRST_WORD.match(line), _FIRST_WORD.match(following)
    if goes_on is None or (begins is not None and begins[1] == goes_on[1]):
        return False
    return len(line) >= WRAPPED_CHARS or (len(line) >= WRAPPED_CHARS // 2 and goes_on[1][0].islower())


def _blocks(lines: list[str]) -> Iterator[tuple[PieceKind, int, list[str]]]:
    """Runs of lines of one kind, each with the number of its first line."""
    at = 0
    while at < len(lines):
        kind = _kind(lines[at], at > 0 and not lines[at - 1].strip())
        if kind is None:
            at += 1
            continue
        end = _fence_end(lines, at) if _FENCE.match(lines[at]) else _run_end(lines, at, kind)
        yield kind, at, lines[at:end]
        at = end


def _kind(line: str, after_blank: bool) -> PieceKind | None:
    bare = line.lstrip()
    if not bare:
        return None
    if _FENCE.match(line):
        return PieceKind.CODE
    if _HEADING.match(bare):
        return PieceKind.HEADING
    if bare.startswith(">") and not bare.startswith(">>>"):
        return PieceKind.QUOTE
    if _ITEM.match(bare):
        return PieceKind.ITEM
    if looks_like_code(line) or (after_blank and len(line) - len(bare) >= MARKDOWN_INDENT):
        return PieceKind.CODE
    return PieceKind.SENTENCE


def _fence_end(lines: list[str], at: int) -> int:
    fence = lines[at].lstrip()[:3]
    for end in range(at + 1, len(lines)):
        if lines[end].lstrip().startswith(fence) and not lines[end].lstrip()[3:].strip("`~ "):
            return end + 1
    return len(lines)


def _run_end(lines: list[str], at: int, kind: PieceKind) -> int:
    """The end of the run that begins at a line: a heading, or an item with its indented lines."""
    end = at + 1
    if kind is PieceKind.HEADING:
        return end
    while end < len(lines):
        line = lines[end]
        if kind is PieceKind.CODE and not line.strip():
            # A blank line is of the code where code follows at once.
            if (
                end + 1 >= len(lines)
                or _kind(lines[end + 1], True) is not PieceKind.CODE
                or _FENCE.match(lines[end + 1])
            ):
                break
        elif kind is PieceKind.CODE:
            if _FENCE.match(line) or not (looks_like_code(line) or line[:1] in (" ", "\t")):
                break
        elif kind is PieceKind.ITEM:
            if not line.strip() or line[:1] not in (" ", "\t") or _kind(line, False) is not PieceKind.SENTENCE:
                break
        elif _kind(line, False) is not kind:
            break
        end += 1
    return end


def _sentences_of(first: int, lines: list[str]) -> Iterator[TextPiece]:
    """The sentences of some lines of prose, joined where a sentence runs on in the next line."""
    start = 0
    for at in range(len(lines)):
        if at + 1 == len(lines) or not runs_on(lines[at], lines[at + 1]):
            paragraph = "\n".join(lines[start : at + 1])
            for sentence in sentences(paragraph):
                yield TextPiece(PieceKind.SENTENCE, sentence, first + start)
            start = at + 1


def _abbreviated(text: str, start: int, point: int) -> bool:
    """Whether the point after a word is part of the word."""
    word = _LAST_WORD.search(text[max(start, point - 20) : point])
    return word is not None and (word[0].lower() in _ABBREVIATIONS or "." in word[0])


_SIGN = re.compile(r"[^\w\s]")  # and the underscore, which a pattern takes for a letter
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ENDING = re.compile(r"[.!?…]+[\"'”’»)\]*_`]*|[。！？]+")
_NEXT = re.compile(r"\s*+[\"'“‘«(\[*_]*+(\S)")
_LAST_WORD = re.compile(r"[A-Za-z.]+\Z")
_LABEL = re.compile(r"\s*[\w-]{1,30}:(?:\s|\Z)")
_FIRST_WORD = re.compile(r"\s*[\"'“‘(*_`]{0,3}([^\W_]+)")
_SHORT = "e.g i.e etc vs cf mr mrs ms dr prof st no nr fig eq sec approx ca al inc ltd jr sr"
_ABBREVIATIONS = frozenset(_SHORT.split())
_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_HEADING = re.compile(r"#{1,6}\s|={4,}\s*\Z|-{4,}\s*\Z")
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+\S")
_NUMBERED = re.compile(r"\d{1,6}(?:[:|→](?!\d\d\b)|\t)|[\w./\\-]{1,200}:\d{1,7}:")
_CODE_START = re.compile(
    r"""(?:def|class|async\sdef|func|fn|impl|struct|enum|interface|namespace|package)\s\w[^.!?]*[({:;]
    |(?:import|from)\s[\w.*{}'"@/-]+(?:\s(?:import|as|from)\s.*|;)?\Z
    |(?:return|raise|throw|yield|await|const|let|var|export|elif|else|except|try|finally|public|private|static)\b
        [^.!?]*[({:;=]
    |(?:if|for|while|switch|with)\b.*(?:\)\s*\{|:)\Z
    |(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP)\s.*\b(?:FROM|INTO|SET|TABLE|INDEX|WHERE|VIEW)\b
    |[\w.\[\]'"]+\s*(?:=|\+=|-=|:=|==)\s*\S
    |</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>
    |\$\s\S|>>>\s|\.\.\.\s|@@\s|diff\s--git|index\s[0-9a-f]{6}|[+-]{3}\s\S+
    |\#(?:include|define|ifdef|endif|!)|//|/\*|\*/|@\w+(?:\(|\Z)
    |Traceback\s|File\s"|at\s[\w.$<>]+\(|\|.*\|\Z
    |[dl-][rwx-]{9}[.+@]?\s|total\s\d+\Z""",
    re.VERBOSE,
)
_CODE_END = re.compile(r"[{};]\Z|\)\s*\{\Z|=>\Z|\\\Z|[\[(]\Z")
