"""What is known across the sessions of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.core.aliases import Aliased
from vmstore.namespace.namespace import Namespace
from vmstore.store.recall.parts.store_facts import StoreFacts


class StoreMemory(Aliased):
    """What is known across sessions: `store.memory`."""

    _aliases: ClassVar[Mapping[str, str]] = {"query_facts": "facts.query"}

    def __init__(self, namespace: Namespace) -> None:
        self._ns = namespace

    @property
    def facts(self) -> StoreFacts:
        """Facts of a user, or of all sessions."""
        return StoreFacts(self._ns)
