"""A wrapped client is one of its own class, and its calls are recorded in the session they belong to."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace as Space
from typing import Any

import httpx2
import openai
import pytest

import vmstore
from tests.capture.fake_client import AT, HELLO, Store, client
from tests.refusals import refused
from tests.sdk.provider import PAGE, serving
from vmstore.capture.client.wrap import wrap
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError


def test_a_wrapped_client_is_one_of_its_own_class() -> None:
    """The SDK's own checks hold, it has its recorder beside, and so do the copies made of it."""
    with client(Store()) as ask:
        assert isinstance(ask.sdk, openai.OpenAI)
        assert repr(type(ask.sdk)) == repr(openai.OpenAI)
        assert isinstance(ask.sdk._client, httpx2.Client)
        other = ask.sdk.with_options(timeout=3)
        assert (other.vmstore is ask.recorder, other.timeout) == (True, 3)
        with ask.sdk as entered:
            assert entered is ask.sdk
        assert ask.raw.is_closed(), "it has the connections of the client it was made from"


def test_the_client_given_goes_on_unrecorded() -> None:
    """Only the wrapped client records, also where the other was used before, and where the wrapped one is gone."""
    store = Store()
    with client(store) as ask:
        raw = ask.raw
        raw.chat.completions.create(model="m", messages=[HELLO])
        ask("recorded")
        recorder = ask.recorder
        assert recorder.flush(5)
        del ask.sdk
        gc.collect()
        assert not raw.is_closed()
        raw.chat.completions.create(model="m", messages=[HELLO])
        assert recorder.flush(5)
    assert store.asked() == ["recorded"]


def test_an_http_client_may_be_wrapped_for_a_library_that_takes_one() -> None:
    """What is sent through a wrapped HTTP client is recorded where it asks a model, and only there."""
    store = Store()
    with serving() as provider, wrap(httpx2.Client(), store, "s", clock=ManualClock(AT)) as http:
        assert http.post(f"{provider.url}/v1/embeddings", json={"input": "x"}).status_code == 200
        answer = http.post(f"{provider.url}/v1/chat/completions", json={"model": "m", "messages": [HELLO]})
        assert answer.json()["choices"][0]["message"]["content"] == "In Japan."
        assert http.vmstore.flush(5)
        assert not http.vmstore.problems
    ((_, request, response, at, _),) = store.log
    assert (request, response) == ({"model": "m", "messages": [HELLO]}, answer.json())
    assert at == AT + 1


@pytest.mark.parametrize("session", [None, "name"])
@pytest.mark.parametrize("thing", [None, Space(), Space(messages=Space(create=print)), openai.OpenAI, openai, 3])
def test_what_cannot_be_recorded_is_refused(thing: Any, session: str | None) -> None:
    """Wrapping something else fails at once and says what can be wrapped."""
    with pytest.raises(InputError, match=r"pass an OpenAI, Anthropic|wrap an instance of it"):
        wrap(thing, Store(), session)


def test_wrapping_twice_is_refused() -> None:
    """A recorded client is not recorded again, nor is a path taken that nothing opens, nor a session that is none."""
    with client(Store()) as ask:
        with refused("not-an-instance", InputError):
            wrap(ask.sdk, Store())
        with refused("no-opener", InputError):
            wrap(ask.raw, "agent.vms")
        with refused("not-a-name", InputError):
            wrap(ask.raw, Store(), 3)  # type: ignore[arg-type]


def test_latency_is_measured_around_the_call() -> None:
    """The latency is what passed between the request and the end of its answer."""
    store = Store()
    clock = ManualClock(AT, step=0)
    with client(store, clock=clock) as ask:
        stream = ask.sdk.chat.completions.create(model="m", messages=[HELLO], stream=True)
        next(stream)
        clock.advance(1_500_000)
        list(stream)
        assert ask.recorder.flush(5)
    assert store.log[0][3:] == (AT, 1_500_000)


def test_an_answer_nobody_can_read_leaves_its_request() -> None:
    """A page in the place of an answer is a failed call: its request is recorded, its text is in the error."""
    store = vmstore.memory_store()
    with client(store) as ask:
        with pytest.raises(AttributeError):
            ask("hello", model="html")
        assert ask.recorder.flush(5)
        assert not ask.recorder.problems
    (call,) = store.session("s").calls()
    assert (call.status, call.fidelity) == ("failed", "recorded")
    assert call.error is not None
    assert PAGE.decode() in call.error
    assert store.session("s").wire.request(call=1) == {"model": "html", "messages": [HELLO]}


def test_a_refusal_keeps_its_status_and_body() -> None:
    """What the provider answered with is known of a failed call."""
    store = Store()
    with client(store) as ask:
        with pytest.raises(openai.BadRequestError):
            ask("hello", model="down")
        assert ask.recorder.flush(5)
    response = store.log[0][2]
    assert (str(response), response.status_code, response.body["error"]["code"]) == ("slow down", 400, "busy")


def test_chunks_of_a_stream_are_not_held() -> None:
    """Of a stream its bytes are held until it ends, and none of the objects the SDK made of them."""
    store = Store()
    with client(store) as ask:
        alive = []
        for chunk in ask.sdk.chat.completions.create(model="m", messages=[HELLO], stream=True):
            alive.append(weakref.ref(chunk))
            del chunk
            assert sum(ref() is not None for ref in alive) <= 1  # the SDK's own hand on it
        assert len(alive) == 5
        assert ask.recorder.flush(5)
    assert len(store.log[0][2]) == 5


# ---- sessions


def test_a_session_is_named_by_a_function_of_the_request() -> None:
    """A function chooses the session; where it gives none the conversation does, and where it raises too."""
    store = Store()

    def name(request: dict[str, Any]) -> str | None:
        return None if "user" not in request else str(request["user"].upper())

    with client(store, name) as ask:
        ask("a", user="anna")
        ask("b")
        ask("c", user="bert")
        ask("d", user=3)
        assert ask.recorder.flush(5)
        assert ask.recorder.problems[0].startswith("AttributeError")
    stamp = "openai-20261121-225501-000007"
    assert [entry[0] for entry in store.log] == ["ANNA", stamp, "BERT", f"{stamp}-2"]


def test_a_session_is_named_by_a_block() -> None:
    """Calls within a block, its tasks and threads started with its context among them, go to its session."""
    store = Store()
    with client(store, "outer") as ask:
        recorder = ask.recorder

        async def both() -> None:
            async def converse(name: str) -> None:
                with recorder.conversation(name):
                    await asyncio.sleep(0)
                    await asyncio.to_thread(ask, name)

            await asyncio.gather(converse("x"), converse("y"))

        asyncio.run(both())
        ask("outside")
        thread = threading.Thread(target=ask, args=("thread",))
        with recorder.conversation("z"):
            thread.start()  # a bare thread takes no context with it
        thread.join()
        with refused("not-a-name", InputError), recorder.conversation(""):
            pass
        assert recorder.flush(5)
    rows = sorted((entry[0], entry[1]["messages"][0]["content"]) for entry in store.log)
    assert rows == [("outer", "outside"), ("outer", "thread"), ("x", "x"), ("y", "y")]


def test_without_a_name_each_conversation_has_its_session(tmp_path: Path) -> None:
    """Conversations that take turns in one client stand apart, each whole, each call once."""
    path = tmp_path / "a.vms"
    with client(str(path), None, open_store=vmstore.open) as ask:
        talks = [[f"question {n}"] for n in range(4)]
        for turn in range(3):
            for talk in talks:
                talk += [ask(*talk), f"and {turn}?"]
        assert ask.recorder.close(10)
    with vmstore.open(path) as store:
        sessions = sorted((info.session for info in store.sessions()), key=lambda name: (len(name), name))
        assert len(sessions) == 4
        for n, name in enumerate(sessions):
            calls = store.session(name).calls()
            assert [call.turn for call in calls] == [1, 2, 3]
            last = [message["content"] for message in store.session(name).wire.request(call=3)["messages"]]
            assert last == [f"question {n}", "In Japan.", "and 0?", "In Japan.", "and 1?"]
