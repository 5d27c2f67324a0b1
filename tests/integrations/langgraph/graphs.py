"""Graphs and checkpoints that the tests of the LangGraph door run."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt


def checkpoint(values: dict[str, Any], versions: dict[str, int] | None = None) -> Checkpoint:
    """A checkpoint with these values, newer than all before it."""
    made = empty_checkpoint()
    made["id"] = str(uuid6())
    made["channel_values"] = values
    made["channel_versions"] = dict(versions or dict.fromkeys(values, 1))
    return made


def thread(name: str = "t") -> dict[str, Any]:
    """The config of a thread."""
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


def put(saver: Any, config: dict[str, Any], values: dict[str, Any], **metadata: Any) -> Any:
    """Puts a checkpoint whose channels all changed; its config."""
    made = checkpoint(values)
    return saver.put(config, made, {"source": "loop", "step": 1, "parents": {}, **metadata}, made["channel_versions"])


def parrot(saver: Any, store: Any = None) -> Any:
    """A graph that repeats what it is told."""

    def say(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"You said: {state['messages'][-1].content}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("say", say)
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    return graph.compile(checkpointer=saver, store=store)


def asker(saver: Any) -> Any:
    """A graph that stops to ask a human."""

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"They answered: {interrupt('Which harbour?')}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=saver)


def words(*texts: str) -> dict[str, Any]:
    """The input of a graph: what a human says."""
    return {"messages": [HumanMessage(text) for text in texts]}
