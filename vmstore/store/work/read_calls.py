"""The calls of tools of many sessions, read by many workers, for what is learned of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vmstore.core.clock import SystemClock, SystemIds
from vmstore.erasure.resume import open_namespace
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.namespace import Namespace
from vmstore.store.work.calls import calls_in
from vmstore.views.branch import Branch
from vmstore.work.past_call import PastCall
from vmstore.workers.choice import Choice, chosen
from vmstore.workers.executor import Progress, WorkUnit, answers, grouped
from vmstore.workers.results import ResultsFile


class ReadSession(NamedTuple):
    """A session as it stood at a position."""

    name: str
    position: int


class CallsLine(msgspec.Struct, frozen=True):
    """One line of the results file: the calls of a session, as JSON in a text of their own: it may hold any text."""

    unit: str
    session: str
    calls: str


class CallReader:
    """Reads the calls of sessions of a namespace by its place, in whatever process."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        self._backend, self._namespace = backend, namespace
        self._ns: Namespace | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_backend": self._backend, "_namespace": self._namespace, "_ns": None}

    def calls(self, sessions: Sequence[ReadSession]) -> list[list[PastCall]]:
        """The calls of each."""
        if self._ns is None:
            self._ns = open_namespace(self._backend, "r", self._namespace, SystemClock(), SystemIds())
        ns = self._ns
        with ns.asking():
            lanes = [(session.name, Branch(ns.views, ns.key(session.name) or 0)) for session in sessions]
            return [calls_in(ns, name, lane) for name, lane in lanes]


def read_calls(
    ns: Namespace,
    sessions: Sequence[ReadSession],
    *,
    workers: Choice = None,
    results: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, list[PastCall]]:
    """The calls of sessions by name, by the workers chosen; what is in a `results` file is not read again."""
    kept = ResultsFile(results, CallsLine, lambda line: line.unit.encode())
    place = ns.place
    assert place is not None, "a store in memory is read by this process"
    found: dict[str, list[PastCall]] = {}
    missing: list[ReadSession] = []
    for session in sessions:
        line = kept.find(_key(ns, session).encode())
        if line is None:
            missing.append(session)
        else:
            found[session.name] = _calls(line.calls)
    total = sum(session.position for session in sessions)
    done = total - sum(session.position for session in missing)

    def keep(unit: WorkUnit[list[ReadSession]], calls: list[list[PastCall]]) -> None:
        nonlocal done
        for session, of in zip(unit.task, calls, strict=True):
            found[session.name] = of
            if kept.path is not None:
                kept.add(CallsLine(_key(ns, session), session.name, json.dumps(of)))
        done += unit.rows
        if progress is not None:
            progress(done, total)

    reader = CallReader(place.absolute().backend, ns.name)
    units = [_unit(group) for group in grouped(missing, lambda session: session.position)]
    with chosen(workers) as crew:
        answers(crew, reader.calls, units, keep=keep, kept=kept.name)
    return found


def _unit(sessions: list[ReadSession]) -> WorkUnit[list[ReadSession]]:
    more = f" and {len(sessions) - 1} more" if len(sessions) > 1 else ""
    return WorkUnit(f"session {sessions[0].name}{more}", sessions, sum(session.position for session in sessions))


def _key(ns: Namespace, session: ReadSession) -> str:
    """The key of a session's calls: all that is in it, and the last erasure of the namespace."""
    parts = (ns.name, session.name, session.position, ns.projection.last_erasure)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _calls(text: str) -> list[PastCall]:
    return [PastCall(*call)._replace(read=tuple(call[PastCall._fields.index("read")])) for call in json.loads(text)]
