"""What a pack gave: the prompt in order, ready to send in the shape a provider takes."""

from __future__ import annotations

from vmstore.core.page import Modality
from vmstore.core.tokens import estimate
from vmstore.live.leaves import Leaves
from vmstore.vm.protocol.context import context_text
from vmstore.vm.protocol.manifest import Policies, manifest
from vmstore.vm.protocol.messages import Messages, messages
from vmstore.vm.protocol.rules import Paging, Rules, developer_message
from vmstore.vm.settings import Settings


class Packed:
    """The prompt of one call: `tokens` of a `budget`, both estimated; `pages` by name, in order."""

    def __init__(self, session: str, call: int, settings: Settings, used: int, left: tuple[int, int], leaves: Leaves):
        self.session = session
        self.call = call
        self.tokens = used
        self.budget = settings.l0_tokens_max
        self._rules = Rules[settings.rules.upper()]
        self._paging = Paging[settings.paging.upper()]
        self._here = leaves.here()
        available, count = leaves.available()
        self._policies = Policies(
            faults_allowed=left[0] > 0, max_faults_per_turn=left[0], upgrade_budget_tokens=max(0, left[1])
        )
        self.manifest = manifest(session, self._here, available, self._policies)
        if count > len(available):
            more = self.manifest.setdefault("more", {"working_set": 0, "available_pages": 0})
            more["available_pages"] += count - len(available)

    @property
    def pages(self) -> list[str]:
        """The pages of the prompt by name, in order."""
        return [leaf.name for leaf in self._here]

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
