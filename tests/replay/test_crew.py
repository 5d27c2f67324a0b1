"""A crew does the same work in other processes, says what went wrong there, and needs nothing of who calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vmstore
from tests.refusals import refused
from tests.replay.lives import live
from vmstore.errors import StoreError
from vmstore.replay.worker_pool import AHEAD, WorkerPool

SCRIPT = """
import sys
from pathlib import Path
from vmstore.replay.sweep import Task, sweep
from vmstore.store.replay_sweep import NamespaceReader

tasks = [Task("s", 1, {"l0_tokens_max": budget}) for budget in (4_000, 9_000, 16_000)]
print(*(run.budget for run in sweep(NamespaceReader(Path(sys.argv[1]), "default"), tasks, processes=2)))
"""


def test_every_task_is_answered() -> None:
    """Each task has its own answer, whichever process gave it, and none has more than it may at a time."""
    tasks, numbers, fields = list(range(-20, 0)), [0, 0], {}

    def next_of(nth: int) -> int | None:
        numbers[nth] += bool(tasks)
        return tasks.pop() if tasks else None

    with WorkerPool(2, abs) as crew:
        crew.give(next_of)
        assert numbers == [AHEAD, AHEAD]
        while crew.busy:
            fields.update(crew.answers(waiting=True))
            crew.give(next_of)
    assert fields == {-n: n for n in range(1, 21)} and min(numbers) > 0


def test_what_a_task_raises_is_raised_here() -> None:
    """An error of the work comes back as itself."""
    with pytest.raises(ValueError, match="'many'"), WorkerPool(1, int) as crew:
        crew.give(lambda nth: "many")
        list(crew.answers(waiting=True))


def test_a_process_that_ended_is_named() -> None:
    """A process that went away says with which code, and is not waited for."""
    with refused("worker-ended", StoreError), WorkerPool(1, os._exit) as crew:
        crew.give(lambda nth: 3)
        list(crew.answers(waiting=True))


def test_a_script_needs_no_guard(store_path: Path) -> None:
    """A script that sweeps at its top, without asking whether it is the main one, gets its answers."""
    with vmstore.open(store_path) as store:
        live(store, "s", turns=4)
    script = store_path.with_name("sweeps.py")
    script.write_text(SCRIPT, "utf-8")
    ran = subprocess.run([sys.executable, script, store_path], capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.stderr) == ("4000 9000 16000\n", "")
