"""What goes wrong while a window is managed: the client has a clear answer or its own request, the store says so."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from pathlib import Path

import pytest

import vmstore
from tests.proxy.running import chat, proxied, until
from tests.proxy.test_window import ANSWER, MANAGED, TALK, calling
from tests.proxy.upstream import Act, RawRequest, begin_stream, piece, saying, send, upstream

PAGE = b"<html>we are being rebuilt</html>"


def in_the_second_round(act: Act) -> Act:
    """Asks the memory first, and does something else with what follows."""
    first = calling()

    def both(request: RawRequest, connection: socket.socket) -> None:
        is_second = json.loads(request.body)["messages"][-1]["role"] == "tool"
        (act if is_second else first)(request, connection)

    return both


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", ["200 OK", "503 Service Unavailable", "400 Bad Request"])
def test_a_round_that_is_answered_with_a_page_ends_the_answer(path: Path, status: str, stream: bool) -> None:
    """The client gets the words of the round before as a whole answer, and the store has how each call ended."""
    act = in_the_second_round(lambda request, connection: send(connection, PAGE, "text/html", status))
    with upstream(act) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        reply = proxy.ask({**chat(*TALK), "stream": stream})
        assert reply.status == 200 and PAGE not in reply.body
        assert b"Let me look." in reply.body and b'"stop"' in reply.body and b'tool_calls": [' not in reply.body
        assert reply.body.endswith(b"data: [DONE]\n\n") == stream
        calls = 3 if status.startswith("503") else 2  # what may pass is tried once more
        assert proxy.settled(calls)["gaps"] == 0
    with vmstore.open(path) as store:
        (info,) = store.sessions()
        assert [call.status for call in store.session(info.session).calls()] == ["ok", *["failed"] * (calls - 1)]


def test_a_round_that_breaks_off_breaks_off_for_the_client(path: Path) -> None:
    """A stream that ends amid its second round is no whole answer, and its call has failed."""

    def breaking(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        piece(connection, b'data: {"choices": [{"index": 0, "delta": {"content": "In dra"}}]}\n\n')
        connection.shutdown(socket.SHUT_RDWR)

    with upstream(in_the_second_round(breaking)) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        with pytest.raises((http.client.HTTPException, OSError)):
            proxy.ask({**chat(*TALK), "stream": True})
        proxy.settled(2)
    with vmstore.open(path) as store:
        (info,) = store.sessions()
        assert [call.status for call in store.session(info.session).calls()] == ["ok", "failed"]


def test_events_that_cannot_be_read_pass_as_they_are(path: Path) -> None:
    """With tools offered a broken stream is passed byte for byte."""
    data = [
        b"data: {half\n\n",
        b": a comment\n\n",
        b"event: odd\ndata: [1]\n\n",
        b'data: {"choices": 3}\n\n',
        b"data: cut",
    ]

    def odd(request: RawRequest, connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + b"".join(data)
        )
        connection.shutdown(socket.SHUT_WR)

    with upstream(odd) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        assert proxy.say(*TALK).body == b"".join(data)
        assert proxy.settled(1)["managed"] == 1


def test_a_client_that_hangs_up_amid_the_rounds_ends_them(path: Path) -> None:
    """No further round is asked, and the call under way is aborted."""
    released = threading.Event()

    def slow(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        released.wait(20)

    with upstream(in_the_second_round(slow)) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        connection = proxy.connection()
        connection.request("POST", "/v1/chat/completions", json.dumps({**chat(*TALK), "stream": True}))
        until(lambda: len(far.seen) == 2)
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        proxy.settled(2)
        released.set()
        assert len(far.seen) == 2
    with vmstore.open(path) as store:
        (info,) = store.sessions()
        assert [call.status for call in store.session(info.session).calls()] == ["ok", "aborted"]


def test_two_proxies_of_one_store_manage_one_conversation(path: Path) -> None:
    """Each goes on where the other was, and what was said stands once."""
    with (
        upstream(saying(ANSWER)) as far,
        proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0,session=talk") as first,
        proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0,session=talk") as second,
    ):
        talk = list(TALK)
        for turn, proxy in enumerate((first, second, first, second)):
            assert proxy.say(*talk).status == 200
            proxy.settled(turn // 2 + 1)
            talk += [ANSWER, f"And how is it in month {turn}?"]
        assert [proxy.figures()["managed"] for proxy in (first, second)] == [2, 2]
    with vmstore.open(path) as store:
        session = store.session("talk")
        assert (session.info().calls, session.info().turns) == (4, 64)
        texts = [session.content(page.page) for page in session.pages(role="user") if page.type == "transcript"]
        assert len(texts) == len(set(texts)) == 64
        assert store.verify().ok


def test_a_body_of_100_mb_is_not_asked_of_the_memory(path: Path) -> None:
    """It passes as it came, with the reason."""
    body = json.dumps(chat("x" * (100 << 20))).encode()
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        assert proxy.ask(body).status == 200
        figures = proxy.settled(1)
        assert far.seen[0].body == body and figures["unmanaged"] == 1
        assert "over 64 MiB" in figures["problems"][-1]


def test_a_key_in_the_address_is_in_no_problem_and_no_page(path: Path) -> None:
    """What is managed and what fails say nothing of it."""
    key = "AIza0123456789abcdefghijklmnop"
    contents = [{"role": ("user", "model")[n % 2], "parts": [{"text": f"{text} {key}"}]} for n, text in enumerate(TALK)]
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, port=f"{MANAGED},rounds=0") as proxy:
        proxy.ask({"contents": contents}, path=f"/v1beta/models/g:generateContent?key={key}")
        figures = proxy.settled(1)
        assert key not in json.dumps(figures) and key in far.seen[0].line and key in far.seen[0].body.decode()
    assert key.encode() not in b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())
