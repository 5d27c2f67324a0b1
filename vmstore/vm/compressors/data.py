"""Shorter forms of structured data: its shape with values from it, its shape alone, one line.

A shape is JSON: the name of a type for a value, an object for objects (a key some lack ends in `?`),
and for lists their items' shape with how many there are. Values in samples are written as they stood there,
so no number loses a digit; `…` stands where something is left out.
"""

from __future__ import annotations

import json
from typing import Any

from vmstore.core.page import Method
from vmstore.vm.compressors.form import NO_SHORTER, Form, Material, NoForm, NoFormReason, text_form
from vmstore.vm.recall.text_pieces import readable

CHARS_MAX = 8_000_000  # what is longer is not read: as a value it takes twenty times its bytes
DEPTH_MAX = 6
KEYS_MAX = 32  # of one object; the keys after these share one shape
SAMPLES_CHARS_MAX = 6_000
SCHEMA_CHARS_MAX = 1_500
REFERENCE_KEYS_MAX = 8
REFERENCE_CHARS_MAX = 120
CUT = "…"
SIZES = ((3, 120, 24, 6), (2, 80, 16, 5), (2, 40, 10, 4), (1, 24, 6, 3))
"""Of a sample, from generous to spare: items of a list, characters of a text, keys of an object, depth."""


class NumberText(str):
    """A number as it is written."""


def samples(material: Material) -> Form | NoForm:
    """Level 1: the shape, and values from it."""
    value = _parsed(material)
    return value if isinstance(value, NoForm) else samples_of(value, len(material.content))


def schema(material: Material) -> Form | NoForm:
    """Level 2: the shape alone."""
    value = _parsed(material)
    return value if isinstance(value, NoForm) else schema_of(value)


def reference(material: Material) -> Form | NoForm:
    """Level 3: the outermost keys or the number of items, and the size, in one line."""
    value = _parsed(material)
    return value if isinstance(value, NoForm) else reference_of(value, len(material.content))


def container(text: str) -> Any | None:
    """The value of a text that is a JSON object or list and nothing else; None of any other."""
    if len(text) > CHARS_MAX or text[:200].lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text, parse_int=NumberText, parse_float=NumberText, parse_constant=NumberText)
    except (ValueError, RecursionError):
        return None
    return value if value else None


def samples_of(value: Any, size: int) -> Form | NoForm:
    """The shape of a value and a sample of it in half its size; else a sample alone, in two thirds."""
    for items, chars, keys, depth in SIZES:
        shape, sample = _shape(value, depth).as_json(keys), _sample(value, items, chars, keys, depth)
        made = _written({"schema": shape, "sample": sample})
        if len(made) <= min(size // 2, SAMPLES_CHARS_MAX):
            return text_form(made, Method.SAMPLES)
    for sizes in SIZES:
        made = _written({"sample": _sample(value, *sizes)})
        if len(made) <= min(2 * size // 3, SAMPLES_CHARS_MAX):
            return text_form(made, Method.SAMPLES)
    return NO_SHORTER


def schema_of(value: Any) -> Form | NoForm:
    """The shape of a value, as deep as it fits."""
    for _, _, keys, depth in (*SIZES, (0, 0, 4, 1)):
        made = _written(_shape(value, depth).as_json(keys))
        if len(made) <= SCHEMA_CHARS_MAX:
            return text_form(made, Method.SCHEMA)
    return NO_SHORTER


def reference_of(value: Any, size: int) -> Form:
    """One line for a value."""
    if isinstance(value, list):
        return text_form(f"[JSON list of {len(value):,}: {size:,} characters]", Method.REFERENCE)
    keys = [" ".join(str(key).split())[:40] for key in list(value)[:REFERENCE_KEYS_MAX]]
    while len(keys) > 1 and len(", ".join(keys)) > REFERENCE_CHARS_MAX:
        keys.pop()
    more = f", {len(value) - len(keys):,} more" if len(value) > len(keys) else ""
    return text_form(f"[JSON object: {', '.join(keys)}{more}; {size:,} characters]", Method.REFERENCE)


def _parsed(material: Material) -> Any:
    """The value of some material, or why there is none."""
    if not material.content:
        return NoForm(NoFormReason.EMPTY, "the page has no content")
    if len(material.content) > CHARS_MAX:
        return NoForm(NoFormReason.TOO_LARGE, f"{len(material.content):,} bytes, and at most {CHARS_MAX:,} are read")
    text = readable(material.content)
    if text is None:
        return NoForm(NoFormReason.NO_TEXT, "the bytes are no UTF-8")
    value = container(text)
    return (
        NoForm(NoFormReason.MISMATCH, "the text is no JSON object or list with something in it")
        if value is None
        else value
    )


class _Shape:
    """The values seen at one place, over all items of the lists it is in."""

    __slots__ = ("items", "keys", "lengths", "objects", "others", "rest", "rest_keys", "types")

    def __init__(self) -> None:
        self.types: dict[str, None] = {}
        self.objects = 0
        self.keys: dict[str, tuple[int, _Shape]] = {}
        self.rest: _Shape | None = None
        self.rest_keys: set[str] = set()
        self.items: _Shape | None = None
        self.lengths = (0, 0)

    def see(self, value: Any, depth: int) -> None:
        """Takes in one value, its insides as far as `depth` allows."""
        kind = _type(value)
        new = kind not in self.types
        self.types[kind] = None
        if kind == "object":
            self.objects += 1
            for key, inner in value.items() if depth else ():
                self._inner(key).see(inner, depth - 1)
        elif kind == "list":
            least, most = self.lengths
            self.lengths = (len(value) if new else min(least, len(value)), max(most, len(value)))
            for inner in value if depth else ():
                self.items = self.items or _Shape()
                self.items.see(inner, depth - 1)

    def _inner(self, key: str) -> _Shape:
        count, shape = self.keys.get(key, (0, None))
        if shape is None and len(self.keys) == KEYS_MAX:
            self.rest = self.rest or _Shape()
            self.rest_keys.add(key)
            return self.rest
        shape = shape or _Shape()
        self.keys[key] = (count + 1, shape)
        return shape

    def as_json(self, keys_max: int) -> Any:
        """The shape as a JSON value."""
        plain = [kind for kind in self.types if kind not in ("object", "list")]
        lines: list[Any] = ["|".join(plain)] if plain else []
        if "object" in self.types:
            lines.append(self._object_json(keys_max))
        if "list" in self.types:
            least, most = self.lengths
            count = f"×{most:,}" if least == most else f"×{least:,} to {most:,}"
            lines.append([self.items.as_json(keys_max), count] if self.items else [count])
        return lines[0] if len(lines) == 1 else {"any of": lines}

    def _object_json(self, keys_max: int) -> dict[str, Any]:
        members = {}
        for key, (count, shape) in list(self.keys.items())[:keys_max]:
            members[_clipped(key, 60) + ("?" if count < self.objects else "")] = shape.as_json(keys_max)
        more = len(self.keys) - len(members) + len(self.rest_keys)
        if more > 0:
            members[CUT] = (
                f"{more:,} more keys" if self.rest is None else [f"{more:,} more keys", self.rest.as_json(keys_max)]
            )
        return members


def _shape(value: Any, depth: int) -> _Shape:
    shape = _Shape()
    shape.see(value, min(depth, DEPTH_MAX))
    return shape


def _type(value: Any) -> str:
    if isinstance(value, NumberText):
        return "integer" if value.lstrip("-").isdigit() else "number"
    return _TYPES[type(value)]


_TYPES: dict[type, str] = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}


def _sample(value: Any, items: int, chars: int, keys: int, depth: int) -> Any:
    """A value with its first items, keys and characters, down to a depth."""
    if isinstance(value, NumberText):
        return value
    if isinstance(value, str):
        return _clipped(value, chars)
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return CUT if value else value
    if isinstance(value, list):
        some = [_sample(item, items, chars, keys, depth - 1) for item in value[:items]]
        return [*some, f"{CUT} {len(value) - items:,} more"] if len(value) > items else some
    items_kept = list(value.items())[:keys]
    made = {_clipped(key, 60): _sample(item, items, chars, keys, depth - 1) for key, item in items_kept}
    if len(value) > keys:
        made[CUT] = f"{len(value) - keys:,} more keys"
    return made


def _clipped(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[:chars_max] + CUT


def _written(value: Any) -> str:
    """A value as JSON, its numbers as they stood."""
    if isinstance(value, NumberText):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_written(key)}:{_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
