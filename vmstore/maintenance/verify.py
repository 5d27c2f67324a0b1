"""The verdict on a store: every hash, every rule, every view, every column, every seal, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from vmstore.engine.verify.history_tree import HistoryTree
from vmstore.engine.verify.verify import ARCHIVE, PROBLEMS_MAX, Finding, verify
from vmstore.log.port import Progress
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance.columns import VIEW, ColumnStore
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import Problem, Verdict
from vmstore.publication.cold_erasure import left_in_tiers
from vmstore.seals.seal import Seal, watched


def verdict_on(
    ns: Namespace,
    columns: ColumnStore,
    progress: Progress | None,
    *,
    views: bool,
    rules: bool,
    seals: Sequence[Seal] = (),
    chain: bool = True,
) -> Verdict:
    """Checks the log, with `views` what follows it, with `rules` each mutation against them, and it against seals.

    Without `chain` its hashes, cells and archives are left to somebody else.
    """
    histories = HistoryTree(watched(seals))
    with ns.lock:
        problems: list[Finding] = []
        try:
            if views:
                ns.follow()
        except Exception as error:  # the views could not be folded: the log check says why
            problems.append(Finding("views", "views", f"{type(error).__name__}: {error}"))
        follower = histories if seals else None
        counts, found = verify(
            ns.log, ns.projection, progress, views=views, rules=rules, histories=follower, chain=chain
        )
        found += _archives(ns, found) if chain else []
        if chain and not (found or problems):
            found += _tiers(ns)
        for seal in seals:
            found += list(_named(ns, seal.problems(histories)))[:PROBLEMS_MAX]
        problems = found + [p for p in problems if not found]
        if views and not problems:
            from vmstore.maintenance.snapshot_check import wrong_folds

            problems = [Finding(VIEW, *problem) for problem in columns.problems()]
            problems += [Finding("view", f"session {name}", what) for name, what in wrong_folds(ns)]
            if (wrong := ns.text_problem()) is not None:
                problems.append(Finding("text", "text", f"{wrong}; the next search rebuilds it"))
        return Verdict(not problems, *counts, [Problem(*p) for p in problems])


def _archives(ns: Namespace, found: Sequence[Finding]) -> list[Finding]:
    """Faults of archives that reading the log's cells did not find: a commit in one, a file never read."""
    if ns.place is None or (log := ns.place.archiving(ns.log)) is None:
        return []
    named = " ".join(finding.what for finding in found if finding.kind == ARCHIVE)
    problem = _broken(log)
    if problem:  # somebody may have moved them back just now
        with ns.log.settled():
            problem = _broken(log)
    return [Finding(ARCHIVE, "archive", what) for what in problem if what.split(" ", 1)[0] not in named]


def _tiers(ns: Namespace) -> list[Finding]:
    """Cold tiers that may still hold what was erased here."""
    what = "it could not be reached when something was erased, which may still be there; run `vmstore erase --finish`"
    return [Finding("erasure", address, what) for address in left_in_tiers(ns)]


def _broken(log: SqliteLog) -> list[str]:
    return list(log.archives.problems({place.uid for _, _, place in log.mover.places()}))


def _named(ns: Namespace, found: Iterable[Finding]) -> Iterator[Finding]:
    """Findings about sessions with the names that the views have for them; a seal knows none."""
    try:
        rows: list[Any] = ns.views.execute("SELECT hex(uid), name FROM sessions").fetchall()
    except apsw.Error:  # the verdict says so elsewhere
        rows = []
    names = {f"session {uid.lower()}": f"session {name} ({uid.lower()})" for uid, name in rows}
    return (finding._replace(where=names.get(finding.where, finding.where)) for finding in found)
