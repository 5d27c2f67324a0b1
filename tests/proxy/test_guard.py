"""Who may use the proxy, what it refuses at its start, and that no key is ever written down."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import vmstore
from tests.proxy.running import CHAT, proxied
from tests.proxy.upstream import RawRequest, saying, send, upstream
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.proxy.ports import port_settings, upstreams_of

KEY = "sk-proj-Zk3vQ8xW1bT7yR5nM2pL9cD4"


def everything(folder: Path) -> bytes:
    """The bytes of every file of a store."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_keys_pass_and_are_never_written(path: Path) -> None:
    """A key in header, address and body reaches the upstream, and no file of the store and no figure holds it."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        send(connection, json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}).encode(), status="401 No")

    with upstream(act) as far, proxied(path, "--upstream", far.url) as proxy:
        for headers, query in (
            ({"authorization": f"Bearer {KEY}"}, ""),
            ({"x-api-key": KEY}, ""),
            ({"x-goog-api-key": KEY}, ""),
            ({"cookie": f"a=b; session={KEY}"}, ""),
            ({}, f"?key={KEY}"),
        ):
            assert KEY.encode() in proxy.say(f"my key is {KEY}", path=CHAT + query, headers=headers).body
        figures = proxy.settled(5)
        assert figures["recorded"] == 5
        assert KEY not in json.dumps(figures)
        assert all(KEY in f"{request.line} {request.headers}" and KEY.encode() in request.body for request in far.seen)
    assert KEY.encode() not in everything(path)
    with vmstore.open(path, "r") as store:
        first = store.session(store.sessions()[0].session)
        assert first.wire.request(call=1)["messages"][0]["content"] == "my key is [API key]"


def test_a_key_in_an_address_that_cannot_be_reached_is_not_said(path: Path) -> None:
    """The refusal of an upstream that is not there names no key."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with proxied(path, "--upstream", url) as proxy:
        reply = proxy.ask({"contents": []}, path=f"/v1beta/models/g:generateContent?key={KEY}")
        assert reply.status == 502
        assert KEY.encode() not in reply.body
        assert KEY not in json.dumps(proxy.settled(1))
    assert KEY.encode() not in everything(path)


def test_secrets_of_others_are_masked_where_it_is_asked(path: Path) -> None:
    """With --redact mask a key that is no key of the call is masked too, and the upstream gets it as it is."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, "--redact", "mask") as proxy:
        proxy.say(f"api_key = '{KEY}'")
        proxy.settled(1)
        assert KEY.encode() in far.seen[0].body
    assert KEY.encode() not in everything(path)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:80"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_a_page_of_a_website_is_refused(path: Path, headers: dict[str, str]) -> None:
    """A request under another name, or of a page, reaches no upstream; what to do stands in the answer."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        reply = proxy.say("hello", headers=headers)
        assert (reply.status, far.seen) == (403, [])
        assert reply.json()["error"]["remedy"]
        assert proxy.figures()["refused"] == 1


def test_other_machines_need_the_token(path: Path) -> None:
    """Open to the network, the proxy takes requests with its token alone, and passes the token to nobody."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url, "--host", "0.0.0.0") as proxy:
        assert proxy.say("hello").status == 401
        assert proxy.say("hello", headers={"x-vmstore-token": "wrong"}).status == 401
        assert far.seen == []
        assert proxy.say("hello", headers={"x-vmstore-token": proxy.token, "host": "box.lan"}).status == 200
        assert far.seen[0].header("x-vmstore-token") is None


def test_a_websocket_is_refused_and_a_gap(path: Path) -> None:
    """What cannot be forwarded is said to the client, and stands in the store."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        headers = {"connection": "upgrade", "upgrade": "websocket"}
        assert proxy.send("GET", "/v1/realtime", headers=headers).status == 501
        assert proxy.settled(1)["gaps"] == 1


def test_figures_are_served_for_prometheus(path: Path) -> None:
    """The counts are there as text that Prometheus scrapes."""
    with upstream(saying()) as far, proxied(path, "--upstream", far.url) as proxy:
        proxy.say("hello")
        proxy.settled(1)
        lines = proxy.send("GET", "/vmstore/metrics").body.decode().splitlines()
    assert "vmstore_proxy_recorded_total 1" in lines
    assert "# TYPE vmstore_proxy_waiting gauge" in lines


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x", "not-a-port"),
        ("70000", "not-a-port"),
        ("1=ftp://x", "not-an-upstream"),
        ("1=https://u:p@x", "not-an-upstream"),
        ("1=anthropic,budget=3", "no-port-setting"),
        ("1=anthropic,session=", "no-port-setting"),
        ("1=anthropic,redact=maybe", "no-redaction"),
    ],
)
def test_a_port_that_says_nothing_usable_is_refused(text: str, code: str) -> None:
    """What is wrong with a port's text is named."""
    with refused(code, InputError):
        port_settings(text, upstreams_of([]))


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A proxy that does not get far."""
    command = [sys.executable, "-m", "vmstore", "proxy", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_store_that_cannot_be_opened_ends_the_start(tmp_path: Path) -> None:
    """A path that can be no store is refused before anything is forwarded."""
    (tmp_path / "file").write_text("x")
    done = started(str(tmp_path / "file"), "--port", "0")
    assert done.returncode == 1
    assert "file" in done.stderr and "Traceback" not in done.stderr


def test_a_port_that_is_taken_ends_the_start(path: Path) -> None:
    """The refusal names the port and one that is free, and no store is made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = started(str(path), "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "is in use" in done.stderr
    assert not path.exists()
