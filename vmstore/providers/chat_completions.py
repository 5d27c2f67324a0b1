"""Chat-completions messages, as also Anthropic and Responses write them, and chat replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.page import Role
from vmstore.core.text.skeleton import JSON, dumps, hole
from vmstore.providers.message import Holes, closed, role_of, whole
from vmstore.providers.parts import take_base64, take_part
from vmstore.providers.reply import counted, nanodollars, pick, settled
from vmstore.providers.stream import dicts, grow, joined

THOUGHTS = ("reasoning_content", "reasoning")
CONSTANT = frozenset({"id", "type", "role", "name", "index"})  # said once, or repeated; never grown
ROOT = dumps(hole(JSON, 0))  # the skeleton of a message that is not taken apart
ASKS = ("tool_calls", "function_call")


def take_turn(message: Any) -> Draft:
    """One message with a role: its thoughts, its content parts, then the tools it asks for."""
    if not isinstance(message, dict):
        return whole(message)
    holes, taken = Holes(), dict(message)
    role = role_of(message.get("role"))
    for key in THOUGHTS:
        if isinstance(thought := message.get(key), str) and thought:
            taken[key] = holes.text(thought)
    since = len(holes.parts)
    content = message.get("content")
    if content is not None:
        taken["content"] = _content(holes, content, message)
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        taken["refusal"] = holes.text(refusal)
    if isinstance(audio := message.get("audio"), dict):
        taken["audio"] = _audio(holes, audio)
    if role is Role.TOOL:
        holes.answers(since, message.get("tool_call_id"), message.get("name"))
    if isinstance(calls := message.get("tool_calls"), list):
        taken["tool_calls"] = [_call(holes, call) for call in calls]
    if isinstance(call := message.get("function_call"), dict):
        taken["function_call"] = holes.call(call, None, call.get("name"))
    return closed(holes, taken, message, role)


def _content(holes: Holes, content: Any, message: dict[str, Any]) -> Any:
    if isinstance(content, str):
        # An empty text beside a tool call says nothing; alone it is the message.
        return holes.text(content) if content or not any(map(message.get, ASKS)) else content
    if isinstance(content, list):
        return [take_part(holes, part) for part in content]
    return holes.json(content)


def _call(holes: Holes, call: Any) -> Any:
    if not isinstance(call, dict):
        return holes.json(call)
    asked = call.get("function") or call.get("custom")
    return holes.call(call, call.get("id"), asked.get("name") if isinstance(asked, dict) else None)


def _audio(holes: Holes, audio: dict[str, Any]) -> dict[str, Any]:
    """A spoken answer: what was said, then its sound."""
    taken = dict(audio)
    if isinstance(transcript := audio.get("transcript"), str):
        taken["transcript"] = holes.text(transcript)
    # Only the request says in which format; OTHER keeps that open.
    if sound := take_base64(holes, audio.get("data"), "audio/*"):
        taken["data"] = sound
    return taken


def chat_reply(body: dict[str, Any], ended: bool) -> ReplyDraft:
    """The reply in a chat completion; its first choice is the answer."""
    choices = body.get("choices")
    choices = [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
    first = choices[0] if choices else {}
    message = first.get("message")
    message = message if isinstance(message, dict) else {}
    has_content = any(value for key, value in message.items() if key != "role")
    return settled(
        body,
        [_answer(message)] if has_content else [],
        stop=first.get("finish_reason"),
        model=body.get("model"),
        usage=chat_usage(body.get("usage")),
        ended=ended and bool(choices),
    )


def _answer(message: dict[str, Any]) -> Draft:
    """An answer as the next request carries it; one that is not taken apart, as it is."""
    draft = take_turn(sent_back(message))
    return take_turn(message) if draft.skeleton == ROOT else draft


def sent_back(message: dict[str, Any]) -> dict[str, Any]:
    """An answer as the agent's next request will carry it: without its empty fields."""
    kept = {k: v for k, v in message.items() if k == "content" or (v is not None and v != [])}
    return kept if "role" in kept else {"role": "assistant", **kept}


def chat_usage(usage: Any) -> TokenUsage:
    """Usage as chat completions report it; prompt tokens include the cached ones."""
    if not isinstance(usage, dict):
        return TokenUsage()
    cached = pick(usage.get("prompt_tokens_details"), "cached_tokens")
    return TokenUsage(
        tokens_in=counted(usage.get("prompt_tokens")),
        tokens_cached=counted(usage.get("prompt_cache_hit_tokens") if cached is None else cached),
        tokens_out=counted(usage.get("completion_tokens")),
        cost=nanodollars(usage.get("cost")),
    )


def chat_stream(chunks: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """The completion its chunks add up to, and whether each choice came to its end."""
    body: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        body.update((key, value) for key, value in chunk.items() if key != "choices" and value is not None)
        for piece in dicts(chunk.get("choices")):
            index = counted(piece.get("index")) or 0
            choice = choices.setdefault(index, {"index": index, "message": {}, "tool_calls": []})
            if isinstance(delta := piece.get("delta"), dict):
                grow(choice["message"], {k: v for k, v in delta.items() if k != "tool_calls"}, CONSTANT)
                _grow_calls(choice["tool_calls"], dicts(delta.get("tool_calls")))
            choice.update((k, v) for k, v in piece.items() if k not in ("index", "delta") and v is not None)
    body["choices"] = [_whole_choice(choices[index]) for index in sorted(choices)]
    return body, bool(choices) and all(c.get("finish_reason") is not None for c in choices.values())


def _grow_calls(calls: list[dict[str, Any]], pieces: Iterable[dict[str, Any]]) -> None:
    """Tool calls grow by their index; another id under a used index begins another call."""
    for piece in pieces:
        index, named = piece.get("index"), piece.get("id")
        if index is None:
            call = None if named or not calls else calls[-1]
        else:
            call = next((c for c in reversed(calls) if c["index"] == index), None)
        if call is None or (named and call.get("id") not in (None, "", named)):
            call = {"index": index}
            calls.append(call)
        grow(call, piece, CONSTANT)


def _whole_choice(choice: dict[str, Any]) -> dict[str, Any]:
    whole = dict(joined(choice))
    calls = [{k: v for k, v in call.items() if k != "index"} for call in whole.pop("tool_calls")]
    if calls:
        whole["message"]["tool_calls"] = calls
    return whole
