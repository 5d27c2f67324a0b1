"""MCP over its two transports: who may ask, and the answers to what is no request."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.integrations.mcp.serving import ENV, Listening, fill, over_http
from vmstore.integrations.mcp.http import BODY_BYTES_MAX
from vmstore.integrations.mcp.stdio import LINE_BYTES_MAX
from vmstore.shell.main import main

TOKEN = "correct-horse-battery-staple"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HUNDRED_MB = 100_000_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the sessions trip and harbour."""
    return fill(tmp_path_factory.mktemp("mcp") / "agent.vms")


@pytest.fixture(scope="module")
def listening(path: Path) -> Iterator[Listening]:
    """A server over HTTP without a token."""
    with over_http(path) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(path: Path) -> Iterator[Listening]:
    """A server over HTTP that asks for a token; at its end neither its address nor what it wrote holds that."""
    token = path.parent / "token"
    token.write_text(TOKEN + "\n")
    with over_http(path, "--token-file", str(token)) as server:
        yield server
    assert TOKEN not in "".join((server.url, *server.written))


def post(port: int, content: bytes, headers: dict[str, str], path: str = "/mcp") -> tuple[int, dict[str, str], Any]:
    """The status, headers and body of a POST."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, content, ACCEPT | headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    try:
        return answer.status, dict(answer.getheaders()), json.loads(text)
    except ValueError:
        return answer.status, dict(answer.getheaders()), text


def names(url: str, headers: dict[str, str] | None = None) -> list[str]:
    """The sessions of a server over HTTP, as the official client gets them."""

    async def work() -> list[str]:
        async with httpx2.AsyncClient(headers=headers) as sender:
            async with Client(streamable_http_client(url, http_client=sender)) as client:
                status = await client.call_tool("domain_status", {"session": "trip"})
                sessions: list[str] = status.structured_content["sessions"]
                return sessions

    return anyio.run(work)


def test_the_official_client_asks_over_http(listening: Listening) -> None:
    """A client of the package itself is answered over streamable HTTP."""
    assert names(listening.url) == ["harbour", "trip"]


def test_it_stops_at_ctrl_c_with_nothing_to_say(path: Path) -> None:
    """The command ends at Ctrl-C, and wrote no line but its address."""
    with over_http(path) as server:
        names(server.url)
    assert server.written == ["", ""]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1:1", "localhost"])
def test_another_host_is_refused(listening: Listening, host: str) -> None:
    """A name that another site could have resolved to this machine is refused in words."""
    status, _, answer = post(
        listening.port, json.dumps(INITIALIZE).encode(), {"host": host.format(**listening._asdict())}
    )
    assert (status, answer["error"]["reason"]) == (403, "this server goes by another name")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil:80"])
def test_another_origin_is_refused(listening: Listening, origin: str) -> None:
    """A page of another site is refused, and told so."""
    status, _, answer = post(listening.port, json.dumps(INITIALIZE).encode(), {"origin": origin})
    assert (status, answer["error"]["reason"]) == (403, "a page of another site asks (origin)")


def test_another_method_is_refused(listening: Listening) -> None:
    """A method the protocol has not, as a browser's OPTIONS before it asks, is refused with those there are."""
    connection = http.client.HTTPConnection("127.0.0.1", listening.port, timeout=30)
    connection.request("OPTIONS", "/mcp")
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("allow")) == (405, "POST, GET, DELETE")


@pytest.mark.parametrize("content", [b"{", b"", b"[]", b'{"jsonrpc":"1.0","id":1,"method":"x"}', b"\xff\xfe"])
def test_what_is_no_message_is_answered(listening: Listening, content: bytes) -> None:
    """A body that is no JSON-RPC message gets 400 and a JSON-RPC error, and the server goes on."""
    status, _, answer = post(listening.port, content, {})
    assert status == 400 and answer["error"]["code"] in (-32700, -32600, -32602)
    assert names(listening.url) == ["harbour", "trip"]


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
def test_a_body_of_100_mb_is_answered(listening: Listening, is_chunked: bool) -> None:
    """A body far over the limit is refused in words once it is sent, and none of it is kept."""

    def body() -> Iterator[bytes]:
        for _ in range(HUNDRED_MB >> 20):
            yield b"x" * (1 << 20)

    connection = http.client.HTTPConnection("127.0.0.1", listening.port, timeout=60)
    length = {} if is_chunked else {"content-length": str(HUNDRED_MB >> 20 << 20)}
    connection.request("POST", "/mcp", body(), ACCEPT | length, encode_chunked=is_chunked)
    answer = connection.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["error"]["reason"] == f"the body is larger than {BODY_BYTES_MAX >> 20} MiB"
    assert names(listening.url) == ["harbour", "trip"]


def test_an_unknown_mcp_session_is_answered(listening: Listening) -> None:
    """A request that names an MCP session nobody opened gets 404, as the protocol has it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    status, _, answer = post(listening.port, json.dumps(message).encode(), {"mcp-session-id": "0" * 32})
    assert (status, answer["error"]["message"]) == (404, "Session not found")


def test_the_token_is_asked_for(guarded: Listening) -> None:
    """Without the token, or with another, nothing is answered; with it in the header all is."""
    content = json.dumps(INITIALIZE).encode()
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}, {"cookie": TOKEN}):
        status, type_found, answer = post(guarded.port, content, headers)
        assert (status, type_found["www-authenticate"]) == (401, "Bearer")
        assert TOKEN not in json.dumps(answer)
    assert names(guarded.url, {"Authorization": f"Bearer {TOKEN}"}) == ["harbour", "trip"]


@pytest.mark.parametrize("query", [f"token={TOKEN}", f"access_token={TOKEN}", f"x={TOKEN}"])
def test_a_token_in_the_address_is_refused_and_never_logged(guarded: Listening, path: Path, query: str) -> None:
    """A token in an address is refused even if it is right, and stands in no answer."""
    content = json.dumps(INITIALIZE).encode()
    for headers in ({}, {"authorization": f"Bearer {TOKEN}"}):
        status, type_found, answer = post(guarded.port, content, headers, f"/mcp?{query}")
        assert status == 400 and "has a query" in answer["error"]["reason"]
        assert TOKEN not in json.dumps([type_found, answer])


def test_the_token_is_never_written(guarded: Listening) -> None:
    """Requests that fail with the token in any place are answered without it; the fixture reads what was logged."""
    for target in ("/mcp", f"/{TOKEN}"):
        for headers in ({"host": TOKEN}, {"origin": TOKEN}, {"mcp-session-id": TOKEN}, {"content-type": TOKEN}):
            answer = post(guarded.port, b"{", {"authorization": f"Bearer {TOKEN}"} | headers, target)
            assert TOKEN not in json.dumps(answer)


@pytest.mark.parametrize("text", ["short", "two words of a token", "ünïcödé-is-no-header"])
def test_a_token_is_one_long_word(path: Path, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A token that is short or no word is refused at the start, with the command that makes one, and not shown."""
    (tmp_path / "token").write_text(text)
    assert main(["mcp", str(path), "--http", "--port", "0", "--token-file", str(tmp_path / "token")]) == 1
    message = capsys.readouterr().err
    assert "openssl rand -hex 32" in message and text not in message


def lines(path: Path, *messages: bytes) -> list[dict[str, Any]]:
    """The answers of `vmstore mcp` to lines on its standard input."""
    command = [sys.executable, "-m", "vmstore", "mcp", str(path), "--quiet"]
    asked = b"".join(message + b"\n" for message in messages)
    done = subprocess.run(command, input=asked, capture_output=True, env=ENV, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_broken_line_is_answered_and_the_next_one_too(path: Path) -> None:
    """A line that is no JSON-RPC message gets a parse error, and the session goes on."""
    answers = lines(path, b"{", json.dumps(INITIALIZE).encode(), b"[1", b"\xff")
    errors = [answer["error"] for answer in answers if "error" in answer]
    assert [error["code"] for error in errors] == [-32700] * 3
    assert "no JSON-RPC message" in errors[0]["message"]
    assert [answer["result"]["serverInfo"]["name"] for answer in answers if "result" in answer] == ["vmstore"]


def test_a_line_that_is_too_long_is_answered(path: Path) -> None:
    """Of a line over the limit nothing is kept: it is refused in words, and the next one is answered."""
    answers = lines(path, b"x" * (LINE_BYTES_MAX + 10), json.dumps(INITIALIZE).encode())
    assert [answer.get("error", {}).get("message", "")[:22] for answer in answers] == ["a message is longer th", ""]


def test_an_unknown_method_is_answered(path: Path) -> None:
    """A method there is not gets the error of JSON-RPC for it."""
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    unknown = {"jsonrpc": "2.0", "id": 2, "method": "memory/forget"}
    answers = lines(path, *(json.dumps(request).encode() for request in (INITIALIZE, begun, unknown)))
    assert [answer["error"]["code"] for answer in answers if answer["id"] == 2] == [-32601]


def test_options_of_http_need_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A port or a token without --http is refused: over standard input there is neither."""
    assert main(["mcp", str(path), "--port", "7"]) == 1
    assert "--http" in capsys.readouterr().err


def test_a_store_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A server that only reads makes no store, and an unknown session is refused at the start."""
    assert main(["mcp", str(tmp_path / "none.vms")]) == 1
    assert not (tmp_path / "none.vms").exists()
    fill(tmp_path / "agent.vms")
    assert main(["mcp", str(tmp_path / "agent.vms"), "--session", "nobody"]) == 1
    assert "'nobody'" in capsys.readouterr().err
