"""Takes the calls of the memory's tools out of answers on their way to the client, and joins the answers of rounds.

An event goes on byte for byte unless a call of the memory's stands in it, or it has to be numbered otherwise because
one stood before it. Where a call of the client's stands beside them, those of the memory's are left out and the answer
ends: the client answers its own, and the model asks the memory again. Where anything is not as expected, it passes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from copy import deepcopy
from typing import Any, Protocol

from vmstore.proxy.markers import AnswerForm, event_of, events_in

Json = dict[str, Any]
UNREADABLE = (ValueError, RecursionError, AttributeError, KeyError, TypeError, IndexError)
BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
CALLS = ("tool_use", "function_call", "custom_tool_call")  # types of what is a call as it stands
BETWEEN = "\n\n"  # between the words of two rounds, where they are one text


class RoundEvents(Protocol):
    """The events of one form: what passes of each, what waits until it is known whether another round follows."""

    mine: bool
    theirs: bool

    def event(self, value: Json, raw: bytes) -> bytes:
        """The part of an event that goes on now."""
        ...

    def ended(self) -> bytes:
        """The events that waited, as the end of an answer that asks nothing of the client."""
        ...

    def follow(self) -> None:
        """Another round's answer follows, and is part of the same one."""
        ...


class ChatEvents:
    """Chunks of chat completions."""

    def __init__(self, tools: Collection[str]) -> None:
        self.mine = self.theirs = False
        self._tools = tools
        self._numbers: dict[int, int] = {}  # of the client's calls, by the number they came with
        self._waiting: list[Json] = []
        self._is_first = True  # whether this is the answer of the first round
        self._spoke = False

    def event(self, value: Json, raw: bytes) -> bytes:
        """A chunk without the memory's calls."""
        choice = value["choices"][0] if value.get("choices") else {}
        changed = deepcopy(value)
        delta = changed["choices"][0].get("delta") or {} if choice else {}
        if not self._is_first:
            delta.pop("role", None)  # clients put the pieces of a field together
            if delta.get("content") and self._spoke:
                delta["content"], self._spoke = BETWEEN + delta["content"], False
        elif delta.get("content"):
            self._spoke = True
        if delta.get("tool_calls"):
            delta["tool_calls"] = [call for call in delta["tool_calls"] if self._is_theirs(call)]
            if not delta["tool_calls"]:
                del delta["tool_calls"]
                if not any(delta.values()) and not choice.get("finish_reason"):
                    return b""
        if self.mine and not self.theirs and (choice.get("finish_reason") or not choice):
            self._waiting.append(changed)
            return b""
        return raw if changed == value else event_of(changed)

    def _is_theirs(self, call: Json) -> bool:
        number = int(call.get("index") or 0)
        name = (call.get("function") or {}).get("name")
        if name is not None and number not in self._numbers and name not in self._tools:
            self._numbers[number] = len(self._numbers)
        if number not in self._numbers:
            self.mine = True
            return False
        self.theirs = True
        call["index"] = self._numbers[number]
        return True

    def ended(self) -> bytes:
        """The end as one that stops."""
        for value in self._waiting:
            for choice in value.get("choices") or ():
                choice["finish_reason"] = "stop"
        waited, self._waiting = self._waiting, []
        return b"".join(map(event_of, waited))

    def follow(self) -> None:
        """Forgets what waited."""
        self.mine = self._is_first = False
        self._numbers.clear()
        self._waiting.clear()


class AnthropicEvents:
    """Events of Anthropic's messages."""

    def __init__(self, tools: Collection[str]) -> None:
        self.mine = self.theirs = False
        self._tools = tools
        self._numbers: dict[int, int | None] = {}  # of this round's blocks, None for the memory's calls
        self._blocks = 0  # that the client has
        self._waiting: list[Json] = []
        self._is_first = True

    def event(self, value: Json, raw: bytes) -> bytes:
        """An event of a block that is not the memory's, under the number it has for the client."""
        kind = value["type"]
        if kind == "message_start" and not self._is_first:
            return b""
        if kind == "content_block_start":
            block = value["content_block"]
            is_mine = block.get("type") == "tool_use" and block.get("name") in self._tools
            self._numbers[value["index"]] = None if is_mine else self._blocks
            self._blocks += not is_mine
            self.mine = self.mine or is_mine
            self.theirs = self.theirs or (block.get("type") == "tool_use" and not is_mine)
        if kind.startswith("content_block_"):
            number = self._numbers[value["index"]]
            if number is None:
                return b""
            return raw if number == value["index"] else event_of({**value, "index": number}, kind)
        if kind in ("message_delta", "message_stop") and self.mine and not self.theirs:
            self._waiting.append(value)
            return b""
        return raw

    def ended(self) -> bytes:
        """The end as that of a turn."""
        waited, self._waiting = self._waiting, []
        for value in waited:
            if isinstance(value.get("delta"), dict):
                value["delta"] = {**value["delta"], "stop_reason": "end_turn"}
        return b"".join(event_of(value, value["type"]) for value in waited)

    def follow(self) -> None:
        """Forgets what waited."""
        self.mine = self._is_first = False
        self._numbers.clear()
        self._waiting.clear()


class GeminiEvents:
    """Events of Gemini's streamGenerateContent."""

    def __init__(self, tools: Collection[str]) -> None:
        self.mine = self.theirs = False
        self._tools = tools
        self._waiting: list[Json] = []

    def event(self, value: Json, raw: bytes) -> bytes:
        """A piece without the memory's calls."""
        candidate = value["candidates"][0]
        parts = (candidate.get("content") or {}).get("parts") or []
        kept = [part for part in parts if not self._is_mine(part)]
        changed = {**value, "candidates": [{**candidate, "content": {**candidate.get("content", {}), "parts": kept}}]}
        if self.mine and not self.theirs and candidate.get("finishReason"):
            self._waiting = [{**changed, "candidates": [{**changed["candidates"][0], "content": {"parts": []}}]}]
            del changed["candidates"][0]["finishReason"]
            return event_of(changed) if kept else b""
        if len(kept) == len(parts):
            return raw
        return event_of(changed) if kept or candidate.get("finishReason") else b""

    def _is_mine(self, part: Json) -> bool:
        call = part.get("functionCall")
        is_mine = isinstance(call, dict) and call.get("name") in self._tools
        self.mine = self.mine or is_mine
        self.theirs = self.theirs or (call is not None and not is_mine)
        return is_mine

    def ended(self) -> bytes:
        """The end as it came."""
        waited, self._waiting = self._waiting, []
        return b"".join(map(event_of, waited))

    def follow(self) -> None:
        """Forgets what waited."""
        self.mine = False
        self._waiting.clear()


class ResponsesEvents:
    """Events of OpenAI's Responses: each is numbered, and of an item; the last one has all items again."""

    def __init__(self, tools: Collection[str]) -> None:
        self.mine = self.theirs = False
        self._tools = tools
        self._numbers: dict[int, int | None] = {}  # of this round's items, None for the memory's calls
        self._items = 0  # that the client has
        self._events = 0
        self._said: list[Json] = []  # the items of the rounds before that say something
        self._waiting: list[Json] = []
        self._id: Any = None  # of the first round's response, which clients hold all events against

    def event(self, value: Json, raw: bytes) -> bytes:
        """An event of an item that is not the memory's, under the numbers it has for the client."""
        kind = value["type"]
        if kind in BEGINNINGS:
            if self._id not in (None, value["response"].get("id")):
                return b""
            self._id = value["response"].get("id")
        if kind == "response.output_item.added":
            is_mine = self._is_mine(value["item"])
            self._numbers[value["output_index"]] = None if is_mine else self._items
            self._items += not is_mine
        changed = value
        if "output_index" in value:
            number = self._numbers[value["output_index"]]
            if number is None:
                return b""
            changed = {**changed, "output_index": number}
        if isinstance(value.get("response"), dict) and kind not in BEGINNINGS:
            output = value["response"].get("output") or []
            kept = [item for item in output if not self._is_mine(item)]
            own = {} if self._id is None else {"id": self._id}
            changed = {**changed, "response": {**value["response"], **own, "output": [*self._said, *kept]}}
            if self.mine and not self.theirs and kind == "response.completed":
                self._waiting = [changed]
                return b""
        return self._numbered(changed, raw, value)

    def _is_mine(self, item: Json) -> bool:
        name = _name(item)
        is_mine = name in self._tools
        self.mine = self.mine or is_mine
        self.theirs = self.theirs or bool(name and not is_mine)
        return is_mine

    def _numbered(self, value: Json, raw: bytes = b"", given: Json | None = None) -> bytes:
        """An event under the next number; the bytes it came as where nothing of it changed."""
        if "sequence_number" in value:
            value = {**value, "sequence_number": self._events}
        self._events += 1
        return raw if value == given else event_of(value, value["type"])

    def ended(self) -> bytes:
        """The end as it came, without the memory's calls."""
        waited, self._waiting = self._waiting, []
        return b"".join(map(self._numbered, waited))

    def follow(self) -> None:
        """Keeps what this round said for the last event of the next."""
        for value in self._waiting:
            self._said = [item for item in value["response"]["output"] if item.get("type") == "message"]
        self.mine = False
        self._numbers.clear()
        self._waiting.clear()


EVENTS: dict[AnswerForm, type[ChatEvents | AnthropicEvents | GeminiEvents | ResponsesEvents]] = {
    AnswerForm.CHAT: ChatEvents,
    AnswerForm.RESPONSES: ResponsesEvents,
    AnswerForm.ANTHROPIC: AnthropicEvents,
    AnswerForm.GEMINI: GeminiEvents,
}


class ToolStream:
    """The streams of the rounds of one answer, as one."""

    def __init__(self, form: AnswerForm, tools: Collection[str]) -> None:
        self._events: RoundEvents = EVENTS[form](tools)
        self._held = b""
        self._closing = b""  # an event that says nothing but that all is over

    def take(self, data: bytes) -> bytes:
        """The part of some bytes that goes on."""
        whole, self._held = events_in(self._held + data)
        return b"".join(map(self._event, whole))

    def _event(self, raw: bytes) -> bytes:
        data = b"\n".join(line[5:].strip() for line in raw.splitlines() if line.startswith(b"data:"))
        if data == b"[DONE]" and self.asks:
            self._closing = raw
            return b""
        with suppress(*UNREADABLE):
            value = json.loads(data)
            if isinstance(value, dict):
                return self._events.event(value, raw)
        return raw

    @property
    def asks(self) -> bool:
        """Whether the answer so far asks the memory, and nobody else."""
        return self._events.mine and not self._events.theirs

    def follow(self) -> None:
        """Another round follows."""
        self._held = self._closing = b""
        self._events.follow()

    def rest(self) -> bytes:
        """The events that are left when no round follows."""
        ended = b""
        with suppress(*UNREADABLE):
            ended = self._events.ended()
        return ended + self._closing + self._held


class ToolBody:
    """The whole answers of the rounds of one answer, as one."""

    def __init__(self, form: AnswerForm, tools: Collection[str]) -> None:
        self._form, self._tools = form, tools
        self._whole = b""
        self._words: list[Any] = []  # of the rounds before

    def take(self, data: bytes) -> bytes:
        """Keeps a piece: none goes on before the end."""
        self._whole += data
        return b""

    @property
    def asks(self) -> bool:
        """Whether the answer asks the memory, and nobody else."""
        with suppress(*UNREADABLE):
            calls = [_name(one) for one in _listed(json.loads(self._whole), self._form) if _name(one)]
            return bool(calls) and all(name in self._tools for name in calls)
        return False

    def follow(self) -> None:
        """Keeps the words of this round."""
        self._words += _words(json.loads(self._whole), self._form)
        self._whole = b""

    def rest(self) -> bytes:
        """The answer with the words of all rounds and without the memory's calls; as it came where it is only that."""
        with suppress(*UNREADABLE):
            answer = json.loads(self._whole)
            if self._without(answer) or self._words:
                _put_before(answer, self._form, self._words)
                return json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return self._whole

    def _without(self, answer: Json) -> bool:
        """Takes the memory's calls out of an answer; whether there were any."""
        listed = _listed(answer, self._form)
        kept = [one for one in listed if _name(one) not in self._tools]
        if len(kept) == len(listed):
            return False
        is_asking = any(_name(one) for one in kept)
        if self._form is AnswerForm.CHAT:
            choice = answer["choices"][0]
            choice["message"].pop("tool_calls")
            if kept:
                choice["message"]["tool_calls"] = kept
            choice["finish_reason"] = choice["finish_reason"] if is_asking else "stop"
        elif self._form is AnswerForm.ANTHROPIC:
            answer["content"] = kept
            answer["stop_reason"] = answer["stop_reason"] if is_asking else "end_turn"
        elif self._form is AnswerForm.RESPONSES:
            answer["output"] = kept
        else:
            answer["candidates"][0]["content"]["parts"] = kept
        return True


def _listed(answer: Json, form: AnswerForm) -> list[Json]:
    """The things among which the calls of an answer stand."""
    if form is AnswerForm.CHAT:
        return list(answer["choices"][0]["message"].get("tool_calls") or ())
    if form is AnswerForm.ANTHROPIC:
        return list(answer["content"])
    if form is AnswerForm.RESPONSES:
        return list(answer["output"])
    return list(answer["candidates"][0]["content"]["parts"])


def _name(one: Json) -> str:
    """The name of the tool that is called; empty for what is no call."""
    call = one.get("function") or one.get("functionCall") or (one if one.get("type") in CALLS else {})
    return str(call.get("name") or "")


def _words(answer: Json, form: AnswerForm) -> list[Any]:
    if form is AnswerForm.CHAT:
        text = answer["choices"][0]["message"].get("content")
        return [text] if text else []
    if form is AnswerForm.RESPONSES:
        return [item for item in answer["output"] if item.get("type") == "message"]
    return [one for one in _listed(answer, form) if one.get("text") and not one.get("thought")]


def _put_before(answer: Json, form: AnswerForm, words: list[Any]) -> None:
    if form is AnswerForm.CHAT:
        message = answer["choices"][0]["message"]
        message["content"] = BETWEEN.join([*words, *([message["content"]] if message.get("content") else [])]) or None
    elif form is AnswerForm.ANTHROPIC:
        answer["content"] = [*words, *answer["content"]]
    elif form is AnswerForm.RESPONSES:
        answer["output"] = [*words, *answer["output"]]
    else:
        content = answer["candidates"][0]["content"]
        content["parts"] = [*words, *content["parts"]]
