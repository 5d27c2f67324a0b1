"""The async twin of the four tools of the vBRIEF format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.store.work import vbrief
from vmstore.work.vbrief import PlaybookEntry


@described_by(vbrief.VBriefTools)
class VBriefTools:
    """See `vmstore.VBriefTools`."""

    def __init__(self, sync: vbrief.VBriefTools, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def vbrief_memory_search(
        self, query: str, tokenBudget: int = 2_000, optimizeFor: str = "relevance"
    ) -> dict[str, Any]:
        """See `vmstore.VBriefTools.vbrief_memory_search`."""
        return await self._worker.do(self._sync.vbrief_memory_search, query, tokenBudget, optimizeFor)

    async def vbrief_load_session(self, sessionId: str, maxTier: int = 1, tokenBudget: int = 2_000) -> dict[str, Any]:
        """See `vmstore.VBriefTools.vbrief_load_session`."""
        return await self._worker.do(self._sync.vbrief_load_session, sessionId, maxTier, tokenBudget)

    async def vbrief_expand_memory(self, contentRef: str) -> dict[str, Any]:
        """See `vmstore.VBriefTools.vbrief_expand_memory`."""
        return await self._worker.do(self._sync.vbrief_expand_memory, contentRef)

    async def vbrief_compress_playbook(
        self,
        targetRatio: float = 0.1,
        categories: Sequence[str] | None = None,
        user: str | None = None,
    ) -> dict[str, Any]:
        """See `vmstore.VBriefTools.vbrief_compress_playbook`."""
        return await self._worker.do(self._sync.vbrief_compress_playbook, targetRatio, categories, user)

    async def playbook(self, user: str | None = None) -> list[PlaybookEntry]:
        """See `vmstore.VBriefTools.playbook`."""
        return await self._worker.do(self._sync.playbook, user)
