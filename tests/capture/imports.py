"""Writes small session files of several formats, of any length, and compares what became of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.capture.words import LONG, answer, ask, message, model_text, request, result, system, tool_call, user
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
            message(model_text(f"Module {n} has sixty lines.")),
        ]
    return records


def exchanges(turns: int) -> list[Record]:
    """Recorded requests and responses, each request holding all before it."""
    items = [system("You look things up.")]
    records = []
    for n in range(turns):
        items.append(user(f"What is in module {n}?"))
        records.append(
            {"request": request(items), "response": answer(ask(f"c{n}")), "at": f"2026-01-01T00:0{n % 10}:00Z"}
        )
        items += [ask(f"c{n}"), result(f"c{n}", f"{LONG}of module {n}")]
        records.append(
            {"request": request(items), "response": answer(model_text(f"Module {n}."), tokens=300 * (n + 1))}
        )
        items.append(model_text(f"Module {n}."))
    return records


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
        actual_records = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"{LONG}of {n}"}]
        records += [
            claude_record("user", f"a{n}", before, f"What is in module {n}?"),
            claude_record("assistant", f"b{n}", f"a{n}", [call]),
            claude_record("user", f"c{n}", f"b{n}", actual_records),
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
    fields = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s-1", "isSidechain": False, **more}
    return {**fields, "timestamp": "2026-01-01T00:00:01Z", "message": spoken}


def codex(turns: int) -> list[Record]:
    """Lines of a Codex rollout: items, what they used, and what the program noted."""
    records = [_codex("session_meta", id="cx-1", cwd="/w", base_instructions={"text": "You write code."})]
    for n in range(turns):
        asked = [
            user(f"What is in module {n}?"),
            ask(f"c{n}"),
            result(f"c{n}", f"{LONG}of {n}"),
            model_text(f"Module {n}."),
        ]
        question, call, output, answered = (message(item, "responses") for item in asked)
        thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look."}]}
        records += [
            _codex("turn_context", model="m", cwd="/w"),
            _codex("response_item", **question),
            _codex("response_item", **thought),
            _codex("response_item", **call),
            codex_count(2000 + 2 * n),
            _codex("response_item", **output),
            _codex("response_item", **answered),
            codex_count(2001 + 2 * n),
        ]
    return records


def _codex(kind: str, **payload: Any) -> Record:
    return {"timestamp": "2026-01-01T00:00:01Z", "type": kind, "payload": payload}


def codex_count(tokens: int) -> Record:
    """The token count after an answer."""
    used = {"input_tokens": tokens, "cached_input_tokens": 10, "output_tokens": 5, "total_tokens": tokens + 5}
    return _codex("event_msg", type="token_count", info={"last_token_usage": used})


def shaped(shape: str) -> Callable[[int], list[Record]]:
    """Messages of a shape: each turn a question, a tool's answer and an answer."""

    def made(turns: int) -> list[Record]:
        items = [
            item
            for n in range(turns)
            for item in (
                user(f"What is in module {n}?"),
                ask(f"c{n}"),
                result(f"c{n}", LONG),
                model_text(f"Module {n}."),
            )
        ]
        return [message(item, shape) for item in items]

    return made


def steps(turns: int) -> list[Record]:
    """The steps of a SWE-agent trajectory, each with the conversation after it."""
    heard: list[Record] = [{"role": "system", "content": "You fix bugs."}, {"role": "user", "content": "Fix this."}]
    records = []
    for n in range(turns):
        heard = [*heard, {"role": "assistant", "content": f"Look {n}."}, {"role": "user", "content": f"{LONG}{n}"}]
        records.append({"action": "ls", "observation": f"{LONG}{n}", "response": f"Look {n}.", "messages": heard})
    return records


def in_lines(records: list[Record]) -> str:
    """Records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def in_object(records: list[Record]) -> str:
    """Messages as one object."""
    return json.dumps({"model": "m", "messages": records})


def in_contents(records: list[Record]) -> str:
    """Contents as the body of a request to Gemini."""
    return json.dumps({"contents": records, "systemInstruction": {"parts": [{"text": "Be brief."}]}})


def in_agent_file(records: list[Record]) -> str:
    """Messages as a Letta agent file, all of them in context."""
    indices = list(range(len(records)))
    blocks = [{"label": "human", "value": "Likes Nara."}]
    agent = {"name": "sam", "core_memory": blocks, "tools": [], "messages": records}
    return json.dumps({**agent, "in_context_message_indices": indices})


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
    "codex": (codex, in_lines),
    "swe-agent": (steps, in_trajectory),
    "letta": (chat, in_agent_file),
    "responses lines": (shaped("responses"), in_lines),
    "responses list": (shaped("responses"), json.dumps),
    "anthropic lines": (shaped("anthropic"), in_lines),
    "gemini list": (shaped("gemini"), json.dumps),
    "gemini object": (shaped("gemini"), in_contents),
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
        values = (call.turn, call.model, call.status, call.fidelity, call.tokens_reported, call.stop, context.factor)
        calls.append((values, shown, json.dumps(context.messages())))
    actual_contents = [session.content(page.page) if page.bytes else b"" for page in session.pages()]
    pages = [(p.type, p.role, p.modality, p.tier, p.level, p.version, p.tokens) for p in session.pages()]
    counts = (info.turns, info.calls, len({page.message for page in session.pages()}), info.fidelity, info.title)
    return {"counts": counts, "calls": calls, "pages": pages, "contents": actual_contents}


def all_seen(store: Store, every: int = 1) -> dict[str, Any]:
    """What the sessions of a store show, by name."""
    return {info.session: seen(store.session(info.session), every) for info in store.sessions()}
