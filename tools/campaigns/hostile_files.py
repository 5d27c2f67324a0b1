"""The hostile inputs of the campaign `outside` that are no copies of stores: session files, certificates, seals."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import zstandard
from campaigns.outside import AGAIN, CANARY, HERE, PRECIOUS, Hostile, Room

Values = list[Any]

# ---- session files: a small one of each format, and values that stand in every place of it

_AT = "2026-01-01T00:00:01Z"
_PARTS = [{"type": "text", "text": "hi"}]
SAMPLES: dict[str, Any] = {
    "pi": [
        {"type": "session", "id": "s-1", "timestamp": _AT, "cwd": "/w"},
        {"type": "message", "id": "a", "parentId": None, "timestamp": _AT,
         "message": {"role": "user", "content": _PARTS}},
        {"type": "message", "id": "b", "parentId": "a", "timestamp": _AT,
         "message": {"role": "assistant", "content": _PARTS, "model": "m", "stopReason": "stop",
                     "usage": {"input": 3}}},
    ],
    "claude-code": [
        {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "s1", "isSidechain": False, "timestamp": _AT,
         "message": {"role": "user", "content": "hi"}},
        {"type": "assistant", "uuid": "b", "parentUuid": "a", "sessionId": "s1", "isSidechain": False, "timestamp": _AT,
         "message": {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": _PARTS,
                     "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 4}}},
    ],
    "codex": [
        {"timestamp": _AT, "type": "session_meta",
         "payload": {"id": "cx-1", "cwd": "/w", "base_instructions": {"text": "x"}}},
        {"timestamp": _AT, "type": "response_item",
         "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}},
        {"timestamp": _AT, "type": "response_item",
         "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}},
    ],
    "swe-agent": {"trajectory": [{"action": "ls", "observation": "x", "thought": "t", "response": "r", "state": "{}",
                                  "messages": [{"role": "system", "content": "s", "agent": "main"}]}],
                  "history": [{"role": "system", "content": "s", "agent": "main"},
                              {"role": "user", "content": "fix", "agent": "main"},
                              {"role": "assistant", "content": "t", "thought": "t", "action": "ls", "agent": "main"}],
                  "info": {"exit_status": "x"}},
    "tau-bench": [{"task_id": 1, "reward": 1.0, "info": {}, "trial": 0,
                   "traj": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}]}],
    "letta": {"name": "sam", "core_memory": [{"label": "human", "value": "x", "limit": 5}],
              "llm_config": {"model": "m"}, "tools": [], "in_context_message_indices": [0],
              "messages": [{"role": "user", "content": _PARTS, "tool_calls": [], "tool_returns": [], "name": None,
                            "tool_call_id": None, "created_at": _AT}]},
    "locomo": [{"sample_id": "c", "conversation": {"speaker_a": "Ann", "speaker_b": "Ben",
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "hi"}]},
                "qa": [{"question": "q", "answer": "a", "evidence": ["D1:1"], "category": 4}]}],
    "responses": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                  {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                  {"type": "function_call_output", "call_id": "c", "output": "x"}],
    "anthropic": [{"role": "user", "content": [{"type": "text", "text": "hi"}]},
                  {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}],
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "ok"}]}]},
    "chat-completions": [{"role": "user", "content": "hi"},
                         {"role": "assistant", "content": None, "tool_calls": [
                             {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                         {"role": "tool", "tool_call_id": "c", "content": "x"}],
}  # fmt: skip
EVIL: dict[str, Any] = {
    "a path": "../../../canary.vms/default/log.sqlite",
    "an absolute path": "/etc/passwd",
    "a surrogate": "\ud800",
    "a NUL": "a\0b",
    "escapes": "\x1b[2J\x1b]0;x\x07\r\n",
    "a giant number": 10**4000,
    "infinity": float("inf"),
    "no number": float("nan"),
    "minus one": -1,
    "2**63": 1 << 63,
    "a deep list": None,
    "a list": [],
    "an object": {},
    "truth": True,
    "nothing": None,
    "a long text": "x" * (1 << 19),
    "a moment": "99999-12-31T25:61:61Z",
}
LINES = ("pi", "claude-code", "codex")


def deep(levels: int) -> Any:
    """A list in lists."""
    actual: Any = []
    for _ in range(levels):
        actual = [actual]
    return actual


EVIL["a deep list"] = deep(190)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within one."""
    if way:
        yield way
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*way, key))


def put(value: Any, way: tuple[Any, ...], evil: Any) -> Any:
    """A value with another one in a place."""
    if not way:
        return evil
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[way[0]] = put(copied[way[0]], way[1:], evil)
    return copied


def written(format: str, value: Any) -> bytes:
    """A document, or records a line each."""
    if format in LINES:
        return b"".join(json.dumps(record).encode() + b"\n" for record in value)
    return json.dumps(value).encode()


def import_command(content: bytes, flags: Sequence[str], name: str, room: Room) -> Sequence[str]:
    """A file, and the command that imports it."""
    file = room.input_folder / name
    file.write_bytes(content)
    return ["import", str(room.path(HERE)), str(file), *flags]


def everywhere(format: str, word: str, room: Room) -> Sequence[str]:
    """Files of a format, in each of which one value is another: one command imports them all."""
    for nth, way in enumerate(places(SAMPLES[format])):
        (room.input_folder / f"f{nth}").write_bytes(written(format, put(SAMPLES[format], way, EVIL[word])))
    files = sorted(room.input_folder.glob("f*"), key=lambda file: int(file.name[1:]))
    return ["import", str(room.path(HERE)), *map(str, files)]


def crowd(count: int, parent: Callable[[int], str | None]) -> bytes:
    """A Claude Code file whose records name parents as they like."""
    record = SAMPLES["claude-code"][0]
    return written("claude-code", [{**record, "uuid": f"u{n}", "parentUuid": parent(n)} for n in range(count)])


def session_files() -> Iterator[Hostile]:
    """Session files of every format, and such that are hardly any."""
    for format in SAMPLES:
        for word in EVIL:
            yield Hostile("file", f"{word} everywhere in {format}", partial(everywhere, format, word))
    for name in ("../x.jsonl", "/etc/x", "a b", "\x1b[2J", "n" * 300, "", "vmstore"):
        yield Hostile(
            "file", f"as {name!r:.20}", partial(import_command, written("pi", SAMPLES["pi"]), ["--session", name], "x")
        )
    graphs: dict[str, tuple[int, Callable[[int], str | None]]] = {
        "a ring": (300, lambda n: f"u{(n + 1) % 300}"),
        "each its own parent": (300, lambda n: f"u{n}"),
        "parents to come": (300, lambda n: f"u{n + 1}"),
        "two rings": (100, lambda n: f"u{n ^ 1}"),
        "a fork at each of many": (4_000, lambda n: f"u{(n - 1) // 2 * 2}" if n else None),
        "a fork at each": (60, lambda n: f"u{max(n // 2 - 1, 0)}" if n else None),
        "a crowd of forks of one": (1_500, lambda n: "u0" if n else None),
        "no parents": (1_500, lambda n: None),
    }
    for word, (count, parent) in graphs.items():
        yield Hostile("file", word, partial(import_command, crowd(count, parent), [], "x.jsonl"))
    pi = SAMPLES["pi"]
    ring = [pi[0], *({**pi[1], "id": f"i{n}", "parentId": f"i{(n + 1) % 99}"} for n in range(99))]
    yield Hostile("file", "a ring in pi", partial(import_command, written("pi", ring), [], "x.jsonl"))
    whole = written("chat-completions", SAMPLES["chat-completions"])
    pieces = {
        "brackets": b"[" * (1 << 20),
        "closed brackets": b"[" * 100_000 + b"]" * 100_000,
        "objects": b'{"a":' * 100_000,
        "lists in a list": b"[" + b"[]," * 330_000 + b"[]]",
        "lines of lists": b"[[]]\n" * 200_000,
        "empty lines": b"\n" * (1 << 20),
        "messages": b'{"role":"user","content":"a"}\n' * 3_000,
        "no text": bytes(range(256)) * 4_096,
        "UTF-16": whole.decode().encode("utf-16"),
        "a mark before": b"\xef\xbb\xbf" + whole,
        "keys twice": b'{"messages":[],"messages":[{"role":"user","content":"x","role":"system"}]}',
        "half": whole[: len(whole) // 2],
        "a zip": b"PK\x03\x04" + bytes(1_000),
        "a long number": b'[{"role":"user","content":' + b"9" * 900_000 + b"}]",
        "1e400": b'[{"role":"user","content":"x","n":1e400}]',
        "NaN": b'[{"role":"user","content":"x","n":NaN}]',
    }
    for word, content in pieces.items():
        yield Hostile("file", word, partial(import_command, content, [], "x.jsonl"))
    packer = zstandard.ZstdCompressor(level=19)
    bombs = {
        "zeros": (bytes(1 << 20), 500),
        "lines": (b'{"type":"x"}\n' * 60_000, 50),
        "brackets": (b"[" * (1 << 20), 300),
        "lists": (b"[" + b"[]," * 300_000, 30),
    }
    for word, (content, times) in bombs.items():
        yield Hostile("file", f"a bomb of {word}", partial(bomb, content, times))
    yield Hostile(
        "file", "a bomb of many frames", partial(import_command, packer.compress(bytes(1 << 20)) * 4_000, [], "x.zst")
    )


def bomb(content: bytes, times: int, room: Room) -> Sequence[str]:
    """A packed file that holds a content so many times."""
    packer = zstandard.ZstdCompressor(level=19).compressobj()
    packed = b"".join(packer.compress(content) for _ in range(times)) + packer.flush()
    return import_command(packed, [], "x.jsonl.zst", room)


# ---- what lies where nobody looks twice


def discovered(room: Room) -> Sequence[str]:
    """Pipes, links and giants where sessions are looked for."""
    home = room.input_folder / "home"
    place = home / "projects" / "p"
    place.mkdir(parents=True)
    os.mkfifo(place / "a.jsonl")
    (place / "b.jsonl").symlink_to("/dev/zero")
    (place / "c.jsonl").symlink_to(room.path(PRECIOUS) / "letter.txt")
    (place / "d.jsonl").write_bytes(b"[" * (1 << 20))
    (place / "e.jsonl").write_bytes(crowd(50, lambda n: f"u{(n + 1) % 50}"))
    os.environ["CLAUDE_CONFIG_DIR"] = str(home)
    return ["import", "--discover"]


def restored(
    edit: Callable[[Room, dict[str, Any]], Any], flags: Sequence[str] = (), *, beside: bool = False
) -> Callable[[Room], Any]:
    """A sound backup, and a certificate that was written by somebody."""

    def make(room: Room) -> Sequence[str]:
        shutil.copytree(room.path("backup"), room.input_folder / "backup")
        folder = room.path(f"{AGAIN}.erasures") if beside else room.input_folder / "erasures"
        shutil.copytree(room.path("erased-page.vms.erasures"), folder)
        (file,) = folder.iterdir()
        other_edit = edit(room, json.loads(file.read_text()))
        if isinstance(other_edit, bytes):
            file.write_bytes(other_edit)
        elif other_edit is not None:
            file.write_text(json.dumps(other_edit))
        else:
            _replaced(file, room)
        named = [] if beside else ["--erasures", str(folder)]
        keys = [str(room.path("seal.key.pub")) if flag == "KEY" else flag for flag in flags]
        return ["restore", str(room.input_folder / "backup"), str(room.path(AGAIN)), *named, *keys]

    return make


def _replaced(file: Path, room: Room) -> None:
    file.unlink()
    os.mkfifo(file)


CERTIFICATES: dict[str, Callable[[Room, dict[str, Any]], Any]] = {
    "unsigned": lambda room, value: value,
    "signed with zeros": lambda room, value: {**value, "key": "00" * 32, "signature": "00" * 64},
    "a key without a signature": lambda room, value: {**value, "key": "11" * 32},
    "a signature without a key": lambda room, value: {**value, "signature": "11" * 64},
    "a short signature": lambda room, value: {**value, "key": "11" * 32, "signature": "11"},
    "no hex": lambda room, value: {**value, "key": "zz", "signature": "zz"},
    "of another kind": lambda room, value: {**value, "kind": "vmstore erasure 9"},
    "of another reason": lambda room, value: {**value, "reason": "because"},
    "of a giant ordinal": lambda room, value: {**value, "ordinal": 1 << 60},
    "of a negative place": lambda room, record: {
        **record,
        "erasures": [{**record["erasures"][0], "cells": [[-1, -1, "x"]]}],
    },
    "of many cells": lambda room, record: {**record, "erasures": record["erasures"] * 4_000},
    "brackets": lambda room, value: b"[" * (1 << 20),
    "nothing": lambda room, value: b"",
    "no text": lambda room, value: bytes(range(256)),
    "a pipe": lambda room, value: None,
}


def certificates() -> Iterator[Hostile]:
    """Certificates of erasures that nobody vouches for."""
    for word, edit in CERTIFICATES.items():
        harmless = True if word in ("unsigned", "of a giant ordinal", "of many cells") or "no" in word else None
        yield Hostile("certificate", word, restored(edit), harmless)
        yield Hostile("certificate", f"{word}, another key named", restored(edit, ["--public-key", "KEY"]), harmless)
        yield Hostile("certificate", f"{word}, beside", restored(edit, beside=True), harmless)


def sealed(content: bytes | None, command: str) -> Callable[[Room], Any]:
    """A seal or a proof that is something else."""

    def make(room: Room) -> Sequence[str]:
        file = room.input_folder / "x.seal"
        if content is None:
            os.mkfifo(file)
        else:
            file.write_bytes(content)
        if command == "verify":
            return ["verify", str(room.path(HERE)), "--seal", str(file)]
        return ["prove", "--check", str(file), "--public-key", str(room.path("seal.key.pub"))]

    return make


def seals() -> Iterator[Hostile]:
    """Seals, proofs and keys that are none."""
    wrong = {
        "brackets": b"[" * (1 << 20),
        "nothing": b"",
        "no text": bytes(range(256)),
        "a pipe": None,
        "an object": b"{}",
    }
    for word, content in wrong.items():
        for command in ("verify", "prove"):
            yield Hostile("certificate", f"{word} to {command}", sealed(content, command), True)


def outputs() -> Iterator[Hostile]:
    """Places to write to that lead to something of somebody's."""
    for to in (f"{PRECIOUS}/letter.txt", CANARY, PRECIOUS, "nothing"):
        for command in (["export", "long", "--exact", "--out"], ["export", "long", "--format", "parquet", "--out"],
                        ["export", "long", "--format", "sqlite", "--out"], ["backup"], ["seal", "--key"]):  # fmt: skip
            yield Hostile(
                "store", f"{command[0]} {' '.join(command[2:4])} to a link to {to}", partial(_out, to, command), True
            )


def _out(to: str, command: list[str], room: Room) -> Sequence[str]:
    (room.place / "out").symlink_to(room.path(to))
    if command[0] == "seal":
        return ["seal", str(room.path(HERE)), "--key", str(room.path("seal.key")), "--out", str(room.place / "out")]
    return [command[0], str(room.path(HERE)), *command[1:], str(room.place / "out")]


FILES: list[Hostile] = [
    *session_files(),
    Hostile("file", "what is discovered", discovered),
    *certificates(),
    *seals(),
    *outputs(),
]
