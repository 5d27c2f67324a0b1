"""What a pack gave: the prompt in order, ready to send in the shape a provider takes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

from vmstore.core.page import Modality
from vmstore.core.tokens import estimate
from vmstore.live.leaves import Leaves
from vmstore.vm.protocol.context import context_text
from vmstore.vm.protocol.leaf import Leaf
from vmstore.vm.protocol.manifest import Policies, manifest
from vmstore.vm.protocol.messages import Messages, messages
from vmstore.vm.protocol.rules import Paging, Rules, developer_message
from vmstore.vm.settings import Settings
from vmstore.vm.state import State


class Packed:
    """The prompt of one call: `tokens` of a `budget`, both estimated; `pages` by name, in order.

    What it says is written when it is asked for.
    """

    def __init__(
        self,
        session: str,
        call: int,
        settings: Settings,
        state: State,
        leaves: Leaves,
        lock: AbstractContextManager[None],
    ) -> None:
        self.session = session
        self.call = call
        self.tokens = state.used
        self.budget = settings.l0_tokens_max
        self._settings = settings
        faults, tokens = state.left()
        self._policies = Policies(
            faults_allowed=faults > 0, max_faults_per_turn=faults, upgrade_budget_tokens=max(0, tokens)
        )
        self._leaves = leaves
        self._lock = lock

    @property
    def _rules(self) -> Rules:
        return Rules[self._settings.rules.upper()]

    @property
    def _paging(self) -> Paging:
        return Paging[self._settings.paging.upper()]

    @cached_property
    def _here(self) -> list[Leaf]:
        with self._lock:
            return self._leaves.here()

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
        with self._lock:
            seen = self._leaves.see()
        return [seen.names[held.page] for held in seen.here]

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
    def tokens_beside(self) -> int:
        """The estimated tokens of rules and manifest, which the budget's reserve is for."""
        bare = developer_message(
            rules=self._rules, paging=self._paging, policies=self._policies, manifest=self.manifest, leaves=()
        )
        return estimate(bare.encode("utf-8", "replace"), Modality.TEXT)
