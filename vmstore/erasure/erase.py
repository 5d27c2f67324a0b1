"""Erasing: recorded first, then destroyed, then forgotten by everything that follows the log.

A mark in the namespace's folder says that an erasure is under way. It goes when all is done, so what
a kill interrupts is finished when the store is next opened for writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from vmstore.core.decision import Cause, Holder
from vmstore.core.erasure import ErasureReason
from vmstore.core.mutation import Erase, Evict, Unpin
from vmstore.core.system.atomic_file import destroy_scratches
from vmstore.engine.named_cells import reachable
from vmstore.erasure.certificates import (
    KIND,
    Certificate,
    ErasedCell,
    SessionErasure,
    certificates,
    folder_of,
    keep,
    signed,
)
from vmstore.erasure.plan import ErasureRequest, Planner
from vmstore.erasure.relations import Owned
from vmstore.erasure.scrub import scrub_kept, scrub_snapshots, scrub_text, scrub_views
from vmstore.errors import InputError, RefusedError, StoreError, UnknownError
from vmstore.live.runtime import Runtime
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import ErasurePlan, ErasureReport
from vmstore.namespace.resolve import page_named
from vmstore.publication.cold_erasure import clear_tiers, left_in_tiers, objects_of
from vmstore.seals.seal import uid_of
from vmstore.views.branch import NEVER, Branch
from vmstore.views.erased_cells import Erasures, erasures_after
from vmstore.views.log_reader import commit_at
from vmstore.views.projectors.decisions import in_force
from vmstore.vmql.planner.predicate import page_condition
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import Statement

if TYPE_CHECKING:
    from vmstore.namespace.signing_keys import SigningKey


HELD = (Holder.HAND, Holder.SYSTEM, Holder.TOOLS, Holder.PLAN)
"""Who holds a page for good; those of the last turns are only spared."""


def vacated(ns: Namespace, gone: Callable[[Owned], bool]) -> dict[int, list[Unpin | Evict]]:
    """For each live session, the mutations that remove erased pages from its prompt; pins do not protect them."""
    found: dict[int, list[Unpin | Evict]] = {}
    for session in sorted(key for (key,) in ns.views.execute("SELECT DISTINCT session FROM choices")):
        lane = Branch(ns.views, session)
        if in_force(lane, NEVER) is None or gone((session, 0)):
            continue
        state = Runtime(ns.reader, lane).current()
        leaving = [resident for resident in state.here.values() if gone((lane.owner(resident.page), resident.page))]
        for resident in sorted(leaving, key=lambda resident: resident.page):
            holders = [holder for holder in HELD if resident.holders >> holder & 1]
            found.setdefault(session, []).extend(Unpin(resident.page, holder) for holder in holders)
            found[session].append(Evict(resident.page, Cause.ERASED, resident.tokens))
    return found


EMPTY: Mapping[int, Sequence[Unpin | Evict]] = {}
ANY_AGE = 1 << 62  # strays go however new they are: who is about to name one writes it again
BEYOND = [
    "backups, exports, bundles and copies made before: erase there too, or delete them",
    "what a model's provider, a proxy or a log of the agent's own keeps",
    "the history of the vmql shell and the statements kept in it, of each user who asked",
    "blocks that a file system, a snapshot or the flash of a disk has not reused yet",
]
VERSIONS = "versions of deleted objects that the bucket keeps, where it does, of"
REWRITTEN = ["log", "blobs", "views", "text index", "digests of contents"]


def beyond(ns: Namespace) -> list[str]:
    """All that an erasure does not reach, of the place of a namespace too."""
    return [*BEYOND, *(ns.place.beyond if ns.place is not None else ())]


class Erasable(Protocol):
    """A store that is open, as far as erasing needs it."""

    _ns: Namespace

    def session(self, name: str) -> Any:
        """The session of a name."""
        ...

    def query(self, text: str | Statement, /, *, session: str | None = None) -> Iterable[Any]:
        """The rows of a statement."""
        ...


class Subject(msgspec.Struct, frozen=True):
    """The subject of an erasure: a page, a session, a user, or the pages a condition selects."""

    page: str | None = None
    session: str | None = None
    user: str | None = None
    where: str | None = None
    in_session: str | None = None


def plan_erasure(
    store: Erasable, *, derived: bool = False, copies: bool = False, listing: bool = True, **subject: str | None
) -> ErasurePlan:
    """The plan of `erase`: what would go and what would stay; nothing is written."""
    ns = store._ns
    with ns.asking():
        plan = Planner(ns.log, ns.views, wanted(store, Subject(**subject), derived, copies), listing=listing).plan()
    return msgspec.structs.replace(plan, objects=objects_of(ns, {session.uid for session in plan.sessions}))


def erase(
    store: Erasable,
    *,
    derived: bool = False,
    copies: bool = False,
    reason: str = "asked",
    key: SigningKey | None = None,
    **subject: str | None,
) -> ErasureReport:
    """Destroys contents for good; every hash still holds, and a certificate says what went.

    The subject is one of `page` (a name, in `in_session` or an address of its own), `session`,
    `user` or `where` (a condition on PAGES). `derived` takes what was made from it too, `copies`
    what says or quotes the same. `reason` is one of asked, retention, mistake, secret, law.
    Raises UnknownError where there is no such thing, before anything is written.
    """
    return erase_wanted(store, lambda: wanted(store, Subject(**subject), derived, copies), reason, key)


def erase_wanted(
    store: Erasable, choose: Callable[[], ErasureRequest], reason: str, key: SigningKey | None = None
) -> ErasureReport:
    """Destroys what `choose` names, asked while every other writer waits."""
    ns = store._ns
    why = ErasureReason.of(reason)
    if why is None:
        raise UnknownError(
            f"there is no reason {reason!r}; there are {', '.join(known.word for known in ErasureReason)}"
        )
    with ns.lock:
        finish(ns)
        with ns.engine.log.destroying():
            with ns.asking():
                planner = Planner(ns.log, ns.views, choose(), listing=False)
                plan = planner.plan()
            if not plan.cells:
                return ErasureReport(plan, reason, [], None, beyond(ns))
            erasures = planner.erases(int(why))
            return _done(ns, plan, erasures, vacated(ns, planner.goes), reason, key)


def wanted(store: Erasable, subject: Subject, derived: bool, copies: bool) -> ErasureRequest:
    """The pages and sessions that a subject means; UnknownError where there is none."""
    ns = store._ns
    chosen = [name for name in ("page", "session", "user", "where") if getattr(subject, name) is not None]
    if len(chosen) != 1:
        raise InputError("say what to erase: one of page, session, user and where")
    if subject.in_session is not None and chosen[0] not in ("page", "where"):
        raise InputError("in_session says where a page is, or a condition holds; a session or a user is all of it")
    pages: Iterable[Owned] = ()
    sessions: Iterable[int] = ()
    if subject.page is not None:
        if subject.in_session is None:
            name, page = page_named(store._ns, subject.page)
            session = store.session(name)
        else:
            session, page = store.session(subject.in_session), subject.page
        lane = session._lane()
        number = session.lineage.position_of(page)
        pages = [(lane.owner(number), number)]
    elif subject.session is not None:
        sessions = [_key(store, subject.session)]
    elif subject.user is not None:
        sessions = [session for (session,) in ns.views.execute(_OF_USER, (subject.user,))]
    else:
        assert subject.where is not None, "one of them is given"
        pages = _selected(store, subject.where, subject.in_session)
    return ErasureRequest(frozenset(pages), frozenset(sessions), derived, copies, subject.user)


# What was forked, spawned or continued from a user's session is theirs too, unless it names another user.
_OF_USER = """WITH RECURSIVE theirs(session) AS (
  SELECT session FROM sessions WHERE user = ?1
  UNION SELECT s.session FROM theirs JOIN sessions s ON s.parent = theirs.session
   WHERE s.user IS NULL OR s.user = ?1)
SELECT session FROM theirs"""


def _key(store: Erasable, name: str) -> int:
    """A session by its name, or by its uid in hex; hidden ones too."""
    rows: Any = store._ns.views.execute(
        "SELECT session FROM sessions WHERE name = ? OR hex(uid) = upper(?)", (name, name)
    ).fetchall()
    if not rows:
        store.session(name)  # which says what is nearest
        raise UnknownError(f"there is no session {name!r}")
    return int(rows[0][0])


def _selected(store: Erasable, where: str, session: str | None) -> list[Owned]:
    """The pages that a condition selects, in one session or all."""
    found = []
    for name, page in pages_where(store, where, session):
        lane = store.session(name if session is None else session)._lane()
        number = int(str(page)[1:])
        found.append((lane.owner(number), number))
    if not found:
        raise UnknownError(f"no page is there WHERE {where}; ask `vmql` for PAGES first")
    return found


def pages_where(store: Erasable, where: str, session: str | None = None) -> Iterable[tuple[str, str]]:
    """The session and name of each page that a condition selects, in one session or all.

    Raises QueryError where it is no condition on PAGES, or where another clause follows it.
    """
    condition = page_condition(where)
    try:
        return iter(store.query(condition.pages(session is None), session=session))
    except QueryError as error:
        raise condition.pointed(error) from None


# ---- doing


def erase_cells(ns: Namespace, erasures: dict[int, Erase], size: int, certificates: Path | None = None) -> None:
    """Records and destroys the cells each session is to lose; `size` is how many bytes they are."""
    with ns.lock, ns.engine.log.destroying():
        _destroy(ns, _record(ns, erasures)[0] - 1, size, None, certificates)


def _done(
    ns: Namespace,
    plan: ErasurePlan,
    erasures: dict[int, Erase],
    leaving: dict[int, list[Unpin | Evict]],
    reason: str,
    key: SigningKey | None,
) -> ErasureReport:
    """Records the erasure, then destroys what it names; every other writer waits."""
    ordinals = _record(ns, erasures, leaving)
    done = _destroy(ns, ordinals[0] - 1, plan.bytes, key)
    certificate = None if done.certificate is None else str(done.certificate)
    return ErasureReport(plan, reason, ordinals, certificate, done.beyond, done.left)


def _record(
    ns: Namespace, erasures: Mapping[int, Erase], leaving: Mapping[int, Sequence[Unpin | Evict]] = EMPTY
) -> list[int]:
    """Appends to each session what it loses and what leaves its prompt, all with one flush; the ordinals."""
    mark(ns)
    at = ns.clock.now()
    batches = []
    for session in sorted({*erasures, *leaving}):
        batch = ns.engine.batch(session)
        if session in erasures:
            batch.add(erasures[session])
        for mutation in leaving.get(session, ()):
            batch.add(mutation)
        batch.close(at)
        batches.append(batch)
    try:
        outcomes = ns.engine.append(batches)
    except RefusedError:  # nothing was written, so there is nothing to finish
        unmark(ns)
        raise
    ordinals = []
    for found in outcomes:
        if isinstance(found, Exception):
            raise found
        ordinals.append(found[-1].ordinal)
    return sorted(ordinals)


class Destroyed(NamedTuple):
    """Result of a destruction: its certificate, what is out of reach, and tiers that may still hold something."""

    certificate: Path | None
    beyond: list[str]
    left: list[str]


def _destroy(ns: Namespace, after: int, size: int, key: SigningKey | None, kept: Path | None = None) -> Destroyed:
    """Destroys all that is recorded as erased and lets everything forget it; the certificate of what came `after`."""
    erasures = Erasures(ns.log)
    erasures.follow()
    there = [number for number, cell in _cells(ns, erasures.numbers) if not cell.erased]
    reasons = [ErasureReason(erase.reason).word for _, _, erase in erasures_after(ns.log, after)]
    named = _certified(ns, after)
    ns.log.destroy(erasures.recorded)
    forget_erased(ns)
    if ns.place is not None:
        ns.place.unpublish_views()
    if ns.cache is None:
        return Destroyed(None, beyond(ns), [])
    ns.log.sweep(ANY_AGE)
    end = ns.log.ordinal
    tiers = clear_tiers(ns)
    rewritten = REWRITTEN + [f"cold tier {address}" for address in tiers.cleared]
    out_of_reach = beyond(ns) + [f"{VERSIONS} {address}" for address in tiers.cleared]
    out_of_reach += [f"{address}, which could not be reached: run `vmstore erase --finish`" for address in tiers.left]
    path = None
    if named:
        made = Certificate(
            KIND, uid_of(ns.log), end, ns.clock.now(), reasons[0], named, len(there), size, rewritten, out_of_reach
        )
        path = keep(kept or folder_of(ns.cache), ns.name, made if key is None else signed(made, key))
    unmark(ns)
    return Destroyed(path, out_of_reach, tiers.left)


def forget_erased(ns: Namespace) -> None:
    """Has everything that follows the log forget what was erased from it."""
    scrub_views(ns.cache, ns.projection)
    scrub_text(ns.cache, ns.text_index_made)
    scrub_snapshots(ns.cache)
    ns.known.renew()
    ns.forget_erased()
    if ns.cache is not None:
        scrub_kept(ns.cache)


def _cells(ns: Namespace, numbers: list[int]) -> Iterable[tuple[int, Any]]:
    for start in range(0, len(numbers), 256):
        yield from reachable(ns.log, numbers[start : start + 256])


def _certified(ns: Namespace, after: int) -> list[SessionErasure]:
    """The cells named by the erasures after an ordinal."""
    found = []
    for session, position, erase in erasures_after(ns.log, after):
        uid: Any = ns.views.execute("SELECT uid FROM sessions WHERE session = ?", (session,)).get
        found.append(SessionErasure(bytes(uid).hex(), position, list(_named(ns, session, erase))))
    return found


def _named(ns: Namespace, session: int, erase: Erase) -> Iterable[ErasedCell]:
    """The cells of an erasure with what they were sealed as."""
    singles: dict[int, set[int]] = {}
    for position, index in erase.cells:
        singles.setdefault(position, set()).add(index)
    rows: Any = ns.views.execute(
        "SELECT ordinal, first, last FROM commits WHERE session = ? AND cells > 0 ORDER BY last", (session,)
    ).fetchall()
    for ordinal, first, last in rows:
        if last > erase.upto and first not in singles:
            continue
        commit = commit_at(ns.log, ordinal)
        for index in range(commit.cell_count) if last <= erase.upto else sorted(singles[first]):
            yield ErasedCell(first, index, commit.commitment(index).hex())


# ---- what a kill left


def finish_erasing(store: Erasable) -> int:
    """Finishes an erasure that was interrupted, and scrubs again; how many cells were still there."""
    store._ns.engine  # noqa: B018 (refuses where the handle is for reading)
    cells = finish(store._ns, look=True)
    if left := left_in_tiers(store._ns):
        raise StoreError(
            f"{', '.join(left)} could not be reached, so what was erased may still be there; run "
            "`vmstore erase --finish` when it answers",
            code="cold-left",
        )
    return cells


def mark(ns: Namespace) -> None:
    """Says that an erasure is under way, durable; for a caller within `destroying`."""
    if ns.place is not None:
        ns.place.mark()


def unmark(ns: Namespace) -> None:
    """Says that it is done; for a caller within `destroying` that saw that it is."""
    if ns.place is not None:
        ns.place.unmark()


def under_way(ns: Namespace) -> bool:
    """Whether an erasure was begun and not finished."""
    return ns.place is not None and ns.place.marked()


def finish(ns: Namespace, *, look: bool = False) -> int:
    """Finishes what a kill interrupted; how many cells were still there. `look` needs no mark to begin."""
    if ns.readonly or not (under_way(ns) or look):
        return 0
    with ns.lock, ns.engine.log.destroying():
        if not (under_way(ns) or look):  # another process finished it
            return 0
        ns.follow()
        erasures = Erasures(ns.log)
        erasures.follow()
        sizes = [len(cell.content) for _, cell in _cells(ns, erasures.numbers) if not cell.erased]
        if not erasures.numbers:
            if ns.cache is not None:
                destroy_scratches(ns.cache)
            unmark(ns)
            return 0
        kept = () if ns.cache is None else certificates(folder_of(ns.cache), ns.name)
        _destroy(ns, max((entry.ordinal for entry in kept), default=0), sum(sizes), None)
        return len(sizes)


def finish_brought(ns: Namespace) -> None:
    """Destroys here what came from elsewhere recorded as erased: a session may have been here before that.

    What may bring such was marked as it came; what came before there were marks is looked for.
    """
    with ns.lock, ns.engine.log.destroying():
        erasures = Erasures(ns.log)
        erasures.follow()
        if any(not cell.erased for _, cell in _cells(ns, erasures.numbers)):
            finish(ns, look=True)
        elif under_way(ns):
            unmark(ns)
