"""Sweeps over the sessions of a store: every what-if of each, by other processes where that is worth it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vmstore.core.clock import SystemClock, SystemIds
from vmstore.erasure.resume import open_namespace
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import to_json
from vmstore.replay.redecide import Shorten
from vmstore.replay.stimuli import Stimuli
from vmstore.replay.sweep import SessionSource, Task, sweep
from vmstore.replay.whatif import Run
from vmstore.store.replay import stimuli_of
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import in_force
from vmstore.workers.choice import Choice
from vmstore.workers.executor import Progress

if TYPE_CHECKING:
    from vmstore.store.store import Store

SPREAD_MUTATIONS = 200_000  # times runs: less is done before other processes have begun


class NamespaceReader:
    """Reads sessions of a namespace by its place, in whatever process; where `ns` has it open already, of that."""

    def __init__(self, store: Backend, namespace: str, ns: Namespace | None = None) -> None:
        self._store = store
        self._namespace = namespace
        self._ns = ns

    def __getstate__(self) -> dict[str, Any]:
        return {"_store": self._store, "_namespace": self._namespace, "_ns": None}

    def read(self, session: str) -> tuple[Stimuli, Shorten]:
        """The stimuli of a session, and what makes forms for it."""
        if self._ns is None:
            self._ns = open_namespace(self._store, "r", self._namespace, SystemClock(), SystemIds())
        return _named(self._ns, session)


class OpenNamespaceReader:
    """Reads sessions of a namespace that is open, in this process alone."""

    def __init__(self, ns: Namespace) -> None:
        self._ns = ns

    def read(self, session: str) -> tuple[Stimuli, Shorten]:
        """The stimuli of a session, and what makes forms for it."""
        return _named(self._ns, session)


def what_ifs(policies: Sequence[str], budgets: Sequence[int]) -> list[dict[str, Any]]:
    """The settings of every policy with every budget; what is not given stays as it was."""
    chosen: list[dict[str, Any]] = [{"policy": policy} for policy in policies] or [{}]
    return [change | two for change in chosen for two in [{"l0_tokens_max": budget} for budget in budgets] or [{}]]


def replays(
    store: Store,
    sessions: Sequence[str],
    changes: Sequence[dict[str, Any]],
    *,
    workers: Choice = None,
    results: Path | None = None,
    price: int | None = None,
    progress: Progress | None = None,
) -> dict[str, list[Run]]:
    """Sessions, each as it was and under every change of settings: the recorded run first.

    `workers` are chosen as `vmstore.workers.choice` says; by default processes help where there is enough to do. See
    `vmstore.replay.sweep` for `results`.
    `price` is what a token costs more where no provider has it cached, in nano-dollars.
    """
    ns = store._ns
    with_recorded: list[dict[str, Any] | None] = [None, *changes]
    tasks = [Task(name, store.session(name).info().position, change) for name in sessions for change in with_recorded]
    source: SessionSource
    if ns.place is None or ns.views_folder is None:
        source, workers = OpenNamespaceReader(ns), 1
    else:
        source = NamespaceReader(ns.place.absolute().backend, ns.name, ns)
        if workers is None and sum(task.position for task in tasks) < SPREAD_MUTATIONS:
            workers = 1
    runs = sweep(source, tasks, workers=workers, results=results, price=price, progress=progress)
    return {name: runs[nth * len(with_recorded) : (nth + 1) * len(with_recorded)] for nth, name in enumerate(sessions)}


def live_sessions(store: Store) -> list[str]:
    """The sessions that have a budget."""
    ns = store._ns
    found = []
    with ns.asking():
        for info in store.sessions():
            lane = Branch(ns.views, ns.key(info.session) or 0)
            if in_force(lane, info.position) is not None:
                found.append(info.session)
    return found


def run_values(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    """The runs of a session as plain values, the recorded one apart: the shape of `vmstore replay --json`."""
    recorded, *others = runs
    return {"session": name, "runs": [flat(run) for run in others], "recorded": flat(recorded)}


def flat(run: Run) -> dict[str, Any]:
    """A run as one object, its numbers beside its policy and budget."""
    found = to_json(run)
    measures = found.pop("measures")
    return {"policy": found.pop("policy"), "budget": found.pop("budget"), **measures, **found}


def _named(ns: Namespace, session: str) -> tuple[Stimuli, Shorten]:
    key = ns.key(session)
    assert key is not None, "a session is looked up before it is read"
    return stimuli_of(ns, key, session)
