"""The front matter of a note: the part of YAML that notes need, one `key: value` a line.

A value is a word or several, a text in quotes, or a list of these in brackets or as lines with a dash.
Anything else that YAML knows (maps, anchors, blocks of text) is refused where it stands, never guessed at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from vmstore.errors import InputError

Value = str | list[str]
FENCE = "---"
LINES_MAX = 200
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/@+:-]*[A-Za-z0-9._/@+-])?")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))  # which YAML takes for others
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?: (.*))?")
_ITEM = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,"'\[\]{}]*)\s*""")
_REFUSED = tuple("{}|>&*!%@`")


def printed(fields: Mapping[str, Value]) -> str:
    """Fields as front matter with its fences."""
    lines = [f"{key}: {_list(value) if isinstance(value, list) else _text(value)}" for key, value in fields.items()]
    return "\n".join((FENCE, *lines, FENCE)) + "\n"


def parsed(text: str, place: str) -> tuple[dict[str, Value], str]:
    """The fields of a text's front matter, and the rest of it; none where it begins without.

    InputError names the place and the line of what cannot be read.
    """
    if not text.startswith(FENCE + "\n"):
        return {}, text
    end = text.find(f"\n{FENCE}\n", len(FENCE))
    if end < 0:
        raise _error(place, 1, "front matter begins and does not end; close it with a line of ---")
    lines = text[len(FENCE) + 1 : end + 1].split("\n")[:-1]
    if len(lines) > LINES_MAX:
        raise _error(place, LINES_MAX, f"front matter of more than {LINES_MAX} lines; put what it says into the text")
    return dict(_fields(lines, place)), text[end + len(FENCE) + 2 :]


def _fields(lines: Sequence[str], place: str) -> Iterator[tuple[str, Value]]:
    seen: set[str] = set()
    at = 0
    while at < len(lines):
        number, line = at + 2, lines[at]
        at += 1
        if not line.strip() or line.startswith("#"):
            continue
        matched = _KEY.fullmatch(line.rstrip())
        if matched is None:
            raise _error(place, number, f"{line[:40]!r} is no field; write one as key: value")
        key, rest = matched[1], (matched[2] or "").strip()
        if key in seen:
            raise _error(place, number, f"the field {key} stands there twice; keep one")
        seen.add(key)
        if rest:
            yield key, _value(rest, place, number)
            continue
        items: list[str] = []
        while at < len(lines) and (item := lines[at].strip()).startswith("- "):
            items.append(_scalar(item[2:].strip(), place, at + 2))
            at += 1
        yield key, items


def _value(text: str, place: str, line: int) -> Value:
    if not text.startswith("["):
        return _scalar(text, place, line)
    if not text.endswith("]"):
        raise _error(place, line, "a list begins and does not end; close it with ]")
    inner, items, at = text[1:-1], list[str](), 0
    while inner[at:].strip():
        matched = _ITEM.match(inner, at)
        if matched is None or not matched[1].strip() or inner[matched.end() : matched.end() + 1] not in ("", ","):
            raise _error(place, line, f"{inner[at : at + 40]!r} is no item of a list; put it in quotes")
        items.append(_scalar(matched[1].strip(), place, line))
        at = matched.end() + 1
    return items


def _scalar(text: str, place: str, line: int) -> str:
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, str):
            raise _error(place, line, f"{text[:40]} is no text in quotes; close them, and escape quotes within")
        return value
    if text.startswith("'"):
        if len(text) < 2 or not text.endswith("'") or "'" in text[1:-1].replace("''", ""):
            raise _error(place, line, f"{text[:40]} is no text in quotes; close them, and double quotes within")
        return text[1:-1].replace("''", "'")
    if text.startswith(_REFUSED):
        raise _error(place, line, f"{text[:40]!r} is YAML that is not read here; write a text, in quotes, or a list")
    return text


def _list(items: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, items))}]"


def _text(value: str) -> str:
    """A value plain where YAML and people read it as the same text, else in quotes."""
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS and ": " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)


def _error(place: str, line: int, what: str) -> InputError:
    return InputError(f"{place}:{line}: {what}", code="not-front-matter")
