"""The doctor's look at a store in a database: what it can do there, its logs' chains, its seals and its views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from vmstore.core.clock import Clock, SystemIds
from vmstore.engine.verify.history_tree import HistoryTree
from vmstore.engine.verify.verify import ChainCheck, Finding, batches_of
from vmstore.errors import CorruptError, VmstoreError
from vmstore.log.port import Progress
from vmstore.maintenance.checks import NAMED_MAX
from vmstore.maintenance.columns import ColumnStore
from vmstore.maintenance.vector_coverage import vector_coverage
from vmstore.maintenance.verify import verdict_on
from vmstore.namespace.backends.port import Backend, sizes_of
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.open import attach
from vmstore.namespace.reports import Capability, NamespaceHealth, Symptom
from vmstore.seals.seal import Seal, watched
from vmstore.seals.seals import SEAL, folder_of, read_seal

RESTORE = "restore the database from a backup, after a look at what changed it"


def looked_at(
    backend: Backend, namespace: str | None, full: bool, clock: Clock, progress: Progress | None
) -> tuple[list[Capability], list[NamespaceHealth], list[Symptom]]:
    """The capabilities of a store, its namespaces or the one named, and what is wrong; it writes nothing there."""
    capabilities = backend.capabilities(clock)
    found = [
        Symptom(wrong.name, backend.address, wrong.what, wrong.remedy)
        for wrong in capabilities
        if wrong.remedy is not None
    ]
    if any(wrong.name in ("schema", "reads", "rights", "tables") for wrong in capabilities if wrong.remedy is not None):
        return capabilities, [], found  # nothing can be read
    backend.check(namespace)
    wards = []
    named = namespace or backend.named
    for name in [named] if named else backend.namespaces():
        try:
            with closing(attach(backend, "r", name, clock, SystemIds())) as ns:
                wards.append(_health(ns))
                found += _symptoms(ns, full, progress)
        except VmstoreError as error:
            found.append(Symptom("log", f"namespace {name}", str(error), RESTORE))
    return capabilities, wards, found


def _health(ns: Namespace) -> NamespaceHealth:
    ordinal = ns.log.ordinal
    behind = {view: ordinal - reached for view, reached in ns.projection.positions().items()}
    coverage = vector_coverage(ns.views)
    return NamespaceHealth(ns.name, None, ordinal, sizes_of(ns.place).log, behind, 0, [], coverage)


def _symptoms(ns: Namespace, full: bool, progress: Progress | None) -> Iterator[Symptom]:
    seals = list[Seal]()
    assert ns.cache is not None, "what lies in a database has a cache"
    for file in sorted(folder_of(ns.cache).glob(f"{ns.name}-*{SEAL}")):
        try:
            seals.append(read_seal(file))
        except VmstoreError as error:
            yield Symptom("seal", str(file), str(error), f"put back a copy of {file}, or delete it")
    for kind, where, what in (_verified(ns, seals, progress) if full else _chained(ns, seals, progress))[:NAMED_MAX]:
        yield Symptom(kind, where, what, "run `vmstore rebuild`" if kind in ("view", "views", "columns") else RESTORE)


def _verified(ns: Namespace, seals: list[Seal], progress: Progress | None) -> list[Finding]:
    with closing(ColumnStore(ns)) as columns:
        verdict = verdict_on(ns, columns, progress, views=True, rules=True, seals=seals)
    return [Finding(problem.kind, problem.where, problem.what) for problem in verdict.problems]


def _chained(ns: Namespace, seals: list[Seal], progress: Progress | None) -> list[Finding]:
    """Checks every commit, and no cell."""
    histories = HistoryTree(watched(seals))
    check, total = ChainCheck(ns.log, histories), ns.log.ordinal
    try:
        for batch in batches_of(ns.log):
            for commit in batch:
                check.commit(commit)
            if progress is not None:
                progress(min(batch[-1].ordinal, total), total)
    except CorruptError as error:
        return [Finding("log", "log", str(error))]
    return check.problems + [finding for seal in seals for finding in seal.problems(histories)]
