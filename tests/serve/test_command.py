"""The commands: a server that is really started, over TLS too, and ends as it is told; tokens on the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from vmstore.shell.main import main

# The command with a page of the test's own, whether one is built or not.
WITH_PAGE = """
import pathlib, sys
from vmstore.debug import assets
assets.FOLDER = pathlib.Path(sys.argv.pop(1))
from vmstore.shell.main import main
sys.exit(main())
"""


@contextmanager
def started(page: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`vmstore serve` in a process of its own, and what it says of itself."""
    command = [sys.executable, "-c", WITH_PAGE, str(page), "serve", *words, "--port", "0", "--json"]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def made(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """A token, as the command shows it."""
    assert main(["token", "add", *words]) == 0
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order(
    path: Path, page: Path, tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """At SIGTERM it leaves with 0, at Ctrl-C with 130, listeners or not, and its output holds no token."""
    tokens = tmp_path / "team.tokens"
    secret = made(capsys, "ada", "--tokens", str(tokens))
    with started(page, str(path), "--tokens", str(tokens)) as (process, document):
        request = urllib.request.Request(
            f"{document['url']}/n/team-a/api/live", headers={"Authorization": f"Bearer {secret}"}
        )
        with urllib.request.urlopen(request, timeout=30) as listener:
            assert listener.readline() == b"retry: 2000\n"
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
        assert process.returncode == (0 if number == signal.SIGTERM else 130)
        assert "Traceback" not in err and secret not in out + err and secret not in json.dumps(document)


def test_it_serves_over_tls(path: Path, page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a certificate it answers over TLS alone, and a client that knows the certificate is let in by its token."""
    if shutil.which("openssl") is None:
        pytest.skip("a certificate is made with openssl: apt-get install openssl")
    cert, key, tokens = (tmp_path / name for name in ("cert.pem", "key.pem", "team.tokens"))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    secret = made(capsys, "ada", "--tokens", str(tokens), "--namespace", "team-b")
    words = (str(path), "--tokens", str(tokens), "--cert", str(cert), "--key", str(key))
    with started(page, *words) as (_, document):
        url = f"https://localhost:{document['port']}/namespaces"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {secret}"})
        trusting = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(request, timeout=30, context=trusting) as answer:
            assert json.load(answer) == {"namespaces": ["team-b"]}
        with pytest.raises(urllib.error.URLError) as distrusted:
            urllib.request.urlopen(request, timeout=30)
        assert isinstance(distrusted.value.reason, ssl.SSLCertVerificationError)
        with pytest.raises(OSError):
            urllib.request.urlopen(url.replace("https", "http"), timeout=30)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--host", "0.0.0.0"], "--tokens"),
        (["--public", "https://memory.example"], "--tokens"),
        (["--cert", "cert.pem"], "--key"),
        (["--cert", "no.pem", "--key", "no.key"], "no.pem"),
        (["--tokens", "no.tokens"], "vmstore token add"),
        (["--namespace", "team-a,nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_served_is_refused(
    path: Path, words: list[str], named: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that would let in anybody, or that lacks a file or a namespace, does not start, and says what to do."""
    monkeypatch.chdir(path.parent)
    assert main(["serve", str(path), "--port", "0", *words]) == 1
    assert named in capsys.readouterr().err


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A token is shown once, the list names it without a digest, and one that was revoked is in it no more."""
    file = ["--tokens", str(tmp_path / "team.tokens")]
    assert main(["token", "list", *file]) == 1
    assert "vmstore token add" in capsys.readouterr().err
    secret = made(capsys, "ada", *file, "--role", "metrics", "--namespace", "team-a,team-b", "--days", "30")
    assert main(["token", "list", *file, "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["tokens"]
    assert (shown["name"], shown["role"], shown["namespaces"]) == ("ada", "metrics", ["team-a", "team-b"])
    assert shown["until"] - shown["made"] == 30 * 24 * 3600 * 10**6 and "sha256" not in shown
    assert main(["token", "add", "ada", *file]) == 1
    assert main(["token", "list", *file]) == 0
    listed = capsys.readouterr().out
    assert "ada" in listed and "team-a, team-b" in listed and secret not in listed
    assert main(["token", "revoke", "ada", *file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"revoked": "ada"}
    assert main(["token", "list", *file]) == 0
    assert "no token" in capsys.readouterr().err
    assert main(["token", "revoke", *file]) == 1
    assert "NAME" in capsys.readouterr().err
