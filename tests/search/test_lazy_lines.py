"""The lines of hits are made when somebody looks at them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import vmstore
from vmstore.namespace.results import to_json
from vmstore.relevance.excerpt import ExcerptMaker

TEXTS = [f"Ferry number {number} leaves for Naxos at seven, and the others wait." for number in range(20)]


def lines_made(do: Callable[[], Any]) -> int:
    """How many lines are made while something is done."""
    made = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal made
        made += event == "call" and frame.f_code is ExcerptMaker.of.__code__

    sys.setprofile(watch)
    try:
        do()
    finally:
        sys.setprofile(None)
    return made


@pytest.fixture
def hits() -> vmstore.Hits:
    """The twenty answers of a search, whose store is closed."""
    with vmstore.memory_store() as store:
        store.record("s", {"messages": [{"role": "user", "content": text} for text in TEXTS]})
        return store.search("ferry to Naxos", limit=None)


def test_a_line_is_made_once_when_it_is_looked_at(hits: vmstore.Hits) -> None:
    """Taking pages and scores has no line made; one that is looked at is made once, even late."""
    assert len(hits) == 20
    assert lines_made(lambda: [(hit.page, hit.score, hit.session, hit.position) for hit in hits]) == 0
    assert lines_made(lambda: [hits[0].text, hits[0].marks, hits[0].text, hits[3].marks]) == 2
    begin, end = hits[0].marks[0]
    assert hits[0].text[begin:end] == "Ferry"


def test_no_search_makes_lines(hits: vmstore.Hits) -> None:
    """A search itself makes none."""
    with vmstore.memory_store() as store:
        store.record("s", {"messages": [{"role": "user", "content": text} for text in TEXTS]})
        assert lines_made(lambda: store.search("ferry to Naxos")) == 0
        assert lines_made(lambda: store.search("ferry to Naxos", explain=True)) == 0


def test_a_hit_as_json_has_its_line(hits: vmstore.Hits) -> None:
    """Where a hit is handed out as plain values its line and marks are among them, and like hits are equal."""
    listed = to_json(hits)
    assert listed[0]["text"] == hits[0].text and [tuple(mark) for mark in listed[0]["marks"]] == list(hits[0].marks)
    assert list(listed[0]) == ["session", "page", "score", "version", "position", "text", "marks", "features", "words"]
    assert hits[0] == hits[0].explained({}, []) != hits[1] and "Ferry" in repr(hits[0])
