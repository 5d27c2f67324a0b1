"""The async twins of a store's catalog and index."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

from vmstore.aio.docs import described_by
from vmstore.aio.session import Session
from vmstore.aio.twin import twin
from vmstore.aio.worker import Worker
from vmstore.namespace.reports import EmbeddingReport
from vmstore.namespace.results import SessionOverview
from vmstore.store.parts import catalog, search_index
from vmstore.views.projection import Progress


@described_by(catalog.Catalog)
class Catalog:
    """See `vmstore.Catalog`."""

    def __init__(self, sync: catalog.Catalog, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def overview(
        self,
        *,
        order_by: str = "newest",
        limit: int | None = None,
        matching: str | None = None,
        model: str | None = None,
        outcome: str | None = None,
        since: str | int | datetime | None = None,
        user: str | None = None,
        agent: str | None = None,
    ) -> list[SessionOverview]:
        """See `vmstore.Catalog.overview`."""
        call_it = partial(self._sync.overview, order_by=order_by, limit=limit, matching=matching)
        return await self._worker.do(
            partial(call_it, model=model, outcome=outcome, since=since, user=user, agent=agent)
        )

    async def find_session(self, name: str) -> Session:
        """See `vmstore.Catalog.find_session`."""
        return twin(await self._worker.do(partial(self._sync.find_session, name)), self._worker)

    async def find_page(self, reference: str) -> tuple[Session, str]:
        """See `vmstore.Catalog.find_page`."""
        session, page = await self._worker.do(self._sync.find_page, reference)
        return twin(session, self._worker), page


@described_by(search_index.SearchIndex)
class SearchIndex:
    """See `vmstore.SearchIndex`."""

    def __init__(self, sync: search_index.SearchIndex, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def language(self, session: str | None = None) -> str:
        """See `vmstore.SearchIndex.language`."""
        return await self._worker.do(partial(self._sync.language, session))

    async def languages(self) -> dict[str, str]:
        """See `vmstore.SearchIndex.languages`."""
        return await self._worker.do(self._sync.languages)

    async def set_language(self, language: str, session: str | None = None) -> None:
        """See `vmstore.SearchIndex.set_language`."""
        await self._worker.do(partial(self._sync.set_language, language, session))

    async def embed(
        self, sessions: str | Iterable[str] | None = None, *, inherited: bool = False, batch: int = 64,
        quantisation: str = "int8", limit: int | None = None, timeout_s: float = 120.0,
        progress: Progress | None = None,
    ) -> EmbeddingReport:  # fmt: skip
        """See `vmstore.SearchIndex.embed`."""
        run_options: dict[str, Any] = {
            "inherited": inherited,
            "batch": batch,
            "quantisation": quantisation,
            "limit": limit,
            "timeout_s": timeout_s,
            "progress": progress,
        }
        return await self._worker.do(partial(self._sync.embed, **run_options), sessions)
