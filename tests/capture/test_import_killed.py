"""Imports that were killed: taken up where they stopped, and never seen half."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capture.imports import all_seen, chat, claude, claude_record, in_lines, pi
from tests.capture.words import LONG
from vmstore.store.store import Store, memory_store, open_store

Maker = Callable[[Path], Path]

EVERY = 60  # calls: enough to tell sessions apart, and quick
CHECKOUT = Path(__file__).resolve().parents[2]
IMPORTER = """
import sys, vmstore
store = vmstore.open(sys.argv[1])
print("open", flush=True)
store.import_file(sys.argv[2])
print("done", flush=True)
"""


class StoppedError(Exception):
    """Stands for the end of a process."""


def stop_after(count: int) -> Callable[[int, int], None]:
    """A progress that ends an import once `count` records are in."""

    def progress(done: int, total: int) -> None:
        if count <= done < total:
            raise StoppedError

    return progress


def runs(tmp_path: Path) -> Path:
    """A file of many sessions, each longer than what is written at once."""
    file = tmp_path / "runs.json"
    records = [{"task_id": n, "trial": 0, "traj": chat(55)} for n in range(3)]
    file.write_text(json.dumps(records))
    return file


def tree(tmp_path: Path) -> Path:
    """A transcript with a fork, each line longer than what is written at once."""
    file = tmp_path / "tree.jsonl"
    fork = [
        claude_record("user" if n % 2 else "assistant", f"x{n}", f"x{n - 1}" if n else "d9", LONG) for n in range(210)
    ]
    file.write_text(in_lines([*claude(70), *fork]))
    return file


def line(tmp_path: Path) -> Path:
    """One long session."""
    file = tmp_path / "line.jsonl"
    file.write_text(in_lines(pi(90)))
    return file


STOPS = [(runs, 1), (runs, 250), (tree, 250), (tree, 430), (line, 1), (line, 250)]


def visible_are_whole(store: Store, whole: dict[str, object]) -> None:
    """No session shows that is not all it will be."""
    for name, shown in all_seen(store, EVERY).items():
        assert shown == whole[name], f"{name} was seen half"


@pytest.mark.parametrize(("make", "count"), STOPS)
def test_a_stopped_import_is_never_seen_and_resumes(make: Maker, count: int, tmp_path: Path) -> None:
    """Stopped anywhere and imported again, a file is the same sessions as imported at once, each record once."""
    file = make(tmp_path)
    with memory_store() as store, memory_store() as other:
        other.import_file(file)
        whole = all_seen(other, EVERY)
        for _ in range(2):
            try:
                store.import_file(file, progress=stop_after(count))
            except StoppedError:
                visible_are_whole(store, whole)
        store.import_file(file)
        assert all_seen(store, EVERY) == whole
        assert store.info().sessions == other.info().sessions == len(store.sessions(hidden=True))
        assert store.import_file(file).new == 0
        assert store.verify().ok


def killed_import(path: Path, file: Path, delay_s: float) -> bool:
    """Imports in another process and kills it a while after it opened the store; whether it was killed."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", IMPORTER, str(path), str(file)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        return process.stdout.read() != "done\n"


def test_an_import_killed_again_and_again_ends_whole(tmp_path: Path, store_path: Path) -> None:
    """SIGKILL at growing delays leaves a store that opens, shows nothing half, verifies, and is completed."""
    file = line(tmp_path)
    with memory_store() as other:
        other.import_file(file)
        whole = all_seen(other, EVERY)
    killed, began = 0, 0
    for n in range(5):
        killed += killed_import(store_path, file, 0.008 * 2**n)
        with open_store(store_path) as store:
            assert store.verify().ok
            visible_are_whole(store, whole)
            began += bool(store.sessions(hidden=True)) and not store.sessions()
    assert killed, "no import was killed before its end: the delays are too long"
    with open_store(store_path) as store:
        store.import_file(file)
        assert all_seen(store, EVERY) == whole
        assert len(store.sessions(hidden=True)) == 1
        assert store.verify().ok


def test_a_grown_part_that_was_killed_resumes(tmp_path: Path) -> None:
    """A session that grows while it is visible may stop within the new part; the next import ends it."""
    file = tmp_path / "line.jsonl"
    file.write_text(in_lines(pi(10)))
    with memory_store() as store, memory_store() as other:
        store.import_file(file)
        file.write_text(in_lines(pi(90)))
        with pytest.raises(StoppedError):
            store.import_file(file, progress=stop_after(230))
        store.import_file(file)
        other.import_file(file)
        assert all_seen(store, EVERY) == all_seen(other, EVERY)
