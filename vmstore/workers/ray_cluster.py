"""Workers of Ray: one actor for each core of a cluster, or of this machine. Ray comes with the extra `ray`."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from vmstore.errors import InputError, StoreError
from vmstore.workers.executor import Answer, Task, UnitOutcome, Worker, WorkerEnded, WorkUnit, done
from vmstore.workers.process import sendable

LOCAL = "ray"
SCHEME = "ray://"
CONNECT_S = 30


class RayCluster:
    """A cluster by its address, `ray://host:port`; with `ray` one that is started here and ends with its use."""

    ahead = 1  # an actor that is killed takes answers with it that were on their way

    def __init__(self, address: str = LOCAL) -> None:
        self._ray = _imported()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(address)
        self.count = max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _connect(self, address: str) -> None:
        paths = os.pathsep.join(dict.fromkeys(path for path in map(os.path.abspath, sys.path) if os.path.exists(path)))
        given: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address == LOCAL:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            os.environ.setdefault("RAY_worker_niceness", "0")  # a process of ours is as nice as we are, and no more
            given |= {"address": "local", "include_dashboard": False}
            given["runtime_env"] = {"env_vars": {"PYTHONPATH": paths}}
        else:
            given["address"] = address
            os.environ.setdefault("RAY_CLIENT_RECONNECT_GRACE_PERIOD", str(CONNECT_S))
        try:
            self._ray.init(**given)
        except Exception as error:
            raise StoreError(
                f"no Ray cluster answers at {address} ({type(error).__name__}: {_line(error)}); start one with "
                "`ray start --head`, or take processes of this machine: --workers 2",
                code="no-ray-cluster",
            ) from error

    def begin(self, work: Callable[[Task], Answer]) -> RayWorker:
        """Begins one more actor."""
        return RayWorker(self._ray, work)

    def ready(self, busy: Sequence[Worker[Task, Answer]]) -> Sequence[Worker[Task, Answer]]:
        """Waits until any has answered, or ended."""
        waited = {worker.answers[0]: worker for worker in busy if isinstance(worker, RayWorker)}
        there, _ = self._ray.wait(list(waited), num_returns=1)
        return [waited[answer] for answer in there]

    def close(self) -> None:
        """Leaves the cluster, which ends where it was started here."""
        if self._ours:
            self._ray.shutdown()


class RayWorker:
    """One actor, and the units it was given and did not answer yet, in order."""

    def __init__(self, ray: Any, work: Callable[[Any], Any]) -> None:
        self._ray = ray
        self._actor = ray.remote(num_cpus=1, max_restarts=0)(_Actor).remote(work)
        self.units: deque[WorkUnit[Any]] = deque()
        self.answers: deque[Any] = deque()

    def give(self, unit: WorkUnit[Any]) -> None:
        """Gives it a unit, to be done when those before are."""
        self.units.append(unit)
        self.answers.append(self._actor.answer.remote(unit))

    def answer(self) -> UnitOutcome[Any, Any]:
        """The outcome of the unit it was given first."""
        try:
            answer, failed = self._ray.get(self.answers[0])
        except self._ray.exceptions.RayError as error:
            raise WorkerEnded(f"an actor of Ray ended ({_line(error)})") from error
        self.answers.popleft()
        return UnitOutcome(self.units.popleft(), answer, failed)

    def end(self) -> None:
        """Ends it, whatever it does."""
        self._ray.kill(self._actor)


class _Actor:
    """Does units in a process of the cluster."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def answer(self, unit: WorkUnit[Any]) -> tuple[Any, Exception | None]:
        """The answer of a unit, or what doing it raised."""
        outcome: UnitOutcome[Any, Any] = done(self._work, unit)
        return outcome.answer, sendable(outcome.error)


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError(
            f"Ray is not installed ({error}); get it with: pip install 'vmstore[ray]', or take processes of this "
            "machine: --workers 2",
            code="not-installed",
        ) from error
    return ray


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
