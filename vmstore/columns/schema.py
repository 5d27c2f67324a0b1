"""The tables of a segment: the integers of every mutation; every content of a page; every move into L0 and out.

A column is named after the field it holds, whatever kind the field is of, so a new kind brings
its columns itself. Only integers stand in columns: what a user, model or tool wrote stays in the
log's cells, where it can be destroyed.
"""

from __future__ import annotations

import hashlib
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from vmstore.core.mutation import (
    Cite,
    Link,
    Mutation,
    Open,
    Pack,
    Pressure,
    Reference,
    Reply,
    Segment,
    ToolRun,
    Turn,
    Unlink,
)

VERSION = 2
TAIL_MAX = 1 << 14  # mutations that are rather cut in memory, again in each process, than sealed
NULL = 1 - (1 << 63)  # stands for no value until a table is written
MUTATIONS = "mutations"
CONTENTS = "contents"
RESIDENCIES = "residencies"
RENAMED = {
    (Link, "source"): "page",
    (Unlink, "source"): "page",
    (Reply, "call"): "answers",
    (Open, "parent_position"): "fork_position",
    (Segment, "number"): "segment",
    (Reference, "call"): "seen_call",
    (Cite, "by"): "citing",
    (Pressure, "level"): "load",
    (ToolRun, "call"): "page",
}
IN_FORCE = {(Turn, "number"), (Pack, "call")}  # the columns `turn` and `call` say the same

Field = tuple[str, str]
"""A field of a struct, and the column it stands in."""


def _is_integer(kind: Any) -> bool:
    parts = set(get_args(kind)) if get_origin(kind) in (Union, UnionType) else {kind}
    return int in parts and parts <= {int, type(None)}


def _fields(kind: type[Mutation]) -> tuple[Field, ...]:
    return tuple(
        (field.name, RENAMED.get((kind, field.name), field.name))
        for field in msgspec.structs.fields(kind)
        if _is_integer(field.type) and (kind, field.name) not in IN_FORCE
    )


KINDS = sorted(Mutation.__subclasses__(), key=lambda kind: kind.NUMBER)  # else as they happened to be imported
FIELDS: dict[type[Mutation], tuple[Field, ...]] = {kind: _fields(kind) for kind in KINDS}
"""Which fields of a kind stand in columns, in the struct's order."""

_PLACE = ("ordinal", "session", "position", "turn", "call", "at", "logged_at")
_CONTENT = ("page", "version", "level", "tokens", "size")
_REST = dict.fromkeys(column for fields in FIELDS.values() for _, column in fields if column not in _CONTENT)

TABLES: dict[str, tuple[str, ...]] = {
    MUTATIONS: (*_PLACE, "kind", *_CONTENT, *_REST),
    CONTENTS: (*_PLACE, *_CONTENT),
    RESIDENCIES: (*_PLACE, "page", "content", "level", "rank"),
}
"""Each table's columns, in order."""

WIDE = frozenset(["at", "logged_at", "size", "valid_from", "valid_to", "cost", "latency", "duration"])
"""Columns of 64 bits; the others have 32, or 64 in a segment with a number that needs them."""

SCHEMA = hashlib.sha256(repr((VERSION, TABLES, [(k.NUMBER, f) for k, f in FIELDS.items()])).encode()).hexdigest()[:8]
"""Names the tables: segments of others are not read."""
