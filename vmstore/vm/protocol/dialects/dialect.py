"""The interface of a provider's dialect: write a request, read a response, add tool results to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from vmstore.core.page import Role
from vmstore.errors import InputError
from vmstore.vm.protocol.conversation import ChatMessage, TextPart
from vmstore.vm.protocol.memo import Memo, shared
from vmstore.vm.protocol.tools import VM_TOOLS, parameters, schema

SHORT = ("page_id", "target_level", "query", "text", "preset", "start", "end")  # the arguments a short definition names
BEFORE = "(What was said before this is not in view.)"


class ToolCall(NamedTuple):
    """A call in a response; `arguments` as the provider gave them, an object or its JSON."""

    id: str
    tool: str
    arguments: Any


class ParsedResponse(NamedTuple):
    """A response read: its words and the calls it makes."""

    text: str
    calls: tuple[ToolCall, ...]


class Dialect(Protocol):
    """One provider's shape of requests and responses."""

    def request(self, instructions: str, turns: Sequence[ChatMessage], memo: Memo) -> dict[str, Any]:
        """The part of a request that carries a conversation; the memo has its messages, so nobody may change them."""
        ...

    def tools(self, tools: Sequence[str] = VM_TOOLS, *, short: bool = False) -> list[Any]:
        """The definitions of some of the memory's tools, with what each argument means, or short."""
        ...

    def names(self, tools: Sequence[Any]) -> list[str]:
        """The names of the tools that some definitions offer."""
        ...

    def said(self, response: Mapping[str, Any]) -> ParsedResponse:
        """Parses a response; raises InputError where it is none of this shape."""
        ...


def definitions(tools: Sequence[str], *, short: bool = False) -> list[dict[str, Any]]:
    """Some of the memory's tools: name, description, parameters; short, with those a model needs alone."""
    written = [
        {"name": name, "description": schema(name)["description"], "parameters": parameters(name)} for name in tools
    ]
    if short:
        for definition in written:
            definition["description"] = definition["description"].partition(".")[0]
            known = definition["parameters"]["properties"]
            definition["parameters"]["properties"] = {
                name: {"type": known[name]["type"]} for name in SHORT if name in known
            }
    return written


Message = TypeVar("Message")


def drawn(memo: Memo, turn: ChatMessage, write: Callable[[ChatMessage], Message]) -> Message:
    """Writes a message in the dialect; equal parts give the same value as before."""
    return memo.of((write, turn.role, *map(id, turn.parts)), lambda: (write(turn), turn))[0]


def all_drawn(memo: Memo, turns: Sequence[ChatMessage], write: Callable[[ChatMessage], Message]) -> list[Message]:
    """Writes messages in the dialect; those the last request began with give the same values."""
    last, before, written = memo.last.get("drawn", (None, (), []))
    same = shared(before, turns) if last is write else 0
    found = [*written[:same], *(drawn(memo, turn, write) for turn in turns[same:])]
    memo.last["drawn"] = write, turns, found
    return found


def begun(turns: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with the user's first, which some providers insist on."""
    if turns and turns[0].role is not Role.USER:
        return [ChatMessage(Role.USER, (TextPart(BEFORE),)), *turns]
    return list(turns)


def taken(value: Any, shape: str, *path: str | int) -> Any:
    """The value at a path in a response; raises InputError where there is none."""
    for step in path:
        fits = isinstance(value, list) and isinstance(step, int) and len(value) > step
        if not fits and not (isinstance(value, Mapping) and step in value):
            place = ".".join(map(str, path))
            raise InputError(
                f"the model call gave no {shape} response (no {place}); return the provider's, as a dict",
                code="not-a-response",
            )
        value = value[step]
    return value


def listed(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, whatever else it holds; nothing where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
