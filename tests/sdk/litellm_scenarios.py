"""litellm, given a wrapped client."""

from __future__ import annotations

import os
from typing import Any

import httpx

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network for prices

import litellm
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler

from tests.sdk.openai_scenarios import BOTH, HELLO, asynchronous, sync
from tests.sdk.provider import Provider
from tests.sdk.scenarios import resolved, scenario

litellm.suppress_debug_info = True


def ask(client: Any, **request: Any) -> Any:
    asked = {"model": "openai/m", "messages": [HELLO], "client": client, **request}
    return litellm.acompletion(**asked) if "Async" in type(client).__name__ else litellm.completion(**asked)


@scenario(*BOTH)
async def litellm_completion(client: Any) -> None:
    assert (await resolved(ask(client))).choices[0].message.content == "In Japan."


@scenario(asynchronous)
async def litellm_astream(client: Any) -> None:
    stream = await ask(client, stream=True)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "In Japan."


@scenario(sync)
async def litellm_stream(client: Any) -> None:
    assert "".join(chunk.choices[0].delta.content or "" for chunk in ask(client, stream=True)) == "In Japan."


@scenario(sync, statuses=("ok", "ok"))
async def litellm_tools(client: Any) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
    messages: list[Any] = [HELLO]
    message = ask(client, messages=messages, tools=tools).choices[0].message
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Japan"}]
    ask(client, messages=messages, tools=tools)


@scenario(own=True)
def litellm_anthropic(wrap: Any, provider: Provider) -> None:
    handler = HTTPHandler(client=wrap(httpx.Client()))
    fields = {"api_base": f"{provider.url}/v1/messages", "api_key": "none", "client": handler}
    litellm.completion(model="anthropic/claude-3-haiku-20240307", messages=[HELLO], **fields)


@scenario(own=True)
async def litellm_anthropic_async(wrap: Any, provider: Provider) -> None:
    handler = AsyncHTTPHandler()
    handler.client = wrap(httpx.AsyncClient())
    fields = {"api_base": f"{provider.url}/v1/messages", "api_key": "none", "client": handler}
    await litellm.acompletion(model="anthropic/claude-3-haiku-20240307", messages=[HELLO], **fields)
