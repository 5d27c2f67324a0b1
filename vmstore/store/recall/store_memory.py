"""What is known across the sessions of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.core.aliases import Aliased
from vmstore.namespace.namespace import Namespace
from vmstore.store.reads.search import Moments, everywhere
from vmstore.store.recall.cold import written_by
from vmstore.store.recall.parts.store_facts import StoreFacts
from vmstore.store.recall.quotes import quotes
from vmstore.store.recall.recall import found, recalled, taken_back, without
from vmstore.store.recall.results import FoundQuotes, RecallAnswer

TOKENS = 1_000


class StoreMemory(Aliased):
    """What is known across sessions: `store.memory`."""

    _aliases: ClassVar[Mapping[str, str]] = {"query_facts": "facts.query"}

    def __init__(self, namespace: Namespace) -> None:
        self._ns = namespace

    @property
    def facts(self) -> StoreFacts:
        """Facts of a user, or of all sessions."""
        return StoreFacts(self._ns)

    def recall(self, query: str, *, user: str | None = None, tokens: int = TOKENS) -> RecallAnswer:
        """What the sessions of a user, or all, hold of a query, best first, in at most so many tokens."""
        moments, untold = self._moments(user), taken_back(self._ns)
        return recalled(self._ns, moments, without(found(self._ns, moments, query), untold), tokens, untold=untold)

    def find_quote(self, text: str, *, user: str | None = None) -> FoundQuotes:
        """Where something was said in these words in the sessions of a user, or in all: twenty at most, exact first."""
        moments = self._moments(user)
        return quotes(self._ns, moments, without(found(self._ns, moments, text), taken_back(self._ns)), text)

    def _moments(self, user: str | None) -> Moments:
        with self._ns.asking():
            return everywhere(self._ns) if user is None else written_by(self._ns, user)
