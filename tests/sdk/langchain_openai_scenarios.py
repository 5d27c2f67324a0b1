"""LangChain's models of OpenAI, given a wrapped client."""

from __future__ import annotations

from typing import Any

from langchain_openai import ChatOpenAI

from tests.sdk.openai_scenarios import Place, asynchronous, sync
from tests.sdk.provider import Provider
from tests.sdk.scenarios import scenario


def model(wrap: Any, provider: Provider, **fields: Any) -> Any:
    client, other = wrap(sync(provider)), wrap(asynchronous(provider))
    clients = {"root_client": client, "client": client.chat.completions}
    clients |= {"root_async_client": other, "async_client": other.chat.completions}
    return ChatOpenAI(model="m", api_key="none", base_url=f"{provider.url}/v1", **clients, **fields)


@scenario(own=True)
async def chat_openai_invoke(wrap: Any, provider: Provider) -> None:
    assert model(wrap, provider).invoke("Where is Kyoto?").content == "In Japan."


@scenario(own=True)
async def chat_openai_ainvoke(wrap: Any, provider: Provider) -> None:
    assert (await model(wrap, provider).ainvoke("Where is Kyoto?")).content == "In Japan."


@scenario(own=True)
async def chat_openai_stream(wrap: Any, provider: Provider) -> None:
    assert "".join(chunk.content for chunk in model(wrap, provider).stream("Where is Kyoto?")) == "In Japan."


@scenario(own=True)
async def chat_openai_astream(wrap: Any, provider: Provider) -> None:
    contents = [chunk.content async for chunk in model(wrap, provider).astream("Where is Kyoto?")]
    assert "".join(contents) == "In Japan."


@scenario(own=True)
async def chat_openai_tools(wrap: Any, provider: Provider) -> None:
    assert model(wrap, provider).bind_tools([Place]).invoke("Where is Kyoto?").tool_calls[0]["name"] == "Place"


@scenario(own=True)
async def chat_openai_structured(wrap: Any, provider: Provider) -> None:
    assert model(wrap, provider).with_structured_output(Place).invoke("Where is Kyoto?").word == "Kyoto"


@scenario(own=True)
async def chat_openai_responses(wrap: Any, provider: Provider) -> None:
    assert model(wrap, provider, use_responses_api=True).invoke("Where is Kyoto?").text == "In Japan."


@scenario(own=True)
async def chat_openai_responses_astream(wrap: Any, provider: Provider) -> None:
    stream = model(wrap, provider, use_responses_api=True).astream("Where is Kyoto?")
    assert "".join([chunk.text async for chunk in stream]) == "In Japan."


@scenario(own=True, statuses=("ok", "ok"))
async def chat_openai_over_wrapped_http(wrap: Any, provider: Provider) -> None:
    import httpx

    fields = {"http_client": wrap(httpx.Client()), "http_async_client": wrap(httpx.AsyncClient())}
    llm = ChatOpenAI(model="m", api_key="none", base_url=f"{provider.url}/v1", **fields)
    assert llm.invoke("Where is Kyoto?").content == "In Japan."
    assert (await llm.ainvoke("Where is Kyoto?")).content == "In Japan."
