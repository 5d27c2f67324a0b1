"""Takes JSON values apart into a skeleton with holes and the contents that fill them.

A hole is an object of one key: `{"\\u0000t": n}` stands for part n as text, `\\u0000j` for its
JSON value, `\\u0000b` for its base64, `\\u0000u` in the alphabet of URLs; `{"\\u0000k": [n, keys]}` for its
JSON object with the keys in that order, where the content has them in another. A value that already holds such a
key is never taken apart: it becomes one JSON part with a hole at the root, so content cannot forge a hole.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Sequence
from typing import Any

from vmstore.core.erasure import ErasedContent
from vmstore.core.text import json_text
from vmstore.core.text.holes import BASE64, HOLES, JSON, KEYED, LIST, TEXT, URLSAFE, VALUE
from vmstore.core.text.json_text import loads
from vmstore.errors import InputError

__all__ = [
    "BASE64", "HOLES", "JSON", "KEYED", "LIST", "TEXT", "URLSAFE", "VALUE", "bytes_text", "dumps", "fill", "forged",
    "hole", "in_order", "loads", "part_of", "pruned", "text_bytes", "unbase64",
]  # fmt: skip

_SIGNS = {BASE64: b"+/", URLSAFE: b"-_"}  # the last two of each alphabet
assert _SIGNS.keys() < {*HOLES}, "bytes that were taken out of base64 have a hole that puts them back"
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dumps(value: Any) -> bytes:
    """Compact JSON in UTF-8; lone surrogates are encoded as they stand, so that `loads` gives them back."""
    try:
        data = _COMPACT.encode(value).encode("utf-8", "surrogatepass")
        if json_text.reads_every_number():
            json_text.strict(data)
        return data
    except RecursionError:
        raise InputError("a JSON value is nested too deeply to record; flatten it below 900 levels") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"a value is not JSON: {error}; pass plain dicts, lists, strings and numbers") from None


def text_bytes(text: str) -> bytes:
    """A text's exact bytes, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(content: bytes) -> str:
    """The text of `text_bytes`."""
    return content.decode("utf-8", "surrogatepass")


def unbase64(text: str) -> tuple[str, bytes] | None:
    """The bytes of base64 that encodes back to the very same text, and the hole that does so; else None."""
    for kind, signs in _SIGNS.items():
        try:
            data = base64.b64decode(text, signs, validate=True)
        except (binascii.Error, ValueError):
            continue
        if base64.b64encode(data, signs).decode() == text:
            return kind, data
    return None


def hole(kind: str, index: int) -> dict[str, int]:
    """The mark that stands for part `index`."""
    return {kind: index}


def forged(value: Any) -> bool:
    """Whether a value holds a key that could be read as a hole."""
    if isinstance(value, dict):
        return any(isinstance(k, str) and k.startswith("\0") for k in value) or any(map(forged, value.values()))
    return isinstance(value, list) and any(map(forged, value))


def fill(skeleton: Any, contents: Sequence[bytes] | dict[int, bytes]) -> Any:
    """The value a skeleton stands for, its holes filled from `contents` by part index."""
    if isinstance(skeleton, dict):
        if _is_hole(skeleton):
            return _filled(skeleton, contents)
        return {key: fill(value, contents) for key, value in skeleton.items()}
    if isinstance(skeleton, list):
        return [fill(value, contents) for value in skeleton]
    return skeleton


def _filled(hole: dict[str, Any], contents: Sequence[bytes] | dict[int, bytes]) -> Any:
    """The value that fills a hole."""
    ((kind, _),) = hole.items()
    content = contents[part_of(hole)]
    if kind == TEXT or isinstance(content, ErasedContent):
        return bytes_text(content)
    if kind in _SIGNS:
        return base64.b64encode(content, _SIGNS[kind]).decode()
    value = loads(content)
    return value if kind == JSON else in_order(value, hole[KEYED][1])


def part_of(hole: dict[str, Any]) -> int:
    """The part a hole stands for."""
    ((kind, number),) = hole.items()
    index: int = number[0] if kind == KEYED else number
    return index


def in_order(value: Any, keys: Sequence[Any]) -> Any:
    """An object with its keys in an order; a key's own list says how those of the object under it stand.

    Keys that the order does not name follow: another content may stand in the hole now.
    """
    if not isinstance(value, dict):
        return value
    inner = {key[0]: key[1:] for key in keys if isinstance(key, list)}
    named = [key[0] if isinstance(key, list) else key for key in keys]
    order = dict.fromkeys([*(key for key in named if key in value), *value])
    return {key: in_order(value[key], inner[key]) if key in inner else value[key] for key in order}


_GONE: Any = object()


def pruned(skeleton: Any, shown: Collection[int], plain: Collection[int]) -> Any:
    """A skeleton with the holes of the parts that are shown; what held another is left out.

    Parts in `plain` are shown as text, whatever they were. Contents then fill it by part index.
    """
    if not isinstance(skeleton, dict) or _is_hole(skeleton):
        found = _kept(skeleton, shown, plain)
        return None if found is _GONE else found  # a page is shown that stands for no hole
    kept = {key: _kept(inner, shown, plain) for key, inner in skeleton.items()}
    if kept.get("content") is _GONE:
        kept["content"] = None
    return {key: inner for key, inner in kept.items() if inner is not _GONE}


def _is_hole(value: dict[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)) in HOLES


def _kept(value: Any, shown: Collection[int], plain: Collection[int]) -> Any:
    """A value without the items that held a part which is not shown."""
    if isinstance(value, dict):
        if _is_hole(value):
            index = part_of(value)
            if index not in shown:
                return _GONE
            return {TEXT: index} if index in plain else value
        kept = {key: _kept(inner, shown, plain) for key, inner in value.items()}
        return _GONE if any(inner is _GONE for inner in kept.values()) else kept
    if isinstance(value, list):
        return [inner for item in value if (inner := _kept(item, shown, plain)) is not _GONE]
    return value
