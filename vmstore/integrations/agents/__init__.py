"""A store as the sessions of OpenAI's Agents SDK."""

from vmstore.integrations.agents.session import VmstoreSession

__all__ = ["VmstoreSession"]
