"""The command that serves the debugger."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import vmstore
from tests.conftest import CHECKOUT
from tests.log.test_upgrade import golden, old_log
from tests.test_house import WALL
from vmstore.debug import assets, serve
from vmstore.errors import InputError
from vmstore.shell.main import main

# The command with a page of the test's own, whether one is built or not.
WITH_PAGE = """
import pathlib, sys
from vmstore.debug import assets
assets.FOLDER = pathlib.Path(sys.argv.pop(1))
from vmstore.shell.main import main
sys.exit(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two sessions."""
    with vmstore.open(tmp_path / "agent.vms") as store:
        for name in ("s1", "s 2"):
            store.record(name, {"model": "m", "messages": [{"role": "user", "content": "hello"}]})
    return tmp_path / "agent.vms"


def test_it_serves_until_it_is_stopped(path: Path, page: Path) -> None:
    """It prints the address, with the session in it, answers there, and leaves with 130 at Ctrl-C, clients or not."""
    command = [sys.executable, "-c", WITH_PAGE, str(page), "debug", str(path), "s 2", "--port", "0", "--json"]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        document = json.loads(process.stdout.readline())
        assert document["url"] == f"http://127.0.0.1:{document['port']}/#session=s%202"
        with urllib.request.urlopen(f"http://127.0.0.1:{document['port']}/api/store", timeout=30) as response:
            assert [session["session"] for session in json.load(response)["sessions"]] == ["s 2", "s1"]
        with urllib.request.urlopen(f"http://127.0.0.1:{document['port']}/api/live", timeout=30) as listener:
            assert listener.readline() == b"retry: 2000\n"
            process.send_signal(signal.SIGINT)
            assert (process.wait(30), process.stderr.read()) == (130, "")


def test_other_machines_need_the_token_and_see_no_secrets(tmp_path: Path, page: Path) -> None:
    """Where others can reach it the address has a token, nothing is answered without it, and secrets are masked."""
    key = "ghp_" + "a1B2" * 9
    with vmstore.open(tmp_path / "agent.vms") as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": f"my key is {key}"}]})
    command = [sys.executable, "-c", WITH_PAGE, str(page), "debug", str(tmp_path / "agent.vms")]
    command += ["--host", "0.0.0.0", "--port", "0", "--json"]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.readline())
        token = document["url"].partition("?token=")[2]
        assert len(token) > 30
        base = f"http://127.0.0.1:{document['port']}/api"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{base}/store", timeout=30)
        for asked in ("texts?at=4", "request?call=1", "film?", "vmql?q=CONTEXT+AT+CALL+1+RENDER"):
            with urllib.request.urlopen(f"{base}/{asked}&token={token}", timeout=30) as response:
                content = response.read().decode()
            assert "my key is" in content and key not in content
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_port_in_use_is_refused_with_one_that_is_free(
    path: Path, page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port that was told is taken or the reason and a free one are said; the usual one gives way to the next."""
    monkeypatch.setattr(assets, "FOLDER", page)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["debug", str(path), "--port", str(port)]) == 1
        err = capsys.readouterr().err
        assert f"port {port} is in use; port " in err and "--port 0 for any" in err
        free = int(err.partition("--port ")[2].partition(",")[0])
        serve.listening("127.0.0.1", free).close()
        monkeypatch.setattr(serve, "PORT", port)
        with serve.listening("127.0.0.1", None) as actual_socket:
            assert actual_socket.getsockname()[1] != port


def test_an_address_nobody_has_is_refused() -> None:
    """A host that is not this machine's is refused with what to name instead."""
    with pytest.raises(InputError, match="name another with --host and --port"):
        serve.listening("no-such-host.invalid", 0)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["{path}", "s3"], 1, "there is no session 's3'"),
        (["{path}/nothing"], 1, "there is no store at"),
        (["{path}", "--port", "70000"], 2, "is no port from 0 to 65535"),
        (["{path}", "--prot", "7000"], 2, "the nearest is --port"),
    ],
)
def test_what_cannot_be_served_is_said(
    path: Path, words: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session, a store and a port that are not there are refused before anything is served."""
    assert main(["debug", *(word.format(path=path) for word in words)]) == code
    assert text in capsys.readouterr().err


def test_a_store_of_another_format_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store of an older format is refused with the command that brings it up to date."""
    old_log(tmp_path / "old.vms" / "default" / "log.sqlite", golden())
    assert main(["debug", str(tmp_path / "old.vms")]) == 1
    assert "run `vmstore upgrade`" in capsys.readouterr().err


def test_without_its_page_it_says_how_to_get_it(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation without the built page names what builds it."""
    monkeypatch.setattr(assets, "FOLDER", tmp_path)
    assert main(["debug", str(path), "--port", "0"]) == 1
    assert "npm run build" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_how_to_get_it(path: Path, missing: str) -> None:
    """Without the packages of the extra the command names the pip line."""
    run = WALL.replace("sys.argv[1:]", repr([missing])) + (
        f"from vmstore.shell.main import main\nsys.exit(main(['debug', {str(path)!r}]))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, env=env, check=False, timeout=60)
    assert done.returncode == 1 and "pip install 'vmstore[debug]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_help_loads_nothing_of_the_web() -> None:
    """The command's help, and every other command, do without what serves the page."""
    code = "import sys\nfrom vmstore.shell.main import main\ntry:\n    main(['debug', '--help'])\nfinally:\n"
    code += "    print(*{name.partition('.')[0] for name in sys.modules})"
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False, timeout=60
    )
    assert "--port" in done.stdout and {"starlette", "uvicorn", "apsw"}.isdisjoint(done.stdout.split())
