"""A sweep answers every task, in whatever process, and goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.refusals import refused
from tests.replay.lives import live
from tests.replay.told import lived, shorten
from vmstore.errors import InputError
from vmstore.replay.redecide import Shorten
from vmstore.replay.stimuli import Stimuli
from vmstore.replay.sweep import Task, sweep
from vmstore.replay.whatif import Run, as_recorded, what_if
from vmstore.store.replay_sweep import NamespaceReader, OpenNamespaceReader, live_sessions, replays, what_ifs


class CountedStore:
    """Sessions in memory; counts what is read, and stops after a number of them."""

    def __init__(self, stops: int = 1_000) -> None:
        self.read_names: list[str] = []
        self._stops = stops

    def read(self, session: str) -> tuple[Stimuli, Shorten]:
        """What a session was told."""
        self.read_names.append(session)
        if len(self.read_names) > self._stops:
            raise InputError("the power went out")
        return lived(int(session), 60).stimuli, shorten


TASKS = [Task(name, 1, changed) for name in "123" for changed in (None, {"l0_tokens_max": 5_000}, {"policy": "lfu"})]


def right() -> list[Run]:
    """What the tasks come to, one by one."""
    stimuli = {name: lived(int(name), 60).stimuli for name in "123"}
    return [
        as_recorded(stimuli[task.session], shorten)
        if task.changed is None
        else what_if(stimuli[task.session], shorten, task.changed)
        for task in TASKS
    ]


def test_a_sweep_is_its_tasks() -> None:
    """Runs come in the order of the tasks, each session is read once, and progress counts to the end."""
    source, seen = CountedStore(), []
    assert sweep(source, TASKS, workers=1, progress=lambda done, total: seen.append((done, total))) == right()
    assert source.read_names == ["1", "2", "3"]
    assert seen == [(nth, 9) for nth in range(1, 10)]


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What is in the results file is not computed again, a torn line is, and another task is not taken for it."""
    path = tmp_path / "sweep.jsonl"
    with pytest.raises(InputError, match="power"):
        sweep(CountedStore(stops=2), TASKS, workers=1, results=path)
    assert path.read_bytes().count(b"\n") == 6
    path.write_bytes(path.read_bytes()[:-40])
    source, seen = CountedStore(), []
    actual = sweep(source, TASKS, workers=1, results=path, progress=lambda done, total: seen.append(done))
    assert actual == right()
    assert source.read_names == ["2", "3"] and seen == [6, 7, 8, 9]
    assert path.read_bytes().count(b"\n") == 9
    nothing = CountedStore()
    assert sweep(nothing, TASKS, workers=1, results=path) == right() and nothing.read_names == []
    moved_on = [Task("1", 2, None)]
    assert sweep(nothing, moved_on, workers=1, results=path) and nothing.read_names == ["1"]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """A results file that holds other lines is named with the line, and left alone."""
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n", "utf-8")
    with refused("not-a-result", InputError, "line 1"):
        sweep(CountedStore(), TASKS, workers=1, results=path)
    assert path.read_text("utf-8") == "dear diary\n"


def test_two_processes_say_what_one_does(store_path: Path, tmp_path: Path) -> None:
    """Over processes that read the store themselves, forms that nobody recorded included, the runs are the same."""
    with vmstore.open(store_path) as store:
        for nth in (1, 2):
            live(store, f"s{nth}", seed=nth, turns=6)
        store.record("plain", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
        assert live_sessions(store) == ["s1", "s2"]
        changes = what_ifs(["lru", "default"], [4_000, 9_000])
        assert len(changes) == 4
        alone = replays(store, ["s1", "s2"], changes, workers=1)
        tasks = [
            Task(name, store.session(name).info().position, changed)
            for name in ("s1", "s2")
            for changed in (None, *changes)
        ]
        together = sweep(NamespaceReader(store_path, "default"), tasks, workers=2, results=tmp_path / "r.jsonl")
        assert together == [*alone["s1"], *alone["s2"]]
        assert any(run.fallbacks for run in together)
        assert sweep(OpenNamespaceReader(store._ns), tasks, workers=1) == together
