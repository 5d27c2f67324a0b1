"""OpenAI's package over aiohttp in the place of its own transport."""

from __future__ import annotations

from typing import Any

import openai

from tests.sdk.openai_scenarios import chat
from tests.sdk.provider import Provider
from tests.sdk.scenarios import scenario


def over_aiohttp(provider: Provider) -> Any:
    return openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="k", http_client=openai.DefaultAioHttpClient())


@scenario(over_aiohttp, statuses=("ok", "ok"))
async def another_transport(client: Any) -> None:
    await chat(client)
    assert len([chunk async for chunk in await chat(client, stream=True)]) == 5
