"""Units of work are all answered, by any worker; what goes wrong is named, and costs no other unit its answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from tests.replay.lives import live
from vmstore.errors import InputError, StoreError
from vmstore.workers.choice import chosen
from vmstore.workers.executor import Workers, WorkUnit, answers, grouped, outcomes
from vmstore.workers.process import LocalPool, WorkerProcess

SCRIPT = """
import sys
from pathlib import Path
from vmstore.replay.sweep import Task, sweep
from vmstore.store.replay_sweep import NamespaceReader

tasks = [Task("s", 40_000, {"l0_tokens_max": budget}) for budget in (4_000, 9_000, 16_000)]
print(*(run.budget for run in sweep(NamespaceReader(Path(sys.argv[1]), "default"), tasks, workers=2)))
"""


@pytest.fixture(params=["2", "ray"], scope="module")
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Two processes, and a Ray cluster of this machine where Ray is installed."""
    if request.param == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'vmstore[ray]'")
    with chosen(request.param) as chosen_workers:
        assert chosen_workers is not None
        yield chosen_workers


def units(*tasks: Any) -> list[WorkUnit[Any]]:
    """A unit for each task, named by it."""
    return [WorkUnit(f"unit {task}", task) for task in tasks]


def halved(number: int) -> float:
    """Work that fails for 0, and ends its process for numbers below: killed, as the kernel kills for memory."""
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1 / number


def once(marker: str) -> str:
    """Work that ends its process the first time it is done."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def test_every_unit_is_answered(workers: Workers) -> None:
    """Each unit has its own answer, in the order asked, by any worker, as this process gives it."""
    tasks = units(*range(-20, 0))
    assert answers(workers, abs, tasks) == answers(None, abs, tasks) == list(range(20, 0, -1))


def test_what_a_unit_raises_is_named_and_the_others_are_kept(workers: Workers) -> None:
    """One unit that fails is named with its reason, in its error's class where that is one of ours; others are kept."""
    kept: list[float] = []
    for crew in (None, workers):
        kept.clear()
        with refused("units-failed", StoreError, "1 of 3", "unit 0: division by zero") as raised:
            answers(crew, halved, units(1, 0, 2), keep=lambda unit, answer: kept.append(answer))
        assert sorted(kept) == [0.5, 1.0] and isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_worker_that_is_killed_costs_one_unit(workers: Workers) -> None:
    """A unit whose worker is killed twice is named with that, and what others were given is done by new ones."""
    kept: list[float] = []
    with refused("worker-ended", StoreError, "unit -1"):
        answers(workers, halved, units(*range(1, 9), -1), keep=lambda unit, answer: kept.append(answer))
    assert sorted(kept) == sorted(1 / n for n in range(1, 9))


def test_a_unit_whose_worker_was_killed_is_done_again(workers: Workers, tmp_path: Path) -> None:
    """Killed once, from outside or by itself, nothing is missing in the end."""
    names = [str(tmp_path / name) for name in "abc"]
    assert answers(workers, once, units(*names)) == ["a", "b", "c"]


def test_who_wants_no_more_ends_the_rest() -> None:
    """Where the caller stops taking outcomes, every process is ended and no further unit is begun."""
    pool, begun = LocalPool(2), []

    class Watched(LocalPool):
        def begin(self, work: Any) -> WorkerProcess:
            begun.append(pool.begin(work))
            return begun[-1]

    chosen_workers = outcomes(Watched(2), abs, units(*range(50)))
    next(chosen_workers)
    assert all(0 < len(worker.units) <= pool.ahead for worker in begun)
    chosen_workers.close()
    assert [worker.process.poll() for worker in begun] == [-signal.SIGKILL, -signal.SIGKILL]


def test_units_are_of_so_many_rows() -> None:
    """Items stand together in their order as long as they fit, and one that is too large stands alone."""
    assert grouped([3, 4, 2, 50, 1, 9, 1], lambda rows: rows, 10) == [[3, 4, 2], [50], [1, 9], [1]]


def test_large_units_are_begun_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are given in the order of their rows, so that no large one is begun where others have little left."""
    order, give = list[int](), WorkerProcess.give

    def recorded(worker: WorkerProcess, unit: WorkUnit[int]) -> None:
        order.append(unit.task)
        give(worker, unit)

    monkeypatch.setattr(WorkerProcess, "give", recorded)
    assert len(list(outcomes(LocalPool(2), str, [WorkUnit(str(n), n, rows=n) for n in (2, 0, 5, 1, 4, 3)]))) == 6
    assert order == [5, 4, 3, 2, 1, 0]


def test_no_such_workers() -> None:
    """What is no number of workers is refused, and so is a cluster that is not there; each says what would do."""
    for wrong in ("many", 0, "-1", "ray:7"):
        with refused("not-a-number-of-workers", InputError), chosen(wrong):
            pass


def test_ray_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the refusal names the extra."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused("not-installed", InputError, "vmstore[ray]"), chosen("ray"):
        pass


def test_a_cluster_that_is_not_there() -> None:
    """An address at which no cluster answers is named."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'vmstore[ray]'")
    if ray.is_initialized():
        pytest.skip("a cluster of another test is there")
    with refused("no-ray-cluster", StoreError, "ray://127.0.0.1:1"), chosen("ray://127.0.0.1:1"):
        pass


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """A script that sweeps at its top, without asking whether it is the main one, gets its answers."""
    with vmstore.open(tmp_path / "agent.vms") as store:
        live(store, "s", turns=4)
    script = tmp_path / "sweeps.py"
    script.write_text(SCRIPT, "utf-8")
    ran = subprocess.run([sys.executable, script, tmp_path / "agent.vms"], capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.stderr) == ("4000 9000 16000\n", "")
