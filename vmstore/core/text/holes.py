"""The holes of a skeleton: where a message's parts stood.

A hole is an object of one key: `{"\\u0000t": n}` stands for part n as text, `\\u0000j` for its
JSON value, `\\u0000b` for its base64, `\\u0000u` for its base64 in the alphabet of URLs, `\\u0000k` for
its JSON value with its keys in an order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TEXT, JSON, BASE64, URLSAFE, KEYED = "\0t", "\0j", "\0b", "\0u", "\0k"
HOLES = (TEXT, JSON, BASE64, URLSAFE, KEYED)
LIST, VALUE = "\0l", "\0v"  # in a request's rest: a slot's messages as a list, or its one message

assert len({*HOLES, LIST, VALUE}) == len(HOLES) + 2, "a key stands for one thing"
assert all(key[0] == "\0" for key in (*HOLES, LIST, VALUE)), "by this `forged` knows what a content must not hold"

Hole = tuple[str, Any]
"""The kind of a hole and the part it stands for."""


def holes(skeleton: Any) -> Iterator[Hole]:
    """Every hole of a skeleton, in order; one with an order of keys is of a JSON value like any other."""
    for kind, part in marks(skeleton):
        yield (JSON, part[0] if isinstance(part, list) and part else part) if kind == KEYED else (kind, part)


def marks(skeleton: Any) -> Iterator[tuple[str, Any]]:
    """Every hole of a skeleton as it stands there: its key and what that says."""
    if isinstance(skeleton, dict):
        if len(skeleton) == 1 and next(iter(skeleton)) in HOLES:
            yield from skeleton.items()
            return
        for inner in skeleton.values():
            yield from marks(inner)
    elif isinstance(skeleton, list):
        for inner in skeleton:
            yield from marks(inner)


def ordered(keys: Any) -> bool:
    """Whether something lists keys in an order: texts, or lists of a text and the keys of the object under it."""
    return isinstance(keys, list) and all(
        isinstance(key, str) or (isinstance(key, list) and bool(key) and isinstance(key[0], str) and ordered(key[1:]))
        for key in keys
    )
