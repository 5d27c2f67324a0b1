"""`vmstore chat` without a screen: lists of prompts, sessions asked again, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from tests.sdk.provider import Provider, serving
from tests.shell.conftest import Run
from vmstore.errors import InputError
from vmstore.shell.commands.data import chat


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider on this machine."""
    with serving() as served:
        yield served


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """A list of two prompts."""
    path = tmp_path / "cities.txt"
    path.write_text("Where is Kyoto?\nAnd Osaka?\n")
    return path


def lines(out: str) -> list[dict[str, Any]]:
    """The objects of an answer that has one a line."""
    return [json.loads(line) for line in out.splitlines()]


def test_a_list_is_answered_and_gone_on_with(run: Run, tmp_path: Path, provider: Provider, prompts: Path) -> None:
    """A list ends where the provider fails, with 1; the same command goes on there, and its answers are objects."""
    words = ["chat", tmp_path / "a.vms", "--base-url", f"{provider.url}/v1", "--prompts", prompts]
    failed = run(*words, "--model", "down")
    assert failed.code == 1 and "0 of 2 prompts answered" in failed.err and "slow down" in failed.err
    done = run(*words, "--model", "m-1", "--json")
    assert done.code == 0 and [answer["answer"] for answer in lines(done.out)] == ["In Japan."] * 2
    again = run(*words, "--json")
    assert again.out == done.out and "2 of 2 prompts answered before" in again.err
    assert [seen.body["model"] for seen in provider.seen] == ["down", "m-1", "m-1"]


def test_a_list_is_read_by_people(run: Run, tmp_path: Path, provider: Provider, prompts: Path) -> None:
    """Without --json each prompt stands over its answer."""
    answer = run("chat", tmp_path / "a.vms", "--model", "m-1", "--base-url", f"{provider.url}/v1", "--prompts", prompts)
    assert answer.out == "> Where is Kyoto?\nIn Japan.\n\n> And Osaka?\nIn Japan.\n\n"


def test_a_session_is_asked_again(run: Run, tmp_path: Path, provider: Provider, prompts: Path) -> None:
    """What a person said in a session is asked in another, of another model, and the two can be compared."""
    path = tmp_path / "a.vms"
    run("chat", path, "--model", "m-1", "--base-url", f"{provider.url}/v1", "--prompts", prompts, "--system", "Hi.")
    words = ("chat", path, "--provider", "anthropic", "--base-url", provider.url, "--model", "m-2")
    done = run(*words, "--replay", "cities", "--json")
    assert done.code == 0 and [answer["asked"] for answer in lines(done.out)] == ["Where is Kyoto?", "And Osaka?"]
    assert provider.seen[-1].path == "/v1/messages" and "Hi." in str(provider.seen[-1].body["system"])
    with vmstore.open(path) as store:
        assert {info.session for info in store.sessions()} == {"cities", "cities-m-2"}


def test_prompts_come_through_a_pipe(tmp_path: Path, provider: Provider) -> None:
    """A process without a terminal reads its prompts from the standard input."""
    command = [sys.executable, "-m", "vmstore", "chat", tmp_path / "a.vms", "--model", "m-1", "--prompts", "-"]
    done = subprocess.run(
        [*command, "--base-url", f"{provider.url}/v1"], input=b"Where?\n", capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"> Where?\nIn Japan.\n\n"), done.stderr


def test_ctrl_c_ends_a_list_that_is_gone_on_with(run: Run, tmp_path: Path, provider: Provider, prompts: Path) -> None:
    """Interrupted amid an answer the command ends with 130, the call is logged as aborted, and the list goes on."""
    words = ["chat", str(tmp_path / "a.vms"), "--base-url", f"{provider.url}/v1", "--prompts", str(prompts)]
    command = [sys.executable, "-m", "vmstore", *words, "--model", "waits"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
        deadline = threading.Event()
        while not provider.seen and asking.poll() is None:
            deadline.wait(0.02)
        deadline.wait(0.2)
        asking.send_signal(signal.SIGINT)
        assert asking.wait(30) == 130
    provider.released.set()
    assert run(*words, "--model", "m-1").out.count("In Japan.") == 2
    with vmstore.open(words[1]) as store:
        assert [call.status for call in store.session("cities").calls()] == ["aborted", "ok", "ok"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--model", "m-1", "--base-url", "http://127.0.0.1:9/v1"), "--prompts"),
        (("--prompts", "nothing.txt", "--base-url", "http://127.0.0.1:9/v1", "--model", "m-1"), "nothing.txt"),
        (("--prompts", "{list}", "--base-url", "http://127.0.0.1:9/v1"), "--model"),
        (("--prompts", "{list}", "--base-url", "what", "--model", "m-1"), "'what'"),
        (("--prompts", "{list}", "--model", "m-1"), "OPENAI_API_KEY"),
        (("--prompts", "{list}", "--model", "m-1", "--key-env", "NO_KEY"), "NO_KEY"),
    ],
)
def test_what_is_missing_is_named(
    run: Run, tmp_path: Path, prompts: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], named: str
) -> None:
    """Without a terminal, a file, a model, an address or a key the command ends with 1 and says what to give."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    answer = run("chat", tmp_path / "a.vms", *(word.format(list=prompts) for word in words))
    assert answer.code == 1 and named in answer.err and answer.out == ""


def test_a_key_goes_only_where_it_is_named(
    run: Run, tmp_path: Path, provider: Provider, prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the provider's own address is not sent to another; --key-env sends the one that it names."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-own")
    monkeypatch.setenv("OTHER", "sk-other")
    words = ("chat", tmp_path / "a.vms", "--model", "m-1", "--base-url", f"{provider.url}/v1", "--prompts", prompts)
    run(*words)
    run(*words[:2], "b", *words[2:], "--key-env", "OTHER")
    keys = [seen.authorization for seen in provider.seen]
    assert keys == [None, None, "Bearer sk-other", "Bearer sk-other"]


def test_a_chat_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where textual is missing the screen is refused with the extra that brings it."""
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.delitem(sys.modules, "vmstore.chat.screens.app", raising=False)
    with refused("input", InputError, "pip install 'vmstore[chat]'"):
        chat._screens()


def test_lists_load_no_screen() -> None:
    """The command loads textual for a screen alone: not for its help, nor for what asks a list."""
    code = "import sys, vmstore.chat.prompts, vmstore.shell.commands.data.chat; assert 'textual' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
