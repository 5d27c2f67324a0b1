"""Messages that belong together, and which of a conversation's turns are of the topics at hand.

A message is a JSON value in a provider's shape. A tool's call and its results are found in every shape by the
fields that name them, forwards and backwards, so that neither is ever sent without the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

HUMAN = "user"


class CallsOfMessage(NamedTuple):
    """The ids of the tool calls a message makes, and of those it answers."""

    asks: frozenset[str]
    answers: frozenset[str]


def calls_of(message: Any) -> CallsOfMessage:
    """The tool calls a message makes and answers, by id; by the tool's name where calls have no ids."""
    asks: set[str] = set()
    answers: set[str] = set()
    for value in _objects(message):
        kind = value.get("type")
        for call in _listed(value.get("tool_calls")):
            asks.add(str(call.get("id")))
        if "tool_call_id" in value:
            answers.add(str(value["tool_call_id"]))
        if kind == "tool_use":
            asks.add(str(value.get("id")))
        elif kind == "tool_result":
            answers.add(str(value.get("tool_use_id")))
        elif kind in ("function_call", "custom_tool_call"):
            asks.add(str(value.get("call_id")))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            answers.add(str(value.get("call_id")))
        for field, found in (("functionCall", asks), ("functionResponse", answers)):
            if isinstance(value.get(field), dict):
                found.add(str(value[field].get("id") or value[field].get("name")))
    return CallsOfMessage(frozenset(asks), frozenset(answers))


def chains(messages: Sequence[Any]) -> list[list[int]]:
    """The messages by what belongs together: a call with all that answers it, any other message by itself."""
    found: list[list[int]] = []
    asked: dict[str, int] = {}  # by the id of a call the chain that has it
    for place, message in enumerate(messages):
        asks, answers = calls_of(message)
        at = max((asked[one] for one in answers if one in asked), default=None)
        if at is None:
            at = len(found)
            found.append([])
        for later in range(at + 1, len(found)):  # what stands between a call and its answer stays with them
            found[at] += found[later]
        del found[at + 1 :]
        found[at].append(place)
        asked = {one: min(chain, at) for one, chain in asked.items()} | dict.fromkeys(asks, at)
    return found


def is_whole(messages: Sequence[Any]) -> bool:
    """Whether each call in some messages has its result there, and each result its call."""
    asks: set[str] = set()
    answers: set[str] = set()
    for message in messages:
        calls = calls_of(message)
        asks |= calls.asks
        answers |= calls.answers
    return asks == answers


def turns_of(messages: Sequence[Any]) -> list[list[int]]:
    """The messages by turns: each begins with what a person says after something else."""
    turns: list[list[int]] = []
    spoke = False
    for place, message in enumerate(messages):
        is_human = isinstance(message, dict) and message.get("role") == HUMAN and not calls_of(message).answers
        if not turns or (is_human and not spoke):
            turns.append([])
        spoke = is_human
        turns[-1].append(place)
    return turns


def kept_turns(
    tags: Sequence[frozenset[str]], topics: frozenset[str], *, protected: int, is_temporal: bool = False
) -> list[bool]:
    """Selects turns to keep by their tags: those of a topic in hand, those without a tag, and the last ones.

    A question about a time needs them all.
    """
    recent = len(tags) - protected
    return [
        is_temporal or not topics or not own or place >= recent or not topics.isdisjoint(own)
        for place, own in enumerate(tags)
    ]


def _listed(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _objects(message: Any) -> Iterator[dict[str, Any]]:
    """A message and the parts of it, as deep as calls stand."""
    if isinstance(message, dict):
        yield message
        for field in ("content", "parts"):
            yield from _listed(message.get(field))
