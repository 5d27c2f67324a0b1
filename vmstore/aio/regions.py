"""The async twin of sharing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.aliases import old_keywords_of_methods
from vmstore.core.asof import Moment, When
from vmstore.shares.regions import GrantInfo, Region
from vmstore.store.parts import regions as sync_shared

if TYPE_CHECKING:
    from vmstore.aio.session import Session
    from vmstore.store.store import Store

S = TypeVar("S")


@described_by(sync_shared.Sharing)
@old_keywords_of_methods(at="at_us")
class Sharing(Generic[S]):
    """See `vmstore.Sharing`."""

    def __init__(
        self, sync: sync_shared.Sharing[Store], worker: Worker, opened: Callable[[Callable[[], Store]], Awaitable[S]]
    ) -> None:
        self._sync = sync
        self._opened = opened
        self._worker = worker

    async def share(self, to: str, may: str | Iterable[str] = "read", *, at_us: int | None = None) -> GrantInfo:
        """See `vmstore.Sharing.share`."""
        return await self._worker.do(partial(self._sync.share, to, may, at_us=at_us))

    async def revoke(
        self, whose: str, may: str | Iterable[str] | None = None, *, at_us: int | None = None
    ) -> list[GrantInfo]:
        """See `vmstore.Sharing.revoke`."""
        return await self._worker.do(partial(self._sync.revoke, whose, may, at_us=at_us))

    async def grants(self, at: When | None = None, **moment: Unpack[Moment]) -> list[GrantInfo]:
        """See `vmstore.Sharing.grants`."""
        return await self._worker.do(partial(self._sync.grants, at, **moment))

    async def regions(self, at: When | None = None, *, of: str | None = None, **moment: Unpack[Moment]) -> list[Region]:
        """See `vmstore.Sharing.regions`."""
        return await self._worker.do(partial(self._sync.regions, at, of=of, **moment))

    async def region(self, name: str, *, user: str | None = None, session: str | None = None) -> S:
        """See `vmstore.Sharing.region`; the region is open, and is closed like any other."""
        return await self._opened(partial(self._sync.region, name, user=user, session=session))

    async def bring(self, session: Session, address: str, *, at_us: int | None = None) -> str:
        """See `vmstore.Sharing.bring`."""
        return await self._worker.do(partial(self._sync.bring, session._session, address, at_us=at_us))

    async def origin(self, session: Session, page: str | int) -> str | None:
        """See `vmstore.Sharing.origin`."""
        return await self._worker.do(partial(self._sync.origin, session._session, page))
