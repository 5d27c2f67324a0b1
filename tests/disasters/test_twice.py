"""A store that an earlier version broke, in which a batch was committed twice by hand: named, and mended."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import msgspec
import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.cells.cell import Cell
from vmstore.core.mutation import Create
from vmstore.errors import CorruptError
from vmstore.log import sqlite
from vmstore.log.commit import seal
from vmstore.log.sqlite import SqliteLog

LOG = "default/log.sqlite"


@pytest.fixture
def twice(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions, the last commit of one of them written again as it is, and once more sealed again."""
    with vmstore.open(store_path) as store:
        store.record("a", chat("one"), answer("1"))
        store.record("b", chat("two"), answer("2"))
        with store.session("a").batch() as batch:
            batch.add(Create(3, 0, 1, 0, 0, batch.cell(b"three"), 5, 1))
    again(store_path, b"three", monkeypatch)
    return store_path


def again(path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes the last commit of a log twice more, the second time with a cell of its own, past the check of the log."""
    log = SqliteLog(path / LOG)
    (last,) = log.tail(log.ordinal - 1, 1)
    own = (Cell(os.urandom(16), content),)
    resealed = seal(last.hash, last.first, last.count, last.at, last.lag + 1, last.body, own, last.request)
    cells = log.cells(range(last.cell, last.cell + last.cell_count))
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "check_expected", lambda *_: None)
        for commit, item in ((last, tuple(cells.values())), (resealed, own)):
            log.append([msgspec.structs.replace(commit, cells=item)], last.session, last.last)
    log.close()


@pytest.mark.parametrize("full", [False, True])
def test_a_batch_committed_twice_is_named_and_mended(twice: Path, full: bool) -> None:
    """Verify and doctor name such a store, nothing is asked of it, and what doctor says gives everything back."""
    with refused("commit-damaged", CorruptError), vmstore.open(twice) as store:
        store.sessions()
    with vmstore.open(twice) as store:
        assert {problem.kind for problem in store.verify().problems} >= {"position", "hash"}
    (symptom,) = [symptom for symptom in vmstore.doctor(twice, full=full).symptoms if symptom.kind == "twice"]
    assert symptom.where == "commit 8" and "what commit 7 says" in symptom.what
    db = apsw.Connection(str(twice / LOG))
    db.execute(symptom.remedy.split('"')[1]).fetchall()
    db.close()
    with vmstore.open(twice) as store:
        store.admin.rebuild()
        assert store.verify().ok
        assert [session.wire.request(call=1) for session in map(store.session, "ab")] == [chat("one"), chat("two")]
        with store.session("a").batch() as batch:
            batch.add(Create(3, 0, 1, 0, 0, batch.cell(b"three"), 5, 1))
        store.record("b", chat("two", "2", "three"), answer("4"))
        assert store.verify().ok
    assert not [symptom for symptom in vmstore.doctor(twice, full=full).symptoms if symptom.kind == "twice"]


def test_what_says_anything_else_is_not_taken_out(twice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a commit at the end holds other contents, a backup is what helps."""
    again(twice, b"other", monkeypatch)
    symptoms = vmstore.doctor(twice).symptoms
    assert not [symptom for symptom in symptoms if symptom.kind == "twice"] and any(
        "backup" in symptom.remedy for symptom in symptoms
    )
