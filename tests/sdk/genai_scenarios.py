"""Google's package, sync and async."""

from __future__ import annotations

from typing import Any

import pytest
from google import genai
from google.genai import types

from tests.sdk.openai_scenarios import Place
from tests.sdk.provider import Provider
from tests.sdk.scenarios import scenario

PICTURE = bytes(range(248, 256)) * 4  # whose base64 differs where it is URL-safe


def gemini(provider: Provider) -> Any:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=provider.url))


def look(n: int, word: str) -> str:
    """Looks."""
    return f"{n} {word}"


@scenario(gemini)
async def generate_content(client: Any) -> None:
    config = types.GenerateContentConfig(system_instruction="Be brief.", temperature=0.5)
    assert client.models.generate_content(model="m", contents="Where?", config=config).text == "In Japan."


@scenario(gemini)
async def generate_content_async(client: Any) -> None:
    assert (await client.aio.models.generate_content(model="m", contents="Where?")).text == "In Japan."


@scenario(gemini)
async def generate_content_stream(client: Any) -> None:
    stream = client.models.generate_content_stream(model="m", contents="Where?")
    assert "".join(chunk.text or "" for chunk in stream) == "In Japan."


@scenario(gemini)
async def generate_content_stream_async(client: Any) -> None:
    stream = await client.aio.models.generate_content_stream(model="m", contents="Where?")
    assert "".join([chunk.text or "" async for chunk in stream]) == "In Japan."


@scenario(gemini, statuses=("ok", "ok"))
async def chats(client: Any) -> None:
    chat = client.chats.create(model="m")
    assert chat.send_message("Where?").text == "In Japan."
    assert chat.send_message("And Nara?").text == "In Japan."


@scenario(gemini, statuses=("ok", "ok"))
async def functions_called(client: Any) -> None:
    config = types.GenerateContentConfig(tools=[look])
    assert client.models.generate_content(model="m", contents="Where?", config=config).text == "In Japan."


@scenario(gemini)
async def generated_class(client: Any) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Place)
    assert client.models.generate_content(model="m", contents="Where?", config=config).parsed.word == "Kyoto"


@scenario(gemini)
async def pictures(client: Any) -> None:
    contents = [types.Part.from_bytes(data=PICTURE, mime_type="image/png"), "What is it?"]
    client.models.generate_content(model="m", contents=contents)


@scenario(gemini, statuses=("failed",))
async def content_refused(client: Any) -> None:
    with pytest.raises(genai.errors.ClientError):
        client.models.generate_content(model="down", contents="Where?")


@scenario(gemini)
async def embedded(client: Any) -> None:
    client.models.embed_content(model="m", contents="x")
    assert client.models.generate_content(model="m", contents="Where?").text == "In Japan."
