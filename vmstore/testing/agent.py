"""A made-up agent: a conversation that grows, is edited and shortened, in the words of four providers.

The agent holds its conversation in words of no provider and writes it out as a request of its
shape. Every change of it is an `ConversationEdit`, plain values that hypothesis can shrink and print; indexes
count round, so every edit fits every conversation.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from vmstore.testing.provider_text import SHAPES, WORDS, ProviderMessage, ProviderPart

OMITTED = "[Old tool output omitted]"
ODD: tuple[Any, ...] = (
    "a bare text",
    7,
    None,
    [],
    {},
    {"role": 5, "content": {"a": [1]}},
    {"\0t": 0},
    {"role": "user", "content": {"\0j": 0}},
    {"role": "user", "content": [None, 1.5, {"type": "unheard_of", "x": [True]}]},
    {"role": "assistant", "content": "", "tool_calls": []},
    {"type": "item_reference", "id": "r1"},
)
VALUES: tuple[Any, ...] = (1, True, 1.0, 0, False, None, "1", {}, [], {"type": "ephemeral"}, [1, [True]])


class ConversationEdit(NamedTuple):
    """One change of a conversation: what is done, to which message, and with which words."""

    verb: str
    n: int = 0
    k: int = 0
    text: str = ""


class ModelAnswer(NamedTuple):
    """A model's answer: one of `WAYS`, its words, and its token count."""

    way: str = "says"
    text: str = "ok"
    tokens: int | None = None


WAYS = ("says", "asks", "asks_twice", "thinks", "aborts", "raises", "interrupts", "errors", "breaks")


class Agent:
    """One agent's conversation and settings."""

    def __init__(self, shape: str) -> None:
        self.shape = shape
        self.said: list[ProviderMessage] = []
        self.gone: list[tuple[int, ProviderMessage]] = []
        self.settings: dict[str, Any] = {"model": "m-1"}
        self.tools: list[int] = []
        self.asked = 0  # tool calls so far, for their ids

    def copy(self) -> Agent:
        """An agent that goes its own way from here."""
        return copy.deepcopy(self)

    def edit(self, edit: ConversationEdit) -> None:
        """Changes the conversation; an edit that finds nothing to change does nothing."""
        EDITS[edit.verb](self, edit)

    def pick(self, n: int) -> ProviderMessage | None:
        """The message a number falls on."""
        return self.said[n % len(self.said)] if self.said else None

    def request(self) -> dict[str, Any]:
        """The conversation as a request, made of fresh values each time."""
        return copy.deepcopy(WORDS[self.shape].request(self.said, self.settings, self.tools))

    def hears(self, answer: ModelAnswer) -> Any:
        """The provider's response; what it says joins the conversation."""
        if answer.way == "aborts":
            return None
        if answer.way in ("raises", "interrupts"):
            return RuntimeError(answer.text) if answer.way == "raises" else KeyboardInterrupt()
        if answer.way == "breaks":
            delta = {"role": "assistant", "content": answer.text}
            return [{"choices": [{"index": 0, "delta": delta}]}, RuntimeError("the stream broke")]
        if answer.way == "errors":
            return {**WORDS[self.shape].response(None, None), "error": {"message": answer.text}}
        parts = [ProviderPart("think", answer.text)] if answer.way == "thinks" else []
        if answer.way in ("says", "thinks"):
            parts.append(ProviderPart("text", answer.text))
        for _ in range({"asks": 1, "asks_twice": 2}.get(answer.way, 0)):
            self.asked += 1
            parts.append(ProviderPart("call", answer.text, f"c{self.asked}"))
        message = ProviderMessage("assistant", parts)
        self.said.append(message)
        return copy.deepcopy(WORDS[self.shape].response(message, answer.tokens))


# ---- edits


def _say(agent: Agent, edit: ConversationEdit) -> None:
    agent.said.append(ProviderMessage("user", [ProviderPart("text", edit.text)]))


def _show(agent: Agent, edit: ConversationEdit) -> None:
    picture = ProviderPart("image", data=b"\x89PNG" + bytes([edit.n % 4]) * (edit.k % 5 + 1))
    agent.said.append(ProviderMessage("user", [picture, ProviderPart("text", edit.text)]))


def _answer(agent: Agent, edit: ConversationEdit) -> None:
    """Answers what the tools were asked, in one message or in one each."""
    asked = [part.name for message in agent.said for part in message.parts if part.kind == "call"]
    known = {part.name for message in agent.said for part in message.parts if part.kind == "result"}
    results = [ProviderPart("result", edit.text, name) for name in asked if name not in known]
    if edit.k % 2:
        agent.said += [ProviderMessage("tool", [result]) for result in results]
    elif results:
        agent.said.append(ProviderMessage("tool", results))


def _stray(agent: Agent, edit: ConversationEdit) -> None:
    agent.said.append(ProviderMessage("tool", [ProviderPart("result", edit.text, f"c{edit.n % 3}")]))


def _prompt(agent: Agent, edit: ConversationEdit) -> None:
    prompt = ProviderMessage("system", [ProviderPart("text", edit.text)])
    agent.said[:1] = [prompt] if agent.said and agent.said[0].who == "system" else [prompt, *agent.said[:1]]


def _rewrite(agent: Agent, edit: ConversationEdit) -> None:
    _change(agent, edit, lambda text: edit.text)


def _grow(agent: Agent, edit: ConversationEdit) -> None:
    _change(agent, edit, lambda text: text + edit.text)


def _clip(agent: Agent, edit: ConversationEdit) -> None:
    """Cuts the middle out of a long message, or the second half off a short one."""
    long = [n for n, message in enumerate(agent.said) if any(len(part.text) > 200 for part in message.parts)]
    if long:
        _change(agent, edit._replace(n=long[edit.n % len(long)]), lambda text: f"{text[:60]} … {text[-60:]}")
    else:
        _change(agent, edit, lambda text: text[: len(text) // 2])


def _omit(agent: Agent, edit: ConversationEdit) -> None:
    results = [message for message in agent.said if message.who == "tool"]
    for message in results[: edit.n % 3 + 1]:
        message.before = message.before or message.parts
        message.parts = [part._replace(text=OMITTED) for part in message.parts]


def _change(agent: Agent, edit: ConversationEdit, change: Callable[[str], str]) -> None:
    message = agent.pick(edit.n)
    if message is not None and message.parts:
        index = edit.k % len(message.parts)
        message.before = message.before or list(message.parts)
        part = message.parts[index]
        message.parts = [*message.parts[:index], part._replace(text=change(part.text)), *message.parts[index + 1 :]]


def _restore(agent: Agent, edit: ConversationEdit) -> None:
    changed = [message for message in agent.said if message.before is not None]
    if changed:
        message = changed[edit.n % len(changed)]
        message.parts, message.before = message.before or [], None


def _delete(agent: Agent, edit: ConversationEdit) -> None:
    if agent.said:
        index = edit.n % len(agent.said)
        agent.gone.append((index, agent.said.pop(index)))


def _slide(agent: Agent, edit: ConversationEdit) -> None:
    """Drops the oldest messages after the system prompt, as a sliding window does."""
    start = 1 if agent.said and agent.said[0].who == "system" else 0
    end = start + edit.n % 4 + 1
    agent.gone += enumerate(agent.said[start:end], start)
    del agent.said[start:end]


def _compact(agent: Agent, edit: ConversationEdit) -> None:
    start = 1 if agent.said and agent.said[0].who == "system" else 0
    end = start + edit.n % 6 + 2
    text = f"<summary>{edit.text}</summary>" if edit.k % 2 else edit.text
    agent.gone += enumerate(agent.said[start:end], start)
    agent.said[start:end] = [ProviderMessage("user", [ProviderPart("text", text)])]


def _back(agent: Agent, edit: ConversationEdit) -> None:
    """A deleted message comes back, where it stood or at the end."""
    if agent.gone:
        index, message = agent.gone.pop(edit.n % len(agent.gone))
        agent.said.insert(index if edit.k % 2 else len(agent.said), message)


def _move(agent: Agent, edit: ConversationEdit) -> None:
    if agent.said:
        message = agent.said.pop(edit.n % len(agent.said))
        agent.said.insert(edit.k % (len(agent.said) + 1), message)


def _double(agent: Agent, edit: ConversationEdit) -> None:
    message = agent.pick(edit.n)
    if message is not None:
        agent.said.insert(edit.k % (len(agent.said) + 1), copy.deepcopy(message))


def _insert(agent: Agent, edit: ConversationEdit) -> None:
    agent.said.insert(edit.n % (len(agent.said) + 1), ProviderMessage("user", [ProviderPart("text", edit.text)]))


def _add_part(agent: Agent, edit: ConversationEdit) -> None:
    message = agent.pick(edit.n)
    if message is not None:
        index = edit.k % (len(message.parts) + 1)
        message.parts = [*message.parts[:index], ProviderPart("text", edit.text), *message.parts[index:]]


def _drop_part(agent: Agent, edit: ConversationEdit) -> None:
    message = agent.pick(edit.n)
    if message is not None and len(message.parts) > 1:
        message.parts = [part for index, part in enumerate(message.parts) if index != edit.k % len(message.parts)]


def _turn_parts(agent: Agent, edit: ConversationEdit) -> None:
    message = agent.pick(edit.n)
    if message is not None:
        message.parts = message.parts[::-1]


def _field(agent: Agent, edit: ConversationEdit) -> None:
    message = agent.pick(edit.n)
    if message is not None:
        message.extra = {**message.extra, "note": VALUES[edit.k % len(VALUES)]}


def _recast(agent: Agent, edit: ConversationEdit) -> None:
    message = agent.pick(edit.n)
    if message is not None:
        message.who = ("user", "assistant", "system")[edit.k % 3]


def _odd(agent: Agent, edit: ConversationEdit) -> None:
    odd = ProviderMessage("odd", raw=copy.deepcopy(ODD[edit.k % len(ODD)]))
    agent.said.insert(edit.n % (len(agent.said) + 1), odd)


def _tools(agent: Agent, edit: ConversationEdit) -> None:
    agent.tools = list(range(edit.n % 3)) if edit.k % 2 else [*agent.tools, edit.n % 3]


def _set(agent: Agent, edit: ConversationEdit) -> None:
    agent.settings = {**agent.settings, ("temperature", "model", "user")[edit.n % 3]: VALUES[edit.k % len(VALUES)]}


def _unset(agent: Agent, edit: ConversationEdit) -> None:
    agent.settings = {"model": "m-1"}


def _clear(agent: Agent, edit: ConversationEdit) -> None:
    agent.gone += enumerate(agent.said)
    agent.said = []


def _translate(agent: Agent, edit: ConversationEdit) -> None:
    agent.shape = SHAPES[edit.n % len(SHAPES)]


def _reuse(agent: Agent, edit: ConversationEdit) -> None:
    """Tool call ids start again, as those of some providers do."""
    agent.asked = 0


EDITS: dict[str, Callable[[Agent, ConversationEdit], None]] = {
    "say": _say, "show": _show, "answer": _answer, "stray": _stray, "prompt": _prompt, "rewrite": _rewrite,
    "grow": _grow, "clip": _clip, "omit": _omit, "restore": _restore, "delete": _delete, "slide": _slide,
    "compact": _compact, "back": _back, "move": _move, "double": _double, "insert": _insert,
    "add_part": _add_part, "drop_part": _drop_part, "turn_parts": _turn_parts, "field": _field,
    "recast": _recast, "odd": _odd, "tools": _tools, "set": _set, "unset": _unset, "clear": _clear,
    "translate": _translate, "reuse": _reuse,
}  # fmt: skip
