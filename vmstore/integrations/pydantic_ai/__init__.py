"""A store as the message history of Pydantic AI's agents."""

from vmstore.integrations.pydantic_ai.history import VmstoreHistory

__all__ = ["VmstoreHistory"]
