"""The state of a memory, and the one function that changes it: by a step that is in the log already."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.integrations.chuk.models.enums import Actor, CompressionLevel, MutationType, StorageTier
from vmstore.integrations.chuk.models.fault import FaultPolicy, PageMutation
from vmstore.integrations.chuk.models.page import MemoryPage, moment
from vmstore.integrations.chuk.models.stats import VMMetrics
from vmstore.integrations.chuk.mutation_log import MutationLogLite
from vmstore.integrations.chuk.page_table import PageTable
from vmstore.integrations.chuk.prefetcher import SimplePrefetcher
from vmstore.integrations.chuk.tlb import PageTLB
from vmstore.integrations.chuk.working_set import WorkingSetConfig, WorkingSetManager

ENTER = "enter"  # a page comes into the prompt, asked for by nobody
WEIGH = "weigh"  # a page's importance in the working set is another
KINDS = {kind.value: kind for kind in MutationType}
AWAY = (StorageTier.L3, StorageTier.L4)


class PageStep(NamedTuple):
    """One thing that happened to a page: what the log says of it, and the page as it is from there on.

    `kind` is that of a mutation, or `enter` or `weigh`. `page` is None where the step changes nothing it says.
    """

    kind: str
    page_id: str
    tier: StorageTier
    before: StorageTier | None = None
    actor: Actor = Actor.SYSTEM
    cause: str | None = None
    turn: int = 0
    at_us: int = 0
    name: str = ""
    level: CompressionLevel = CompressionLevel.FULL
    tokens: int = 0
    importance: float | None = None
    artifact_id: str | None = None
    hint: str | None = None
    page: MemoryPage | None = None


class MemoryState:
    """The page table, working set, mutation log and counts of a session, as far as its steps were applied."""

    def __init__(self, config: WorkingSetConfig, fault_policy: FaultPolicy, session_id: str) -> None:
        self.page_table = PageTable()
        self.working_set = WorkingSetManager(config=config)
        self.mutation_log = MutationLogLite(session_id=session_id)
        self.prefetcher = SimplePrefetcher()
        self.metrics = VMMetrics()
        self.tlb = PageTLB()
        self.fault_policy = fault_policy
        self.pages: dict[str, MemoryPage] = {}
        self.hints: dict[str, str] = {}
        self.turn = 0

    def apply(self, step: PageStep) -> None:
        """Takes in what happened to a page."""
        if step.page is not None:
            self.pages[step.page_id] = step.page
            step.page.storage_tier = step.tier
            step.page.pinned = step.page.pinned or self.working_set.is_pinned(step.page_id)
        match step.kind:
            case MutationType.CREATE:
                self._create(step)
            case MutationType.EVICT:
                self._evict(step)
            case MutationType.COMPRESS | MutationType.UPDATE:
                self._change(step)
            case MutationType.FAULT_IN:
                self._fault(step)
            case MutationType.PIN | MutationType.UNPIN:
                self._pin(step)
            case MutationType.DELETE:
                self._delete(step)
            case "enter":
                self._enter(step)
            case "weigh":
                self._weigh(step)
        self.tlb.invalidate(step.page_id)
        if step.kind in KINDS:
            mutations = self.mutation_log
            mutations.append(mutation_of(step))
        self.metrics.tokens_in_working_set = self.working_set.tokens_used
        self.metrics.tokens_available = self.working_set.tokens_available

    def tokens_of(self, page_id: str) -> int:
        """The tokens a page takes as it is now; 0 of one that nobody knows."""
        page, entry = self.pages.get(page_id), self.page_table.lookup(page_id)
        if page is not None:
            return page.estimate_tokens()
        return 0 if entry is None else entry.size_tokens or 0

    def begin_turn(self, turn: int) -> None:
        """Begins a turn; the prompt as it stands is the context of it."""
        self.turn = turn
        self.mutation_log.record_context_at_turn(turn, self.working_set.get_l0_page_ids())
        self.working_set.new_turn()
        self.fault_policy.new_turn()
        self.metrics.new_turn()

    def _create(self, step: PageStep) -> None:
        assert step.page is not None, "a page that is made is at hand"
        self.page_table.register(step.page)
        if step.hint:
            self.hints[step.page_id] = step.hint

    def _enter(self, step: PageStep) -> None:
        page = self.pages[step.page_id]
        self.working_set.add_to_l0(page)
        self.page_table.update_location(step.page_id, StorageTier.L0, compression_level=page.compression_level)

    def _evict(self, step: PageStep) -> None:
        page = self.pages.get(step.page_id)
        self.working_set.remove(step.page_id)
        if page is not None:
            page.storage_tier, page.artifact_id = step.tier, step.artifact_id or page.artifact_id
        self.page_table.update_location(step.page_id, step.tier, artifact_id=step.artifact_id)
        if step.tier in AWAY:
            self.pages.pop(step.page_id, None)
        self.working_set.record_eviction(step.page_id)
        self.metrics.record_eviction()

    def _change(self, step: PageStep) -> None:
        """Another form of a page, or another content."""
        page = self.pages[step.page_id]
        entry = self.page_table.lookup(step.page_id)
        before = 0 if entry is None else entry.size_tokens or 0
        self.working_set.replace(page)
        if entry is not None:
            entry.compression_level, entry.size_tokens = page.compression_level, page.estimate_tokens()
        if step.kind == MutationType.COMPRESS:
            self.metrics.record_compression(max(0, before - page.estimate_tokens()))

    def _fault(self, step: PageStep) -> None:
        page = self.pages[step.page_id]
        if self.working_set.is_in_l0(step.page_id):
            self.working_set.replace(page)
        self._enter(step)
        self.working_set.record_fault(step.page_id)
        self.prefetcher.record_page_access(step.page_id)
        self.fault_policy.record_fault(step.tokens)
        self.metrics.record_fault()

    def _pin(self, step: PageStep) -> None:
        is_pinned = step.kind == MutationType.PIN
        pins = self.working_set.pinned_set
        (pins.pin if is_pinned else pins.unpin)(step.page_id)
        for known in (self.pages.get(step.page_id), self.page_table.lookup(step.page_id)):
            if known is not None:
                known.pinned = is_pinned

    def _delete(self, step: PageStep) -> None:
        self.working_set.remove(step.page_id)
        self.working_set.pinned_set.unpin(step.page_id)
        self.page_table.remove(step.page_id)
        self.pages.pop(step.page_id, None)
        self.hints.pop(step.page_id, None)

    def _weigh(self, step: PageStep) -> None:
        if step.importance is None:
            self.working_set.importance_overrides.pop(step.page_id, None)
        else:
            self.working_set.importance_overrides[step.page_id] = step.importance


def mutation_of(step: PageStep) -> PageMutation:
    """A step as the mutation log lists it."""
    return PageMutation(
        mutation_id=step.name,
        page_id=step.page_id,
        timestamp=moment(step.at_us),
        turn=step.turn,
        mutation_type=KINDS[step.kind],
        tier_before=step.before,
        tier_after=step.tier,
        actor=step.actor,
        cause=step.cause,
    )
