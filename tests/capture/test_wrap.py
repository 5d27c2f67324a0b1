"""A wrapped client behaves as the client does, and its calls are recorded as they were."""

from __future__ import annotations

import asyncio
import copy
from types import SimpleNamespace as Space
from typing import Any

import pytest

from tests.capture.fake_client import (
    AT,
    HELLO,
    AsyncCompletions,
    Client,
    Completions,
    Obj,
    Store,
    recorded,
    wrapped,
)
from vmstore.capture.client.wrap import wrap
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError


@pytest.mark.parametrize("path", ["chat.completions.create", "responses.create", "messages.create", "responses.parse"])
def test_a_call_gives_its_answer_and_is_recorded(path: str) -> None:
    """The caller gets the very object the client returned, and the exchange is in the store."""
    store = Store()
    answer = Obj(id="r1", usage=Obj(tokens=3))
    client = wrapped(store, answer)
    ask = client
    for name in path.split("."):
        ask = getattr(ask, name)
    assert ask(model="m", messages=[HELLO]) is answer
    assert client.vmstore.flush(5)
    request = {"model": "m", "messages": [HELLO]}
    assert store.log == [("s", request, {"id": "r1", "usage": {"tokens": 3}}, AT, 1)]
    assert not client.vmstore.problems


def test_latency_is_measured_around_the_call() -> None:
    """The latency is what passed between the request and its answer."""
    store = Store()
    clock = ManualClock(AT, step=0)

    class Slow(Completions):
        def create(self, **request: Any) -> Any:
            clock.advance(1_500_000)
            return Obj(id="r")

    client: Any = wrap(Client(kind=Slow), store, "s", clock=clock)
    client.messages.create(messages=[])
    assert client.vmstore.flush(5)
    assert store.log[0][3:] == (AT, 1_500_000)


def test_the_request_is_recorded_as_it_was_sent() -> None:
    """What the agent changes once the call is made, in any depth, changes nothing that is recorded."""
    store = Store()
    store.goes.clear()
    part, said = {"type": "text", "text": "hello"}, Obj(role="assistant", content="yes")
    messages = [{"role": "user", "content": [part]}, said]
    answer = Obj(content="answer")
    client = wrapped(store, answer)
    client.messages.create(messages=messages, tools=(part,))
    part["text"] = said.content = answer.content = "changed"
    messages.append(HELLO)
    assert not client.vmstore.flush(0.01), "the store hangs, and a flush says so"
    store.goes.set()
    request, response = recorded(client, store)
    kept = {"type": "text", "text": "hello"}
    assert request == {
        "messages": [{"role": "user", "content": [kept]}, {"role": "assistant", "content": "yes"}],
        "tools": [kept],
    }
    assert response == {"content": "answer"}


def test_only_the_body_of_a_request_is_recorded() -> None:
    """Headers, which may carry credentials, and options of the transport stay out; extra_body is in."""
    store = Store()
    client = wrapped(store, Obj())
    absent = type("NotGiven", (), {})()
    client.chat.completions.create(
        messages=[HELLO],
        extra_headers={"k": "secret"},
        timeout=3,
        extra_query={},
        extra_body={"x": [1]},
        stop=absent,
    )
    assert recorded(client, store)[0] == {"messages": [HELLO], "x": [1]}


def test_what_the_sdk_read_into_an_answer_is_not_sent_back() -> None:
    """An answer's parsed value, which the SDK leaves out of the next request, is left out of its record."""
    store = Store()

    class Parsed(Obj):
        __api_exclude__ = frozenset({"parsed"})

        def model_dump(self, *, exclude: frozenset[str] = frozenset(), **options: Any) -> dict[str, Any]:
            return {key: item for key, item in vars(self).items() if key not in exclude}

    client = wrapped(store, Obj())
    client.responses.create(input=[Parsed(text="1", parsed=1)])
    assert recorded(client, store)[0] == {"input": [{"text": "1"}]}


def test_an_output_class_stands_as_its_schema() -> None:
    """A class given as the output format is recorded as its JSON schema under its name."""
    store = Store()

    class Answer:
        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            return {"type": "object"}

    client = wrapped(store, Obj())
    client.chat.completions.parse(messages=[], response_format=Answer)
    schema = {"type": "json_schema", "name": "Answer", "schema": {"type": "object"}}
    assert recorded(client, store)[0]["response_format"] == schema


@pytest.mark.parametrize("error", [RuntimeError("overloaded"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_reaches_the_caller_untouched(error: BaseException) -> None:
    """The caller catches the very exception; the store gets a twin of its kind without its frames."""
    store = Store()
    client = wrapped(store, error)
    with pytest.raises(type(error)) as caught:
        client.messages.create(messages=[HELLO])
    assert caught.value is error
    response = recorded(client, store)[1]
    assert (type(response).__name__, str(response)) == (type(error).__name__, str(error))
    assert isinstance(response, Exception) is isinstance(error, Exception)
    assert response.__traceback__ is None


def test_an_error_keeps_its_status_code() -> None:
    """What the provider answered with is known of a failed call."""
    store = Store()
    error = RuntimeError("slow down")
    error.status_code = 429  # type: ignore[attr-defined]
    client = wrapped(store, error)
    with pytest.raises(RuntimeError):
        client.messages.create(messages=[HELLO])
    assert recorded(client, store)[1].status_code == 429


def test_async_calls_are_recorded() -> None:
    """An async client's answers and exceptions come back as they are, and are recorded."""
    store = Store()
    answer, error = Obj(id="r"), RuntimeError("overloaded")
    client = wrapped(store, answer, error, kind=AsyncCompletions)

    async def ask() -> None:
        assert await client.messages.create(n=0) is answer
        with pytest.raises(RuntimeError) as caught:
            await asyncio.create_task(client.messages.create(n=1))
        assert caught.value is error

    asyncio.run(ask())
    assert client.vmstore.flush(5)
    assert [str(entry[2]) for entry in store.log] == ["{'id': 'r'}", "overloaded"]


def test_a_cancelled_call_is_recorded_as_interrupted() -> None:
    """Cancelling reaches the call, and the record tells it from a failure."""
    store = Store()
    client = wrapped(store, Obj(), kind=AsyncCompletions)

    async def ask() -> None:
        task = asyncio.create_task(client.messages.create(n=0))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    response = recorded(client, store)[1]
    assert type(response).__name__ == "CancelledError"
    assert not isinstance(response, Exception)


def test_everything_else_falls_through() -> None:
    """Attributes, other methods, assignments and `with` reach the client itself."""
    store = Store()
    inner = Client()
    client: Any = wrap(inner, store, "s")
    client.api_key = "other"
    assert (inner.api_key, client.api_key, repr(client)) == ("other", "other", repr(inner))
    assert client.embeddings.create(input="x") == "vector"
    assert client.chat.completions.list() == "not a question"
    assert "api_key" in dir(client)
    with pytest.raises(AttributeError, match="nothing_there"):
        client.nothing_there  # noqa: B018
    with client as entered:
        assert entered is client
    assert inner.api_key == "closed"
    assert copy.copy(client).vmstore is client.vmstore
    assert client.vmstore.flush(5)
    assert store.log == []


def test_copies_with_options_record_too() -> None:
    """A client made from a wrapped one is wrapped, and shares its session."""
    store = Store()
    client = wrapped(store, Obj(n=1))
    other = client.with_options(timeout=3)
    assert other.vmstore is client.vmstore
    other.messages.create(messages=[HELLO])
    assert recorded(client, store)[0] == {"messages": [HELLO]}


def test_a_session_is_named_after_provider_and_time() -> None:
    """Without a name, provider and time make one, different for each client."""
    store = Store()
    clock = ManualClock(AT)
    clients: list[Any] = [wrap(Client(), store, clock=clock) for _ in range(2)]
    assert [client.vmstore.session for client in clients] == [
        "anthropic-20261121-225501-000007",
        "anthropic-20261121-225501-000008",
    ]
    chat: Any = wrap(Space(chat=Space()), store, clock=clock)
    assert chat.vmstore.session.startswith("openai-2026")


def test_what_is_no_client_is_refused() -> None:
    """Wrapping something else, or a path with nothing to open it, fails at once and says the remedy."""
    with pytest.raises(InputError, match="pass an OpenAI or Anthropic client"):
        wrap(Space(), Store())
    with pytest.raises(InputError, match=r"vmstore\.wrap"):
        wrap(Client(), "agent.vms")
