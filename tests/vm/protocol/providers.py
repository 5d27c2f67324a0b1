"""What each provider refuses, as its documentation has it: written for the tests, from outside the protocol."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

IMAGES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def refuses_chat(request: dict[str, Any]) -> list[str]:
    """What chat completions would refuse."""
    wrong, waiting = [], []
    for n, message in enumerate(request["messages"]):
        role = message["role"]
        if role == "tool":
            if not waiting or message["tool_call_id"] not in waiting:
                wrong.append(f"{n}: a tool message without its call")
            else:
                waiting.remove(message["tool_call_id"])
            if not isinstance(message["content"], str):
                wrong.append(f"{n}: a tool message that is no text")
            continue
        if waiting:
            wrong.append(f"{n}: calls {waiting} have no tool message")
            waiting = []
        calls = message.get("tool_calls")
        if calls is not None and (role != "assistant" or not calls):
            wrong.append(f"{n}: calls of nobody, or none")
        for call in calls or []:
            waiting.append(call["id"])
            if not TOOL.fullmatch(call["function"]["name"]):
                wrong.append(f"{n}: a function's name")
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                wrong.append(f"{n}: arguments that are no object")
        if message["content"] is None and not calls:
            wrong.append(f"{n}: no content")
        if isinstance(message["content"], list):
            if role != "user":
                wrong.append(f"{n}: parts in a message of {role}")
            for part in message["content"]:
                if part["type"] == "image_url":
                    head, _, data = part["image_url"]["url"].partition(";base64,")
                    wrong += not_an_image(n, head.removeprefix("data:"), data)
        if role in ("system", "developer") and n:
            wrong.append(f"{n}: instructions inside")
    return wrong + [f"calls {waiting} have no tool message"] * bool(waiting)


def refuses_anthropic(request: dict[str, Any]) -> list[str]:
    """What Anthropic's messages would refuse."""
    wrong: list[str] = []
    seen: set[str] = set()
    waiting: list[str] = []
    for n, message in enumerate(request["messages"]):
        if message["role"] != ("user", "assistant")[n % 2]:
            wrong.append(f"{n}: roles do not alternate from user")
        blocks = message["content"]
        if not blocks:
            wrong.append(f"{n}: an empty message")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(waiting):
            wrong.append(f"{n}: results {results} for calls {waiting}")
        if [block["type"] for block in blocks[: len(results)]] != ["tool_result"] * len(results):
            wrong.append(f"{n}: results do not stand first")
        waiting = []
        for block in blocks:
            wrong += _refused_block(n, message["role"], block)
            if block["type"] == "tool_use":
                waiting.append(block["id"])
                if block["id"] in seen or not ID.fullmatch(block["id"]):
                    wrong.append(f"{n}: id {block['id']!r} again, or none")
                seen.add(block["id"])
    last = request["messages"][-1] if request["messages"] else {"role": "user"}
    if last["role"] == "assistant" and last["content"][-1].get("text", "").endswith((" ", "\n")):
        wrong.append("the last answer ends in a blank")
    return wrong + [f"calls {waiting} have no result"] * bool(waiting)


def _refused_block(n: int, role: str, block: dict[str, Any]) -> list[str]:
    wrong = []
    if block["type"] == "text" and not block["text"].strip():
        wrong.append(f"{n}: a text of blanks")
    if block["type"] == "image":
        wrong += not_an_image(n, block["source"]["media_type"], block["source"]["data"])
    if block["type"] in ("image", "tool_result") and role != "user":
        wrong.append(f"{n}: {block['type']} of {role}")
    if block["type"] == "tool_use" and (role != "assistant" or not isinstance(block["input"], dict)):
        wrong.append(f"{n}: a call of {role}, or of no object")
    if block["type"] == "tool_use" and not TOOL.fullmatch(block["name"]):
        wrong.append(f"{n}: a tool's name")
    if block["type"] == "tool_result":
        for inner in block["content"]:
            wrong += _refused_block(n, "user", inner)
    return wrong


def refuses_gemini(request: dict[str, Any]) -> list[str]:
    """What Gemini's generateContent would refuse."""
    wrong, waiting = [], 0
    before = ""
    for n, content in enumerate(request["contents"]):
        role, parts = content["role"], content["parts"]
        responses = [part for part in parts if "functionResponse" in part]
        calls = [part for part in parts if "functionCall" in part]
        if not parts:
            wrong.append(f"{n}: an empty content")
        if len(responses) != waiting:
            wrong.append(f"{n}: {len(responses)} responses for {waiting} calls")
        if responses and (role != "user" or len(parts) != len(responses)):
            wrong.append(f"{n}: responses with something beside, or of {role}")
        if role not in ("user", "model") or (n == 0 and role != "user"):
            wrong.append(f"{n}: role {role}")
        if role == before and not any("functionResponse" in part for part in request["contents"][n - 1]["parts"]):
            wrong.append(f"{n}: {role} again")
        if calls and role != "model":
            wrong.append(f"{n}: calls of {role}")
        for part in calls:
            call = part["functionCall"]
            if not TOOL.fullmatch(call["name"]) or not isinstance(call["args"], dict):
                wrong.append(f"{n}: a call of no name, or of no object")
        for part in parts:
            if "inlineData" in part:
                wrong += not_an_image(n, part["inlineData"]["mimeType"], part["inlineData"]["data"])
            if len(part) != 1:
                wrong.append(f"{n}: a part of two kinds")
        waiting, before = len(calls), role
    return wrong + [f"{waiting} calls have no response"] * bool(waiting)


def refuses_responses(request: dict[str, Any]) -> list[str]:
    """What OpenAI's Responses would refuse."""
    wrong: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    for n, item in enumerate(request["input"]):
        kind = item.get("type", "message")
        if kind == "function_call":
            waiting.append(item["call_id"])
            if item["call_id"] in seen or not TOOL.fullmatch(item["name"]):
                wrong.append(f"{n}: a call id again, or a function's name")
            seen.add(item["call_id"])
            if not isinstance(json.loads(item["arguments"]), dict):
                wrong.append(f"{n}: arguments that are no object")
        elif kind == "function_call_output":
            if item["call_id"] not in waiting or not isinstance(item["output"], str):
                wrong.append(f"{n}: an output without its call, or that is no text")
            else:
                waiting.remove(item["call_id"])
        else:
            if waiting:
                wrong.append(f"{n}: calls {waiting} have no output")
            allowed = {"user": ("input_text", "input_image"), "assistant": ("output_text",)}[item["role"]]
            if not item["content"] or any(part["type"] not in allowed for part in item["content"]):
                wrong.append(f"{n}: no content, or parts that {item['role']} cannot say")
            for part in item["content"]:
                if part["type"] == "input_image" and part["image_url"].startswith("data:"):
                    head, _, data = part["image_url"].partition(";base64,")
                    wrong += not_an_image(n, head.removeprefix("data:"), data)
    return wrong + [f"calls {waiting} have no output"] * bool(waiting)


def not_an_image(n: int, mime: str, data: str) -> list[str]:
    """What is wrong with an image: its bytes are not what it is said to be, or too many."""
    content = base64.b64decode(data, validate=True)
    entry = next((image for begins, image in IMAGES.items() if content.startswith(begins)), None)
    wrong = [] if entry == mime else [f"{n}: {mime} that is {entry}"]
    return wrong + [f"{n}: an image of {len(content)} bytes"] * (len(content) > 1_000_000)


REFUSES = {
    "chat": refuses_chat,
    "responses": refuses_responses,
    "anthropic": refuses_anthropic,
    "gemini": refuses_gemini,
}
MESSAGES = {"chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}
