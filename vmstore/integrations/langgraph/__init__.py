"""A store as LangGraph's checkpointer and as its long-term memory."""

from vmstore.integrations.langgraph.memory import VmstoreMemory
from vmstore.integrations.langgraph.saver import VmstoreSaver

__all__ = ["VmstoreMemory", "VmstoreSaver"]
