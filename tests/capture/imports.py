"""Writes small session files of several formats, of any length, and compares what became of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.capture.words import LONG, answer, ask, message, request, result, said, system, tool_call, user
from vmstore.store.session import Session
from vmstore.store.store import Store

Record = dict[str, Any]


def chat(turns: int) -> list[Record]:
    """Chat messages: each turn a question, a tool's answer and an answer."""
    records = [message(system("You look things up."))]
    for n in range(turns):
        asked = {"role": "assistant", "content": None, "tool_calls": [tool_call(f"c{n}")]}
        records += [
            message(user(f"What is in module {n}?")),
            asked,
            message(result(f"c{n}", f"{LONG}of module {n}")),
            message(said(f"Module {n} has sixty lines.")),
        ]
    return records


def exchanges(turns: int) -> list[Record]:
    """Recorded requests and responses, each request holding all before it."""
    items = [system("You look things up.")]
    found = []
    for n in range(turns):
        items.append(user(f"What is in module {n}?"))
        found.append(
            {"request": request(items), "response": answer(ask(f"c{n}")), "at": f"2026-01-01T00:0{n % 10}:00Z"}
        )
        items += [ask(f"c{n}"), result(f"c{n}", f"{LONG}of module {n}")]
        found.append({"request": request(items), "response": answer(said(f"Module {n}."), tokens=300 * (n + 1))})
        items.append(said(f"Module {n}."))
    return found


def pi(turns: int) -> list[Record]:
    """Entries of a pi session, with usage."""
    records: list[Record] = [{"type": "session", "id": "pi-1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}]
    for n in range(turns):
        usage = {"input": 2000 + n, "output": 5, "cacheRead": 100, "cacheWrite": 0}
        call = {"type": "toolCall", "id": f"c{n}", "name": "bash", "arguments": {"command": f"ls {n}"}}
        records += [
            _pi("user", [{"type": "text", "text": f"What is in module {n}?"}]),
            _pi(
                "assistant",
                [{"type": "thinking", "thinking": "Look."}, call],
                model="m",
                stopReason="toolUse",
                usage=usage,
            ),
            _pi("toolResult", [{"type": "text", "text": f"{LONG}of {n}"}], toolCallId=f"c{n}", toolName="bash"),
            _pi("assistant", [{"type": "text", "text": f"Module {n}."}], model="m", stopReason="stop", usage=usage),
        ]
    return records


def _pi(role: str, content: list[Any], **more: Any) -> Record:
    return {
        "type": "message",
        "timestamp": "2026-01-01T00:00:01Z",
        "message": {"role": role, "content": content, **more},
    }


def claude(turns: int) -> list[Record]:
    """Records of a Claude Code transcript, each naming its parent."""
    records: list[Record] = []
    for n in range(turns):
        before = f"d{n - 1}" if n else None
        call = {"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": f"ls {n}"}}
        found = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"{LONG}of {n}"}]
        records += [
            claude_record("user", f"a{n}", before, f"What is in module {n}?"),
            claude_record("assistant", f"b{n}", f"a{n}", [call]),
            claude_record("user", f"c{n}", f"b{n}", found),
            claude_record("assistant", f"d{n}", f"c{n}", [{"type": "text", "text": f"Module {n}."}]),
        ]
    return records


def claude_record(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> Record:
    """One record of a transcript."""
    spoken: Record = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 900, "output_tokens": 3}
        spoken = {
            "id": f"msg_{uuid}",
            "type": "message",
            "model": "m",
            "stop_reason": "end_turn",
            "usage": usage,
            **spoken,
        }
    told = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s-1", "isSidechain": False, **more}
    return {**told, "timestamp": "2026-01-01T00:00:01Z", "message": spoken}


def steps(turns: int) -> list[Record]:
    """The steps of a SWE-agent trajectory, each with the conversation after it."""
    heard: list[Record] = [{"role": "system", "content": "You fix bugs."}, {"role": "user", "content": "Fix this."}]
    found = []
    for n in range(turns):
        heard = [*heard, {"role": "assistant", "content": f"Look {n}."}, {"role": "user", "content": f"{LONG}{n}"}]
        found.append({"action": "ls", "observation": f"{LONG}{n}", "response": f"Look {n}.", "messages": heard})
    return found


def in_lines(records: list[Record]) -> str:
    """Records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def in_object(records: list[Record]) -> str:
    """Messages as one object."""
    return json.dumps({"model": "m", "messages": records})


def in_trajectory(records: list[Record]) -> str:
    """Steps as a trajectory, with how the run stands."""
    return json.dumps({"trajectory": records, "info": {"steps": len(records)}})


FILES: dict[str, tuple[Callable[[int], list[Record]], Callable[[list[Record]], str]]] = {
    "chat lines": (chat, in_lines),
    "chat list": (chat, json.dumps),
    "chat object": (chat, in_object),
    "exchanges": (exchanges, in_lines),
    "pi": (pi, in_lines),
    "claude-code": (claude, in_lines),
    "swe-agent": (steps, in_trajectory),
}


def write(path: Path, kind: str, turns: int) -> Path:
    """Writes a session file of some turns."""
    made, spelled = FILES[kind]
    path.write_text(spelled(made(turns)), encoding="utf-8")
    return path


def seen(session: Session, every: int = 1) -> dict[str, Any]:
    """What a session shows but its positions: counts, calls with their contexts, pages with their contents.

    Of a long session one call in `every` is looked into, and the last.
    """
    info = session.info()
    calls = []
    listed = session.calls()
    for call in {c.call: c for c in (*listed[::every], *listed[-1:])}.values():
        context = session.context(call=call.call)
        contents = context.contents()
        shown = [(p.role, p.type, p.level, p.tokens, p.since_call, contents.get(p.page)) for p in context.pages]
        told = (call.turn, call.model, call.status, call.fidelity, call.tokens_reported, call.stop, context.factor)
        calls.append((told, shown, json.dumps(context.messages())))
    held = [session.content(page.page) if page.bytes else b"" for page in session.pages()]
    pages = [(p.type, p.role, p.modality, p.tier, p.level, p.version, p.tokens) for p in session.pages()]
    counts = (info.turns, info.calls, len({page.message for page in session.pages()}), info.fidelity, info.title)
    return {"counts": counts, "calls": calls, "pages": pages, "contents": held}


def all_seen(store: Store, every: int = 1) -> dict[str, Any]:
    """What the sessions of a store show, by name."""
    return {info.session: seen(store.session(info.session), every) for info in store.sessions()}
