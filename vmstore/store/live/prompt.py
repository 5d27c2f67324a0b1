"""A packed prompt: its pages in order, ready to send in the shape a provider takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

from vmstore.live.pack import PackedRequest
from vmstore.live.prompt_pages import PromptPages
from vmstore.live.request import copied, made_of, request_of
from vmstore.vm.assembly.choice import LoweredPage, OmittedPage
from vmstore.vm.kernel.settings import KernelSettings
from vmstore.vm.kernel.state import State
from vmstore.vm.protocol.abi import MemoryABI, memory_abi
from vmstore.vm.protocol.context import context_text
from vmstore.vm.protocol.manifest import Policies, manifest
from vmstore.vm.protocol.messages import Messages
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.rules import Paging, Rules, developer_message
from vmstore.vm.protocol.select import Selection


class Prompt:
    """The prompt of one call: `tokens` of a `budget`, of all that is sent; `pages` by name, in order.

    Where a window is smaller than L0, `lowered` and `left` say of which pages it shows less, and
    nothing, and why.
    """

    def __init__(
        self,
        session: str,
        settings: KernelSettings,
        state: State,
        choice: Selection | None,
        look: Callable[[], AbstractContextManager[PromptPages]],
        sent: PackedRequest | None = None,
    ) -> None:
        self.session = session
        self.call = state.call
        pages = state.used if choice is None else choice.tokens
        self.tokens = pages if sent is None else sent.tokens
        self.budget = settings.l0_tokens_max
        self._settings = settings
        faults, tokens = state.left()
        self._policies = Policies(
            faults_allowed=faults > 0, max_faults_per_turn=faults, upgrade_budget_tokens=max(0, tokens)
        )
        self._look = look
        self._sent = sent

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
    def _here(self) -> list[PromptPage]:
        if self._sent is not None:
            return self._sent.leaves
        with self._look() as leaves:
            return leaves.here()

    @cached_property
    def request(self) -> dict[str, Any]:
        """The request to send, as it was logged: model, messages and tools in the session's shape.

        Of a prompt that was not packed, as it would be.
        """
        return request_of(self._settings, self._here) if self._sent is None else copied(self._sent.body)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The pages that are mapped or can be, as VM:MANIFEST_JSON lists them."""
        with self._look() as leaves:
            away, of = leaves.away()
            further = of - len(away)
        listed = manifest(self.session, self._here, away, self._policies)
        if further > 0:
            more = listed.setdefault("more", {"working_set": 0, "available_pages": 0})
            more["available_pages"] += further
        return listed

    @property
    def pages(self) -> list[str]:
        """The pages of the prompt by name, in order."""
        return [leaf.name for leaf in self._here]

    @property
    def lowered(self) -> tuple[LoweredPage, ...]:
        """The pages that are shown at a higher level than L0 has them at."""
        with self._look() as leaves:
            return leaves.lowered()

    @property
    def left(self) -> tuple[OmittedPage, ...]:
        """The pages of L0 that are not shown, why, and what stands for them."""
        with self._look() as leaves:
            return leaves.left()

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

    def messages(self, shape: str | None = None) -> Messages:
        """The pages as messages, with the memory's tools: in the session's shape, as sent, or in another."""
        own = self._settings.shape or "chat"
        if self._sent is not None and shape in (None, own):
            made = self._sent.made
            return Messages(copied(made.request), copied(made.tools), made.left)
        return made_of(self._settings, self._here, shape or own)

    @property
    def abi(self) -> MemoryABI:
        """The contract between memory and model: each page with the allowed operations, and the room left."""
        return memory_abi(
            self._here,
            max_context_tokens=self._window,
            tools=self.messages().tools,
            faults_allowed=self._policies.faults_allowed,
            upgrade_budget_tokens=self._policies.upgrade_budget_tokens,
        )
