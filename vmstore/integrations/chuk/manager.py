"""The memory of a session: pages, a working set within a budget, faults, and what a model is sent.

Every act decides first, then is one commit of the session, then changes the state: what is answered is in the log.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import msgspec

from vmstore.core.decision import Cause, Denial
from vmstore.errors import ConflictError, ErasedError, InputError, UnknownError
from vmstore.integrations.chuk.artifacts_bridge import ArtifactsBridge
from vmstore.integrations.chuk.compressor import CompressionResult, CompressorRegistry
from vmstore.integrations.chuk.context_packer import ContextPacker
from vmstore.integrations.chuk.demand_paging import DemandPagingPrePass
from vmstore.integrations.chuk.fault_handler import FaultResult, PageFaultHandler, PageSearchHandler, SearchResult
from vmstore.integrations.chuk.history.fold import ContextRequest, SessionFold, request_of
from vmstore.integrations.chuk.history.journal import ERASED, PREFIX, Act, Contest, PageJournal
from vmstore.integrations.chuk.history.state import AWAY, MemoryState
from vmstore.integrations.chuk.manifest import ManifestBuilder, ManifestPolicies, VMManifest, generate_simple_hint
from vmstore.integrations.chuk.models.enums import (
    Actor,
    CompressionLevel,
    FaultReason,
    Modality,
    PageType,
    StorageTier,
    VMMode,
)
from vmstore.integrations.chuk.models.fault import FaultPolicy
from vmstore.integrations.chuk.models.page import ID_DIGITS, MemoryPage, PageTableEntry, event_to_page, new_id
from vmstore.integrations.chuk.models.stats import FaultMetrics, MemoryManagerStats, VMContext, VMMetrics
from vmstore.integrations.chuk.mutation_log import MutationLogLite
from vmstore.integrations.chuk.pack_cache import ContextPackCache
from vmstore.integrations.chuk.page_table import PageTable
from vmstore.integrations.chuk.replacement import default_store
from vmstore.integrations.chuk.room import Levels, Room
from vmstore.integrations.chuk.vm_prompts import build_vm_developer_message, get_vm_tools_as_dicts
from vmstore.integrations.chuk.working_set import WorkingSetConfig, WorkingSetManager
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

__all__ = ["MemoryManager", "event_to_page"]  # the function stands there, its users import it from here

RELEVANCE_TEXT = 0.6  # of a page whose text has the words asked for, beside those that say so of themselves
NEXT_LEVEL = CompressionLevel.ABSTRACT  # what pages are shortened to before any goes


class MemoryManager:
    """Keeps the pages of a session in a store, and decides which are in the prompt.

    Without a store it has one in memory, unless `use` named one. A session that is there already is gone on with.
    Not for several threads at once.
    """

    def __init__(
        self,
        session_id: str = "",
        config: WorkingSetConfig | None = None,
        fault_policy: FaultPolicy | None = None,
        mode: VMMode = VMMode.STRICT,
        eviction_policy: Any | None = None,
        compressor_registry: CompressorRegistry | None = None,
        *,
        store: Store | None = None,
    ) -> None:
        self._session_id = session_id or new_id()
        self._config = WorkingSetConfig() if config is None else config
        self._fault_policy = FaultPolicy() if fault_policy is None else fault_policy
        self._mode = mode
        self._eviction_policy = eviction_policy
        self._registry = compressor_registry
        self._store = default_store() if store is None else store
        if self._store is None:
            self._store = memory_store()
            weakref.finalize(self, self._store.close)
        self._bridge = ArtifactsBridge()
        self._bridge_configured = False
        self._pack_cache = ContextPackCache()
        self._pager = DemandPagingPrePass()
        self._packer, self._builder = ContextPacker(), ManifestBuilder()
        self._open()

    def _open(self) -> None:
        """Takes in what the session holds already."""
        self._journal = PageJournal(self._store_there, self._session_id)
        self._state = MemoryState(self._config, self._fault_policy, self._session_id)
        if not self._journal.is_new:
            SessionFold(self._journal, self._state).run()
        state = self._state
        self._levels = Levels(self._journal, self._registry)
        self._room = Room(state, self._levels)
        if self._eviction_policy is not None:
            state.working_set.set_eviction_policy(self._eviction_policy)
        state.working_set._listener = self
        self._fault_handler = PageFaultHandler(max_faults_per_turn=self._fault_policy.max_faults_per_turn)
        self._fault_handler.configure(state.page_table, state.tlb, loader=self, compressor=self._levels)
        self._search_handler = PageSearchHandler()
        self._search_handler.configure(state.page_table)
        self._search_handler.page_hints = state.hints

    # ---- what it is

    @property
    def _store_there(self) -> Store:
        assert self._store is not None, "it was opened"
        return self._store

    @property
    def session(self) -> Session:
        """The session of the store: its contexts, its past, `lineage`, `debug`, and all else it answers."""
        return self._journal.session

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._session_id

    @property
    def mode(self) -> VMMode:
        """How much a model is asked to keep to its memory."""
        return self._mode

    @property
    def turn(self) -> int:
        """The turn under way; 0 before the first."""
        return self._state.turn

    @property
    def page_table(self) -> PageTable:
        """The entries of all pages."""
        return self._state.page_table

    @property
    def working_set(self) -> WorkingSetManager:
        """The pages of the prompt and those at hand."""
        return self._state.working_set

    @property
    def metrics(self) -> VMMetrics:
        """Counts of the session."""
        return self._state.metrics

    @property
    def mutation_log(self) -> MutationLogLite:
        """The mutations of all pages."""
        return self._state.mutation_log

    # By the names that code which reaches into the replaced package has for them.
    _page_table, _working_set, _mutation_log = page_table, working_set, mutation_log

    @property
    def _page_store(self) -> dict[str, MemoryPage]:
        return self._state.pages

    @property
    def _page_hints(self) -> dict[str, str]:
        return self._state.hints

    @property
    def _prefetcher(self) -> Any:
        return self._state.prefetcher

    # ---- pages

    def create_page(
        self,
        content: Any,
        page_type: PageType = PageType.TRANSCRIPT,
        modality: Modality = Modality.TEXT,
        importance: float = 0.5,
        provenance: list[str] | None = None,
        page_id: str | None = None,
        size_tokens: int | None = None,
        hint: str | None = None,
    ) -> MemoryPage:
        """Makes a page, durable when this returns; InputError where another has its id."""
        if page_id is None:
            page_id = f"{page_type.value}_{new_id()[:ID_DIGITS]}"
        page = MemoryPage(
            page_id=page_id,
            session_id=self._session_id,
            modality=modality,
            page_type=page_type,
            provenance=provenance or [],
            content=content,
            importance=importance,
            size_tokens=size_tokens,
        )
        self._refuse_twice(page_id)
        with self._journal.act(self.turn) as act:
            act.create(page, hint, Actor.SYSTEM, "create_page")
        self._apply(act)
        return self._state.pages[page_id]

    def update_page(self, page_id: str, content: Any, actor: Actor = Actor.SYSTEM) -> MemoryPage:
        """Gives a page another content; the one before stays in its past."""
        page = self._page(page_id)
        size = None if page.size_tokens is None else page.model_copy(update={"size_tokens": None, "content": content})
        changes = {"content": content, "compression_level": CompressionLevel.FULL}
        changes |= {} if size is None else {"size_tokens": size.estimate_tokens()}
        changed = page.model_copy(update=changes)
        with self._journal.act(self.turn) as act:
            act.update(changed, self._tier(page_id), actor, "update_page")
        self._apply(act)
        return self._state.pages[page_id]

    def delete_page(self, page_id: str, actor: Actor = Actor.SYSTEM) -> None:
        """Takes a page out of the session; its past answers with it, until `store.trust.erase` destroys it."""
        tier = self._tier(page_id)
        with self._journal.act(self.turn) as act:
            act.delete(page_id, tier, actor, "delete_page")
        self._apply(act)

    async def load(self, page_id: str, tier: StorageTier, artifact_id: str | None = None) -> MemoryPage | None:
        """A page, from memory or from the log; None where there is none of that id."""
        if (page := self._state.pages.get(page_id)) is not None:
            return page
        if page_id in self._journal.pages and page_id in self.page_table:
            return self._journal.whole(page_id).model_copy(update={"storage_tier": tier})
        if artifact_id is not None and self._bridge_configured:
            return await self._bridge.load_page(artifact_id)
        return None

    # ---- the working set

    async def add_to_working_set(self, page: MemoryPage) -> bool:
        """Takes a page into the prompt, and makes room for it; False where it is larger than all there is.

        A page of the session comes as it stands there; one that is new is made.
        """
        while True:  # until what was planned is of the memory as it still stands
            position = self._journal.position
            if self.working_set.is_in_l0(page.page_id):
                return True
            before = self._tier_or_none(page.page_id)
            page = page if before is None else self._page(page.page_id)
            tokens = page.estimate_tokens()
            room = await self._room.plan(tokens, page.page_id)
            if position == self._journal.position:
                break
        if room is None:
            return False
        with self._journal.act(self.turn) as act:
            if before is None:
                act.create(page, None, Actor.SYSTEM, "add_to_working_set")
            self._room.make(act, room, tokens, page.page_id, Cause.PRESSURE)
            act.enter(page, before)
        if before is not None:
            self._state.pages[page.page_id] = page
        self._apply(act)
        return True

    async def evict_page(self, page_id: str, target_tier: StorageTier = StorageTier.L2) -> bool:
        """Takes a page out of the prompt; False where there is no such page. Its content stays in the log."""
        if self._tier_or_none(page_id) is None:
            return False
        artifact_id = await self._archived(page_id, target_tier)
        before = self._tier_or_none(page_id)  # it may have gone while it was archived
        if before is None:
            return False
        with self._journal.act(self.turn) as act:
            act.evict(
                page_id,
                target_tier,
                before,
                Cause.ASKED,
                "evict_page",
                self._state.tokens_of(page_id),
                artifact_id=artifact_id,
            )
        self._apply(act)
        return True

    async def evict_segment_pages(self, target_tier: StorageTier = StorageTier.L2) -> list[str]:
        """Takes all pages out of the prompt that nobody pinned; their ids."""
        gone = [page_id for page_id in self.working_set.get_l0_page_ids() if not self.working_set.is_pinned(page_id)]
        artifacts = {page_id: await self._archived(page_id, target_tier) for page_id in gone}
        gone = [page_id for page_id in gone if self.working_set.is_in_l0(page_id)]  # some may have left meanwhile
        if not gone:
            return []
        with self._journal.act(self.turn) as act:
            for page_id in gone:
                artifact_id = artifacts[page_id]
                freed, words = self._state.tokens_of(page_id), "evict_segment"
                act.evict(page_id, target_tier, StorageTier.L0, Cause.SEGMENT, words, freed, artifact_id=artifact_id)
        self._apply(act)
        return gone

    async def _archived(self, page_id: str, tier: StorageTier) -> str | None:
        """The artifact of a page that goes as far as artifacts are, where a bridge was configured."""
        page = self._state.pages.get(page_id)
        if tier not in AWAY or not self._bridge_configured or page is None:
            return None
        return await self._bridge.store_page(self._levels.full(page), tier)

    async def compress_page(self, page_id: str, target_level: CompressionLevel) -> CompressionResult | None:
        """Has a page show a shorter form, while the log keeps it whole; None without such a page or a compressor."""
        while True:
            position = self._journal.position
            page = self._state.pages.get(page_id)
            if self._registry is None or page is None:
                return None
            short = await self._levels.shorter(page, target_level)
            if position == self._journal.position:
                break
        if short.level_after == short.level_before:
            return short
        with self._journal.act(self.turn) as act:
            act.compress(short.page, self._tier(page_id), short.tokens_saved)
        self._apply(act)
        return short

    # ---- what is asked for

    async def handle_fault(self, page_id: str, target_level: int = CompressionLevel.ABSTRACT) -> FaultResult:
        """Brings a page into the prompt at a level, 0 for its exact content, or says why not; logged either way."""
        return await self._fault(page_id, target_level, Actor.MODEL, "page_fault", FaultReason.RESOLVE_REFERENCE)

    async def demand_pre_pass(self, user_message: str) -> list[str]:
        """Brings in what a message is likely to need, within the limits of the turn; the pages that came."""
        here = set(self.working_set.get_l0_page_ids())
        wanted = self._pager.get_prefetch_candidates(user_message, self.page_table, self._state.hints, here)
        came: list[str] = []
        for page_id in wanted:
            if not self._fault_policy.can_fault(self._state.tokens_of(page_id)):
                break
            level = CompressionLevel.ABSTRACT
            fault = await self._fault(page_id, level, Actor.SYSTEM, "demand_pre_pass", FaultReason.SPECULATIVE)
            if fault.success:
                came.append(page_id)
        return came

    async def _fault(self, page_id: str, level: int, actor: Actor, cause: str, reason: FaultReason) -> FaultResult:
        while True:
            position = self._journal.position
            if (refused := self._refusal(page_id)) is not None:
                return self._denied(page_id, refused[0], actor, refused[1])
            self._fault_handler.faults_this_turn = self._fault_policy.faults_this_turn
            fault = await self._fault_handler.handle_fault(page_id, level)
            page = fault.page
            if page is None:
                return fault
            is_here = self.working_set.is_in_l0(page_id)
            tokens = page.estimate_tokens() - (self.working_set.tokens_of(page_id) if is_here else 0)
            room = await self._room.plan(max(0, tokens), page_id)
            if position == self._journal.position:
                break
        if room is None:
            return self._denied(page_id, Denial.NO_ROOM, actor, f"No room in the prompt for {page_id}: {tokens} tokens")
        assert page is not None, "a fault without a page was answered above"
        contest = Contest(self._room.tokens, self.working_set.tokens_used, max(0, tokens), page_id)
        before = self._tier(page_id)
        with self._journal.act(self.turn) as act:
            if page.compression_level not in self._journal.pages[page_id].contents:
                act.compress(page, before, 0)
            self._room.make(act, room, max(0, tokens), page_id, Cause.FAULT)
            act.fault(page, before, actor, cause, contest, reason, is_wish=reason is FaultReason.SPECULATIVE)
        self._apply(act)
        return fault

    def _refusal(self, page_id: str) -> tuple[Denial, str] | None:
        """The denial of a page that does not come, whatever room there is, and its words; None where it may."""
        policy = self._fault_policy
        if page_id not in self.page_table:
            return Denial.NO_PAGE, f"Page not found: {page_id}"
        if policy.faults_this_turn >= policy.max_faults_per_turn:
            return Denial.FAULTS_A_TURN, f"Fault limit exceeded: {policy.max_faults_per_turn} a turn"
        if not policy.can_fault(self._state.tokens_of(page_id)):
            return Denial.TOKENS_A_TURN, f"Fault limit exceeded: {policy.max_fault_tokens_per_turn} tokens a turn"
        return None

    def _denied(self, page_id: str, because: Denial, actor: Actor, error: str) -> FaultResult:
        with self._journal.act(self.turn) as act:
            act.deny(page_id, because, Contest(self._room.tokens, self.working_set.tokens_used, 0, None), actor)
        return FaultResult(success=False, error=error)

    async def search_pages(self, query: str, modality: str | None = None, limit: int = 5) -> SearchResult:
        """The pages a query finds: by their ids and hints, then by their texts, in the prompt or not; logged."""
        handler = self._search_handler
        results = {entry.page_id: entry for entry in handler.matches(query, modality)}
        if not self._journal.is_new and query.strip():
            ids = {logged.number: page_id for page_id, logged in self._journal.pages.items()}
            hits = self.session.search(query, limit=limit + len(results))
            best = max((hit.score for hit in hits), default=0.0) or 1.0
            for hit in hits:
                entry = self.page_table.lookup(ids.get(int(hit.page[1:]), ""))
                if entry is not None and entry.page_id not in results and modality in (None, entry.modality):
                    results[entry.page_id] = handler.result(entry, round(RELEVANCE_TEXT * hit.score / best, 6))
        found = list(results.values())[:limit]
        if not self._journal.is_new:
            with self._journal.act(self.turn) as act:
                act.search(query, [entry.page_id for entry in found], len(results))
        return SearchResult(results=found, total_available=len(self.page_table))

    # ---- what a model is sent

    def get_l0_pages(self) -> list[MemoryPage]:
        """The pages of the prompt, in the order they came."""
        pages = self._state.pages
        return [pages[page_id] for page_id in self.working_set.get_l0_page_ids() if page_id in pages]

    def build_context(
        self,
        mode: VMMode | None = None,
        system_prompt: str = "",
        model_id: str = "",
        token_budget: int | None = None,
    ) -> VMContext:
        """Makes what the next call is sent, and logs it as its context: `session.context(call=…)` answers with it."""
        chosen = self._mode if mode is None else mode
        faults = self._fault_policy.max_faults_per_turn
        request = ContextRequest(chosen.value, model_id, system_prompt, token_budget, faults, self._session_id)
        made = self._made(self._state, request)
        packed = made.packed_context
        here = {page.page_id: page for page in self.get_l0_pages()}
        with self._journal.act(self.turn) as act:
            act.pack([here[page_id] for page_id in packed.pages_included], msgspec.json.encode(request))
        return made

    def recall_context(self, call: int) -> VMContext:
        """Makes again, of the log as it stood then, what a call was sent.

        UnknownError where there was no such call, ErasedError where anything it was sent was erased since.
        """
        context = self.session.context(call)
        request = request_of(context)
        state = MemoryState(self._config, FaultPolicy(), self._session_id)
        journal = PageJournal(self._store_there, self._session_id)
        SessionFold(journal, state).run(context.basis.position - 1)
        made = self._made(state, request)
        sent = [journal.pages[page_id].number for page_id in made.packed_context.pages_included]
        if sent != context.page_ids or any(ERASED in page.metadata for page in state.pages.values()):
            raise ErasedError(
                f"call {call} of session {journal.name!r} was sent what was erased since; ask for its pages"
            )
        return made

    def _made(self, state: MemoryState, request: ContextRequest) -> VMContext:
        """Makes what a call is sent of a state and its request: nothing else decides it."""
        mode = VMMode(request.mode)
        ids = state.working_set.get_l0_page_ids()
        pages = [state.pages[page_id] for page_id in ids if page_id in state.pages]
        manifest = self._manifest(state, request, pages)
        packed = self._packer.pack(pages, request.token_budget)
        message = build_vm_developer_message(
            mode, manifest.to_json(), packed.content, request.system_prompt, request.faults
        )
        tools = [] if mode is VMMode.PASSIVE else get_vm_tools_as_dicts()
        return VMContext(developer_message=message, tools=tools, manifest=manifest, packed_context=packed)

    def _manifest(self, state: MemoryState, request: ContextRequest, pages: Sequence[MemoryPage]) -> VMManifest:
        def hint(entry: PageTableEntry) -> str:
            return state.hints.get(entry.page_id) or generate_simple_hint(entry)

        overrides = state.working_set.importance_overrides
        return self._builder.build(
            request.session_id,
            state.page_table,
            [page.page_id for page in pages],
            {page.page_id: page.estimate_tokens() for page in pages},
            {page.page_id: overrides.get(page.page_id, page.importance) for page in pages},
            hint,
            ManifestPolicies(max_faults_per_turn=request.faults),
        )

    # ---- turns, segments, pins

    def new_turn(self) -> None:
        """Begins a turn; the pages of the prompt as they are now are the context of it."""
        number = self.turn + 1
        with self._journal.act(number) as act:
            act.turn(number)
        self._state.begin_turn(number)
        self._fault_handler.new_turn()

    def pin_page(self, page_id: str) -> None:
        """Holds a page in the prompt; UnknownError where there is none of that id."""
        self.working_set.pin_page(page_id)

    def unpin_page(self, page_id: str) -> None:
        """Lets a page go again; UnknownError where there is none of that id."""
        self.working_set.unpin_page(page_id)

    def pinned(self, page_id: str) -> None:
        """Logs a pin; the working set calls it, by hand or by `pin_page`."""
        self._pin(page_id, is_pinned=True, cause="explicit_pin")

    def unpinned(self, page_id: str) -> None:
        """Logs the end of a pin."""
        self._pin(page_id, is_pinned=False, cause="explicit_unpin")

    def weighed(self, page_id: str, importance: float | None) -> None:
        """Logs that a page's importance in the working set is another."""
        tier, made = self._tier(page_id), self._journal.pages[page_id].base.importance
        with self._journal.act(self.turn) as act:
            act.weigh(page_id, tier, importance, made)
        self._apply(act)

    def _pin(self, page_id: str, *, is_pinned: bool, cause: str) -> None:
        tier = self._tier(page_id)
        with self._journal.act(self.turn) as act:
            act.pin(page_id, tier, is_pinned=is_pinned, cause=cause)
        self._apply(act)

    def set_last_segment_summary(self, page_id: str) -> None:
        """Says that a segment ended, and which page sums it up."""
        self._journal.number(page_id)
        with self._journal.act(self.turn) as act:
            act.segment(page_id)
        self._state.prefetcher.set_last_segment_summary(page_id)

    def update_session_id(self, session_id: str) -> None:
        """Goes on under another id: in a session that shares all there is, while the one before stays as it was.

        Where nothing was written yet, the session of that id is opened. ConflictError where both have something.
        """
        if not session_id or session_id == self._session_id:
            return
        is_there = not PageJournal(self._store_there, session_id).is_new
        if is_there and not self._journal.is_new:
            raise ConflictError(
                f"session {PREFIX + session_id!r} is there already, and {self._journal.name!r} has pages of its own;"
                " take another id",
                code="name-taken",
            )
        self._session_id = session_id
        if self._journal.is_new:
            self._open()
        else:
            self._journal.fork(session_id)
            self._state.mutation_log.session_id = session_id

    async def configure_bridge(self, artifact_store: Any | None = None, session_id: str | None = None) -> None:
        """Has pages that go to L3 and L4 kept in an artifact store as well; the log keeps them either way."""
        await self._bridge.configure(artifact_store, session_id or self._session_id)
        self._bridge_configured = True

    def get_stats(self) -> MemoryManagerStats:
        """Counts of the memory and of all its parts."""
        state = self._state
        faults, most = self._fault_policy.faults_this_turn, self._fault_policy.max_faults_per_turn
        return MemoryManagerStats(
            session_id=self._session_id,
            turn=self.turn,
            mode=self._mode.value,
            page_table=state.page_table.get_stats(),
            working_set=state.working_set.get_stats(),
            fault_handler=FaultMetrics(
                faults_this_turn=faults,
                max_faults_per_turn=most,
                faults_remaining=max(0, most - faults),
                total_faults=state.metrics.faults_total,
                tlb_hit_rate=state.tlb.hit_rate,
            ),
            tlb=state.tlb.get_stats(),
            mutation_log=state.mutation_log.get_summary(),
            prefetcher=state.prefetcher.get_stats(),
            pack_cache=self._pack_cache.get_stats(),
            metrics=state.metrics,
            pages_in_store=len(state.pages),
        )

    # ---- beside

    def _apply(self, act: Act) -> None:
        """Takes in an act; from the log where that may differ from what was handed in."""
        if act.is_read_back:
            SessionFold(self._journal, self._state).follow(act.began)
            return
        for step in act.steps:
            self._state.apply(step)

    def _page(self, page_id: str) -> MemoryPage:
        """A page of the session, wherever it is; UnknownError where there is none of that id."""
        self._journal.number(page_id)
        return self._state.pages.get(page_id) or self._journal.whole(page_id)

    def _tier(self, page_id: str) -> StorageTier:
        """The tier of a page; UnknownError where there is none of that id."""
        entry = self.page_table.lookup(page_id)
        if entry is None:
            self._journal.number(page_id)
            raise UnknownError(f"page {page_id!r:.80} was deleted; its past is in session {self.session.name!r}")
        return entry.tier

    def _tier_or_none(self, page_id: str) -> StorageTier | None:
        entry = self.page_table.lookup(page_id)
        return None if entry is None else entry.tier

    def _refuse_twice(self, page_id: str) -> None:
        if page_id in self._journal.pages:
            raise InputError(f"there is a page {page_id!r:.80} already; give another id, or update_page changes it")
