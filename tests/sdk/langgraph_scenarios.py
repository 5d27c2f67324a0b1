"""LangGraph's graphs, whose nodes ask LangChain's models of OpenAI and Anthropic, given wrapped clients."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, MessagesState, StateGraph

from tests.sdk import langchain_anthropic_scenarios as claude
from tests.sdk import langchain_openai_scenarios as gpt
from tests.sdk.provider import Provider
from tests.sdk.scenarios import scenario


def graph(model: Any) -> Any:
    """A graph of one node, which asks a model and goes on with what it says."""

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    made = StateGraph(MessagesState)
    made.add_node("ask", ask)
    made.add_edge(START, "ask")
    made.add_edge("ask", END)
    return made.compile()


@scenario(own=True)
async def graph_openai_invoke(wrap: Any, provider: Provider) -> None:
    record = graph(gpt.model(wrap, provider)).invoke({"messages": [("user", "Where is Kyoto?")]})
    assert record["messages"][-1].content == "In Japan."


@scenario(own=True)
async def graph_openai_streamed(wrap: Any, provider: Provider) -> None:
    parts = graph(gpt.model(wrap, provider)).stream({"messages": [("user", "Where is Kyoto?")]}, stream_mode="messages")
    assert "".join(part.content for part, _ in parts) == "In Japan."


@scenario(own=True, statuses=("ok", "ok"))
async def graph_openai_twice(wrap: Any, provider: Provider) -> None:
    made = graph(gpt.model(wrap, provider))
    record = made.invoke({"messages": [("user", "Where is Kyoto?")]})
    await made.ainvoke({"messages": [*record["messages"], ("user", "And Nara?")]})


@scenario(own=True)
async def graph_anthropic_invoke(wrap: Any, provider: Provider) -> None:
    record = graph(claude.model(wrap, provider)).invoke({"messages": [("user", "Where is Kyoto?")]})
    assert record["messages"][-1].text == "In Japan."
