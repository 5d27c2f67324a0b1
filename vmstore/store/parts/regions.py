"""Sharing between the namespaces of a store: who may read, write and grant, and the regions that opens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar, Unpack

from vmstore.core.aliases import old_keywords_of_methods
from vmstore.core.asof import Moment, When
from vmstore.errors import InputError
from vmstore.namespace.namespace import Namespace
from vmstore.shares import regions as shares
from vmstore.shares.regions import GrantInfo, Region
from vmstore.store.host import StoreHost

if TYPE_CHECKING:
    from vmstore.store.session import Session

S = TypeVar("S")


@old_keywords_of_methods(at="at_us")
class Sharing(Generic[S]):
    """Whom a namespace is shared with, and what others share with it: `store.sharing`."""

    def __init__(self, store: StoreHost, opened: Callable[[Namespace], S]) -> None:
        self._store = store
        self._opened = opened
        self._ns = store._ns

    def share(self, to: str, may: str | Iterable[str] = "read", *, at_us: int | None = None) -> GrantInfo:
        """Grants verbs of read, write, grant to a principal; the grant, which is not written again where it holds.

        `to` is `user:ann`, `sandbox:team-a` (or `team-a`), `session:team-a/s1` or `global`. Who may write or
        grant may read. Through a handle on a region it takes `grant`, and grants no more than is held.
        """
        return shares.share(self._store, to, may, at_us=at_us)

    def revoke(
        self, whose: str, may: str | Iterable[str] | None = None, *, at_us: int | None = None
    ) -> list[GrantInfo]:
        """Takes verbs back from a principal, by default all; what it may still do of its own.

        Who may not read may do nothing, so `read` takes all back. Handles that are open lose it at their
        next act. Raises UnknownError where nothing of it is granted to the principal.
        """
        return shares.revoke(self._store, whose, may, at_us=at_us)

    def grants(self, at: When | None = None, **moment: Unpack[Moment]) -> list[GrantInfo]:
        """The grants that held at a moment, by default now; a moment is a time, or a position of the system session."""
        return shares.grants(self._store, at, **moment)

    def regions(self, at: When | None = None, *, of: str | None = None, **moment: Unpack[Moment]) -> list[Region]:
        """The namespaces of the store that were shared at a moment, by name; with `of` those a principal might read.

        It is for the owner of the store: it reads its folder.
        """
        if (place := self._ns.let.place) is None:
            raise InputError("a store in memory is one namespace alone; open a store on disk")
        return shares.regions(place.backend, at=at, of=of, key=self._ns.store_key, **moment)

    def region(self, name: str, *, user: str | None = None, session: str | None = None) -> S:
        """Another namespace of the store, as far as it is shared with this one, a user or a session of it."""
        return self._opened(shares.open_region(self._ns, name, user=user, session=session))

    def bring(self, session: Session, address: str, *, at_us: int | None = None) -> str:
        """Copies a page of a region into a session, and names the copy; the one there is, where it was brought before.

        `address` is `vm://region/session/page`, with a moment where it is not the newest version that is wanted.
        What may be read is what the sandbox, the session and its user were granted.
        """
        from vmstore.store.live.copy_page import bring

        return bring(session, address, at_us=at_us)

    def origin(self, session: Session, page: str | int) -> str | None:
        """The address of the version of a region's page that a page is a copy of; None where it is no copy."""
        from vmstore.store.live.copy_page import origin

        return origin(session, page)
