"""The lines of a tool's output that say most of it: errors and counts, definitions, changes, the fields of JSON.

What a line is worth is told by its form alone. Each is given as it stands, without its margin and its frame; a field
of JSON without its quotes and braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

LINE_CHARS_MAX = 170
READ_CHARS_MAX = 400  # of a line: patterns go back and forth in it
LINES_MAX = 80  # that are told apart, the heaviest
JSON_CHARS_MAX = 200_000
FIELD_CHARS_MAX = 110  # of a nested value that is one field; a longer one is taken apart

_MODIFIERS = r"(?:(?:export|default|public|private|protected|static|async|abstract|readonly|override|pub)\s+)*"
_KEYWORDS = "def|class|function|fn|func|interface|struct|enum|trait"
DEFINITION = re.compile(
    rf"^[ \t]*(?:\d+[:-][ \t]*|[-+*] (?:[A-Z][a-z]+ )?)?{_MODIFIERS}(?:{_KEYWORDS})\s+([A-Za-z_]\w*)", re.M
)
"""A line that defines something, and its name."""
_FRAME = re.compile(r"[\s─━│┃═|*#>~^]+$|^[\s│┃|>]+")
_WORTH = tuple(
    (weight, re.compile(pattern))
    for weight, pattern in (
        (7, r"\b(?:error|fatal|panic)\b(?:\s+\w+|\[\w+\])?: \S|\b[A-Z]\w*(?:Error|Exception): \S"),
        (7, r"^\s*[×✗✕] |^FAIL(?:ED)? "),
        (7, r"^\S+(?::\d+:\d+|\(\d+,\d+\)):? \S|command not found|[Nn]o such file|[Pp]ermission denied|\bNOT\b"),
        (6, r"\b\d+ (?:files? changed|passed|failed|errors?|warnings?|tests?)\b|\(\d+ lines"),
        (6, r"^\[\S+ [0-9a-f]{7,}\]|^(?:✅|✓|OK\b)|^(?:create|delete|rename) mode "),
        (5, r"^[+-](?![+-])\s*\w|^@@ "),
        (4, DEFINITION.pattern),
        (4, rf"^\s*(?:\d+[:-]\s*)?{_MODIFIERS}(?:get |set )?[A-Za-z_]\w*\([^;]*\)[^;=]*\{{\s*$"),
        (3, r"^\d+[:-]\s*\w{2}|^\S+:\d+:|^(?:import|from|use|require)\b|=\s*\S+\(.*\)"),
        (2, r"^\s*[\w.\[\]'\"-]{2,40}\s*[:=]\s*\S|<\w+[^>]*=|/[\w.-]+$"),
        (1, r"\w{3,}\W.*\w{3,}"),
    )
)
_FIELDS = re.compile(r"(?:^|_)(?:id|ids|name|status|state|amount|price|prices|total|count|type|date|number|error)$")


class KeyLine(NamedTuple):
    """A line, and how much it weighs: 7 an error, 1 any words."""

    text: str
    weight: int


def key_lines(output: str) -> list[KeyLine]:
    """The lines of an output that say most, each once, in their order."""
    fields = _json_fields(output)
    found = _text_lines(output) if fields is None else fields
    once = list({line.text: line for line in found}.values())
    kept = frozenset(line.text for line in sorted(once, key=lambda line: -line.weight)[:LINES_MAX])
    return [line for line in once if line.text in kept]


def _text_lines(output: str) -> list[KeyLine]:
    lines = []
    for raw in output.splitlines():
        raw = raw[:READ_CHARS_MAX]
        text = " ".join(_FRAME.sub("", raw).split())
        weight = next((weight for weight, pattern in _WORTH if pattern.search(raw)), 0)
        if weight and text:
            lines.append(KeyLine(text[:LINE_CHARS_MAX], weight))
    return lines


def _json_fields(output: str) -> list[KeyLine] | None:
    """The fields of an output that is an object or a list of JSON; None where it is neither."""
    text = output.strip()
    if text[:1] not in ("{", "[") or len(text) > JSON_CHARS_MAX:
        return None
    try:
        value = json.loads(text)
        return list(_fields("", value))
    except (ValueError, RecursionError):
        return None


def _fields(name: str, value: Any) -> Iterator[KeyLine]:
    said = _field(name, value)
    if said is not None:
        if said.strip():
            yield KeyLine(said[:LINE_CHARS_MAX], 5 if _FIELDS.search(name) else 4)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _fields(str(key), each)
    else:
        for each in value:
            words = plain(each)
            nested = isinstance(each, dict | list) and len(words) > LINE_CHARS_MAX
            yield from _fields("", each) if nested else (KeyLine(words[:LINE_CHARS_MAX], 3),)


def _field(name: str, value: Any) -> str | None:
    """A value as one field; None of one that is to be taken apart."""
    if not isinstance(value, dict | list):
        return f"{name}: {plain(value)}" if name else plain(value)
    if not name or 2 * len(value) - 2 > FIELD_CHARS_MAX:  # what stands between its values alone is too long
        return None
    said = f"{name}: {plain(value)}"
    return said if len(said) <= FIELD_CHARS_MAX else None


def plain(value: Any) -> str:
    """A value of JSON in words: names and values, without quotes and braces."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(plain(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value)
