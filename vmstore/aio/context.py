"""The async twin of a context."""

from __future__ import annotations

from typing import Any

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.namespace.results import Basis, ContextPage
from vmstore.store.reads import context as sync_context


@described_by(sync_context.Context)
class Context:
    """The context of one call. Parts read already are in memory; the rest is awaited, `pages` too."""

    def __init__(self, context: sync_context.Context, worker: Worker) -> None:
        self._context = context
        self._worker = worker
        self.basis: Basis = context.basis
        self.fidelity = context.fidelity
        self.tokens = context.tokens
        self.tokens_reported = context.tokens_reported
        self.factor = context.factor
        self.model = context.model
        self.root = context.root
        self.page_ids = context.page_ids
        self.shown = context.shown

    async def pages(self) -> list[ContextPage]:
        """See `vmstore.Context.pages`."""
        return await self._worker.do(lambda: self._context.pages)

    async def contents(self) -> dict[str, bytes]:
        """See `vmstore.Context.contents`."""
        return await self._worker.do(self._context.contents)

    async def lines(self) -> dict[str, str]:
        """See `vmstore.Context.lines`."""
        return await self._worker.do(self._context.lines)

    async def messages(self) -> list[Any]:
        """See `vmstore.Context.messages`."""
        return await self._worker.do(self._context.messages)

    async def request(self) -> dict[str, Any]:
        """See `vmstore.Context.request`."""
        return await self._worker.do(self._context.request)

    async def text(self) -> str:
        """See `vmstore.Context.text`."""
        return await self._worker.do(self._context.text)

    async def to_dict(self, *, messages: bool = False, render: bool = False) -> dict[str, Any]:
        """See `vmstore.Context.to_dict`."""
        return await self._worker.do(self._context.to_dict, messages=messages, render=render)
