"""A session of OpenAI's Agents SDK: its `Session` protocol, which asks for no class of theirs."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from vmstore.core.page import Role
from vmstore.integrations.items import ItemLog, as_json
from vmstore.store.session import Session
from vmstore.store.store import Store

PREFIX = "agents/"
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "developer": Role.SYSTEM}
OUTPUT = "_output"  # the types of items that a tool answered end so


class VmstoreSession:
    """The items of a conversation in the session `agents/SESSION_ID` of a store, as they were given.

    `session_settings` may hold a limit, as those of the SDK do. What is popped or cleared is gone from every answer
    but those about the past; `store.trust.erase(session="agents/…")` destroys it.
    """

    def __init__(self, session_id: str, store: Store, *, session_settings: Any = None, prefix: str = PREFIX) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._items = ItemLog(store, f"{prefix}{session_id}", "agents")

    @property
    def session(self) -> Session:
        """The store's session that holds the items."""
        return self._items.session

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, oldest first; of them the last `limit`, by default that of the settings."""
        asked = limit if limit is not None else getattr(self.session_settings, "limit", None)
        return await to_thread(self._items.items, asked)

    async def add_items(self, items: list[Any]) -> None:
        """Adds items as one commit, durable when this returns."""
        await to_thread(self._items.add, [(_role(item), as_json(item)) for item in items])

    async def pop_item(self) -> Any:
        """Takes the last item away; it, or None where there is none."""
        return await to_thread(self._items.pop)

    async def clear_session(self) -> None:
        """Takes all items away."""
        await to_thread(self._items.clear)


def _role(item: Any) -> Role:
    """The role of an item: the one it names, else the model's, but for what a tool answered."""
    if isinstance(item, dict) and item.get("role") in ROLES:
        return ROLES[item["role"]]
    is_output = isinstance(item, dict) and str(item.get("type", "")).endswith(OUTPUT)
    return Role.TOOL if is_output else Role.ASSISTANT
