"""Sessions of a namespace decided again: what is read for it, and where a what-if is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vmstore.core.clock import SystemClock, SystemIds
from vmstore.errors import ConflictError
from vmstore.live.facts import Facts
from vmstore.live.shorter import Shorter
from vmstore.live.spoken import Known
from vmstore.replay.check import Checked, check
from vmstore.replay.keep import Source, written
from vmstore.replay.paper import Made
from vmstore.replay.redecide import Shorten
from vmstore.replay.stimuli import Commit, Stimuli, stimuli
from vmstore.replay.sweep import Progress, Task, sweep
from vmstore.replay.whatif import Run, as_recorded, what_if
from vmstore.store.namespace import Namespace, session_name
from vmstore.store.opening import open_namespace
from vmstore.views.context import read_cells
from vmstore.views.decisions import in_force
from vmstore.views.lane import Lane
from vmstore.vm.held import Held

if TYPE_CHECKING:
    from vmstore.store.store import Store

SPREAD_MUTATIONS = 200_000  # times runs: less is done before other processes have begun


class Contents:
    """Reads contents of a session's pages, and makes forms of them that nobody recorded."""

    def __init__(self, ns: Namespace, lane: Lane) -> None:
        self._ns = ns
        self._lane = lane
        self._shorter = Shorter()

    def of(self, position: int) -> bytes:
        """The content that was recorded at a position; empty where the source never had it."""
        with self._ns.asking():
            for _, cell, sealed in self._lane.rows(_SEALED, (position,)):
                if cell is not None:
                    return read_cells(self._ns.log, {cell: sealed})[cell]
        return b""

    def shorten(self, held: Held, page: int, content: int, level: int) -> Made:
        """The form of a page at a level, or at the next higher one that has one, made without a model."""
        with self._ns.asking():
            rows = list(self._lane.rows(_NAMED, (page,)))
        hint, labels = rows[0] if rows else (None, None)
        known = Known(name=hint, mime=json.loads(labels).get("mime") if labels else None)
        made = self._shorter.of(msgspec.structs.replace(held, page=page), known, self.of(content), level)
        return Made(made.level, made.method, int(made.lossy), made.content, made.tokens)


def _commits(ns: Namespace, lane: Lane) -> Iterator[Commit]:
    facts = Facts(ns.log, lane)
    for told in facts.after(0):
        yield Commit(told.at, told.mutations, facts.cell)


def stimuli_of(ns: Namespace, key: int, name: str) -> tuple[Stimuli, Shorten]:
    """What a session was told, and what makes forms for it; InputError where it was never live."""
    with ns.asking():
        lane = Lane(ns.views, key)
        return stimuli(name, _commits(ns, lane)), Contents(ns, lane).shorten


def replayed(
    ns: Namespace,
    key: int,
    name: str,
    policy: str | None,
    budget: int | None,
    settings: Mapping[str, Any],
    keep: str | None,
) -> Run:
    """A session decided again under changed settings, or its numbers as it was; stored where it is to be kept."""
    told = {"policy": policy, "l0_tokens_max": budget, **settings}
    changed = {word: value for word, value in told.items() if value is not None}
    if keep is not None:
        return kept(ns, key, name, changed, keep)
    found, shorten = stimuli_of(ns, key, name)
    return what_if(found, shorten, changed) if changed else as_recorded(found, shorten)


def checked(ns: Namespace, key: int, name: str) -> Checked:
    """Compares every decision of a session with what is decided now."""
    return check(*stimuli_of(ns, key, name))


def kept(ns: Namespace, key: int, name: str, changed: Mapping[str, Any], new: str) -> Run:
    """Stores a what-if as a session of its own."""
    if ns.key(session_name(new)) is not None:
        raise ConflictError(f"there is a session {new!r} already; keep it under another name")
    found, shorten = stimuli_of(ns, key, name)

    def write() -> Run:
        lane = Lane(ns.views, key)
        source = Source(key, _commits(ns, lane), Contents(ns, lane).of)
        return written(ns.engine, found, source, new, changed, shorten)

    with ns.lock:
        ns.follow()
        return ns.retried(write)


# ---- many at once


class Reading:
    """Reads sessions of a namespace by its place, in whatever process."""

    def __init__(self, path: Path, namespace: str) -> None:
        self._path = path
        self._namespace = namespace
        self._ns: Namespace | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_namespace": self._namespace, "_ns": None}

    def read(self, session: str) -> tuple[Stimuli, Shorten]:
        """What a session was told, and what makes forms for it."""
        if self._ns is None:
            self._ns = open_namespace(self._path, "r", self._namespace, SystemClock(), SystemIds())
        return _named(self._ns, session)


class Here:
    """Reads sessions of a namespace that is open, in this process alone."""

    def __init__(self, ns: Namespace) -> None:
        self._ns = ns

    def read(self, session: str) -> tuple[Stimuli, Shorten]:
        """What a session was told, and what makes forms for it."""
        return _named(self._ns, session)


def what_ifs(policies: Sequence[str], budgets: Sequence[int]) -> list[dict[str, Any]]:
    """The settings of every policy with every budget; what is not given stays as it was."""
    chosen: list[dict[str, Any]] = [{"policy": policy} for policy in policies] or [{}]
    return [one | two for one in chosen for two in [{"l0_tokens_max": budget} for budget in budgets] or [{}]]


def replays(
    store: Store,
    sessions: Sequence[str],
    changes: Sequence[dict[str, Any]],
    *,
    processes: int | None = None,
    results: Path | None = None,
    price: int | None = None,
    progress: Progress | None = None,
) -> dict[str, list[Run]]:
    """Sessions, each as it was and under every change of settings: the recorded run first.

    Other processes help where there is enough to do; see `vmstore.replay.sweep` for `results`.
    `price` is what a token costs more where no provider has it cached, in nano-dollars.
    """
    ns = store._ns
    told: list[dict[str, Any] | None] = [None, *changes]
    tasks = [Task(name, store.session(name).info().position, one) for name in sessions for one in told]
    if ns.folder is None or sum(task.position for task in tasks) < SPREAD_MUTATIONS:
        processes = 1
    source = Here(ns) if ns.folder is None or processes == 1 else Reading(ns.folder.parent, ns.folder.name)
    runs = sweep(source, tasks, processes=processes, results=results, price=price, progress=progress)
    return {name: runs[nth * len(told) : (nth + 1) * len(told)] for nth, name in enumerate(sessions)}


def live_sessions(store: Store) -> list[str]:
    """The sessions that have a budget."""
    ns = store._ns
    found = []
    with ns.asking():
        for info in store.sessions():
            lane = Lane(ns.views, ns.key(info.session) or 0)
            if in_force(lane, info.position) is not None:
                found.append(info.session)
    return found


def _named(ns: Namespace, session: str) -> tuple[Stimuli, Shorten]:
    key = ns.key(session)
    assert key is not None, "a session is looked up before it is read"
    return stimuli_of(ns, key, session)


_SEALED = """SELECT position, cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_NAMED = "SELECT hint, labels FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
