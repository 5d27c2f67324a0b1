"""A store with a small recorded session, and the command run in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import vmstore
from vmstore.shell.main import main

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = {"role": "system", "content": "You are helpful."}
CALL = {"id": "c1", "type": "function", "function": {"name": "list_files", "arguments": "{}"}}
OUTPUT = "naïve.py 漢字.txt\n" * 40


class Answer(NamedTuple):
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer as a value; it must be one JSON object."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


Run = Callable[..., Answer]
Process = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process, its output as in a pipe."""
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: object) -> Answer:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def process() -> Process:
    """Runs the command as a process of its own."""

    def process(*words: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "vmstore", *map(str, words)]
        env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        return subprocess.run(command, capture_output=True, timeout=60, env=env, check=False)

    return process


def requests() -> list[list[Any]]:
    """The messages of the four calls of session `s1`; before the last one a tool's output is cut short."""
    first: list[Any] = [SYSTEM, {"role": "user", "content": "hello there"}]
    second = [*first, {"role": "assistant", "content": "hi!"}, {"role": "user", "content": "list the files"}]
    asked = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    third = [*second, asked, {"role": "tool", "tool_call_id": "c1", "content": OUTPUT}]
    short = {"role": "tool", "tool_call_id": "c1", "content": "Old output omitted"}
    fourth = [*third[:-1], short, {"role": "user", "content": "and now?"}]
    return [first, second, third, fourth]


def answer(text: str | None, calls: list[Any] | None = None) -> dict[str, Any]:
    """A chat-completions response."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    return {"id": "x", "model": "gpt-4o", "choices": [choice], "usage": usage}


def record_s1(store: vmstore.Store, name: str = "s1") -> None:
    """Records the four calls."""
    replies = [answer("hi!"), answer(None, [CALL]), None, None]
    for messages, reply in zip(requests(), replies, strict=True):
        store.record(name, {"model": "gpt-4o", "messages": messages, "temperature": 0.1}, reply)


@pytest.fixture
def recorded(store_path: Path) -> Path:
    """A store that holds the recorded session `s1`."""
    with vmstore.open(store_path) as store:
        record_s1(store)
    return store_path


@pytest.fixture
def two(recorded: Path) -> Path:
    """The same with a second session, `s2`."""
    with vmstore.open(recorded) as store:
        record_s1(store, "s2")
    return recorded


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A file of chat messages with a decision, what it was made from and what replaced it."""
    lines = [
        {"vm": {"session": "plan", "title": "A plan"}},
        {"role": "user", "content": "Which database?", "vm": {"id": "m1", "at": "2026-03-02T09:00:00Z"}},
        {"role": "assistant", "content": "SQLite.", "vm": {"id": "m2", "type": "claim", "derives": ["m1"]}},
        {"role": "user", "content": "Too slow for us.", "vm": {"id": "m3"}},
        {
            "role": "assistant",
            "content": "Postgres.",
            "vm": {"id": "m4", "type": "claim", "derives": ["m3"], "supersedes": ["m2"]},
        },
    ]
    path = tmp_path / "plan.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def planned(chat: Path, store_path: Path) -> Path:
    """A store that holds the chat file's session, `plan`."""
    with vmstore.open(store_path) as store:
        store.import_file(chat)
    return store_path


def log_bytes(store: Path) -> bytes:
    """The log of a store's default namespace."""
    return (store / "default" / "log.sqlite").read_bytes()
