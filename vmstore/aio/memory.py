"""The async twin of what a session remembers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.aliases import Aliased, FormerMethod
from vmstore.core.asof import Moment, When
from vmstore.store.recall import memory as sync_memory
from vmstore.store.recall import store_memory
from vmstore.store.recall.assembly.results import AssembledPrompt
from vmstore.store.recall.fact_model import FactModel
from vmstore.store.recall.fact_reads import FOUND_MAX
from vmstore.store.recall.memory import OVERVIEW_TOKENS, TIMES, TOKENS
from vmstore.store.recall.parts import fact_memory, segment_memory, store_facts, tag_memory, turn_memory
from vmstore.store.recall.periods import Bound
from vmstore.store.recall.results import (
    FactGraph,
    FactsFound,
    FoundPages,
    FoundQuotes,
    KnownFact,
    NamedTimes,
    Overview,
    RecallAnswer,
    RecallWorth,
)
from vmstore.store.recall.segments import SegmentInfo
from vmstore.store.recall.tag_model import TagModel
from vmstore.store.recall.tags import AliasSuggestion, TagInfo
from vmstore.store.recall.tiers import COLD_FOUND, ColdPage, NearTurn
from vmstore.store.recall.turns.turn_summary import TurnModel, TurnSummaries
from vmstore.vm.assembly.selector import PROTECTED_TURNS
from vmstore.vm.assembly.selector import TOKENS as PROMPT_TOKENS
from vmstore.vm.assembly.tag_rules import TagRule
from vmstore.vm.compressors.callback import TIMEOUT_S


@described_by(fact_memory.FactMemory)
class FactMemory(FormerMethod):
    """See `vmstore.FactMemory`."""

    _former = "SessionMemory.facts"

    def __init__(self, sync: fact_memory.FactMemory, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(
        self, at: When | None = None, *, valid_at_us: int | None = None, ever: bool = False, whole_user: bool = False,
        **moment: Unpack[Moment],
    ) -> list[KnownFact]:  # fmt: skip
        """See `vmstore.FactMemory.all`."""
        asked = partial(self._sync.all, at, valid_at_us=valid_at_us, ever=ever, whole_user=whole_user, **moment)
        return await self._worker.do(asked)

    async def query(
        self, subject: str | None = None, verb: str | None = None, object_contains: str | None = None,
        status: str | None = None, fact_type: str | None = None, at: When | None = None, *,
        ever: bool = False, whole_user: bool = False, limit: int = FOUND_MAX, **moment: Unpack[Moment],
    ) -> FactsFound:  # fmt: skip
        """See `vmstore.FactMemory.query`."""
        words = (subject, verb, object_contains, status, fact_type, at)
        asked = partial(self._sync.query, *words, ever=ever, whole_user=whole_user, limit=limit, **moment)
        return await self._worker.do(asked)

    async def graph(
        self, page: str | int, at: When | None = None, *, depth: int = 2, kinds: Iterable[str] | None = None,
        **moment: Unpack[Moment],
    ) -> FactGraph:  # fmt: skip
        """See `vmstore.FactMemory.graph`."""
        return await self._worker.do(partial(self._sync.graph, page, at, depth=depth, kinds=kinds, **moment))

    async def state(
        self, subject: str, verb: str, what: str, *, attribute: str | None = None, text: str = "",
        fact_type: str = "general", status: str = "active", one: bool | None = None, valid_from_us: int | None = None,
        valid_to_us: int | None = None, precision: str = "unknown", confidence: float = 1.0, strength: float = 0.0,
        sources: str | int | Iterable[str | int] = (), supersedes: str | int | None = None,
        links: Iterable[tuple[str, str | int]] = (), tags: Iterable[str] = (), at_us: int | None = None,
    ) -> str:  # fmt: skip
        """See `vmstore.FactMemory.state`."""
        asked = partial(
            self._sync.state, subject, verb, what, attribute=attribute, text=text, fact_type=fact_type,
            status=status, one=one, valid_from_us=valid_from_us, valid_to_us=valid_to_us, precision=precision,
            confidence=confidence, strength=strength, sources=sources, supersedes=supersedes, links=links, tags=tags,
            at_us=at_us,
        )  # fmt: skip
        return await self._worker.do(asked)

    async def extract(
        self, model: FactModel | None = None, *, language: str | None = None, consolidate: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> list[str]:  # fmt: skip
        """See `vmstore.FactMemory.extract`."""
        asked = partial(self._sync.extract, model, language=language, consolidate=consolidate, timeout_s=timeout_s)
        return await self._worker.do(asked)


@described_by(tag_memory.TagMemory)
class TagMemory(FormerMethod):
    """See `vmstore.TagMemory`."""

    _former = "SessionMemory.tags"

    def __init__(self, sync: tag_memory.TagMemory, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[TagInfo]:
        """See `vmstore.TagMemory.all`."""
        return await self._worker.do(partial(self._sync.all, at, **moment))

    async def give(self, page: str | int, *tags: str, remove: Iterable[str] = ()) -> list[str]:
        """See `vmstore.TagMemory.give`."""
        return await self._worker.do(partial(self._sync.give, page, *tags, remove=remove))

    async def alias(self, name: str, canonical: str | None) -> None:
        """See `vmstore.TagMemory.alias`."""
        await self._worker.do(partial(self._sync.alias, name, canonical))

    async def suggest_aliases(self, at: When | None = None, **moment: Unpack[Moment]) -> list[AliasSuggestion]:
        """See `vmstore.TagMemory.suggest_aliases`."""
        return await self._worker.do(partial(self._sync.suggest_aliases, at, **moment))

    async def expand(self, tag: str, depth: str = "full") -> None:
        """See `vmstore.TagMemory.expand`."""
        await self._worker.do(partial(self._sync.expand, tag, depth))

    async def collapse(self, tag: str, depth: str = "summary") -> None:
        """See `vmstore.TagMemory.collapse`."""
        await self._worker.do(partial(self._sync.collapse, tag, depth))


@described_by(segment_memory.SegmentMemory)
class SegmentMemory(FormerMethod):
    """See `vmstore.SegmentMemory`."""

    _former = "SessionMemory.segments"

    def __init__(self, sync: segment_memory.SegmentMemory, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[SegmentInfo]:
        """See `vmstore.SegmentMemory.all`."""
        return await self._worker.do(partial(self._sync.all, at, **moment))

    async def ancestors(
        self, segment: int | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SegmentInfo]:
        """See `vmstore.SegmentMemory.ancestors`."""
        return await self._worker.do(partial(self._sync.ancestors, segment, at, **moment))

    async def descendants(
        self, segment: int | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SegmentInfo]:
        """See `vmstore.SegmentMemory.descendants`."""
        return await self._worker.do(partial(self._sync.descendants, segment, at, **moment))


@described_by(turn_memory.TurnMemory)
class TurnMemory:
    """See `vmstore.TurnMemory`."""

    def __init__(self, sync: turn_memory.TurnMemory, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def hot(self, at: When | None = None, *, current: str = "", **moment: Unpack[Moment]) -> list[NearTurn]:
        """See `vmstore.TurnMemory.hot`."""
        return await self._worker.do(partial(self._sync.hot, at, current=current, **moment))

    async def warm(self, query: str = "", at: When | None = None, **moment: Unpack[Moment]) -> list[NearTurn]:
        """See `vmstore.TurnMemory.warm`."""
        return await self._worker.do(partial(self._sync.warm, query, at, **moment))

    async def cold(self, query: str, *, limit: int = COLD_FOUND) -> list[ColdPage]:
        """See `vmstore.TurnMemory.cold`."""
        return await self._worker.do(partial(self._sync.cold, query, limit=limit))

    async def tag(self, tagger: TagModel | None = None, *, timeout_s: float = TIMEOUT_S) -> int:
        """See `vmstore.TurnMemory.tag`."""
        return await self._worker.do(partial(self._sync.tag, tagger, timeout_s=timeout_s))

    async def summarize(self, model: TurnModel | None = None, *, timeout_s: float = TIMEOUT_S) -> TurnSummaries:
        """See `vmstore.TurnMemory.summarize`."""
        return await self._worker.do(partial(self._sync.summarize, model, timeout_s=timeout_s))


@described_by(store_facts.StoreFacts)
class StoreFacts(FormerMethod):
    """See `vmstore.StoreFacts`."""

    _former = "StoreMemory.facts"

    def __init__(self, sync: store_facts.StoreFacts, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def all(
        self, at: When | None = None, *, user: str | None = None, valid_at_us: int | None = None, ever: bool = False,
        **moment: Unpack[Moment],
    ) -> list[KnownFact]:  # fmt: skip
        """See `vmstore.StoreFacts.all`."""
        asked = partial(self._sync.all, at, user=user, valid_at_us=valid_at_us, ever=ever, **moment)
        return await self._worker.do(asked)

    async def query(
        self, subject: str | None = None, verb: str | None = None, object_contains: str | None = None,
        status: str | None = None, fact_type: str | None = None, *, user: str | None = None, ever: bool = False,
        limit: int = FOUND_MAX,
    ) -> FactsFound:  # fmt: skip
        """See `vmstore.StoreFacts.query`."""
        words = (subject, verb, object_contains, status, fact_type)
        return await self._worker.do(partial(self._sync.query, *words, user=user, ever=ever, limit=limit))


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

    async def times(
        self, at: When | None = None, *, preset: str | None = None, start: Bound | None = None,
        end: Bound | None = None, zone: str | None = None, limit: int = TIMES, **moment: Unpack[Moment],
    ) -> NamedTimes:  # fmt: skip
        """See `vmstore.SessionMemory.times`."""
        call_it = partial(self._sync.times, at, preset=preset, start=start, end=end, zone=zone, limit=limit)
        return await self._worker.do(partial(call_it, **moment))

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

    async def recall(self, query: str, *, user: str | None = None, tokens: int = TOKENS) -> RecallAnswer:
        """See `vmstore.StoreMemory.recall`."""
        return await self._worker.do(partial(self._sync.recall, query, user=user, tokens=tokens))

    async def find_quote(self, text: str, *, user: str | None = None) -> FoundQuotes:
        """See `vmstore.StoreMemory.find_quote`."""
        return await self._worker.do(partial(self._sync.find_quote, text, user=user))

    @property
    def facts(self) -> StoreFacts:
        """See `vmstore.StoreMemory.facts`."""
        return StoreFacts(self._sync.facts, self._worker)
