"""A recorded session of a coding agent, with a fork and an erased cell, through a cold tier and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from vmstore.maintenance.archive import archive, unarchive
from vmstore.maintenance.publish import publish
from vmstore.transfer.merge import merge

QUESTIONS = (
    "PAGES page, type, tokens, level, text IN SESSION {}",
    "CALLS call, turn, tokens IN SESSION {}",
    "TOOLS IN SESSION {}",
    "CONTEXT AT CALL 9 IN SESSION {}",
    "MUTATIONS kind, count(*) IN SESSION {} BY kind ORDER BY kind",
    "HISTORY OF p41 IN SESSION {}",
    "SEARCH 'error' page, score IN SESSION {} LIMIT 20",
    "DIFF CONTEXT CALL 4 TO CALL 9 IN SESSION {}",
    "PAGES count(*), sum(tokens) IN SESSION {} AS OF CALL 7",
    "FAULTS IN SESSION {}",
)


def answers(store: vmstore.Store, session: str) -> list[list[tuple[Any, ...]]]:
    """What a session answers to questions of each kind."""
    return [[tuple(row) for row in store.query(text.format(f"'{session}'"))] for text in QUESTIONS]


def heads(store: vmstore.Store) -> dict[int, bytes]:
    """The last hash of each session."""
    return {commit.session: commit.hash for commit in store.admin.log.tail(0, 99_999)}


@pytest.fixture
def path(data: Path, tmp_path: Path) -> Path:
    """The recorded session, a fork of it, and one page that was erased."""
    path = tmp_path / "pi.vms"
    with vmstore.open(path) as store:
        (imported,) = store.import_file(data / "pi" / "before-compaction.jsonl").sessions
        store.session(imported.session).fork("fork", call=9)
        vmstore.erase(store, page=store.session(imported.session).pages()[3].page, in_session=imported.session)
    return path


def test_a_recorded_session_goes_and_comes_back(path: Path, tmp_path: Path) -> None:
    """Asked of the tier alone, left there, brought back and merged into an empty store, every answer and hash stays."""
    address = f"cold://{tmp_path}/cold"
    with vmstore.open(path) as store:
        names = [info.session for info in store.sessions()]
        before = {name: answers(store, name) for name in names}
        archive(store, names, grace_s=0, to=address)
        ends = heads(store)
        assert {name: answers(store, name) for name in names} == before
    with vmstore.open(address, "r") as cold:
        assert {name: answers(cold, name) for name in names} == before
        assert len(cold.sessions()) == 2 and cold.verify().ok
    with vmstore.open(path) as store:
        unarchive(store, names)
        assert {name: answers(store, name) for name in names} == before
        assert heads(store) == ends and store.verify().ok
        publish(store, address)
    with vmstore.open(tmp_path / "new.vms"):
        pass
    assert merge(tmp_path / "new.vms", address).conflicts == 0
    with vmstore.open(tmp_path / "new.vms") as store:
        assert {name: answers(store, name) for name in names} == before
        assert set(heads(store).values()) <= set(ends.values()) and store.verify().ok
