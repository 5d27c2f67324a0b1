"""Erases again what a backup brought back: certificates say which cells must not be there.

Also what else a backup brings that takes effect: grants, rules, and by whose word redaction is lifted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vmstore.cells.storekey import StoreKey
from vmstore.core.clock import SystemClock, SystemIds
from vmstore.core.erasure import Erase, ErasureReason
from vmstore.core.grants import words_of
from vmstore.core.mutation import Mark, NamespacePolicy
from vmstore.core.namespace_policy import PolicySubject
from vmstore.core.redaction import Artifact
from vmstore.engine.grants import ActiveGrants
from vmstore.erasure.certificates import Certificate, cells_of
from vmstore.erasure.certificates import certificates as read_certificates
from vmstore.erasure.erase import erase_cells
from vmstore.erasure.resume import open_namespace
from vmstore.errors import ErasedError, StoreError, UnknownError
from vmstore.namespace import system_session
from vmstore.namespace.effects import Agree, settle
from vmstore.namespace.encryption import encrypted
from vmstore.namespace.reports import ErasedAgain
from vmstore.views.log_reader import commit_at
from vmstore.views.projectors.redactions import approved

if TYPE_CHECKING:
    from vmstore.namespace.namespace import Namespace

Places = dict[tuple[int, int], int]
"""Cells of a session by the first position of their commit and index, and how long each is."""


class ReapplyPlan:
    """The erasures that certificates require of a restored store, and other effects of it."""

    def __init__(
        self,
        store: Path,
        namespaces: Sequence[str],
        ledger: Sequence[Certificate],
        trusted: bytes | None,
        key: StoreKey | None,
    ) -> None:
        self._store, self._key = store, key
        signed = [entry for entry in ledger if trusted is not None and entry.key == trusted.hex() and entry.signature]
        self.signed = len(signed)
        """How many certificates the trusted key has signed."""
        self.cells = 0
        """How many cells all certificates would erase."""
        self.effects: list[str] = []
        """What somebody has to agree to."""
        self._named: dict[str, dict[int, Places]] = {}
        for name in namespaces:
            with closing(self._open(name)) as ns:
                ns.follow()
                named = self._named[name] = dict(_named(ns, ledger))
                cells = sum(map(len, named.values()))
                obeyed = sum(map(len, dict(_named(ns, signed)).values()))
                if cells > obeyed:
                    self.effects.append(_unsigned(cells - obeyed, name, len(ledger) - len(signed), trusted is None))
                self.effects += _stated(ns)
                self.cells += cells

    def erase(self, certificates: Path) -> None:
        """Erases what certificates name; a certificate of its own goes to the folder of `certificates`."""
        for name, named in self._named.items():
            erases = {key: Erase(ErasureReason.RESTORED, tuple(sorted(found))) for key, found in sorted(named.items())}
            if erases:
                with closing(self._open(name)) as ns:
                    erase_cells(ns, erases, sum(sum(found.values()) for found in named.values()), certificates)

    def _open(self, name: str) -> Namespace:
        key = self._key if encrypted(self._store / name) else None
        return open_namespace(self._store, "rw", name, SystemClock(), SystemIds(), key)


def erase_again(ns: Namespace, folder: Path, trusted: bytes | None, agreed: Agree, *, dry_run: bool) -> ErasedAgain:
    """Erases what the certificates of a folder name and what is in a namespace all the same.

    For a store that the tools of its database put back. What certificates that the trusted key did not sign would
    destroy has to be agreed to, or RefusedError is raised and nothing is erased.
    """
    if not folder.is_dir():
        raise StoreError(
            f"{folder} is no folder of certificates; name the one that a host keeps beside its cache", code="no-ledger"
        )
    ledger = list(read_certificates(folder))
    signed = [entry for entry in ledger if trusted is not None and entry.key == trusted.hex() and entry.signature]
    ns.follow()
    named = dict(_named(ns, ledger))
    cells = sum(map(len, named.values()))
    obeyed = sum(map(len, dict(_named(ns, signed)).values()))
    if not dry_run and cells:
        if cells > obeyed:
            settle(agreed, [_unsigned(cells - obeyed, ns.name, len(ledger) - len(signed), trusted is None)], folder)
        erases = {key: Erase(ErasureReason.RESTORED, tuple(sorted(found))) for key, found in sorted(named.items())}
        erase_cells(ns, erases, sum(sum(found.values()) for found in named.values()))
    return ErasedAgain(len(ledger), len(signed), cells, done=not dry_run)


def _unsigned(cells: int, namespace: str, certificates: int, keyless: bool) -> str:
    """Describes the effect of certificates that no trusted key signed."""
    whose = "that no key signed which was named" if keyless else "that the named key did not sign"
    return (
        f"{cells:,} {'cell' if cells == 1 else 'cells'} of namespace {namespace} would be erased by "
        f"{certificates:,} {'certificate' if certificates == 1 else 'certificates'} {whose} (--public-key)"
    )


def _stated(ns: Namespace) -> Iterator[str]:
    """Statements of a namespace about itself: grants, retention rules, and approvals."""
    granted, rules = ActiveGrants(), dict[str, bool]()
    for entry in system_session.entries(ns):
        granted.apply(entry.position, entry.at, entry.mutation, entry.text)
        with suppress(ErasedError, UnknownError):
            if isinstance(entry.mutation, NamespacePolicy):
                subject = PolicySubject(entry.mutation.subject).name.lower()
                rules[f"{subject}:{entry.text(entry.mutation.name)}"] = entry.mutation.value is not None
            elif isinstance(entry.mutation, Mark):
                rules[entry.text(entry.mutation.name) or ""] = entry.mutation.note is not None
    for grant in granted.in_force:
        yield f"namespace {ns.name} is shared: {grant.to} may {', '.join(words_of(grant.verbs))}"
    for rule in (name for name, holds in rules.items() if holds):
        yield f"namespace {ns.name} has the rule {rule[:100]!r}"
    now = ns.clock.now()
    sessions: Any = ns.views.execute("SELECT session, name FROM sessions WHERE hidden = 0 ORDER BY name").fetchall()
    for key, name in sessions:
        for kind in Artifact:
            if (word := approved(ns.views, key, kind, now)) is not None:
                yield f"session {name} leaves without masks as {kind.word}, as {word.who or 'somebody'} approved"


def _named(ns: Namespace, ledger: Iterable[Certificate]) -> Iterator[tuple[int, Places]]:
    """The cells that certificates name and that are there, by session."""
    by_session = cells_of(ledger)
    if by_session:
        sessions: Any = ns.views.execute("SELECT session, uid FROM sessions").fetchall()
        for key, uid in sessions:
            if found := _there(ns, key, by_session.get(bytes(uid).hex(), {})):
                yield key, found


def _there(ns: Namespace, session: int, named: dict[tuple[int, int], str]) -> Places:
    """Those cells of a session that are there as they were sealed, and how long each is."""
    found = {}
    wanted = {position for position, _ in named}
    rows: Any = ns.views.execute("SELECT ordinal, first FROM commits WHERE session = ? AND cells > 0", (session,))
    for ordinal, first in rows.fetchall() if wanted else ():
        if first not in wanted:
            continue
        commit = commit_at(ns.log, ordinal)
        cells = ns.log.cells(range(commit.cell, commit.cell + commit.cell_count))
        for index in range(commit.cell_count):
            same = named.get((first, index)) == commit.commitment(index).hex()
            if same and not cells[commit.cell + index].erased:
                found[first, index] = len(cells[commit.cell + index].content)
    return found
