"""The ways to ask through OpenAI's own package, sync and async."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import openai
import pydantic
import pytest

from tests.sdk.provider import PAGE, Provider
from tests.sdk.scenarios import each, resolved, scenario, within

HELLO = {"role": "user", "content": "Where is Kyoto? \u4eac\u90fd \U0001f5fe"}
TOOL = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
CHAT_TOOL = {"type": "function", "function": TOOL}
PICTURE = "data:image/png;base64,iVBORw0KGgo="


class Place(pydantic.BaseModel):
    """What a model is to answer with."""

    n: int
    word: str


def sync(provider: Provider) -> Any:
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="sk-none", timeout=10)


def asynchronous(provider: Provider) -> Any:
    return openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="sk-none", timeout=10)


def azure(provider: Provider) -> Any:
    return openai.AzureOpenAI(azure_endpoint=provider.url, api_key="none", api_version="2025-03-01-preview")


BOTH = (sync, asynchronous)


def chat(client: Any, **request: Any) -> Any:
    return client.chat.completions.create(**{"model": "m", "messages": [HELLO], **request})


@scenario(*BOTH, azure)
async def chat_create(client: Any) -> None:
    answer = await resolved(chat(client, temperature=0.5, seed=7, stop=None))
    assert answer.choices[0].message.content == "In Japan."


@scenario(*BOTH)
async def chat_stream(client: Any) -> None:
    stream = await resolved(chat(client, stream=True, stream_options={"include_usage": True}))
    assert isinstance(stream, (openai.Stream, openai.AsyncStream))
    assert "".join([c.choices[0].delta.content or "" async for c in each(stream) if c.choices]) == "In Japan."


@scenario(*BOTH)
async def chat_stream_in_a_block(client: Any) -> None:
    async with within(await resolved(chat(client, stream=True))) as stream:
        assert len([chunk async for chunk in each(stream)]) == 5


@scenario(*BOTH)
async def chat_stream_helper(client: Any) -> None:
    async with within(client.chat.completions.stream(model="m", messages=[HELLO])) as stream:
        kinds = {event.type async for event in each(stream)}
        assert "content.done" in kinds
        assert (await resolved(stream.get_final_completion())).choices[0].message.content == "In Japan."


@scenario(*BOTH)
async def chat_stream_helper_with_a_class(client: Any) -> None:
    asked = {"model": "m", "messages": [HELLO], "response_format": Place}
    async with within(client.chat.completions.stream(**asked)) as stream:
        final = await resolved(stream.get_final_completion())
    assert final.choices[0].message.parsed == Place(n=1, word="Kyoto")


@scenario(*BOTH)
async def chat_parse(client: Any) -> None:
    answer = await resolved(client.chat.completions.parse(model="m", messages=[HELLO], response_format=Place))
    assert answer.choices[0].message.parsed == Place(n=1, word="Kyoto")


@scenario(*BOTH, statuses=("ok", "ok"))
async def chat_parse_sent_back(client: Any) -> None:
    answer = await resolved(client.chat.completions.parse(model="m", messages=[HELLO], response_format=Place))
    again = [HELLO, answer.choices[0].message, {"role": "user", "content": "And Nara?"}]
    await resolved(client.chat.completions.parse(model="m", messages=again, response_format=Place))


@scenario(*BOTH)
async def chat_pydantic_tool(client: Any) -> None:
    tools = [openai.pydantic_function_tool(Place)]
    answer = await resolved(client.chat.completions.parse(model="m", messages=[HELLO], tools=tools))
    assert answer.choices[0].message.tool_calls[0].function.parsed_arguments == Place(n=1, word="Kyoto")


@scenario(*BOTH)
async def chat_raw_response(client: Any) -> None:
    raw = await resolved(client.chat.completions.with_raw_response.create(model="m", messages=[HELLO]))
    assert raw.headers["content-type"] == "application/json"
    assert (await resolved(raw.parse())).id == "chatcmpl-1"


@scenario(*BOTH)
async def chat_raw_response_streamed(client: Any) -> None:
    raw = await resolved(client.chat.completions.with_raw_response.create(model="m", messages=[HELLO], stream=True))
    assert len([chunk async for chunk in each(await resolved(raw.parse()))]) == 5


@scenario(*BOTH)
async def chat_streaming_response(client: Any) -> None:
    block = client.chat.completions.with_streaming_response.create(model="m", messages=[HELLO])
    async with within(block) as response:
        assert (await resolved(response.parse())).id == "chatcmpl-1"


@scenario(*BOTH)
async def chat_streaming_response_by_lines(client: Any) -> None:
    block = client.chat.completions.with_streaming_response.create(model="m", messages=[HELLO], stream=True)
    async with within(block) as response:
        assert any([line.startswith("data:") async for line in each(response.iter_lines())])


@scenario(*BOTH, statuses=("ok", "ok"))
async def chat_tools_sent_back_and_changed(client: Any) -> None:
    messages: list[Any] = [HELLO]
    message = (await resolved(chat(client, messages=messages, tools=[CHAT_TOOL]))).choices[0].message
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "In Japan."}]
    await resolved(chat(client, messages=messages, tools=[CHAT_TOOL]))
    message.tool_calls[0].function.arguments = "changed after the call"
    message.content = "changed"
    messages.clear()


@scenario(*BOTH)
async def chat_messages_given_once(client: Any) -> None:
    await resolved(chat(client, messages=iter([HELLO, {"role": "assistant", "content": "Yes?"}, HELLO])))


@scenario(*BOTH)
async def chat_extra_body(client: Any) -> None:
    extra = {"extra_body": {"top_k": 3, "nested": {"a": [1, 1.0, True, None]}}, "extra_headers": {"x-secret": "s"}}
    await resolved(chat(client, extra_query={"trace": "1"}, timeout=9, **extra))


@scenario(*BOTH)
async def chat_pictures_and_sound(client: Any) -> None:
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": PICTURE}},
        {"type": "input_audio", "input_audio": {"data": "AAEC", "format": "wav"}},
    ]
    await resolved(chat(client, messages=[{"role": "user", "content": parts}]))


@scenario(*BOTH, statuses=("failed", "ok"))
async def chat_tried_again(client: Any) -> None:
    assert (await resolved(chat(client, model="busy"))).id == "chatcmpl-1"


@scenario(*BOTH, statuses=("failed",))
async def chat_refused(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await resolved(chat(client, model="down"))
    assert caught.value.status_code == 400


@scenario(*BOTH, statuses=("failed",))
async def chat_stream_refused(client: Any) -> None:
    with pytest.raises(openai.BadRequestError):
        await resolved(chat(client, model="down", stream=True))


@scenario(*BOTH, statuses=("failed",))
async def chat_answered_with_a_page(client: Any) -> None:
    assert (await resolved(chat(client, model="html"))) == PAGE.decode()


@scenario(*BOTH)
async def chat_compressed(client: Any) -> None:
    assert (await resolved(chat(client, model="gzip"))).id == "chatcmpl-1"


@scenario(*BOTH)
async def chat_stream_compressed(client: Any) -> None:
    assert len([chunk async for chunk in each(await resolved(chat(client, model="gzip", stream=True)))]) == 5


@scenario(*BOTH, statuses=("aborted",))
async def chat_stream_closed(client: Any) -> None:
    stream = await resolved(chat(client, stream=True))
    async for _ in each(stream):
        break
    await resolved(stream.close())


@scenario(*BOTH, statuses=("aborted",))
async def chat_stream_forgotten(client: Any) -> None:
    stream = await resolved(chat(client, stream=True))
    async for _ in each(stream):
        break
    del stream
    await asyncio.sleep(0.01)
    gc.collect()  # the package's streams hold themselves
    await asyncio.sleep(0.05)  # an async one is closed by its loop


@scenario(*BOTH, statuses=("failed",))
async def chat_stream_broken(client: Any) -> None:
    with pytest.raises(Exception, match=r"incomplete chunked read|Connection error"):
        async for _ in each(await resolved(chat(client, model="breaks", stream=True))):
            pass


@scenario(*BOTH, statuses=("failed",))
async def chat_timed_out(client: Any) -> None:
    with pytest.raises(openai.APITimeoutError):
        await resolved(chat(client.with_options(max_retries=0), model="slow", timeout=0.2))


@scenario(asynchronous, statuses=("aborted",))
async def chat_cancelled(client: Any) -> None:
    task = asyncio.ensure_future(chat(client, model="slow"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@scenario(*BOTH)
async def chat_with_options(client: Any) -> None:
    other = client.with_options(timeout=3).copy(max_retries=1)
    assert other.vmstore is client.vmstore
    await resolved(chat(other))


@scenario(*BOTH, gaps=1)
async def legacy_completion(client: Any) -> None:
    await resolved(chat(client))
    await resolved(client.completions.create(model="m", prompt="Where is Kyoto?"))


@scenario(*BOTH, gaps=1)
async def compacted_response(client: Any) -> None:
    await resolved(chat(client))
    raw = client.responses.with_raw_response.compact(model="m", input="Where is Kyoto?")
    await resolved(raw)


@scenario(*BOTH, gaps=1)
async def websocket(client: Any) -> None:
    await resolved(chat(client))
    client.realtime.connect(model="m")


@scenario(*BOTH)
async def embeddings_and_models(client: Any) -> None:
    await resolved(client.embeddings.create(model="m", input="x", encoding_format="float"))
    assert [model async for model in each(client.models.list())] == []
    await resolved(chat(client))
    assert not client.vmstore.problems


@scenario(sync, statuses=("ok",) * 16)
async def threads(client: Any) -> None:
    def ask(n: int) -> None:
        for m in range(4):
            assert chat(client, messages=[{"role": "user", "content": f"{n}/{m}"}]).id == "chatcmpl-1"

    started = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


@scenario(asynchronous, statuses=("ok",) * 16)
async def tasks(client: Any) -> None:
    await asyncio.gather(*(chat(client, messages=[{"role": "user", "content": f"{n}"}]) for n in range(16)))


# ---- responses


def ask_responses(client: Any, **request: Any) -> Any:
    return client.responses.create(**{"model": "m", "input": "Where is Kyoto?", **request})


@scenario(*BOTH)
async def responses_create(client: Any) -> None:
    assert (await resolved(ask_responses(client, instructions="Be brief.", store=False))).output_text == "In Japan."


@scenario(*BOTH)
async def responses_stream(client: Any) -> None:
    stream = await resolved(ask_responses(client, stream=True))
    assert [event.type async for event in each(stream)][-1] == "response.completed"


@scenario(*BOTH)
async def responses_stream_helper(client: Any) -> None:
    block = client.responses.stream(model="m", input="Where is Kyoto?", text_format=Place)
    async with within(block) as stream:
        assert (await resolved(stream.get_final_response())).output_parsed == Place(n=1, word="Kyoto")


@scenario(*BOTH)
async def responses_parse(client: Any) -> None:
    answer = await resolved(client.responses.parse(model="m", input=[HELLO], text_format=Place))
    assert answer.output_parsed == Place(n=1, word="Kyoto")


@scenario(*BOTH)
async def responses_raw_response(client: Any) -> None:
    raw = await resolved(client.responses.with_raw_response.create(model="m", input=[HELLO]))
    assert (await resolved(raw.parse())).status == "completed"


@scenario(*BOTH)
async def responses_streaming_response(client: Any) -> None:
    async with within(client.responses.with_streaming_response.create(model="m", input=[HELLO])) as response:
        assert (await resolved(response.json()))["status"] == "completed"


@scenario(*BOTH, statuses=("ok", "ok"))
async def responses_tools_sent_back(client: Any) -> None:
    tools = [{"type": "function", "strict": False, **TOOL}]
    hellos: list[Any] = [HELLO]
    answer = await resolved(ask_responses(client, input=hellos, tools=tools))
    hellos += answer.output
    hellos.append({"type": "function_call_output", "call_id": answer.output[0].call_id, "output": "In Japan."})
    await resolved(ask_responses(client, input=hellos, tools=tools))
    answer.output[0].arguments = "changed"


@scenario(*BOTH, statuses=("ok", "ok"))
async def responses_parsed_sent_back(client: Any) -> None:
    answer = await resolved(client.responses.parse(model="m", input=[HELLO], text_format=Place))
    await resolved(ask_responses(client, input=[HELLO, *answer.output, HELLO]))


@scenario(*BOTH, statuses=("ok", "ok"))
async def responses_after_another(client: Any) -> None:
    first = await resolved(ask_responses(client))
    await resolved(ask_responses(client, previous_response_id=first.id, input="And Nara?"))


@scenario(*BOTH, statuses=("aborted",))
async def responses_stream_closed(client: Any) -> None:
    async with within(await resolved(ask_responses(client, stream=True))) as stream:
        async for _ in each(stream):
            break
