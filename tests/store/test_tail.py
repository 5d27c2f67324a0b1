"""Tails: every mutation once, in the order it was logged, resumed from any cursor."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.capture.imports import write
from tests.capture.words import answer, model_text, request, user
from tests.refusals import refused
from tests.store.kept import told_at, told_in_memory
from vmstore.errors import InputError, UnknownError
from vmstore.store.store import memory_store, open_store


def test_a_tail_tells_every_mutation_once_in_order() -> None:
    """All sessions together, each dense from its first position, with kind, times and fields."""
    with told_in_memory() as store:
        store.record("t", request([user("x")]), answer(model_text("y")))
        store.session("s").fork("f", call=2)
        entries = list(store.tail())
        assert len({entry.cursor for entry in entries}) == len(entries) == store.info().mutations
        for name, first in (("s", 1), ("t", 1), ("f", store.session("s").calls()[1].position + 1)):
            positions = [entry.position for entry in entries if entry.session == name]
            assert positions == list(range(first, first + len(positions)))
        assert [entry.logged_at for entry in entries] == sorted(entry.logged_at for entry in entries)
        assert {entry.kind for entry in entries} >= {"open", "turn", "message", "create", "pack", "reply", "link"}
        assert all(isinstance(entry.mutation, dict) for entry in entries)


def test_a_tail_resumes_anywhere_without_loss_or_repeat() -> None:
    """From any cursor the rest is exactly what follows it, in the middle of a commit too."""
    with told_in_memory() as store:
        entries = list(store.tail())
        for n, entry in enumerate(entries):
            assert list(store.tail(entry.cursor)) == entries[n + 1 :]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_a_tail_read_in_steps_is_the_tail(step: int) -> None:
    """Read some at a time, each from the last cursor, nothing is missed and nothing told twice."""
    with told_in_memory() as store:
        entries = list(store.tail())
        actual_batch, cursor = [], None
        while batch := list(store.tail(cursor, limit=step)):
            assert len(batch) <= step
            actual_batch += batch
            cursor = batch[-1].cursor
        assert actual_batch == entries


def test_a_tail_of_more_than_a_hundred_commits_is_whole(tmp_path: Path) -> None:
    """Long logs come out whole, whatever is read of them at once."""
    with memory_store() as store:
        store.import_file(write(tmp_path / "talk.jsonl", "chat lines", 60))
        entries = list(store.tail())
        assert len(entries) == store.info().mutations > 500
        assert list(store.tail(entries[333].cursor)) == entries[334:]


def test_a_limit_of_nothing_gives_nothing() -> None:
    """A limit of zero is kept."""
    with told_in_memory() as store:
        assert list(store.tail(limit=0)) == []


def test_a_cursor_goes_on_with_what_came_later(store_path: Path) -> None:
    """At the end a tail is empty; what is recorded then, by another handle too, follows the cursor."""
    with told_at(store_path) as store, open_store(store_path) as other:
        cursor = list(store.tail())[-1].cursor
        assert list(store.tail(cursor)) == []
        other.record("s", request([user("later")]))
        other.record("t", request([user("elsewhere")]))
        later = list(store.tail(cursor))
        assert {entry.session for entry in later} == {"s", "t"}
        assert list(other.tail(cursor)) == later
    with open_store(store_path, "r") as reader:
        assert list(reader.tail(cursor)) == later


def test_a_tail_may_be_left_and_the_store_written_meanwhile() -> None:
    """Recording between two steps of a tail neither breaks nor bends it."""
    with told_in_memory() as store:
        before = list(store.tail())
        tail = store.tail()
        first = list(itertools.islice(tail, 5))
        store.record("s", request([user("meanwhile")]))
        rest = list(tail)
        assert [*first, *rest][: len(before)] == before


def test_a_cursor_survives_the_views(store_path: Path) -> None:
    """Cursors are the log's: views deleted and folded again change none."""
    with told_at(store_path) as store:
        entries = list(store.tail())
    for file in (store_path / "default").glob("views-*"):
        file.unlink()
    with open_store(store_path) as store:
        assert list(store.tail()) == entries
        assert list(store.tail(entries[7].cursor)) == entries[8:]


@pytest.mark.parametrize("cursor", ["", "x", "1", "1.", ".1", "-1.0", "1.2.3", "1.-1", " 1.1", "1.1x"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    """Only what a tail gave is a cursor."""
    with told_in_memory() as store, refused("not-a-cursor", InputError):
        list(store.tail(cursor))


def test_a_cursor_of_the_future_is_no_end() -> None:
    """A cursor beyond the log is another store's: told apart from one that has read all."""
    with told_in_memory() as store, pytest.raises((InputError, UnknownError), match="cursor"):
        list(store.tail("99999.1"))
