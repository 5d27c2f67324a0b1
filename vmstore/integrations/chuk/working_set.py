"""The working set: the pages of the prompt (L0) and those at hand (L1), within a budget."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import BaseModel, Field, PrivateAttr

from vmstore.integrations.chuk.eviction_policy import EvictionContext, EvictionPolicy, ImportanceWeightedLRU
from vmstore.integrations.chuk.models.enums import Modality, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage
from vmstore.integrations.chuk.models.stats import TokenBudget, WorkingSetStats
from vmstore.integrations.chuk.page_table import PageTable

CLEANUP_TURNS = 10
HISTORY_TURNS = 20


class PinnedSet(BaseModel):
    """Pages that do not go: pinned by hand, or by a rule."""

    pinned: set[str] = Field(default_factory=set)
    auto_pin_last_n_turns: int = 3
    auto_pin_system_prompt: bool = True
    auto_pin_claims: bool = True
    auto_pinned: set[str] = Field(default_factory=set)

    def pin(self, page_id: str) -> None:
        """Pins a page by hand."""
        self.pinned.add(page_id)

    def unpin(self, page_id: str) -> None:
        """Lets a page go again, pinned by hand or by a rule."""
        self.pinned.discard(page_id)
        self.auto_pinned.discard(page_id)

    def is_pinned(self, page_id: str) -> bool:
        """Whether a page is pinned."""
        return page_id in self.pinned or page_id in self.auto_pinned

    def auto_pin(self, page_id: str) -> None:
        """Pins a page by a rule."""
        self.auto_pinned.add(page_id)

    def clear_auto_pins(self) -> None:
        """Lets the pages go again that a rule pinned."""
        self.auto_pinned.clear()

    def get_all_pinned(self) -> set[str]:
        """The pages that are pinned."""
        return self.pinned | self.auto_pinned

    def count(self) -> int:
        """How many pages are pinned."""
        return len(self.get_all_pinned())


class AntiThrashPolicy(BaseModel):
    """Leaves pages alone for some turns after they came or went."""

    eviction_cooldown_turns: int = 3
    fault_protection_turns: int = 2
    _evictions: dict[str, int] = PrivateAttr(default_factory=dict)
    _faults: dict[str, int] = PrivateAttr(default_factory=dict)

    def record_eviction(self, page_id: str, turn: int) -> None:
        """Notes that a page went."""
        self._evictions[page_id] = turn

    def record_fault(self, page_id: str, turn: int) -> None:
        """Notes that a page came because it was asked for."""
        self._faults[page_id] = turn

    def can_evict(self, page_id: str, current_turn: int) -> bool:
        """Whether a page neither came nor went within the turns it is left alone."""
        return all(current_turn - turn >= turns for turn, turns in self._past(page_id))

    def get_eviction_penalty(self, page_id: str, current_turn: int) -> float:
        """How lately a page came or went: from 1, which is now, to 0."""
        left = [1.0 - (current_turn - turn) / turns for turn, turns in self._past(page_id) if turns > 0]
        return min(1.0, sum(max(0.0, share) for share in left))

    def cleanup_old_history(self, current_turn: int, max_age: int = HISTORY_TURNS) -> None:
        """Forgets what is longer ago than some turns."""
        for past in (self._evictions, self._faults):
            for page_id in [page_id for page_id, turn in past.items() if current_turn - turn > max_age]:
                del past[page_id]

    def _past(self, page_id: str) -> list[tuple[int, int]]:
        """When a page went and came, each with the turns it is left alone then."""
        listed = (
            (self._evictions.get(page_id), self.eviction_cooldown_turns),
            (self._faults.get(page_id), self.fault_protection_turns),
        )
        return [(turn, turns) for turn, turns in listed if turn is not None]


class WorkingSetConfig(BaseModel):
    """The size of a working set."""

    max_l0_tokens: int = 128000
    max_l1_pages: int = 100
    eviction_threshold: float = 0.85
    target_utilization: float = 0.7
    reserved_tokens: int = 4000


class Listener(Protocol):
    """Hears what somebody does by hand to a working set, before it is done: a log of it."""

    def pinned(self, page_id: str) -> None:
        """A page is pinned."""
        ...

    def unpinned(self, page_id: str) -> None:
        """A page is let go again."""
        ...

    def weighed(self, page_id: str, importance: float | None) -> None:
        """A page's importance is another; None as it was made."""
        ...


class WorkingSetManager(BaseModel):
    """The pages of L0 and L1. That of a `MemoryManager` is folded from its session, which logs each change."""

    config: WorkingSetConfig = Field(default_factory=WorkingSetConfig)
    budget: TokenBudget = Field(default_factory=TokenBudget)
    l0_pages: list[str] = Field(default_factory=list)
    l1_cache: dict[str, MemoryPage] = Field(default_factory=dict)
    importance_overrides: dict[str, float] = Field(default_factory=dict)
    pinned_set: PinnedSet = Field(default_factory=PinnedSet)
    anti_thrash: AntiThrashPolicy = Field(default_factory=AntiThrashPolicy)
    current_turn: int = 0
    _policy: Any = PrivateAttr(default_factory=ImportanceWeightedLRU)
    _listener: Any = PrivateAttr(default=None)
    _resident: dict[str, MemoryPage] = PrivateAttr(default_factory=dict)  # the pages of L0
    _tokens: dict[str, int] = PrivateAttr(default_factory=dict)  # what each of them was counted at

    def model_post_init(self, context: Any, /) -> None:
        """Takes the budget from the configuration where none was given."""
        super().model_post_init(context)
        if "budget" not in self.model_fields_set:
            self.budget = TokenBudget(total_limit=self.config.max_l0_tokens, reserved=self.config.reserved_tokens)

    def __len__(self) -> int:
        return self.l0_count + self.l1_count

    def set_eviction_policy(self, policy: EvictionPolicy) -> None:
        """Has a policy choose what may go."""
        self._policy = policy

    # ---- how full it is

    @property
    def l0_count(self) -> int:
        """The pages of the prompt."""
        return len(self.l0_pages)

    @property
    def l1_count(self) -> int:
        """The pages at hand."""
        return len(self.l1_cache)

    @property
    def utilization(self) -> float:
        """The share of the budget that is taken."""
        return self.budget.utilization

    @property
    def tokens_used(self) -> int:
        """The tokens of the pages of the prompt."""
        return self.budget.used

    @property
    def tokens_available(self) -> int:
        """The tokens that are left of the budget."""
        return self.budget.available

    def needs_eviction(self) -> bool:
        """Whether the prompt is fuller than its threshold."""
        return self.utilization > self.config.eviction_threshold

    def can_fit(self, tokens: int) -> bool:
        """Whether so many tokens have room."""
        return self.budget.can_fit(tokens)

    def calculate_eviction_target(self, tokens_needed: int = 0) -> int:
        """The tokens that have to go, for the prompt to be as full as aimed at with some more."""
        aim = int(self.config.target_utilization * (self.budget.total_limit - self.budget.reserved))
        return max(0, self.tokens_used - aim + tokens_needed)

    # ---- what is in it

    def add_to_l0(self, page: MemoryPage) -> bool:
        """Takes a page into the prompt; False where it has no room, and nothing else is moved for it."""
        if page.page_id in self.l0_pages:
            return True
        tokens = page.estimate_tokens()
        if not self.budget.add(tokens, page.modality):
            return False
        self.l1_cache.pop(page.page_id, None)
        self.l0_pages.append(page.page_id)
        self._resident[page.page_id], self._tokens[page.page_id] = page, tokens
        page.storage_tier = StorageTier.L0
        page.mark_accessed()
        return True

    def add_to_l1(self, page: MemoryPage) -> bool:
        """Keeps a page at hand; False where there are as many as may be."""
        if page.page_id not in self.l1_cache and self.l1_count >= self.config.max_l1_pages:
            return False
        self.remove_from_l0(page.page_id, page)
        self.l1_cache[page.page_id] = page
        page.storage_tier = StorageTier.L1
        return True

    def remove(self, page_id: str) -> MemoryPage | None:
        """Takes a page out of the working set; None where it was not in it, or was never handed in."""
        page = self.get_page(page_id)
        self._leave(page_id)
        self.l1_cache.pop(page_id, None)
        return page

    def remove_from_l0(self, page_id: str, page: MemoryPage) -> bool:
        """Takes a page out of the prompt; False where it was not in it."""
        return self._leave(page_id, page)

    def _leave(self, page_id: str, page: MemoryPage | None = None) -> bool:
        if page_id not in self.l0_pages:
            return False
        self.l0_pages.remove(page_id)
        page = self._resident.pop(page_id, page)
        tokens = self._tokens.pop(page_id, None)
        if page is not None:
            self.budget.remove(page.estimate_tokens() if tokens is None else tokens, page.modality)
        return True

    def promote_to_l0(self, page: MemoryPage) -> bool:
        """Takes a page at hand into the prompt; False where it is not at hand, or has no room."""
        return self.is_in_l1(page.page_id) and self.add_to_l0(page)

    def demote_to_l1(self, page: MemoryPage) -> bool:
        """Puts a page of the prompt at hand; False where it is not in the prompt, or as many are at hand as may be."""
        return self.is_in_l0(page.page_id) and self.add_to_l1(page)

    def get_page(self, page_id: str) -> MemoryPage | None:
        """A page of the working set; None where it is not in it."""
        return self.l1_cache.get(page_id) or self._resident.get(page_id)

    def update_page_tokens(
        self, page_id: str, old_tokens: int, new_tokens: int, modality: Modality = Modality.TEXT
    ) -> None:
        """Says that a page of the prompt takes other tokens now."""
        if page_id in self.l0_pages:
            self.budget.remove(old_tokens, modality)
            self.budget.set_tokens(modality, self.budget.get_tokens(modality) + new_tokens)
            self._tokens[page_id] = new_tokens

    def replace(self, page: MemoryPage) -> None:
        """Has a page of the working set be another form of it, counted at what that takes."""
        if page.page_id in self.l1_cache:
            self.l1_cache[page.page_id] = page
        if page.page_id in self.l0_pages:
            before = self._tokens.get(page.page_id, page.estimate_tokens())
            self.update_page_tokens(page.page_id, before, page.estimate_tokens(), page.modality)
            self._resident[page.page_id] = page

    def tokens_of(self, page_id: str) -> int:
        """The tokens a page of the prompt is counted at; 0 where it is not in it."""
        return self._tokens.get(page_id, 0)

    def is_in_l0(self, page_id: str) -> bool:
        """Whether a page is in the prompt."""
        return page_id in self.l0_pages

    def is_in_l1(self, page_id: str) -> bool:
        """Whether a page is at hand."""
        return page_id in self.l1_cache

    def is_in_working_set(self, page_id: str) -> bool:
        """Whether a page is in the prompt or at hand."""
        return self.is_in_l0(page_id) or self.is_in_l1(page_id)

    def get_l0_page_ids(self) -> list[str]:
        """The pages of the prompt, in the order they came."""
        return list(self.l0_pages)

    def get_l1_pages(self) -> list[MemoryPage]:
        """The pages at hand."""
        return list(self.l1_cache.values())

    # ---- what may go

    def get_eviction_candidates(
        self,
        tokens_needed: int = 0,
        from_tier: StorageTier = StorageTier.L0,
        page_table: PageTable | None = None,
    ) -> list[tuple[str, float]]:
        """The pages of a tier that may go, each with its score, the lowest first."""
        context = EvictionContext.model_construct(
            current_turn=self.current_turn,
            l0_page_ids=list(self.l0_pages),
            l1_pages=self.l1_cache,
            pinned_page_ids=self.pinned_set.get_all_pinned(),
            importance_overrides=self.importance_overrides,
            anti_thrash=self.anti_thrash,
            page_table=page_table,
        )
        candidates = self._policy.score_candidates(context, from_tier, tokens_needed)
        return [(candidate.page_id, candidate.score) for candidate in candidates]

    def new_turn(self) -> None:
        """Begins a turn."""
        self.current_turn += 1
        if self.current_turn % CLEANUP_TURNS == 0:
            self.anti_thrash.cleanup_old_history(self.current_turn)

    def pin_page(self, page_id: str) -> None:
        """Pins a page."""
        if self._listener is not None:
            self._listener.pinned(page_id)
        self.pinned_set.pin(page_id)

    def unpin_page(self, page_id: str) -> None:
        """Lets a page go again."""
        if self._listener is not None:
            self._listener.unpinned(page_id)
        self.pinned_set.unpin(page_id)

    def is_pinned(self, page_id: str) -> bool:
        """Whether a page is pinned."""
        return self.pinned_set.is_pinned(page_id)

    def record_fault(self, page_id: str) -> None:
        """Notes that a page came because it was asked for."""
        self.anti_thrash.record_fault(page_id, self.current_turn)

    def record_eviction(self, page_id: str) -> None:
        """Notes that a page went."""
        self.anti_thrash.record_eviction(page_id, self.current_turn)

    def set_importance(self, page_id: str, importance: float) -> None:
        """Weighs a page for this working set, from 0 to 1; what is beyond is taken as those."""
        share = max(0.0, min(1.0, importance))
        if self._listener is not None:
            self._listener.weighed(page_id, share)
        self.importance_overrides[page_id] = share

    def clear_importance(self, page_id: str) -> None:
        """Weighs a page as it was made."""
        if self._listener is not None and page_id in self.importance_overrides:
            self._listener.weighed(page_id, None)
        self.importance_overrides.pop(page_id, None)

    def get_stats(self) -> WorkingSetStats:
        """Counts of the working set."""
        return WorkingSetStats(
            l0_pages=self.l0_count,
            l1_pages=self.l1_count,
            total_pages=len(self),
            tokens_used=self.tokens_used,
            tokens_available=self.tokens_available,
            utilization=self.utilization,
            needs_eviction=self.needs_eviction(),
            tokens_by_modality=dict(self.budget.tokens_by_modality),
        )

    def clear(self) -> None:
        """Takes everything out."""
        self.l0_pages.clear()
        self.l1_cache.clear()
        self.importance_overrides.clear()
        self._resident.clear()
        self._tokens.clear()
        for modality in Modality:
            self.budget.set_tokens(modality, 0)
