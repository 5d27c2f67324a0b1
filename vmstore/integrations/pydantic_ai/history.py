"""The message history of a Pydantic AI conversation in a session of a store."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse

from vmstore.core.page import Role
from vmstore.integrations.items import ItemLog, as_json
from vmstore.store.session import Session
from vmstore.store.store import Store

PREFIX = "pydantic-ai/"
ROLES = {"user-prompt": Role.USER, "system-prompt": Role.SYSTEM, "tool-return": Role.TOOL, "retry-prompt": Role.TOOL}


class VmstoreHistory:
    """The messages of a conversation in the session `pydantic-ai/NAME` of a store; any thread may use it.

    An agent is run with `message_history=history.messages()`, and `history.save(result)` adds what was new. The
    methods with an `a` before their name are awaited.
    """

    def __init__(self, store: Store, name: str, *, prefix: str = PREFIX) -> None:
        self._items = ItemLog(store, f"{prefix}{name}", "pydantic-ai")

    @property
    def session(self) -> Session:
        """The store's session that holds the messages."""
        return self._items.session

    def messages(self, limit: int | None = None) -> list[ModelMessage]:
        """The messages, oldest first; of them the last `limit` where one is given."""
        return ModelMessagesTypeAdapter.validate_python(self._items.items(limit))

    def add(self, messages: Sequence[ModelMessage]) -> None:
        """Adds messages as one commit, durable when this returns."""
        items: list[Any] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        self._items.add([(_role(message), as_json(item)) for message, item in zip(messages, items, strict=True)])

    def save(self, result: Any) -> None:
        """Adds the messages that a run made: those of `result.new_messages()`."""
        self.add(result.new_messages())

    def pop(self) -> ModelMessage | None:
        """Takes the last message away; it, or None where there is none."""
        item = self._items.pop()
        return None if item is None else ModelMessagesTypeAdapter.validate_python([item])[0]

    def clear(self) -> None:
        """Takes all messages away."""
        self._items.clear()

    async def amessages(self, limit: int | None = None) -> list[ModelMessage]:
        """See `messages`."""
        return await to_thread(self.messages, limit)

    async def asave(self, result: Any) -> None:
        """See `save`."""
        await to_thread(self.save, result)


def _role(message: ModelMessage) -> Role:
    """The role of a message: the model's, or that of the first part of a request that is no system prompt."""
    if isinstance(message, ModelResponse):
        return Role.ASSISTANT
    kinds = [part.part_kind for part in message.parts if part.part_kind != "system-prompt"]
    return ROLES.get(kinds[0] if kinds else "system-prompt", Role.OTHER)
