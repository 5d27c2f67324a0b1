"""What a pack gave: the prompt in order, ready to send in the shape a provider takes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

from vmstore.core.page import Modality
from vmstore.core.tokens import estimate
from vmstore.live.leaves import Leaves, Seen
from vmstore.vm.protocol.abi import MemoryABI, memory_abi
from vmstore.vm.protocol.context import context_text
from vmstore.vm.protocol.leaf import Leaf
from vmstore.vm.protocol.manifest import Policies, manifest
from vmstore.vm.protocol.messages import Messages, messages
from vmstore.vm.protocol.packs import PackCache, PackKey, working_set_hash
from vmstore.vm.protocol.rules import Paging, Rules, developer_message
from vmstore.vm.protocol.select import Left, Lowered, Selection
from vmstore.vm.settings import Settings
from vmstore.vm.state import State


class Packed:
    """The prompt of one call: `tokens` of a `budget`, both estimated; `pages` by name, in order.

    Where a window is smaller than L0, `lowered` and `left` say of which pages it shows less, and
    nothing, and why. What it says is written when it is asked for.
    """

    def __init__(
        self,
        session: str,
        settings: Settings,
        state: State,
        choice: Selection | None,
        leaves: Leaves,
        lock: AbstractContextManager[None],
        cache: PackCache[list[Leaf]],
    ) -> None:
        self.session = session
        self.call = state.call
        self.tokens = state.used if choice is None else choice.tokens
        self.budget = settings.l0_tokens_max
        self._settings = settings
        faults, tokens = state.left()
        self._policies = Policies(
            faults_allowed=faults > 0, max_faults_per_turn=faults, upgrade_budget_tokens=max(0, tokens)
        )
        self._leaves = leaves
        self._lock = lock
        self._cache = cache

    def _seen(self) -> Seen:
        with self._lock:
            return self._leaves.see()

    @property
    def _rules(self) -> Rules:
        return Rules[self._settings.rules.upper()]

    @property
    def _paging(self) -> Paging:
        return Paging[self._settings.paging.upper()]

    @property
    def _window(self) -> int:
        return self._settings.window_tokens_max or self.budget

    @cached_property
    def _here(self) -> list[Leaf]:
        with self._lock:
            known = working_set_hash(self._leaves.bare())
            key = PackKey(self.session, self._settings.model or "", self._window, known)
            made = self._cache.get(key)
            if made is None:
                made = self._leaves.here()
                self._cache.put(key, made)
            return made

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What is mapped and what could be, as VM:MANIFEST_JSON has it."""
        with self._lock:
            away = self._leaves.away()
            further = self._leaves.see().away_in_all - len(away)
        told = manifest(self.session, self._here, away, self._policies)
        if further > 0:
            more = told.setdefault("more", {"working_set": 0, "available_pages": 0})
            more["available_pages"] += further
        return told

    @property
    def pages(self) -> list[str]:
        """The pages of the prompt by name, in order."""
        seen = self._seen()
        return [seen.names[held.page] for held in seen.here]

    @property
    def lowered(self) -> tuple[Lowered, ...]:
        """The pages that are shown at a higher level than L0 has them at."""
        return self._seen().lowered

    @property
    def left(self) -> tuple[Left, ...]:
        """The pages of L0 that are not shown, why, and what stands for them."""
        return self._seen().left

    @property
    def text(self) -> str:
        """The pages as VM:CONTEXT text."""
        return context_text(self._here)

    @property
    def developer_message(self) -> str:
        """Rules, manifest and all pages as one message, for a request without any other."""
        return developer_message(
            rules=self._rules,
            paging=self._paging,
            policies=self._policies,
            manifest=self.manifest,
            leaves=self._here,
        )

    def messages(self, shape: str = "chat") -> Messages:
        """The pages as messages in the shape `chat`, `anthropic` or `gemini`, with the memory's tools."""
        return messages(
            self._here,
            shape=shape,
            rules=self._rules,
            paging=self._paging,
            policies=self._policies,
            manifest=self.manifest,
        )

    @property
    def abi(self) -> MemoryABI:
        """What memory and model agree on: each page with what may be done with it, and the room that is left."""
        return memory_abi(
            self._here,
            max_context_tokens=self._window,
            tools=self.messages().tools,
            faults_allowed=self._policies.faults_allowed,
            upgrade_budget_tokens=self._policies.upgrade_budget_tokens,
        )

    @property
    def tokens_beside(self) -> int:
        """The estimated tokens of rules and manifest, which the budget's reserve is for."""
        bare = developer_message(
            rules=self._rules, paging=self._paging, policies=self._policies, manifest=self.manifest, leaves=()
        )
        return estimate(bare.encode("utf-8", "replace"), Modality.TEXT)
