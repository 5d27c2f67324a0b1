"""Says one conversation in the four shapes of requests, and looks at what became of it.

A conversation is a list of items: `user("…")`, `said("…")`, `ask("c1")`, `result("c1", "…")`, `system("…")`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vmstore.namespace.results import Entry
from vmstore.store.reads.context import Context
from vmstore.store.store import Store

Item = tuple[str, ...]
SHAPES = ("chat", "responses", "anthropic", "gemini")
LONG = "".join(f"line {n} of the output\n" for n in range(60))
NOTE = "Old environment output: (60 lines omitted)"
CLIPPED = LONG[:500] + "\n[… cut …]\n" + LONG[-200:]
SHORT = "The listing names every module of the package, and each of them has its tests. " * 4


def system(text: str) -> Item:
    """Instructions."""
    return ("system", text)


def user(text: str) -> Item:
    """A person's message."""
    return ("user", text)


def model_text(text: str) -> Item:
    """The model's message."""
    return ("said", text)


def ask(name: str) -> Item:
    """The model's call of a tool."""
    return ("ask", name)


def result(name: str, text: str) -> Item:
    """What the tool answered."""
    return ("result", name, text)


def request(items: Iterable[Item], shape: str = "chat", tools: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """The request that puts a conversation to a model."""
    items = list(items)
    body: dict[str, Any] = {"model": "m", **({"tools": _tools(shape, tools)} if tools else {}), **more}
    text = "\n".join(item[1] for item in items if item[0] == "system")
    if shape == "chat":
        return {**body, "messages": [message(item) for item in items]}
    spoken = [message(item, shape) for item in items if item[0] != "system"]
    if shape == "responses":
        return {**body, **({"instructions": text} if text else {}), "input": spoken}
    if shape == "anthropic":
        return {**body, "max_tokens": 100, **({"system": text} if text else {}), "messages": spoken}
    head = {"systemInstruction": {"parts": [{"text": text}]}} if text else {}
    return {**body, **head, "contents": spoken}


def message(item: Item, shape: str = "chat") -> dict[str, Any]:
    """One item as the message of a shape."""
    kind, text = item[0], item[-1]
    if shape == "responses":
        return _item(kind, text, item[1])
    if shape == "gemini":
        part: dict[str, Any] = {"text": text}
        if kind == "ask":
            part = {"functionCall": {"id": text, "name": "look", "args": {}}}
        elif kind == "result":
            part = {"functionResponse": {"id": item[1], "name": "look", "response": {"output": text}}}
        return {"role": "model" if kind in ("said", "ask") else "user", "parts": [part]}
    if shape == "anthropic":
        block: dict[str, Any] = {"type": "text", "text": text}
        if kind == "ask":
            block = {"type": "tool_use", "id": text, "name": "look", "input": {}}
        elif kind == "result":
            block = {"type": "tool_result", "tool_use_id": item[1], "content": text}
        return {"role": "assistant" if kind in ("said", "ask") else "user", "content": [block]}
    if kind == "ask":
        return {"role": "assistant", "content": None, "tool_calls": [tool_call(text)]}
    if kind == "result":
        return {"role": "tool", "tool_call_id": item[1], "content": text}
    return {"role": "assistant" if kind == "said" else kind, "content": text}


def tool_call(name: str, tool: str = "look", arguments: str = "{}") -> dict[str, Any]:
    """A chat tool call."""
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": arguments}}


def answer(item: Item, shape: str = "chat", tokens: int | None = None) -> dict[str, Any]:
    """The response that carries one item, with usage where `tokens` says so."""
    spoken = message(item, shape)
    asks = item[0] == "ask"
    if shape == "responses":
        body: dict[str, Any] = {"object": "response", "status": "completed", "output": [spoken]}
        return {**body, "usage": {"input_tokens": tokens, "output_tokens": 2}} if tokens else body
    if shape == "anthropic":
        stop = "tool_use" if asks else "end_turn"
        body = {"type": "message", **spoken, "stop_reason": stop}
        return {**body, "usage": {"input_tokens": tokens, "output_tokens": 2}} if tokens else body
    if shape == "gemini":
        body = {"candidates": [{"content": spoken, "finishReason": "STOP"}]}
        return {**body, "usageMetadata": {"promptTokenCount": tokens}} if tokens else body
    body = {"choices": [{"message": spoken, "finish_reason": "tool_calls" if asks else "stop"}]}
    return {**body, "usage": {"prompt_tokens": tokens, "completion_tokens": 2}} if tokens else body


def _item(kind: str, text: str, name: str) -> dict[str, Any]:
    if kind == "ask":
        return {"type": "function_call", "call_id": text, "name": "look", "arguments": "{}"}
    if kind == "result":
        return {"type": "function_call_output", "call_id": name, "output": text}
    role, part = ("assistant", "output_text") if kind == "said" else ("user", "input_text")
    return {"type": "message", "role": role, "content": [{"type": part, "text": text}]}


def _tools(shape: str, names: Sequence[str]) -> list[Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    if shape == "gemini":
        return [{"functionDeclarations": [{"name": name, "parameters": schema} for name in names]}]
    if shape == "anthropic":
        return [{"name": name, "input_schema": schema} for name in names]
    if shape == "responses":
        return [{"type": "function", "name": name, "parameters": schema} for name in names]
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]


# ---- looking


def spelled(value: Any) -> str:
    """JSON that tells 1, 1.0 and True apart, whatever the order of keys."""
    return json.dumps(value, sort_keys=True)


def entries(store: Store, session: str) -> list[Entry]:
    """A session's mutations, in order."""
    return [entry for entry in store.tail() if entry.session == session]


def kinds(store: Store, session: str = "s", after: int = 0) -> list[str]:
    """The kinds of a session's mutations after a position."""
    return [entry.kind for entry in entries(store, session) if entry.position > after]


def texts(context: Context) -> list[str]:
    """What each page of a context shows, in order; opaque ones show nothing."""
    contents = context.contents()
    return [contents[page.page].decode() for page in context.pages if page.page in contents]


def lines(path: Path, records: Iterable[Any]) -> Path:
    """Writes a file of JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path
