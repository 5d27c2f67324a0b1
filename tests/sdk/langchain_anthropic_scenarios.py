"""LangChain's models of Anthropic, given a wrapped client."""

from __future__ import annotations

from typing import Any

from langchain_anthropic import ChatAnthropic

from tests.sdk.anthropic_scenarios import Place
from tests.sdk.provider import Provider
from tests.sdk.scenarios import scenario


def model(wrap: Any, provider: Provider) -> Any:
    llm = ChatAnthropic(model="m", api_key="none", base_url=provider.url)
    llm.__dict__["_client"] = wrap(llm._client)
    llm.__dict__["_async_client"] = wrap(llm._async_client)
    return llm


@scenario(own=True)
async def chat_anthropic_invoke(wrap: Any, provider: Provider) -> None:
    assert model(wrap, provider).invoke("Where is Kyoto?").content == "In Japan."


@scenario(own=True)
async def chat_anthropic_ainvoke(wrap: Any, provider: Provider) -> None:
    assert (await model(wrap, provider).ainvoke("Where is Kyoto?")).content == "In Japan."


@scenario(own=True)
async def chat_anthropic_stream(wrap: Any, provider: Provider) -> None:
    assert "".join(chunk.text for chunk in model(wrap, provider).stream("Where is Kyoto?")) == "In Japan."


@scenario(own=True)
async def chat_anthropic_astream(wrap: Any, provider: Provider) -> None:
    texts = [chunk.text async for chunk in model(wrap, provider).astream("Where is Kyoto?")]
    assert "".join(texts) == "In Japan."


@scenario(own=True)
async def chat_anthropic_tools(wrap: Any, provider: Provider) -> None:
    assert model(wrap, provider).bind_tools([Place]).invoke("Where is Kyoto?").tool_calls[0]["name"] == "Place"


@scenario(own=True)
async def chat_anthropic_structured(wrap: Any, provider: Provider) -> None:
    assert model(wrap, provider).with_structured_output(Place).invoke("Where is Kyoto?").word == "Kyoto"
