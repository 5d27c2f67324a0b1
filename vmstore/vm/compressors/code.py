"""Shorter forms of programs and of what programs print: whole lines in their order, and where lines are missing.

The first and the last lines stay, then what a program defines and what went wrong, then lines from the
beginning on. A line is kept whole or left out, so code is never rearranged.
"""

from __future__ import annotations

import re

from vmstore.core.page import Method
from vmstore.vm.compressors.form import NO_SHORTER, Form, NoForm, text_form
from vmstore.vm.recall.text_pieces import bounded, looks_like_code, runs_on

ENDS = 2  # lines at the beginning and at the end that come before all others
LINES_MIN = 6
ORDINARY = 3
LINE_CHARS_MAX = 400
NAMES_CHARS_MAX = 50_000
JUDGED_MAX = 400  # lines a text is judged by
MARK = "[… lines {} to {}]"
MARK_CHARS = 24


def is_printed(text: str) -> bool:
    """Whether most lines of a text are of a program or a listing, and few are prose."""
    lines = [line for line in text[:NAMES_CHARS_MAX].split("\n", JUDGED_MAX)[:JUDGED_MAX] if line.strip()]
    fenced = sum(line.lstrip().startswith(("```", "~~~")) for line in lines)
    if len(lines) < LINES_MIN or fenced:
        return False
    printed = sum(_is_printed(line, after) for line, after in zip(lines, [*lines[1:], ""], strict=True))
    return printed * 5 > 3 * len(lines)


def kept(text: str, room: int) -> Form | NoForm:
    """The lines of a text that matter most, in so many characters at most."""
    head, tail = bounded(text)
    lines = (head + ("\n[…]\n" if tail else "") + tail).strip("\n").split("\n")
    chosen: list[int] = []
    for at in sorted(range(len(lines)), key=lambda at: (_rank(lines, at), at)):
        cost = len(lines[at]) + 1 + (0 if at == 0 else MARK_CHARS // 2)
        if cost <= room and len(lines[at]) <= LINE_CHARS_MAX:
            if lines[at].strip():
                room -= cost
                chosen.append(at)
        elif _rank(lines, at) == ORDINARY:
            break  # what follows from the beginning on follows without holes
    return text_form(_joined(lines, sorted(chosen)), Method.LINES) if chosen else NO_SHORTER


def names(text: str) -> list[str]:
    """The names a block of code defines, in order."""
    return list(dict.fromkeys(found[1] for found in _DEFINED.finditer(text[:NAMES_CHARS_MAX])))


def _rank(lines: list[str], at: int) -> int:
    """The sooner a line is kept, the lower."""
    if at < ENDS or at >= len(lines) - ENDS:
        return 0
    line = lines[at][:LINE_CHARS_MAX]
    if _WRONG.search(line):
        return 1
    return 2 if _DEFINED.match(line) else ORDINARY


def _joined(lines: list[str], chosen: list[int]) -> str:
    """The chosen lines in order; where others stood between them a mark, or a blank line where only blank ones did."""
    parts: list[str] = []
    before = -1
    for at in [*chosen, len(lines)]:
        if any(line.strip() for line in lines[before + 1 : at]):
            parts.append(MARK.format(before + 2, at))
        elif at > before + 1:
            parts.append("")
        parts += lines[at : at + 1]
        before = at
    return "\n".join(parts)


def _is_printed(line: str, after: str) -> bool:
    """Whether a line is no prose: it ends without a full stop, and the one after it does not go on in the middle."""
    bare = line.strip()
    if _ITEM.match(bare):
        return False
    if looks_like_code(line) or line[:2] in ("  ", " \t") or line[0] == "\t":
        return True
    return bare[-1] not in ".!?:…" and not runs_on(line, after)


_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s|[#>]")
_WRONG = re.compile(
    r"\b(?:[A-Z]\w{0,60}(?:Error|Exception):|[Ee]rror(?:[:\[]|\s\w{1,20}:)|ERROR\b"
    r"|FAIL(?:ED|URE|URES)?\b|fatal:|panicked\b)"
    r"|Traceback \("
)
_DEFINED = re.compile(
    r"^(?:\d{1,6}[:|→\t][ ]?)?[ \t]{0,8}(?:(?:export|default|static|async|abstract|pub)[ ])*+"
    r"(?:def|class|func|fn|function|interface|struct|enum|trait|type|public|private|protected)[ ]"
    r"(?:(?:static|async|readonly)[ ])*+([A-Za-z_]\w{0,60})",
    re.MULTILINE,
)
