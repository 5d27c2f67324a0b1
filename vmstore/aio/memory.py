"""The async twin of what a session remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.memory_parts import FactMemory, SegmentMemory, StoreFacts, TagMemory, TurnMemory
from vmstore.aio.worker import Worker
from vmstore.core.aliases import Aliased
from vmstore.core.asof import Moment, When
from vmstore.store.recall import memory as sync_memory
from vmstore.store.recall import store_memory
from vmstore.store.recall.assembly.results import AssembledPrompt
from vmstore.store.recall.memory import OVERVIEW_TOKENS, TOKENS
from vmstore.store.recall.periods import Bound
from vmstore.store.recall.results import FoundPages, FoundQuotes, Overview, RecallAnswer, RecallWorth
from vmstore.vm.assembly.selector import PROTECTED_TURNS
from vmstore.vm.assembly.selector import TOKENS as PROMPT_TOKENS
from vmstore.vm.assembly.tag_rules import TagRule


@described_by(sync_memory.SessionMemory)
class SessionMemory(Aliased):
    """See `vmstore.SessionMemory`."""

    _aliases: ClassVar[Mapping[str, str]] = sync_memory.SessionMemory._aliases

    def __init__(self, sync: sync_memory.SessionMemory, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    @property
    def facts(self) -> FactMemory:
        """See `vmstore.SessionMemory.facts`."""
        return FactMemory(self._sync.facts, self._worker)

    @property
    def tags(self) -> TagMemory:
        """See `vmstore.SessionMemory.tags`."""
        return TagMemory(self._sync.tags, self._worker)

    @property
    def segments(self) -> SegmentMemory:
        """See `vmstore.SessionMemory.segments`."""
        return SegmentMemory(self._sync.segments, self._worker)

    @property
    def turns(self) -> TurnMemory:
        """See `vmstore.SessionMemory.turns`."""
        return TurnMemory(self._sync.turns, self._worker)

    async def recall(
        self, query: str, at: When | None = None, *, tokens: int = TOKENS, **moment: Unpack[Moment]
    ) -> RecallAnswer:
        """See `vmstore.SessionMemory.recall`."""
        return await self._worker.do(partial(self._sync.recall, query, at, tokens=tokens, **moment))

    async def search_pages(
        self, query: str, at: When | None = None, *, modality: str | None = None, limit: int = 5,
        **moment: Unpack[Moment],
    ) -> FoundPages:  # fmt: skip
        """See `vmstore.SessionMemory.search_pages`."""
        return await self._worker.do(
            partial(self._sync.search_pages, query, at, modality=modality, limit=limit, **moment)
        )

    async def find_quote(self, text: str, at: When | None = None, **moment: Unpack[Moment]) -> FoundQuotes:
        """See `vmstore.SessionMemory.find_quote`."""
        return await self._worker.do(partial(self._sync.find_quote, text, at, **moment))

    async def remember_when(
        self, query: str | None = None, at: When | None = None, *, preset: str | None = None,
        start: Bound | None = None, end: Bound | None = None, tokens: int = TOKENS, zone: str | None = None,
        **moment: Unpack[Moment],
    ) -> RecallAnswer:  # fmt: skip
        """See `vmstore.SessionMemory.remember_when`."""
        call_it = partial(self._sync.remember_when, query, at, preset=preset, start=start, end=end, tokens=tokens)
        return await self._worker.do(partial(call_it, zone=zone, **moment))

    async def recall_all(
        self, at: When | None = None, *, tokens: int = OVERVIEW_TOKENS, **moment: Unpack[Moment]
    ) -> Overview:
        """See `vmstore.SessionMemory.recall_all`."""
        return await self._worker.do(partial(self._sync.recall_all, at, tokens=tokens, **moment))

    async def recall_user(self, query: str, *, tokens: int = TOKENS) -> RecallAnswer:
        """See `vmstore.SessionMemory.recall_user`."""
        return await self._worker.do(partial(self._sync.recall_user, query, tokens=tokens))

    async def assemble(
        self, message: str | None = None, at: When | None = None, *, tokens: int = PROMPT_TOKENS,
        rules: Sequence[TagRule] | None = None, protected: int = PROTECTED_TURNS, across: bool = False,
        rounds: int = 0, shape: str | None = None, **moment: Unpack[Moment],
    ) -> AssembledPrompt:  # fmt: skip
        """See `vmstore.SessionMemory.assemble`."""
        return await self._worker.do(
            partial(
                self._sync.assemble, message, at, tokens=tokens, rules=rules, protected=protected, across=across,
                rounds=rounds, shape=shape, **moment,
            )
        )  # fmt: skip

    async def worth(self, at: When | None = None, **moment: Unpack[Moment]) -> list[RecallWorth]:
        """See `vmstore.SessionMemory.worth`."""
        return await self._worker.do(partial(self._sync.worth, at, **moment))


@described_by(store_memory.StoreMemory)
class StoreMemory(Aliased):
    """See `vmstore.StoreMemory`."""

    _aliases: ClassVar[Mapping[str, str]] = store_memory.StoreMemory._aliases

    def __init__(self, sync: store_memory.StoreMemory, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    @property
    def facts(self) -> StoreFacts:
        """See `vmstore.StoreMemory.facts`."""
        return StoreFacts(self._sync.facts, self._worker)
