"""A run streams: the words come as the model says them, and the log holds what it would without a stream."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
import vmstore.aio
from tests.live.streams import STREAMS, Call
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.store.live.live_session import Live
from vmstore.vm.protocol import unmarked
from vmstore.vm.protocol.citation_filter import CitationFilter

SHAPES = list(STREAMS)
BUDGET: dict[str, Any] = {"l0_tokens_max": 8_000}
FIRST = ["I look", " it up. ", "[re", "f: p4]"]
LAST = ["Port ", "54", "32 [", "ref:", " p9]", "."]
CALLS: list[Call] = [("c1", "read", {"path": "db.conf"}), ("c2", "read", {"path": "gone"})]


def asked(shape: str = "chat") -> Live:
    """A session in which a question was just asked."""
    session = vmstore.memory_store().live_session("s", shape=shape, **BUDGET)
    session.user("Which port?")
    return session


class Streaming:
    """A model that streams: two calls first, then an answer."""

    def __init__(self, shape: str) -> None:
        self._rounds = [STREAMS[shape](FIRST, CALLS), STREAMS[shape](LAST, [])]
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self.requests.append(json.loads(json.dumps(request)))
        yield from self._rounds[len(self.requests) - 1]

    async def awaited(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The same, as async clients stream."""
        for part in self(request):
            await asyncio.sleep(0)
            yield part


def read(path: str) -> str:
    """Reads a file."""
    if path == "gone":
        raise FileNotFoundError(path)
    return "port = 5432"


def logged(session: Live, model: Streaming) -> None:
    """The log holds each request as it was sent, each answer whole, each result."""
    assert [session.wire.request(call=n) for n in (1, 2)] == model.requests
    calls = session.calls()
    assert [(call.status, call.tokens_reported, call.tokens_out) for call in calls] == [("ok", 70, 9)] * 2
    assert all(call.latency_ms is not None for call in calls)
    pages = session.pages(role="tool")
    assert [session.content(page.page) for page in pages] == [
        b"port = 5432",
        b'{"error": "FileNotFoundError: gone"}',
    ]
    text = b"".join(session.content(page.page) for page in session.pages(role="assistant"))
    assert b"I look it up. [ref: p4]" in text and b"Port 5432 [ref: p9]." in text


@pytest.mark.parametrize("shape", SHAPES)
def test_words_come_as_they_are_said(shape: str) -> None:
    """Each piece is handed on as it comes, without citations; tools are answered in between and all is logged."""
    session, model = asked(shape), Streaming(shape)
    heard: list[str] = []
    ran = session.run(model, tools={"read": read}, on_text=heard.append)
    assert "".join(heard) == "I look it up.\n\nPort 5432."
    assert len(heard) > 4
    assert (ran.stopped, ran.rounds, ran.answer) == ("answered", 1, "Port 5432.")
    assert "FileNotFoundError: gone" in json.dumps(model.requests[1])
    logged(session, model)


@pytest.mark.parametrize("shape", SHAPES)
def test_words_can_be_looped_over(shape: str) -> None:
    """`stream` gives the same words one by one, and says how the run ended once they are taken."""
    session, model = asked(shape), Streaming(shape)
    streamed = session.stream(model, tools={"read": read})
    with refused("still-running", InputError):
        _ = streamed.ran
    assert "".join(streamed) == "I look it up.\n\nPort 5432."
    assert streamed.ran.answer == "Port 5432."
    logged(session, model)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_async_model_streams(shape: str) -> None:
    """An async generator is read as it comes on the async twin, and the log is the same."""

    async def go() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", shape=shape, **BUDGET)
            await session.user("Which port?")
            model, heard = Streaming(shape), []
            ran = await session.run(model.awaited, tools={"read": read}, on_text=heard.append)
            assert ("".join(heard), ran.answer) == ("I look it up.\n\nPort 5432.", "Port 5432.")
            logged(session._live, model)
            await session.user("And again?")
            model = Streaming(shape)
            async with session.stream(model, tools={"read": read}) as streamed:
                assert "".join([text async for text in streamed]) == "I look it up.\n\nPort 5432."
            assert streamed.ran.rounds == 1

    asyncio.run(go())


def test_the_log_of_a_stream_is_that_of_a_whole_answer() -> None:
    """Pages and requests are the same whether an answer came in parts or at once."""
    sessions = []
    for whole in (False, True):
        session, model = asked(), Streaming("chat")
        if whole:
            model._rounds = [[_whole(parts)] for parts in model._rounds]
        session.run(lambda request, act=model, at_once=whole: next(act(request)) if at_once else act(request),
                    tools={"read": read})  # fmt: skip
        sessions.append([(page.role, session.content(page.page)) for page in session.pages()])
    assert sessions[0] == sessions[1]


def _whole(parts: list[dict[str, Any]]) -> dict[str, Any]:
    from vmstore.providers import Shape, assembled

    return assembled(Shape.CHAT, parts)[1]


texts = st.text(alphabet=st.sampled_from(list("[]ref:s p1 \n(x")), max_size=40)


@given(st.lists(texts | st.just("[ref: p4]") | st.just(" [refs: p4, p5]"), max_size=6), st.data())
def test_a_citation_may_come_in_pieces(words: list[str], data: st.DataObject) -> None:
    """However a text is cut, its pieces without citations make the text without citations."""
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    edges = [0, *cuts, len(text)]
    waiting = CitationFilter()
    shown = [waiting.feed(text[low:high]) for low, high in itertools.pairwise(edges)]
    assert "".join(shown) + waiting.end() == unmarked(text)


def test_what_waits_is_short() -> None:
    """Text that can become no citation is handed on at once, so that a stream never stalls."""
    waiting = CitationFilter()
    assert [waiting.feed(piece) for piece in ("a [b", "] c [re", "ad] d")] == ["a [b", "] c", " [read] d"]
    assert waiting.feed("[ref: " + "x" * 2_001).startswith("[ref: ")


def test_tools_run_at_once() -> None:
    """Two calls of one answer are made in threads that meet; `parallel=False` makes them one after another."""
    meeting = threading.Barrier(2, timeout=30)
    order: list[str] = []

    def meet(path: str) -> str:
        meeting.wait()
        return path

    def note(path: str) -> str:
        order.append(path)
        return path

    assert asked().run(Streaming("chat"), tools={"read": meet}).stopped == "answered"
    session = asked()
    session.run(Streaming("chat"), tools={"read": note}, parallel=False)
    assert order == ["db.conf", "gone"]
    assert [session.content(page.page) for page in session.pages(role="tool")] == [b"db.conf", b"gone"]


def test_async_tools_run_at_once() -> None:
    """Tasks of two calls meet, plain functions block nobody, and what a tool raises is told to the model."""
    arrived: list[str] = []

    async def go() -> None:
        both = asyncio.Event()

        async def meet(path: str) -> str:
            arrived.append(path)
            if len(arrived) == 2:
                both.set()
            await asyncio.wait_for(both.wait(), 30)
            if path == "gone":
                raise TimeoutError("the disk sleeps")
            return path

        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", **BUDGET)
            await session.user("Which port?")
            model = Streaming("chat")
            await session.run(model.awaited, tools={"read": meet})
            assert "TimeoutError: the disk sleeps" in json.dumps(model.requests[1])

            going = threading.Event()

            def blocks(path: str) -> str:
                assert going.wait(30)
                return path

            await session.user("Again?")
            run = asyncio.create_task(session.run(Streaming("chat").awaited, tools={"read": blocks}))
            await asyncio.sleep(0)
            going.set()
            assert (await run).stopped == "answered"

    asyncio.run(go())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_that_breaks_is_logged(shape: str) -> None:
    """What came before the break stands in the call, which failed with its reason; the error is the host's."""

    def breaks(request: dict[str, Any]) -> Iterator[Any]:
        for part in STREAMS[shape](["Port 54"], []):
            yield part
            if "Port 54" in json.dumps(part):
                raise ConnectionError("reset by peer")

    session = asked(shape)
    heard: list[str] = []
    with pytest.raises(ConnectionError, match="reset by peer"):
        session.run(breaks, on_text=heard.append)
    assert "".join(heard) == "Port 54"
    (call,) = session.calls()
    assert (call.status, call.error) == ("failed", "reset by peer")
    assert any(b"Port 54" in session.content(page.page) for page in session.pages(role="assistant"))
    assert session.run(Streaming(shape), tools={"read": read}).answer == "Port 5432."


def test_a_model_that_raises_is_logged() -> None:
    """A call whose model raised is a failed one, not one that is open for ever; so is one that gives nonsense."""

    def breaks(request: dict[str, Any]) -> Any:
        raise TimeoutError("the provider is away")

    session = asked()
    with pytest.raises(TimeoutError):
        session.run(breaks)
    for nonsense in (3.5, ["x"]):
        with pytest.raises(InputError):
            session.run(lambda request, arguments=nonsense: arguments)
    assert [call.status for call in session.calls()] == ["failed"] * 3
    assert session.wire.response(call=1).exception == "TimeoutError"


def test_a_stream_left_is_aborted() -> None:
    """A listener that stops ends the run: the call is aborted with what came, and the session runs again."""
    session = asked()
    with session.stream(Streaming("chat"), tools={"read": read}) as streamed:
        assert next(streamed) == "I look"
        with refused("running-already"):
            session.run(Streaming("chat"))
    assert [call.status for call in session.calls()] == ["aborted"]
    with pytest.raises(ZeroDivisionError):
        session.run(Streaming("chat"), tools={"read": read}, on_text=lambda text: 1 // 0)
    assert session.run(Streaming("chat"), tools={"read": read}).stopped == "answered"


def test_a_task_that_is_cancelled_is_aborted() -> None:
    """Cancelling a run cancels the model call; the log says so, and the session runs again."""

    async def go() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", **BUDGET)
            await session.user("Which port?")
            begun, ended = asyncio.Event(), asyncio.Event()

            async def waits(request: dict[str, Any]) -> Any:
                begun.set()
                try:
                    await asyncio.sleep(300)
                finally:
                    ended.set()

            run = asyncio.create_task(session.run(waits))
            await begun.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert ended.is_set()
            assert [call.status for call in await session.calls()] == ["aborted"]
            assert (await session.run(Streaming("chat").awaited, tools={"read": read})).stopped == "answered"

    asyncio.run(go())


def test_what_is_to_be_awaited_is_refused() -> None:
    """A session that cannot await says so of an async tool or model, and names the twin that can."""

    async def tool(path: str) -> str:
        return path

    async def model(request: dict[str, Any]) -> Any:
        return request

    with refused("async-call", InputError, "'read'"):
        asked().run(Streaming("chat"), tools={"read": tool})
    with refused("async-call", InputError):
        asked().run(model)


def test_cut_arguments_reach_no_function() -> None:
    """A call whose arguments are no JSON object is answered so; the function is not called with what there is."""
    cut = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "db.c'}}
    answers = [{"role": "assistant", "content": None, "tool_calls": [cut]}, {"role": "assistant", "content": "Sorry."}]
    requests: list[dict[str, Any]] = []

    def model(request: dict[str, Any]) -> Any:
        requests.append(request)
        return {"choices": [{"message": answers[len(requests) - 1]}]}

    def reads(text: str = "") -> str:
        raise AssertionError("it was called")

    assert asked().run(model, tools={"read": reads}).text == "Sorry."
    assert "the arguments are no JSON object" in json.dumps(requests[1])


def test_a_providers_own_tool_keeps_its_id() -> None:
    """What a provider's tool was asked is no call of the session's, and takes no id from one that is."""
    content = [
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "ports"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "db.conf"}},
    ]
    answers = [content, [{"type": "text", "text": "5432."}]]
    session = asked("anthropic")
    ran = session.run(
        lambda request: {"role": "assistant", "type": "message", "content": answers.pop(0)}, tools={"read": read}
    )
    assert ran.text == "5432."
    (result,) = session.pages(role="tool")
    call = session.lineage.ancestors(result.page)[0].target
    assert b"toolu_1" in session.content(call)
