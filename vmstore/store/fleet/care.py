"""Verifying and rebuilding namespaces by many workers, each part of the work in a process of its own.

A namespace is one log, and its views are one fold in the order of that log: so it is verified in two parts,
its log and what follows it, and rebuilt in one. Many namespaces are many such parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from vmstore.engine.verify.verify import ARCHIVE
from vmstore.errors import CorruptError
from vmstore.maintenance.verify import verdict_on
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.encryption import Key
from vmstore.namespace.reports import Problem, Verdict
from vmstore.store.store import Store, open_store
from vmstore.workers.choice import Choice, chosen
from vmstore.workers.executor import Progress, WorkUnit, answers
from vmstore.workers.results import ResultsFile

LOG, VIEWS = "log", "views"
FOLDED = 12  # times the rows of a log: what a fold with its rules takes more than a look at the hashes
BROKEN = (CorruptError, apsw.Error, msgspec.MsgspecError)


class NamespacePart(NamedTuple):
    """A part of the care of one namespace."""

    backend: Backend
    namespace: str
    key: Key | None
    part: str = ""  # to verify; the view to rebuild, or none for all
    rules: bool = True

    def store(self, mode: str) -> Store:
        """A handle of its own."""
        backend: Any = self.backend
        return open_store(backend, mode, namespace=self.namespace, key=self.key)


class PartLine(msgspec.Struct, frozen=True):
    """One line of the results file: what was done, and what came of it."""

    unit: str
    namespace: str
    part: str
    answer: msgspec.Raw


def verify_all(
    parts: Sequence[NamespacePart],
    *,
    views: bool = True,
    rules: bool = True,
    workers: Choice = None,
    results: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Verdict]:
    """The verdict on each namespace, by the workers chosen; its log and what follows it are two units of work.

    With a `results` file what was sound by it is not checked again, as long as nothing was written since.
    """
    asked = [part._replace(part=LOG) for part in parts]
    if views:
        asked += [part._replace(part=VIEWS, rules=rules) for part in parts]
    found = _done(_verified, asked, Verdict, workers, results, progress)
    return {
        part.namespace: _verdict(found[nth], found[nth + len(parts)] if views else None)
        for nth, part in enumerate(parts)
    }


def _verified(part: NamespacePart) -> Verdict:
    try:
        with part.store("r") as store:
            if part.part == LOG:
                return store.verify(views=False)
            return verdict_on(store._ns.let, store._columns, None, views=True, rules=part.rules, chain=False)
    except BROKEN as error:
        return Verdict(False, 0, 0, 0, [Problem("log", part.namespace, str(error))])


def _verdict(log: Verdict, views: Verdict | None) -> Verdict:
    """Both parts as one: what follows a log that is damaged says nothing of itself."""
    sound = all(problem.kind == ARCHIVE for problem in log.problems)
    problems = [*log.problems, *(views.problems if views is not None and sound else ())]
    return Verdict(not problems, log.commits, log.mutations, log.sessions, problems)


def rebuild_all(
    parts: Sequence[NamespacePart],
    *,
    view: str | None = None,
    workers: Choice = None,
    results: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, int]]:
    """The positions that each namespace's views were rebuilt to, one or all of them, by the workers chosen."""
    asked = [part._replace(part=view or "") for part in parts]
    found = _done(_rebuilt, asked, dict[str, int], workers, results, progress)
    return {part.namespace: positions for part, positions in zip(parts, found, strict=True)}


def _rebuilt(part: NamespacePart) -> dict[str, int]:
    with part.store("rw") as store:
        return store.admin.rebuild(part.part or None)


# ---- units and their results


def _done(
    work: Callable[[NamespacePart], Any],
    parts: Sequence[NamespacePart],
    answer: Any,
    workers: Choice,
    results: Path | None,
    progress: Progress | None,
) -> list[Any]:
    """The answers of all parts, in their order."""
    kept = ResultsFile(results, PartLine, lambda line: line.unit.encode())
    keyed = [(f"{work.__name__} {key}", unit) for key, unit in map(_unit, parts)]
    missing = [(key, unit) for key, unit in keyed if kept.find(key.encode()) is None]
    total = sum(unit.rows for _, unit in keyed)
    done = total - sum(unit.rows for _, unit in missing)
    keys = {unit.name: key for key, unit in missing}

    def keep(unit: WorkUnit[NamespacePart], found: Any) -> None:
        nonlocal done
        raw = msgspec.Raw(msgspec.json.encode(found))
        line = PartLine(keys[unit.name], unit.task.namespace, unit.task.part, raw)
        kept.add(line, lasting=getattr(found, "ok", True))
        done += unit.rows
        if progress is not None:
            progress(done, total)

    with chosen(workers) as crew:
        answers(crew, work, [unit for _, unit in missing], keep=keep, kept=kept.name)
    lines = [kept.find(key.encode()) for key, _ in keyed]
    return [msgspec.json.decode(line.answer, type=answer) for line in lines if line is not None]


def _unit(part: NamespacePart) -> tuple[str, WorkUnit[NamespacePart]]:
    """A unit of work by its size, and what its result is known by: all that stands in the log."""
    name = f"{part.part or 'views'} of namespace {part.namespace!r} of {part.backend.address}"
    digest = hashlib.sha256(name.encode())
    rows = 1
    try:
        with part.store("r") as store:
            log = store._ns.log
            rows = max(1, sum(info.position for info in store.sessions()))
            last = log.tail(log.ordinal - 1, 1) if log.ordinal else []
            digest.update(b"".join(commit.hash for commit in last) + str((log.ordinal, part.rules)).encode())
    except BROKEN:  # the unit says so
        pass
    return digest.hexdigest(), WorkUnit(name, part, rows * FOLDED if part.part != LOG else rows)
