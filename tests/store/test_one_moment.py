"""An answer made of several queries is of one moment, whatever another process folds in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import answer, chat
from vmstore.store.reads import calls
from vmstore.views.branch import Branch
from vmstore.views.projection import Projection
from vmstore.views.projectors.calls import calls_of


def asked_while_another_folds(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls each turn made, asked while another handle records a turn and folds it."""
    with vmstore.open(path) as store, vmstore.open(path) as other:
        store.record("s", chat("one"), answer("1"))
        right = calls_of

        def seen(lane: Branch) -> Any:
            rows = list(right(lane))
            if lane is session._lane():
                other.record("s", chat("one", "1", "two"), answer("2"))
                assert len(other.session("s").turns()) == 2
            return rows

        session = store.session("s")
        monkeypatch.setattr(calls, "calls_of", seen)
        return [turn.calls for turn in session.turns()]


def test_an_answer_is_of_one_moment(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns and their calls, two queries, agree although a turn was folded between the two."""
    assert asked_while_another_folds(store_path, monkeypatch) == [1]


def test_a_moment_not_held_would_be_mixed(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: without the held moment a turn is told that has made no call, which none ever was."""

    @contextmanager
    def not_held(self: Projection) -> Iterator[int]:
        yield self.ordinal

    monkeypatch.setattr(Projection, "moment_held", not_held)
    assert asked_while_another_folds(store_path, monkeypatch) == [1, 0]


def test_a_question_within_a_question_is_of_its_moment(store_path: Path) -> None:
    """While a moment is held the views do not follow, and afterwards they do."""
    with vmstore.open(store_path) as store, vmstore.open(store_path) as other:
        store.record("s", chat("one"))
        with store._ns.asking() as outer:
            other.record("s", chat("one", "1"))
            assert len(other.session("s").calls()) == 2
            assert len(store.session("s").calls()) == 1
            with store._ns.asking() as inner:
                assert inner == outer
        assert len(store.session("s").calls()) == 2
