"""Merges stores: every session of another store comes into this one, its chain kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from operator import itemgetter

from vmstore.core.clock import SystemClock, SystemIds
from vmstore.engine.transfer.merge import COMING, CONFLICTS, GREW, ORPHAN, PARTED, GuestSession, LogMerge, MergeProgress
from vmstore.engine.verify.verify import verify
from vmstore.erasure.erase import finish_brought, mark
from vmstore.erasure.resume import open_namespace
from vmstore.errors import CorruptError, InputError, RefusedError
from vmstore.namespace.backends.address import Address, backend_of
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.effects import Agree, effects_on, settle
from vmstore.namespace.encryption import Key
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.open import memory_namespace
from vmstore.namespace.reports import MergedSession, MergeReport
from vmstore.views.erased_cells import Erasures, erasures_after
from vmstore.views.projection import Progress


def merge(
    into: Address | Backend,
    other: Address | Backend,
    *,
    namespace: str | None = None,
    dry_run: bool = False,
    agreed: Agree = False,
    key: Key | None = None,
    progress: Progress | None = None,
) -> MergeReport:
    """Brings every session of another store, or of one namespace of it, into a store.

    Sessions are the same where their uids are. One that is not here comes whole; of one that both
    hold, what is missing here is appended; where both went on differently, its name is taken or the
    past it forked from is missing, nothing of it is written, and the reason is named. The other store is
    verified first, and only read. Done again, or after a kill, it resumes from what is here. What was
    erased there is erased here: where that destroys contents, or where a session that is here comes with
    another policy or other settings, nothing of the namespace is taken unless somebody has `agreed`, or
    says so asked with what would happen. `key` is the store key of those that are encrypted.
    """
    target, source = backend_of(into), backend_of(other)
    _check(target, source)
    names = [namespace] if namespace is not None else source.namespaces()
    found: list[MergedSession] = []
    for nth, name in enumerate(names):
        its_key = source.key_for(name, key)
        with closing(open_namespace(source, "r", name, SystemClock(), SystemIds(), its_key, believed=False)) as there:
            proven = _proven(there, source.address, _share(progress, 2 * nth, 2 * len(names)))
            missing = dry_run and name not in target.namespaces()
            mode = "r" if dry_run else "rw"
            clock, ids = SystemClock(), SystemIds()
            here = (
                memory_namespace(clock, ids)
                if missing
                else open_namespace(target, mode, name, clock, ids, target.key_for(name, key))
            )
            with closing(here), _held(here, there):
                if there.log.ordinal > proven:  # what came since may be an erasure
                    _proven(there, source.address, None)
                tell = _share(progress, 2 * nth + 1, 2 * len(names))
                found += _merged(here, there, name, source.address, dry_run, agreed, tell)
                if not dry_run:
                    finish_brought(here)
    return MergeReport(not dry_run, found, sum(entry.outcome in CONFLICTS for entry in found))


@contextmanager
def _held(here: Namespace, there: Namespace) -> Iterator[None]:
    """Holds off erasure and archiving in both stores while others write on, so that proven contents stay.

    In one order for everybody, else two stores that are merged into each other could wait for ever.
    """
    holds = [("" if there.place is None else there.place.identity, there.log.settled)]
    if here.place is not None and not here.readonly:
        log = here.place.archiving(here.log)
        if log is not None:
            holds.append((here.place.identity, log.archives.alone))
    with ExitStack() as stack:
        for _, hold in sorted(holds, key=itemgetter(0)):
            stack.enter_context(hold())
        yield


def _check(target: Backend, source: Backend) -> None:
    target.check()
    source.check()
    if target.identity == source.identity:
        raise InputError(
            f"{target.address} and {source.address} are one store; name another to merge from", code="same-store"
        )


def _proven(there: Namespace, source: str, progress: Progress | None) -> int:
    """Up to where the other store is sound; raises CorruptError where it is not: nothing of it is taken then."""
    ordinal = there.log.ordinal
    _, problems = verify(there.log, there.projection, progress, views=False)
    if problems:
        kind, where, what = problems[0]
        raise CorruptError(
            f"{source} is not sound, so nothing was taken from it: {kind}, {where}: {what}; "
            "`vmstore verify` names all problems",
            code="not-sound",
        )
    there.follow()
    if Erasures(there.log).beyond:
        raise RefusedError(
            f"{source} lost contents by an erasure that was recorded after it was archived, in the store it came from; "
            "merge that one, or bring the session back there and archive it again",
            code="erased-beside",
        )
    return ordinal


def _merged(
    here: Namespace, there: Namespace, name: str, source: str, dry_run: bool, agreed: Agree, progress: Progress | None
) -> Iterator[MergedSession]:
    work = LogMerge(here.reader if dry_run else here.engine, there.log, there.projection)
    guests = work.guests()
    erased = {session for session, _, _ in erasures_after(there.log, 0)}
    coming: set[bytes] = set()
    with here.lock:
        here.follow()
        effects = _effects(here, work, guests)
    if not dry_run:
        settle(agreed, [rule for _, rules in effects.values() for rule in rules], source)
    for nth, guest in enumerate(guests):
        with here.lock:
            standing = work.standing(guest, coming) if dry_run else None
            new = 0 if standing is None else work.lacks(standing)
            if standing is None:
                standing, new = _brought(here, work, guest, guest.session in erased)
        if standing.outcome not in CONFLICTS:
            coming.add(guest.uid)
        if progress is not None:
            progress(nth + 1, len(guests))
        why, (lost, rule) = _remedy(standing, source, name), effects.get(guest.uid, (0, []))
        yield MergedSession(name, guest.name, standing.outcome, new, standing.position, why, lost, rule)


def _effects(here: Namespace, work: LogMerge, guests: list[GuestSession]) -> dict[bytes, tuple[int, list[str]]]:
    """Effects of growing sessions on the contents here, by uid: cells destroyed, and a description."""
    found = {}
    for guest in guests:
        standing = work.standing(guest)
        if standing.outcome == GREW:
            found[guest.uid] = effects_on(here, standing.session, guest.name, work.new(standing))
    return found


def _brought(here: Namespace, work: LogMerge, guest: GuestSession, erases: bool) -> tuple[MergeProgress, int]:
    """Brings a session; one that `erases` is marked, so that who opens next finishes what a kill interrupts."""
    if not erases or work.standing(guest).outcome not in COMING:
        return work.bring(guest)
    with here.engine.log.destroying():
        mark(here)
        return work.bring(guest)


def _remedy(standing: MergeProgress, source: str, namespace: str) -> str | None:
    """The reason why nothing of a session was merged, and the remedy; None where there is no conflict."""
    if standing.outcome not in CONFLICTS:
        return None
    option = "" if namespace == "default" else f" --namespace {namespace}"
    name = standing.guest.name
    if standing.outcome == ORPHAN:
        return (
            f"it forked from {standing.name!r} at a place that session does not have here; see the report of that "
            "one, or leave it"
        )
    remedy = (
        f"`vmstore export {source} {name}{option} --exact --out one.jsonl` and "
        f"`vmstore import STORE one.jsonl{option}` "
        "make it a session of its own under a free name; or leave it"
    )
    if standing.outcome == PARTED:
        return f"both went on differently after position {standing.position}; {remedy}"
    return f"another session is called {name!r} here; {remedy}"


def _share(progress: Progress | None, number: int, of: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(number * 1000 + 1000 * done // max(total, 1), of * 1000)
