"""TAGS and SEGMENTS: what sessions are about, as a statement sees them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from vmstore.views.reads.segments import segment_rows
from vmstore.views.reads.tags import tag_rows
from vmstore.vmql.relations.relation import ScopedSession


def tags_of(lanes: Iterable[ScopedSession]) -> Iterator[tuple[Any, ...]]:
    """The rows of TAGS: each session by itself, with what it inherits."""
    for own in lanes:
        for row in tag_rows(own.lane, own.until):
            first, last = (row.turns[0], row.turns[-1]) if row.turns else (None, None)
            counts = (len(row.pages), len(row.turns), first, last, row.tokens, row.share)
            yield (
                *(row.tag, own.name, row.canonical, _list(row.aliases)),
                *counts,
                *(_list(row.related), _list(row.methods), row.depth, json.dumps(row.turns)),
            )


def segments_of(lanes: Iterable[ScopedSession]) -> Iterator[tuple[Any, ...]]:
    """The rows of SEGMENTS: each session by itself, with what it inherits."""
    for own in lanes:
        for row in segment_rows(own.lane, own.until):
            counts = (row.first_turn, row.last_turn, row.pages, row.tokens_before, row.tokens_after)
            yield (own.name, row.number, row.layer, _list(row.tags), row.title, *counts, row.summary, row.state)


def _list(texts: Iterable[str]) -> str:
    return json.dumps(list(texts))
