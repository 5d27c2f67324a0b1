"""Grants of a namespace, folded from its `share` and `revoke` mutations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from vmstore.core.grants import GrantScope, Principal, Verb, principal
from vmstore.core.mutation import AnyMutation, CellRef, Revoke, Share
from vmstore.errors import UnknownError

NOBODY = Principal(GrantScope.USER)
"""Whose name was erased; no principal equals it."""


class Grant(NamedTuple):
    """A grant: verbs, since when (microseconds since 1970), and who granted it; None is the keeper."""

    position: int
    at: int
    to: Principal
    verbs: Verb
    by: Principal | None


class ActiveGrants:
    """The grants there are, by the position of their `share`."""

    def __init__(self) -> None:
        self._grants: dict[int, Grant] = {}

    def apply(self, position: int, at: int, m: AnyMutation, text: Callable[[CellRef | None], str | None]) -> None:
        """Folds the mutation at a position; `text` reads the cells it names."""
        if isinstance(m, Share):
            to = _named(GrantScope(m.scope), text, m.principal)
            by = None if m.by is None else _named(None, text, m.by)
            self._grants[position] = Grant(position, at, to, Verb(m.verbs), by)
        elif isinstance(m, Revoke) and (grant := self._grants.get(m.share)) is not None:
            self._grants[m.share] = grant._replace(verbs=grant.verbs & ~Verb(m.verbs))

    @property
    def in_force(self) -> list[Grant]:
        """The grants that were not taken back whole, in the order they were made."""
        return [grant for grant in self._grants.values() if grant.verbs]

    def at(self, position: int) -> Grant | None:
        """The grant of the `share` at a position."""
        return self._grants.get(position)

    def verbs(self, who: Iterable[Principal]) -> Verb:
        """The verbs granted to any of these principals; without `read` there are none."""
        known, found = {*who, Principal(GrantScope.GLOBAL)}, Verb(0)
        for grant in self._grants.values():
            if grant.to in known and grant.to != NOBODY:
                found |= grant.verbs
        return found if Verb.READ in found else Verb(0)


def _named(scope: GrantScope | None, text: Callable[[CellRef | None], str | None], ref: CellRef | None) -> Principal:
    """The principal a cell names; nobody where it was erased."""
    if scope is GrantScope.GLOBAL:
        return Principal(scope)
    try:
        name = text(ref) or ""
    except UnknownError:
        return NOBODY
    return principal(name) if scope is None else Principal(scope, name)
