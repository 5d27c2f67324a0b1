"""Streams of a wrapped client pass through, and are recorded however they end."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.capture.fake_client import (
    CHUNKS,
    HELLO,
    AsyncCompletions,
    AsyncParts,
    Completions,
    Obj,
    Parts,
    Store,
    recorded,
    wrapped,
)


def test_a_stream_passes_through_item_by_item() -> None:
    """The caller gets each chunk when it comes; all of them are recorded at the end."""
    store = Store()
    parts = Parts([Obj(**chunk) for chunk in CHUNKS])
    client = wrapped(store, parts)
    stream = client.chat.completions.create(messages=[HELLO], stream=True)
    assert next(stream).choices == CHUNKS[0]["choices"]
    assert (len(parts.left), store.log) == (2, [])
    assert len(list(stream)) == 2
    assert stream.response == "http"
    request, response = recorded(client, store)
    assert (request["stream"], response) == (True, CHUNKS)


def test_a_stream_closed_early_is_recorded_so_far() -> None:
    """Leaving a stream closes the real one and records the chunks that came, once."""
    store = Store()
    parts = Parts([Obj(**chunk) for chunk in CHUNKS])
    client = wrapped(store, parts)
    with client.chat.completions.create(messages=[HELLO], stream=True) as stream:
        next(stream)
    stream.close()
    assert parts.closed
    assert recorded(client, store)[1] == CHUNKS[:1]


def test_a_forgotten_stream_is_recorded_so_far() -> None:
    """A stream nobody closes is recorded when it is collected."""
    store = Store()
    client = wrapped(store, Parts([Obj(**chunk) for chunk in CHUNKS]))
    for _ in client.chat.completions.create(messages=[HELLO], stream=True):
        break
    gc.collect()
    assert recorded(client, store)[1] == CHUNKS[:1]


def test_a_broken_stream_is_recorded_with_what_broke_it() -> None:
    """The caller catches the very exception; the chunks before it are recorded, its twin last."""
    store = Store()
    error = ConnectionError("reset")
    client = wrapped(store, Parts([Obj(**CHUNKS[0]), error]))
    with pytest.raises(ConnectionError) as caught:
        list(client.chat.completions.create(messages=[HELLO], stream=True))
    assert caught.value is error
    chunk, broken = recorded(client, store)[1]
    assert (chunk, type(broken).__name__, str(broken)) == (CHUNKS[0], "ConnectionError", "reset")


EVENTS = [
    Obj(type="message_start", message={"id": "m"}),
    Obj(type="content_block_delta", delta=Obj(type="text_delta", text="hel")),
    Obj(type="text", text="hel", snapshot="hel"),
    Obj(type="content_block_delta", delta=Obj(type="text_delta", text="lo")),
    Obj(type="chunk", chunk=Obj(id="c"), snapshot="s"),
    Obj(type="message_stop"),
]
RAW = [event.model_dump() for event in (*EVENTS[:2], EVENTS[3], EVENTS[4].chunk, EVENTS[5])]


@pytest.mark.parametrize("how", ["events", "text_stream", "get_final_message"])
def test_a_stream_helper_is_recorded_as_the_raw_chunks(how: str) -> None:
    """However the helper's stream is read, the provider's own events are recorded, its makings are not."""
    store = Store()
    client = wrapped(store, Parts(EVENTS))
    with client.messages.stream(messages=[HELLO]) as stream:
        if how == "events":
            assert list(stream) == EVENTS
        elif how == "text_stream":
            assert list(stream.text_stream) == ["hel", "lo"]
        else:
            assert stream.get_final_message() == "final"
    request, response = recorded(client, store)
    assert (request, response) == ({"messages": [HELLO], "stream": True}, RAW)


def test_a_stream_helper_that_cannot_start_is_a_failed_call() -> None:
    """The request of a helper goes out when it is entered, and fails there."""
    store = Store()

    class Door(Parts):
        def __enter__(self) -> Parts:
            raise ConnectionError("refused")

    client = wrapped(store, Door([]))
    door = client.messages.stream(messages=[HELLO])
    assert client.vmstore.flush(5)
    assert store.log == []
    with pytest.raises(ConnectionError), door:
        pass
    assert str(recorded(client, store)[1]) == "refused"


@pytest.mark.parametrize("how", ["read", "left", "broken", "closed", "helper", "text_stream", "final"])
def test_async_streams_are_recorded(how: str) -> None:
    """An async stream passes through, and is recorded read, left, broken or closed."""
    store = Store()
    error = ConnectionError("reset")
    helped = how in ("helper", "text_stream", "final")
    parts = AsyncParts([*EVENTS[:4], error if how == "broken" else EVENTS[5]])
    client = wrapped(store, parts, kind=Completions if helped else AsyncCompletions)

    async def ask() -> None:
        if helped:
            async with client.messages.stream(messages=[HELLO]) as stream:
                if how == "text_stream":
                    assert [text async for text in stream.text_stream] == ["hel", "lo"]
                elif how == "final":
                    await stream.until_done()
                else:
                    assert len([part async for part in stream]) == 5
            return
        stream = await client.messages.create(messages=[HELLO], stream=True)
        if how == "read":
            assert len([part async for part in stream]) == 5
        elif how == "left":
            async with stream:
                await anext(stream)
        elif how == "closed":
            await anext(stream)
            await stream.close()
        else:
            with pytest.raises(ConnectionError):
                _ = [part async for part in stream]

    async def until_done() -> None:
        assert not parts.left

    parts.until_done = until_done  # type: ignore[attr-defined]
    asyncio.run(ask())
    response = recorded(client, store)[1]
    whole = [event.model_dump() for event in (*EVENTS[:4], EVENTS[5])]
    if helped:
        assert response == [part for part in whole if part["type"] != "text"]
    elif how == "read":
        assert response == whole
    elif how == "broken":
        assert (response[:-1], str(response[-1])) == (whole[:4], "reset")
    else:
        assert response == whole[:1]
        assert parts.closed
