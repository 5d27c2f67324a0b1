"""Several processes import the same file at once: one copy, whole, and every process ends well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.capture.imports import all_seen, in_lines, pi
from tests.capture.test_import_killed import EVERY, line, runs, tree
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from vmstore.capture.importers.importer import Importer
from vmstore.capture.steps import Step
from vmstore.store.store import Store, memory_store

PROCESSES = 4


def completed(store: Store) -> list[int]:
    """How often each session's import was completed."""
    store.admin.follow()
    return [row[0] for row in store.admin.views.execute("SELECT count(*) FROM marks WHERE reason = 2 GROUP BY session")]


@pytest.mark.parametrize("make", [runs, tree, line])
def test_the_same_file_at_once_is_one_copy(tmp_path: Path, store_path: Path, make: Callable[[Path], Path]) -> None:
    """Four processes import one file together: the sessions are those of a single import, each record once."""
    file = make(tmp_path)
    vmstore.open(store_path).close()

    def work() -> None:
        with vmstore.open(store_path) as store:
            assert store.import_file(file).sessions

    assert [joined(pid) for pid in [start(work) for _ in range(PROCESSES)]] == [0] * PROCESSES
    with vmstore.open(store_path) as store, memory_store() as other:
        other.import_file(file)
        assert all_seen(store, EVERY) == all_seen(other, EVERY)
        assert len(store.sessions(hidden=True)) == len(other.sessions(hidden=True))
        assert store.import_file(file).new == 0 and store.verify().ok
        assert set(completed(store)) == {1}


@pytest.mark.parametrize(("make", "nth"), [(runs, 1), (runs, 2), (tree, 1), (tree, 2), (line, 1), (line, 2)])
def test_who_came_between_look_and_opening_is_found(
    tmp_path: Path,
    store_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], Path],
    nth: int,
) -> None:
    """A file that somebody else takes in right after a track of it was looked for is taken in once."""
    file = make(tmp_path)
    right, missed = Importer._best, list[str]()
    with vmstore.open(store_path) as store, vmstore.open(store_path) as other, memory_store() as alone:

        def best(importer: Importer, source: str, steps: Sequence[Step]) -> Any:
            row = right(importer, source, steps)
            if importer._engine is store._ns.engine and row[0] is None:
                missed.append(source)
                if len(missed) == nth:
                    other.import_file(file)
                elif make is line:  # so that it looks again, for itself
                    other.record("other", chat("Hello?"), answer("Hello."))
            return row

        monkeypatch.setattr(Importer, "_best", best)
        store.import_file(file)
        monkeypatch.undo()
        alone.import_file(file)
        if make is line and nth > 1:
            alone.record("other", chat("Hello?"), answer("Hello."))
        assert len(missed) >= nth and {session.session for session in store.sessions(hidden=True)} == {
            session.session for session in alone.sessions(hidden=True)
        }
        assert all_seen(store, EVERY) == all_seen(alone, EVERY)
        assert store.verify().ok and set(completed(store)) == {1}


def test_a_grown_file_at_once_is_one_copy(tmp_path: Path, store_path: Path) -> None:
    """Where the file is here already and has grown, the new part is taken in once."""
    file = tmp_path / "line.jsonl"
    file.write_text(in_lines(pi(10)))
    with vmstore.open(store_path) as store:
        store.import_file(file)
    file.write_text(in_lines(pi(90)))

    def work() -> None:
        with vmstore.open(store_path) as store:
            store.import_file(file)

    assert [joined(pid) for pid in [start(work) for _ in range(PROCESSES)]] == [0] * PROCESSES
    with vmstore.open(store_path) as store, memory_store() as other:
        other.import_file(file)
        assert all_seen(store, EVERY) == all_seen(other, EVERY) and store.verify().ok
        assert completed(store) == [1]


def test_an_import_beside_a_recorder_is_whole(tmp_path: Path, store_path: Path) -> None:
    """Calls recorded by another process while a file is imported disturb neither."""
    file = line(tmp_path)
    vmstore.open(store_path).close()

    def recorder() -> None:
        with vmstore.open(store_path) as store:
            for call in range(1, 60):
                store.record("other", chat(f"question {call}"), answer("fine"))

    def importer() -> None:
        with vmstore.open(store_path) as store:
            store.import_file(file)

    assert [joined(pid) for pid in [start(recorder), start(importer)]] == [0, 0]
    with vmstore.open(store_path) as store, memory_store() as other:
        name = other.import_file(file).sessions[0].session
        assert len(store.session("other").calls()) == 59
        assert all_seen(store, EVERY)[name] == all_seen(other, EVERY)[name] and store.verify().ok
