"""Shared regions: namespaces that others may use, as far as their grants go.

A grant is logged in the charter of the region's namespace, and holds until it is taken back. The
opener of a namespace by its own name owns it, and grants what they like; `Store.region` opens one
for others, who may do what was granted to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Unpack

import msgspec

from vmstore.core.aliases import old_keywords
from vmstore.core.asof import AsOf, Head, LoggedTime, Moment, Time, When, one_moment
from vmstore.core.clock import SystemClock, SystemIds
from vmstore.core.grants import GrantScope, Principal, Verb, principal, verbs_of, words_of
from vmstore.core.mutation import Revoke, Share
from vmstore.engine.batch import Batch
from vmstore.engine.grants import ActiveGrants, Grant
from vmstore.erasure.resume import open_namespace
from vmstore.errors import InputError, UnknownError, VmstoreError
from vmstore.namespace import system_session
from vmstore.namespace.backends.address import Address, backend_of
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.encryption import Key
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.shares.access import Access, absent
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis


class Shareable(Protocol):
    """The part of a store that sharing needs."""

    _ns: Namespace


class GrantInfo(msgspec.Struct, frozen=True):
    """A grant: who may do what, since when (microseconds since 1970), granted by whom; `by` None is the keeper."""

    to: str
    scope: str
    may: list[str]
    by: str | None
    at: int
    position: int


class Region(msgspec.Struct, frozen=True):
    """A namespace that is shared: how far its widest grant reaches, how many sessions and pages it has, its grants."""

    region: str
    scope: str
    sessions: int
    pages: int
    grants: list[GrantInfo]


def open_region(ns: Namespace, name: str, *, user: str | None = None, session: str | None = None) -> Namespace:
    """The namespace `name` of the same store, guarded: for the sandbox that `ns` is, a user and a session of it.

    Raises UnknownError, and the same one, where there is none and where none of them may read it.
    """
    if ns.place is None:
        raise InputError("a store in memory is one namespace alone; open a store on disk")
    if ns.access is not None:
        raise InputError("a region opens no other; open it from your own namespace")
    ns.check()
    who = [Principal(GrantScope.SANDBOX, ns.name)]
    who += [] if user is None else [principal(f"user:{user}")]
    who += [] if session is None else [principal(f"session:{ns.name}/{session_name(session)}")]
    mode = "r" if ns.readonly else "rw"
    store = ns.place.backend
    try:
        store.check(name)
        its_key = store.key_for(name, ns.store_key)
        region = open_namespace(store, mode, name, ns.clock, ns.reader.ids, its_key, ns.wait_s)
    except VmstoreError as error:  # only its owner learns what is wrong with it
        raise absent(name, who) from error
    try:
        region.guard(Access(region, who))
        region.check()
    except BaseException:
        region.close()
        raise
    return region


@old_keywords(at="at_us")
def share(store: Shareable, to: str, may: str | Iterable[str] = "read", *, at_us: int | None = None) -> GrantInfo:
    """Grants verbs of read, write, grant to a principal; the grant, which is not written again where it holds.

    `to` is `user:ann`, `sandbox:team-a` (or `team-a`), `session:team-a/s1` or `global`. Who may write or
    grant may read. Through a handle on a region it takes `grant`, and grants no more than is held.
    """
    ns, whom, verbs = store._ns, principal(to), verbs_of(may)
    with ns.lock:
        by = None if ns.access is None else ns.access.who[0]

        def write(batch: Batch) -> None:
            grants = [grant for grant in _granted(ns, Head()).in_force if grant.to == whom and grant.by == by]
            if not any(verbs in grant.verbs for grant in grants):
                name = None if whom.scope is GrantScope.GLOBAL else batch.cell(whom.name.encode())
                giver = None if by is None else batch.cell(str(by).encode())
                batch.add(Share(whom.scope, name, verbs, giver))

        system_session.append(ns, write, at=at_us)
        grants = [grant for grant in _granted(ns, Head()).in_force if grant.to == whom and verbs in grant.verbs]
        return _info(grants[-1])


@old_keywords(at="at_us")
def revoke(
    store: Shareable, whose: str, may: str | Iterable[str] | None = None, *, at_us: int | None = None
) -> list[GrantInfo]:
    """Takes verbs back from a principal, by default all; what it may still do of its own.

    Who may not read may do nothing, so `read` takes all back. Handles that are open lose it at their
    next act. Raises UnknownError where nothing of it is granted to the principal.
    """
    ns, whom = store._ns, principal(whose)
    verbs = Verb(sum(Verb)) if may is None else _taken(may)
    with ns.lock:
        ns.check()

        def write(batch: Batch) -> None:
            in_force = _granted(ns, Head()).in_force
            mine = [grant for grant in in_force if grant.to == whom and grant.verbs & verbs]
            if ns.access is not None and any(grant.by in ns.access.who for grant in mine):
                mine = [grant for grant in mine if grant.by in ns.access.who]
            if not mine:
                there = ", ".join(sorted({f"{grant.to} ({','.join(words_of(grant.verbs))})" for grant in in_force}))
                raise UnknownError(f"{whom} has no such grant in {ns.name!r}; those who have one: {there or 'nobody'}")
            giver = None if ns.access is None else batch.cell(str(ns.access.who[0]).encode())
            for grant in mine:
                batch.add(Revoke(grant.position, grant.verbs & verbs, giver))

        system_session.append(ns, write, at=at_us)
        return [_info(grant) for grant in _granted(ns, Head()).in_force if grant.to == whom]


def grants(store: Shareable, at: When | None = None, **moment: Unpack[Moment]) -> list[GrantInfo]:
    """The grants that held at a moment, by default now; a moment is a time, or a position of the charter."""
    ns = store._ns
    with ns.views_lock:
        ns.check()
        return [_info(grant) for grant in _granted(ns, one_moment(at, moment)).in_force]


def regions(
    store: Address | Backend,
    *,
    at: When | None = None,
    of: str | None = None,
    key: Key | None = None,
    **moment: Unpack[Moment],
) -> list[Region]:
    """The namespaces of a store that were shared at a moment, by name; with `of` those a principal might read.

    It is for the owner of the store, who can read its folder. `key` is that of those that are encrypted.
    """
    when, backend, whom = one_moment(at, moment), backend_of(store), None if of is None else principal(of)
    backend.check()
    found = (_region(backend, name, when, whom, key) for name in backend.namespaces())
    return [region for region in found if region is not None]


def _region(store: Backend, name: str, when: AsOf, whom: Principal | None, key: Key | None) -> Region | None:
    ns = open_namespace(store, store.mode(name), name, SystemClock(), SystemIds(), store.key_for(name, key))
    try:
        granted = _granted(ns, when)
        if not granted.in_force or (whom is not None and not granted.verbs([whom])):
            return None
        infos = [_info(grant) for grant in granted.in_force]
        scope = max(grant.to.scope for grant in granted.in_force)
        sql = "SELECT count(*), coalesce(sum(pages), 0) FROM sessions WHERE hidden = 0"
        with ns.asking():
            sessions, pages = ns.views.execute(sql).get
        return Region(name, scope.word, sessions, pages, infos)
    finally:
        ns.close()


def _granted(ns: Namespace, when: AsOf) -> ActiveGrants:
    """The grants at a moment: before anything was granted there are none."""
    found, key = ActiveGrants(), system_session.key_of(ns)
    if key is None:
        return found
    try:
        end = basis(Branch(ns.views, key), when).position
    except UnknownError:
        if isinstance(when, Time | LoggedTime):
            return found
        raise
    for entry in system_session.entries(ns):
        if entry.position <= end:
            found.apply(entry.position, entry.at, entry.mutation, entry.text)
    return found


def _taken(may: str | Iterable[str]) -> Verb:
    words = [may] if isinstance(may, str) else list(may)
    listed = [word.strip() for text in words for word in text.split(",")]
    verbs = verbs_of(listed)
    return Verb(sum(Verb)) if "read" in listed else verbs & ~Verb.READ


def _info(grant: Grant) -> GrantInfo:
    by = None if grant.by is None else str(grant.by)
    return GrantInfo(str(grant.to), grant.to.scope.word, words_of(grant.verbs), by, grant.at, grant.position)
