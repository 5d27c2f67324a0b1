"""The ways to ask through Anthropic's own package, sync and async."""

from __future__ import annotations

from typing import Any

import anthropic
import pydantic
import pytest

from tests.sdk.provider import Provider
from tests.sdk.scenarios import each, resolved, scenario, within

HELLO = {"role": "user", "content": "Where is Kyoto?"}
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
PICTURE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


class Place(pydantic.BaseModel):
    """What a model is to answer with."""

    n: int
    word: str


def claude(provider: Provider) -> Any:
    return anthropic.Anthropic(base_url=provider.url, api_key="none", timeout=10)


def async_claude(provider: Provider) -> Any:
    return anthropic.AsyncAnthropic(base_url=provider.url, api_key="none", timeout=10)


def vertex(provider: Provider) -> Any:
    fields = {"region": "eu", "project_id": "p", "access_token": "none"}
    return anthropic.AnthropicVertex(base_url=f"{provider.url}/v1", **fields)


BOTH = (claude, async_claude)


def ask(client: Any, **request: Any) -> Any:
    return client.messages.create(**{"model": "m", "max_tokens": 99, "messages": [HELLO], **request})


def text_of(message: Any) -> str:
    return str(message.content[0].text)


@scenario(*BOTH)
async def messages_create(client: Any) -> None:
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert text_of(await resolved(ask(client, system=system, metadata={"user_id": "u"}))) == "In Japan."


@scenario(*BOTH)
async def messages_stream(client: Any) -> None:
    stream = await resolved(ask(client, stream=True))
    assert isinstance(stream, (anthropic.Stream, anthropic.AsyncStream))
    assert [event.type async for event in each(stream)][-1] == "message_stop"


@scenario(*BOTH)
async def messages_stream_events(client: Any) -> None:
    async with within(client.messages.stream(model="m", max_tokens=9, messages=[HELLO])) as stream:
        assert "text" in {event.type async for event in each(stream)}


@scenario(*BOTH)
async def messages_stream_text(client: Any) -> None:
    async with within(client.messages.stream(model="m", max_tokens=9, messages=[HELLO])) as stream:
        assert "".join([text async for text in each(stream.text_stream)]) == "In Japan."


@scenario(*BOTH)
async def messages_stream_final(client: Any) -> None:
    async with within(client.messages.stream(model="m", max_tokens=9, messages=[HELLO])) as stream:
        assert text_of(await resolved(stream.get_final_message())) == "In Japan."


@scenario(*BOTH)
async def messages_stream_with_a_class(client: Any) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": [HELLO], "output_format": Place}
    async with within(client.messages.stream(**asked)) as stream:
        await resolved(stream.get_final_message())


@scenario(*BOTH)
async def messages_parse(client: Any) -> None:
    answer = await resolved(client.messages.parse(model="m", max_tokens=9, messages=[HELLO], output_format=Place))
    assert answer.parsed_output == Place(n=1, word="Kyoto")


@scenario(*BOTH, statuses=("ok", "ok"))
async def messages_parsed_sent_back(client: Any) -> None:
    answer = await resolved(client.messages.parse(model="m", max_tokens=9, messages=[HELLO], output_format=Place))
    await resolved(ask(client, messages=[HELLO, {"role": "assistant", "content": answer.content}, HELLO]))


@scenario(*BOTH)
async def messages_raw_response(client: Any) -> None:
    raw = await resolved(client.messages.with_raw_response.create(model="m", max_tokens=9, messages=[HELLO]))
    assert text_of(await resolved(raw.parse())) == "In Japan."


@scenario(*BOTH)
async def messages_streaming_response(client: Any) -> None:
    block = client.messages.with_streaming_response.create(model="m", max_tokens=9, messages=[HELLO])
    async with within(block) as response:
        assert text_of(await resolved(response.parse())) == "In Japan."


@scenario(*BOTH, statuses=("ok", "ok"))
async def messages_tools_sent_back_and_changed(client: Any) -> None:
    messages: list[Any] = [HELLO]
    answer = await resolved(ask(client, messages=messages, tools=[TOOL]))
    block = answer.content[0]
    result = {"type": "tool_result", "tool_use_id": block.id, "content": "In Japan."}
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    await resolved(ask(client, messages=messages, tools=[TOOL]))
    block.input.pop("n")
    block.input["changed"] = "after the call"


@scenario(*BOTH)
async def messages_thinking_and_pictures(client: Any) -> None:
    content = [{"type": "image", "source": PICTURE}, {"type": "text", "text": "What is it?"}]
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    before = [HELLO, {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes?"}]}]
    messages = [*before, {"role": "user", "content": content}]
    await resolved(ask(client, max_tokens=2000, messages=messages, thinking={"type": "enabled", "budget_tokens": 1024}))


@scenario(*BOTH)
async def beta_create(client: Any) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": [HELLO], "betas": ["files-api-2025-04-14"]}
    assert text_of(await resolved(client.beta.messages.create(**asked))) == "In Japan."


@scenario(*BOTH)
async def beta_parse(client: Any) -> None:
    asked = {"model": "m", "max_tokens": 9, "messages": [HELLO], "output_format": Place}
    assert (await resolved(client.beta.messages.parse(**asked))).parsed_output == Place(n=1, word="Kyoto")


@scenario(*BOTH)
async def beta_stream(client: Any) -> None:
    async with within(client.beta.messages.stream(model="m", max_tokens=9, messages=[HELLO])) as stream:
        assert text_of(await resolved(stream.get_final_message())) == "In Japan."


@scenario(claude, statuses=("ok", "ok"))
async def tool_runner(client: Any) -> None:
    @anthropic.beta_tool
    def look(n: int, word: str) -> str:
        """Looks."""
        return f"{n} {word}"

    runner = client.beta.messages.tool_runner(model="m", max_tokens=9, messages=[HELLO], tools=[look])
    assert text_of(runner.until_done()) == "In Japan."


@scenario(async_claude, statuses=("ok", "ok"))
async def async_tool_runner(client: Any) -> None:
    @anthropic.beta_async_tool
    async def look(n: int, word: str) -> str:
        """Looks."""
        return f"{n} {word}"

    runner = client.beta.messages.tool_runner(model="m", max_tokens=9, messages=[HELLO], tools=[look])
    assert text_of(await runner.until_done()) == "In Japan."


@scenario(*BOTH, statuses=("failed", "ok"))
async def messages_tried_again(client: Any) -> None:
    await resolved(ask(client, model="busy"))


@scenario(*BOTH, statuses=("failed",))
async def messages_refused(client: Any) -> None:
    with pytest.raises(anthropic.BadRequestError):
        await resolved(ask(client, model="down"))


@scenario(*BOTH, statuses=("failed",))
async def messages_answered_with_a_page(client: Any) -> None:
    await resolved(ask(client, model="html"))


@scenario(*BOTH)
async def messages_compressed(client: Any) -> None:
    async with within(client.messages.stream(model="gzip", max_tokens=9, messages=[HELLO])) as stream:
        assert text_of(await resolved(stream.get_final_message())) == "In Japan."


@scenario(*BOTH, statuses=("aborted",))
async def messages_stream_closed(client: Any) -> None:
    async with within(client.messages.stream(model="m", max_tokens=9, messages=[HELLO])) as stream:
        async for _ in each(stream):
            break


@scenario(*BOTH, statuses=("failed",))
async def messages_stream_broken(client: Any) -> None:
    with pytest.raises(Exception, match=r"incomplete chunked read|Connection error"):
        async for _ in each(await resolved(ask(client, model="breaks", stream=True))):
            pass


@scenario(*BOTH)
async def counted_tokens(client: Any) -> None:
    assert (await resolved(client.messages.count_tokens(model="m", messages=[HELLO]))).input_tokens == 7
    await resolved(ask(client))
    assert not client.vmstore.problems


@scenario(vertex, statuses=("ok", "ok"))
async def on_vertex(client: Any) -> None:
    assert text_of(ask(client)) == "In Japan."
    assert [event.type for event in ask(client, stream=True)][-1] == "message_stop"
