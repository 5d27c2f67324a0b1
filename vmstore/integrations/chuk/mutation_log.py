"""The mutations of pages, in order, and the pages of the prompt at each turn."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from pydantic import BaseModel, Field, PrivateAttr

from vmstore.integrations.chuk.models.enums import Actor, MutationType, StorageTier
from vmstore.integrations.chuk.models.fault import PageMutation
from vmstore.integrations.chuk.models.page import now
from vmstore.integrations.chuk.models.stats import MutationLogSummary


class ContextSnapshot(BaseModel):
    """The pages of the prompt as a turn began."""

    turn: int
    page_ids: list[str] = Field(default_factory=list)
    timestamp: datetime = Field(default_factory=now)


class MutationLogLite(BaseModel):
    """Mutations in memory. That of a `MemoryManager` is folded from its session, where they are durable."""

    session_id: str = ""
    _mutations: list[PageMutation] = PrivateAttr(default_factory=list)
    _by_page: dict[str, list[PageMutation]] = PrivateAttr(default_factory=dict)
    _by_turn: dict[int, list[PageMutation]] = PrivateAttr(default_factory=dict)
    _contexts: dict[int, ContextSnapshot] = PrivateAttr(default_factory=dict)

    def append(self, mutation: PageMutation) -> None:
        """Takes a mutation in."""
        self._mutations.append(mutation)
        self._by_page.setdefault(mutation.page_id, []).append(mutation)
        self._by_turn.setdefault(mutation.turn, []).append(mutation)

    def record_mutation(
        self,
        page_id: str,
        mutation_type: MutationType,
        tier_after: StorageTier,
        tier_before: StorageTier | None = None,
        actor: Actor = Actor.SYSTEM,
        cause: str | None = None,
        turn: int = 0,
    ) -> PageMutation:
        """Takes in what happened to a page; numbered as it came."""
        mutation = PageMutation(
            mutation_id=f"{page_id}@{len(self._mutations) + 1}",
            page_id=page_id,
            turn=turn,
            mutation_type=mutation_type,
            tier_before=tier_before,
            tier_after=tier_after,
            actor=actor,
            cause=cause,
        )
        self.append(mutation)
        return mutation

    def record_context_at_turn(self, turn: int, page_ids: list[str]) -> None:
        """Notes the pages of the prompt at a turn."""
        self._contexts[turn] = ContextSnapshot(turn=turn, page_ids=list(page_ids))

    def get_context_at_turn(self, turn: int) -> list[str]:
        """The pages of the prompt at a turn; none where nothing was noted."""
        context = self._contexts.get(turn)
        return [] if context is None else list(context.page_ids)

    def get_history(self, page_id: str) -> list[PageMutation]:
        """The mutations of a page."""
        return list(self._by_page.get(page_id, ()))

    def get_mutations_by_actor(self, actor: Actor) -> list[PageMutation]:
        """The mutations of an author."""
        return [mutation for mutation in self._mutations if mutation.actor == actor]

    def get_mutations_by_type(self, mutation_type: MutationType) -> list[PageMutation]:
        """The mutations of a kind."""
        return [mutation for mutation in self._mutations if mutation.mutation_type == mutation_type]

    def get_mutations_in_turn(self, turn: int) -> list[PageMutation]:
        """The mutations of a turn."""
        return list(self._by_turn.get(turn, ()))

    def get_pages_created_in_turn(self, turn: int) -> list[str]:
        """The pages made in a turn."""
        return self._pages(turn, MutationType.CREATE)

    def get_pages_faulted_in_turn(self, turn: int) -> list[str]:
        """The pages that came in a turn because they were asked for."""
        return self._pages(turn, MutationType.FAULT_IN)

    def get_pages_evicted_in_turn(self, turn: int) -> list[str]:
        """The pages that went in a turn."""
        return self._pages(turn, MutationType.EVICT)

    def get_all_mutations(self) -> list[PageMutation]:
        """Everything that happened."""
        return list(self._mutations)

    def mutation_count(self) -> int:
        """How much happened."""
        return len(self._mutations)

    def page_count(self) -> int:
        """To how many pages something happened."""
        return len(self._by_page)

    def clear(self) -> None:
        """Forgets everything here; a session of a store forgets nothing."""
        for part in (self._mutations, self._by_page, self._by_turn, self._contexts):
            part.clear()

    def get_summary(self) -> MutationLogSummary:
        """Counts of what happened."""
        counts = Counter(mutation.mutation_type for mutation in self._mutations)
        return MutationLogSummary(
            total_mutations=self.mutation_count(),
            unique_pages=self.page_count(),
            context_snapshots=len(self._contexts),
            creates=counts[MutationType.CREATE],
            faults=counts[MutationType.FAULT_IN],
            evictions=counts[MutationType.EVICT],
            compressions=counts[MutationType.COMPRESS],
            pins=counts[MutationType.PIN],
            unpins=counts[MutationType.UNPIN],
        )

    def _pages(self, turn: int, kind: MutationType) -> list[str]:
        return [mutation.page_id for mutation in self._by_turn.get(turn, ()) if mutation.mutation_type == kind]
