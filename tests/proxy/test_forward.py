"""What passes: every byte of a request and of an answer, at once, and a copy of each call into the store."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import zstandard

import vmstore
from tests.proxy.running import chat, proxied
from tests.proxy.upstream import (
    RawRequest,
    answer,
    begin_stream,
    end_stream,
    events,
    piece,
    saying,
    send,
    streaming,
    upstream,
)
from tests.sdk.provider import serving


def only(store: vmstore.Store) -> vmstore.Session:
    """The one session of a store."""
    (info,) = store.sessions()
    return store.session(info.session)


def test_a_request_arrives_as_it_was_sent(path: Path) -> None:
    """Address, headers in their case, and the very bytes of the body reach the upstream; a hop's own headers do not."""
    body = b'{ "model" : "m",\n "messages":[{"role":"user","content":"caf\\u00e9 \xf0\x9f\x8d\xb5"}] , "x":1.50}'
    with upstream(saying()) as far, proxied(path, "--upstream", f"{far.url}/base") as proxy:
        headers = {
            "X-Custom-One": "1",
            "x-custom-TWO": "b c",
            "Authorization": "Bearer sk-1",
            "Connection": "x-custom-two",
        }
        proxy.ask(body, path="/v1/chat/completions?a=%2Fb&c=d+e", headers=headers)
        (request,) = far.seen
    assert request.line == "POST /base/v1/chat/completions?a=%2Fb&c=d+e HTTP/1.1"
    assert request.body == body
    names = [name for name, _ in request.headers]
    assert "X-Custom-One" in names and "Authorization" in names
    assert "x-custom-TWO" not in names
    assert request.header("host") == far.url.removeprefix("http://")


def test_an_answer_arrives_as_it_came(path: Path) -> None:
    """Status, reason, headers, repeated ones too, and the very bytes of the body reach the client."""
    body = b'{"choices": [ ] }  \n'

    def act(request: RawRequest, connection: socket.socket) -> None:
        head = (
            b"HTTP/1.1 207 Rather Well\r\nX-One: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\ncontent-length: 20\r\n\r\n"
        )
        connection.sendall(head + body)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        reply = proxy.say("hello")
    assert (reply.status, reply.body) == (207, body)
    assert ("X-One", "1") in reply.headers
    assert [value for name, value in reply.headers if name == "Set-Cookie"] == ["a=1", "b=2"]


def test_a_stream_passes_piece_by_piece(path: Path) -> None:
    """Each piece reaches the client before the upstream sends the next, and the call is recorded whole."""
    goes = threading.Semaphore(0)
    sent = events("In ", "Japan", ".")

    def act(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        for data in sent:
            piece(connection, data)
            assert goes.acquire(timeout=30), "the client never saw the piece"
        end_stream(connection)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        connection = proxy.connection()
        connection.request("POST", "/v1/chat/completions", json.dumps(chat("Where is Kyoto?", stream=True)))
        response = connection.getresponse()
        for data in sent:
            assert response.read(len(data)) == data
            goes.release()
        assert response.read() == b""
        proxy.settled(1)
    with vmstore.open(path) as store:
        assert only(store).wire.response(call=1).messages[0]["content"] == "In Japan."


@pytest.mark.parametrize("packing", ["gzip", "zstd", "deflate"])
def test_packed_bodies_are_recorded_unpacked(path: Path, packing: str) -> None:
    """Bodies that are packed pass as they are, both ways, and the store holds what they say."""
    import zlib

    pack = {"gzip": gzip.compress, "zstd": zstandard.compress, "deflate": zlib.compress}[packing]

    def act(request: RawRequest, connection: socket.socket) -> None:
        data = pack(answer())
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: {packing}\r\n"
        connection.sendall(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)

    asked = pack(json.dumps(chat("Where is Kyoto?")).encode())
    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        reply = proxy.ask(asked, headers={"content-encoding": packing})
        assert (far.seen[0].body, reply.body) == (asked, pack(answer()))
        assert proxy.settled(1)["gaps"] == 0
    with vmstore.open(path) as store:
        assert only(store).wire.request(call=1) == chat("Where is Kyoto?")
        assert only(store).wire.response(call=1).body == json.loads(answer())


def test_an_encoding_that_cannot_be_recorded_is_not_asked_for(path: Path) -> None:
    """The upstream is offered those of the client's encodings that can be read again."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("a", headers={"accept-encoding": "br, gzip;q=0.5"})
        proxy.say("b", headers={"accept-encoding": "br"})
    assert [request.header("accept-encoding") for request in far.seen] == ["gzip;q=0.5", "identity"]


def test_each_provider_s_own_client_works_and_is_recorded_as_record_does(path: Path) -> None:
    """Chat completions, Responses, Anthropic and Gemini, whole and streamed: requests as sent, answers as parts."""
    with serving() as far, proxied(path, "--upstream", far.url) as proxy:
        chat_client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-0", max_retries=0)
        claude = anthropic.Anthropic(base_url=proxy.url, api_key="sk-0", max_retries=0)
        gemini = {"contents": [{"role": "user", "parts": [{"text": "Where?"}]}]}
        records: Any = [{"role": "user", "content": "Where is Kyoto?"}]
        chat_client.chat.completions.create(model="m", messages=records)
        list(chat_client.chat.completions.create(model="m", messages=records, stream=True))
        chat_client.responses.create(model="m", input="Where?")
        list(chat_client.responses.create(model="m", input="Where?", stream=True))
        claude.messages.create(model="claude-x", max_tokens=9, messages=records)
        with claude.messages.stream(model="claude-x", max_tokens=9, messages=records) as stream:
            stream.get_final_text()
        proxy.ask(gemini, path="/v1beta/models/gemini-x:generateContent?key=k")
        proxy.ask(gemini, path="/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=k")
        assert proxy.settled(8)["gaps"] == 0
        sent, answered = [seen.body for seen in far.seen], [seen.answer for seen in far.seen]
    with vmstore.open(path) as store, vmstore.memory_store() as plain:
        sessions = [store.session(info.session) for info in store.sessions()]
        recorded = [session.wire.request(call=call.call) for session in sessions for call in session.calls()]
        assert sorted(map(str, recorded)) == sorted(map(str, sent))
        for n, (request, response) in enumerate(zip(sent, answered, strict=True)):
            plain.record(f"s{n}", request, response)
        texts = [str(session.wire.response(call=c.call).messages) for session in sessions for c in session.calls()]
        expected = [str(plain.session(f"s{n}").wire.response(call=1).messages) for n in range(len(sent))]
        assert sorted(texts) == sorted(expected)


def test_what_asks_no_model_passes_unrecorded(path: Path) -> None:
    """A list of models, and counted tokens, go through; the store gets neither."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        send(connection, b'{"object":"list","data":[]}')

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.send("GET", "/v1/models").json() == {"object": "list", "data": []}
        assert proxy.ask({}, path="/v1/messages/count_tokens").status == 200
        figures = proxy.figures()
    assert (figures["forwarded"], figures["calls"]) == (2, 0)


def test_a_form_that_cannot_be_recorded_passes_and_is_a_gap(path: Path) -> None:
    """A legacy completion is answered, and stands as a gap that says why."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.ask({"model": "m", "prompt": "Where?"}, path="/v1/completions").status == 200
        proxy.settled(1)
    with vmstore.open(path) as store:
        (call,) = only(store).calls()
        assert call.status == "gap"


def test_the_history_of_a_first_request_becomes_pages(path: Path) -> None:
    """A conversation met in the middle is taken in with its past: its turns are there, and one call."""
    with upstream(saying("An hour.")) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("Where is Kyoto?", "In Japan.", "And Nara?")
        proxy.settled(1)
    with vmstore.open(path) as store:
        session = only(store)
        assert [turn.calls for turn in session.turns()] == [0, 1]
        texts = [session.content(page.page).decode() for page in session.pages()]
        assert texts == ["Where is Kyoto?", "In Japan.", "And Nara?", "An hour."]


def test_streams_of_many_clients_are_each_their_own(path: Path) -> None:
    """Thirty-two clients at once: every call is recorded whole, in the session of its conversation."""
    with upstream(streaming("In ", "Japan.")) as far, proxied(path, "--upstream", far.url) as proxy:

        def talk(n: int) -> None:
            proxy.say(f"I am {n}", headers={"x-vmstore-session": f"s{n}"})
            proxy.say(f"I am {n}", "In Japan.", "And?", headers={"x-vmstore-session": f"s{n}"})

        threads = [threading.Thread(target=talk, args=(n,)) for n in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert proxy.settled(64)["recorded"] == 64
    with vmstore.open(path) as store:
        for n in range(32):
            session = store.session(f"s{n}")
            assert [call.status for call in session.calls()] == ["ok", "ok"]
            assert session.wire.request(call=2)["messages"][0]["content"] == f"I am {n}"
