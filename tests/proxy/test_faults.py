"""Nothing that goes wrong around a call harms it, and the store says what went wrong with it."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import vmstore
from tests.proxy.running import CHAT, RunningProxy, chat, proxied, until
from tests.proxy.upstream import (
    RawRequest,
    begin_stream,
    end_stream,
    events,
    piece,
    saying,
    send,
    streaming,
    upstream,
)
from vmstore.proxy.frames import AnswerHead, CallBegin, CallEnd, FrameKind, OpenStore, frame, packed, read_frame

PAGE = b"<html>a gateway says hello</html>"
LINUX = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the writer in /proc")


def calls(path: Path) -> list[tuple[str, str | None]]:
    """Status and error of each call of a store's one session."""
    with vmstore.open(path, "r") as store:
        (info,) = store.sessions()
        return [(call.status, call.error) for call in store.session(info.session).calls()]


def writer_of(proxy: RunningProxy) -> int:
    """The process that writes for a proxy."""
    pid = proxy.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_an_upstream_that_is_not_there_is_said_and_recorded(path: Path) -> None:
    """The client gets a 502 that says why, and the store a failed call with its request."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with proxied(path, "--upstream", url) as proxy:
        reply = proxy.say("hello")
        assert reply.status == 502
        assert "cannot be reached" in reply.json()["error"]["reason"]
        assert proxy.settled(1)["unreachable"] == 1
    ((status, error),) = calls(path)
    assert status == "failed" and "Cannot connect" in str(error)


def test_a_page_of_a_gateway_passes_and_is_a_failed_call(path: Path) -> None:
    """An answer that is no JSON reaches the client as it is; the call failed, and its error says what came."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        send(connection, PAGE, "text/html")

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.say("hello").body == PAGE
        proxy.settled(1)
    ((status, error),) = calls(path)
    assert status == "failed" and "a gateway says hello" in str(error)


def test_a_refusal_passes_and_is_a_failed_call(path: Path) -> None:
    """A rate limit reaches the client with its status and body, and is recorded with them."""
    refusal = b'{"error":{"message":"slow down","type":"rate_limit_error"}}'

    def act(request: RawRequest, connection: socket.socket) -> None:
        send(connection, refusal, status="429 Too Many Requests")

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        reply = proxy.say("hello")
        assert (reply.status, reply.body) == (429, refusal)
        proxy.settled(1)
    assert calls(path) == [("failed", "slow down")]


def test_a_stream_that_breaks_off_breaks_off_for_the_client(path: Path) -> None:
    """What came reaches the client, which sees that there was to be more; the store holds it as a failed answer."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        piece(connection, events("In ", done=False)[0])
        connection.shutdown(socket.SHUT_RDWR)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        connection = proxy.connection()
        connection.request("POST", CHAT, json.dumps(chat("hello", stream=True)))
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            connection.getresponse().read()
        proxy.settled(1)
    with vmstore.open(path, "r") as store:
        (info,) = store.sessions()
        response = store.session(info.session).wire.response(call=1)
    assert (response.status, response.messages[0]["content"]) == ("failed", "In ")


def test_events_that_nobody_can_read_pass_as_they_are(path: Path) -> None:
    """A stream with broken events reaches the client byte for byte; what can be read of it is recorded."""
    odd = [b": a comment\n\n", b"data: {half", b"\n\n", b"event: x\r\ndata: [1,2]\r\n\r\n", *events("In Japan.")]

    def act(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        for data in odd:
            piece(connection, data)
        end_stream(connection)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.say("hello").body == b"".join(odd)
        proxy.settled(1)
    assert calls(path) == [("ok", None)]


def test_a_client_that_hangs_up_amid_a_stream_ends_the_call(path: Path) -> None:
    """The upstream's connection is closed too, and the store holds an aborted call with what had arrived."""
    closed = threading.Event()

    def act(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        piece(connection, events("In ", done=False)[0])
        if connection.recv(1) == b"":
            closed.set()

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        connection = proxy.connection()
        connection.request("POST", CHAT, json.dumps(chat("hello", stream=True)))
        connection.getresponse().read(20)
        connection.close()
        assert closed.wait(30)
        proxy.settled(1)
        assert proxy.figures()["open"] == 0
    with vmstore.open(path, "r") as store:
        (info,) = store.sessions()
        response = store.session(info.session).wire.response(call=1)
    assert (response.status, response.messages[0]["content"]) == ("aborted", "In ")


def test_a_client_that_hangs_up_before_its_answer_ends_the_call(path: Path) -> None:
    """An upstream that never answers is let go with its client; the call is aborted, others pass meanwhile."""
    closed = threading.Event()

    def act(request: RawRequest, connection: socket.socket) -> None:
        if b"never" in request.body:
            if connection.recv(1) == b"":
                closed.set()
        else:
            saying()(request, connection)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        connection = proxy.connection()
        connection.request("POST", CHAT, json.dumps(chat("never")), {"x-vmstore-session": "s"})
        until(lambda: far.seen)
        assert proxy.say("hello", headers={"x-vmstore-session": "s"}).status == 200
        connection.close()
        assert closed.wait(30)
        proxy.settled(2)
    assert sorted(status for status, _ in calls(path)) == ["aborted", "ok"]


def test_a_body_of_100_mb_passes_and_is_recorded(path: Path) -> None:
    """A hundred megabytes reach the upstream as they are, and the store holds them."""
    text = "x" * (100 << 20)
    body = json.dumps(chat(text)).encode()
    digests: list[str] = []

    def act(request: RawRequest, connection: socket.socket) -> None:
        digests.append(hashlib.sha256(request.body).hexdigest())
        saying()(request._replace(body=b""), connection)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.ask(body).status == 200
        assert digests == [hashlib.sha256(body).hexdigest()]
        figures = proxy.settled(1)
        assert (figures["recorded"], figures["problems"]) == (1, [])
    with vmstore.open(path, "r") as store:
        (info,) = store.sessions()
        session = store.session(info.session)
        assert len(session.content(session.pages()[0].page)) == len(text)


def test_a_body_beyond_what_is_held_passes_and_is_a_gap(path: Path) -> None:
    """A request over the bound of the writer is answered, and stands as a gap that says how large it was."""
    body = json.dumps(chat("x" * (129 << 20))).encode()
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.ask(body).status == 200
        assert proxy.settled(1)["gaps"] == 1
    ((status, error),) = calls(path)
    assert status == "gap" and str(len(body)) in str(error)


def test_a_body_that_is_no_json_passes_and_is_a_gap(path: Path) -> None:
    """What cannot be read as a request is the upstream's to refuse; here it is a gap."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        assert proxy.ask(b"{half").status == 200
        assert far.seen[0].body == b"{half"
        assert proxy.settled(1)["gaps"] == 1
    assert calls(path)[0][0] == "gap"


def test_a_slow_client_holds_up_its_upstream_and_nobody_else(path: Path) -> None:
    """Of an answer that its client does not read only a little is taken in; other calls pass."""
    sent = [0]
    block = b"data: " + b"x" * (1 << 20) + b"\n\n"

    def act(request: RawRequest, connection: socket.socket) -> None:
        if b"flood" not in request.body:
            saying()(request, connection)
            return
        begin_stream(connection)
        for _ in range(200):
            piece(connection, block)
            sent[0] += len(block)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        connection = proxy.connection()
        connection.request("POST", CHAT, json.dumps(chat("flood", stream=True)))
        response = connection.getresponse()
        seen = -1
        while sent[0] != seen:  # until the upstream cannot send any more
            seen = sent[0]
            for n in range(10):
                assert proxy.say(f"hello {n}", headers={"x-vmstore-session": "s"}).status == 200
        assert sent[0] < 32 << 20
        response.close()
        connection.close()


@LINUX
def test_a_killed_proxy_loses_no_call_that_was_answered(path: Path) -> None:
    """What clients had whole is in the store, and so is the call under way, with what had arrived of its answer."""
    holds = threading.Event()

    def act(request: RawRequest, connection: socket.socket) -> None:
        if b"slow" not in request.body:
            streaming("In ", "Japan.")(request, connection)
            return
        begin_stream(connection)
        piece(connection, events("I am ", done=False)[0])
        holds.wait(30)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        slow = proxy.connection()
        slow.request("POST", CHAT, json.dumps(chat("slow", stream=True)), {"x-vmstore-session": "slow"})
        slow.getresponse().read(20)
        writer = writer_of(proxy)
        for n in range(30):
            assert proxy.say(f"question {n}", headers={"x-vmstore-session": f"s{n % 5}"}).status == 200
        proxy.process.send_signal(signal.SIGKILL)
        proxy.process.wait()
        holds.set()
        until(lambda: not Path(f"/proc/{writer}").exists())
    with vmstore.open(path, "r") as store:
        assert sum(len(store.session(f"s{n}").calls()) for n in range(5)) == 30
        response = store.session("slow").wire.response(call=1)
    assert (response.status, response.messages[0]["content"]) == ("aborted", "I am ")


def test_a_proxy_that_dies_with_answers_unread_loses_no_call_under_way(path: Path) -> None:
    """A writer's socket ends in an error where the proxy had not read all it said: what had arrived is written."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "vmstore.proxy.writer_process"]
        writer = subprocess.Popen(command, stdin=theirs.fileno(), stderr=subprocess.PIPE, text=True)
    stream = ours.makefile("rb")
    ours.sendall(packed(FrameKind.OPEN, 0, OpenStore(str(path), "default", None, 10.0, "call", None)))
    assert (read_frame(stream) or (None,))[0] is FrameKind.READY
    body = json.dumps(chat("slow", stream=True)).encode()
    for call, session in ((1, "whole"), (2, "slow")):
        ours.sendall(packed(FrameKind.BEGIN, call, CallBegin(session, 1_800_000_000_000_000, "", [])))
        ours.sendall(frame(FrameKind.REQUEST, call, body))
    ours.sendall(packed(FrameKind.HEAD, 2, AnswerHead(200, "text/event-stream", "")))
    ours.sendall(frame(FrameKind.ANSWER, 2, events("I am ", done=False)[0]))
    ours.sendall(packed(FrameKind.END, 1, CallEnd(1_000, "Unreachable", "nobody is there")))
    select.select([ours], [], [])  # it said that the first is settled, which nobody reads
    stream.close()
    ours.close()
    _, problems = writer.communicate(timeout=60)
    assert (writer.returncode, problems) == (0, "")
    with vmstore.open(path, "r") as store:
        assert len(store.session("whole").calls()) == 1
        response = store.session("slow").wire.response(call=1)
    assert (response.status, response.messages[0]["content"]) == ("aborted", "I am ")


@LINUX
def test_a_killed_writer_is_replaced_and_what_it_had_not_settled_is_a_gap(path: Path) -> None:
    """Calls pass while there is no writer; each one is in the store, whole or as a gap that is counted."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("one", headers={"x-vmstore-session": "s"})
        proxy.settled(1)
        os.kill(writer_of(proxy), signal.SIGKILL)
        assert proxy.say("two", headers={"x-vmstore-session": "s"}).status == 200
        until(lambda: proxy.figures()["writer_restarts"])
        proxy.say("three", headers={"x-vmstore-session": "s"})
        figures = proxy.settled(3)
    assert (figures["recorded"] + figures["gaps"], figures["waiting"]) == (3, 0)
    assert [status for status, _ in calls(path)].count("ok") == figures["recorded"]


@LINUX
def test_a_writer_that_cannot_start_again_leaves_no_call_unsaid(path: Path) -> None:
    """Calls told to writers that ended before they were ready are gaps once one is, however often it took."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("one", headers={"x-vmstore-session": "s"})
        proxy.settled(1)
        away = path.rename(path.with_suffix(".away"))
        path.write_text("no store")
        os.kill(writer_of(proxy), signal.SIGKILL)
        count = 1

        def refused() -> bool:
            nonlocal count
            count += proxy.say("two", headers={"x-vmstore-session": "s"}).status == 200
            return any("cannot start" in problem for problem in proxy.figures()["problems"])

        until(refused)
        path.unlink()
        away.rename(path)
        until(lambda: proxy.figures()["writer_restarts"])
        proxy.say("three", headers={"x-vmstore-session": "s"})
        figures = proxy.settled(count + 1)
    assert (figures["calls"], figures["waiting"]) == (count + 1, 0)


def test_a_store_that_is_locked_harms_no_call(path: Path) -> None:
    """Calls are answered while somebody else holds the writers' lock, and are in the store afterwards, in order."""
    with vmstore.open(path) as other, upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        other.record("other", chat("hello"))
        with other._ns.engine.log.alone():
            for n in range(5):
                assert proxy.say(f"question {n}", headers={"x-vmstore-session": "s"}).status == 200
            assert proxy.figures()["recorded"] == 0
        assert proxy.settled(5)["gaps"] == 0
        asked = [other.session("s").wire.request(call=n)["messages"][0]["content"] for n in range(1, 6)]
    assert asked == [f"question {n}" for n in range(5)]


@LINUX
def test_a_full_disk_harms_no_call(path: Path) -> None:
    """Calls are answered while the writer can write nothing, and are in the store when it can again."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("before", headers={"x-vmstore-session": "s"})
        proxy.settled(1)
        writer = writer_of(proxy)
        before = resource.prlimit(writer, resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
        for n in range(3):
            assert proxy.say(f"question {n}", headers={"x-vmstore-session": "s"}).status == 200
        until(lambda: proxy.figures()["problems"])
        assert proxy.figures()["recorded"] == 1
        resource.prlimit(writer, resource.RLIMIT_FSIZE, before)
        assert proxy.settled(4)["gaps"] == 0
    assert [status for status, _ in calls(path)] == ["ok"] * 4


def test_a_stopped_proxy_finishes_what_is_under_way(path: Path) -> None:
    """SIGTERM lets an answer under way end, and the proxy leaves once every call is in the store."""
    goes = threading.Event()

    def act(request: RawRequest, connection: socket.socket) -> None:
        begin_stream(connection)
        piece(connection, events("In ", done=False)[0])
        goes.wait(30)
        for data in events("Japan."):
            piece(connection, data)
        end_stream(connection)

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        connection = proxy.connection()
        connection.request("POST", CHAT, json.dumps(chat("hello", stream=True)))
        response = connection.getresponse()
        response.read(20)
        proxy.process.terminate()
        goes.set()
        assert response.read().endswith(b"data: [DONE]\n\n")
        assert proxy.process.wait(60) == 0
    assert calls(path) == [("ok", None)]
