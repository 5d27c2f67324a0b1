"""The managed window: a request that is larger than its port's window is sent as its memory assembles it.

What a client asks is taken into the session first, then `assemble` says what is sent of it. Each message that goes
out is one of the client's own, whole or with its long texts cut; what the memory tells stands in messages of its own,
one before the conversation and one before the question. Each has an answer where a user's message follows, since
templates of some models take no two of them in a row.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.errors import InputError
from vmstore.live.pack import SHAPES
from vmstore.live.request import tokens_of, written
from vmstore.providers import Shape, shape_of
from vmstore.providers.request import MESSAGES
from vmstore.proxy.frames import Managed, WindowAsk
from vmstore.store.recall.assembly.candidates import ABSTRACT, REDUCED
from vmstore.store.recorder import record_asked
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.vm.assembly.history import calls_of, is_whole
from vmstore.vm.assembly.message_cut import shortened
from vmstore.vm.protocol.messages import dialect
from vmstore.vm.protocol.tools import FACT_TOOLS, RECALL_TOOLS, TOPIC_TOOLS

Json = dict[str, Any]

INSTRUCTING = ("system", "developer")
READ = "I have read the <virtual-context>."  # the answer to a message of the memory's
INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")  # what assembling counts itself
OPENING = "<virtual-context"  # what the memory's own messages begin with
WHOLE = 0  # a message with all its texts
TRIES = 4
TURNS_MAX = 256  # sessions whose last blocks are kept

DIALECTS = {shape: name for name, shape in reversed(SHAPES.items())}


class _Blocks(NamedTuple):
    """The blocks beside a question: they stay as long as its turn lasts, and a provider's cache of them."""

    question: Any
    place: int
    front: str
    beside: str


class Window:
    """Makes what is sent of what is asked, for the sessions of a store."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, _Blocks] = OrderedDict()

    def managed(
        self, store: Store, session: str, given: Json, asked: Json, settings: WindowAsk, redaction: str | None = None
    ) -> Managed:
        """The request that is sent for a `given` one; VmstoreError where the memory cannot say.

        `asked` is the same without the keys that it was sent with; the store holds it without what it masks, too.
        """
        shape = shape_of(asked)
        if _tokens(asked) <= settings.tokens:
            return Managed(None, "it fits the window")
        if shape is Shape.RESPONSES and (asked.get("previous_response_id") or asked.get("conversation")):
            return Managed(None, "the provider holds the history of this conversation", failed=True)
        key = MESSAGES[shape]
        if not isinstance(asked.get(key), list) or not asked[key]:
            return Managed(None, f"its {key} is no list of messages", failed=True)
        held = record_asked(store, session, asked, redaction)
        offered = _offered(asked, shape, settings, _tools_of(store.session(session)))
        try:
            sent = self._fitted(store, session, given, held[key], settings, offered)
        except InputError:
            if not offered:
                raise
            offered = []  # their definitions may be what is too much for a small window
            sent = self._fitted(store, session, given, held[key], settings, offered)
        names = tuple(dialect(DIALECTS[shape]).names(offered))
        return Managed(encoded(sent), "", names)

    def _fitted(
        self, store: Store, session: str, given: Json, asked: list[Any], settings: WindowAsk, offered: list[Any]
    ) -> Json:
        key = MESSAGES[shape_of(given)]
        around = _with_tools({**given, key: []}, offered)
        budget = settings.tokens - _tokens({name: value for name, value in around.items() if name not in INSTRUCTIONS})
        for _ in range(TRIES):
            if budget < 1:
                break
            prompt = store.session(session).memory.assemble(tokens=budget, rounds=settings.rounds if offered else 0)
            blocks = self._blocks(session, asked, prompt.prepend, prompt.beside)
            messages = _chosen(given[key], asked, prompt.conversation, blocks, key)
            sent = {**around, key: messages}
            if (over := _tokens(sent) - settings.tokens) <= 0:
                return sent
            budget -= over
        raise InputError(
            f"a window of {settings.tokens:,} tokens cannot hold what instructs, the tools and the last message; "
            "give the port a larger one"
        )

    def _blocks(self, session: str, messages: Sequence[Any], front: str, beside: str) -> _Blocks:
        """The blocks of a turn: those it began with."""
        place = _question(messages)
        last = self._last.pop(session, None)
        if last is None or (last.place, last.question) != (place, messages[place]):
            last = _Blocks(messages[place], place, front, beside)
        self._last[session] = last
        if len(self._last) > TURNS_MAX:
            self._last.popitem(last=False)
        return last


def _chosen(
    given: Sequence[Any], asked: Sequence[Any], conversation: Sequence[Any], blocks: _Blocks, key: str
) -> list[Any]:
    """The messages that are sent: of those given the chosen ones, in their order, and the memory's own.

    One that is cut is cut as the session holds it: the cut might go through what that masks.
    """
    shown: dict[int, Any] = {}
    place = 0
    for value in conversation:
        for at in range(place, len(asked)):
            if (form := _form(asked[at], value)) is not None:
                shown[at] = given[at] if form == WHOLE else value
                place = at + 1
                break
    if len(asked) - 1 not in shown:
        raise InputError("the last message does not fit the window of its port; give the port a larger one")
    instructs = {at: message for at, message in enumerate(given) if _role(message) in INSTRUCTING}
    chosen = sorted({**shown, **instructs}.items())
    if is_whole(given) and not is_whole([message for _, message in chosen]):
        raise InputError("what fits the window would leave a tool's call without its result; give it a larger one")
    first = next((at for at, (_, message) in enumerate(chosen) if _role(message) not in INSTRUCTING), len(chosen))
    before = next((at for at, (number, _) in enumerate(chosen) if number >= blocks.place), len(chosen))
    messages = [message for _, message in chosen]
    front, beside = ([_said(text, key)] if text else [] for text in (blocks.front, blocks.beside))
    return _taking_turns([*messages[:first], *front, *messages[first:before], *beside, *messages[before:]], key)


def _taking_turns(messages: Sequence[Any], key: str) -> list[Any]:
    """Some messages, each of the memory's own answered where a user's follows it."""
    taking: list[Any] = []
    for message in messages:
        if taking and is_own(taking[-1]) and _role(message) == "user":
            taking.append(_said(READ, key, is_answer=True))
        taking.append(message)
    return taking


def _form(asked: Any, shown: Any) -> int | None:
    """How many characters the texts of a message may have to be the one that is shown; None where it is another."""
    if asked == shown:
        return WHOLE
    return next((most for most in (REDUCED, ABSTRACT) if shortened(asked, most) == shown), None)


def _question(messages: Sequence[Any]) -> int:
    """The place of the last message of a person; the last of all where there is none."""
    for place in range(len(messages) - 1, -1, -1):
        if _role(messages[place]) == "user" and not calls_of(messages[place]).answers:
            return place
    return len(messages) - 1


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, Mapping) else None
    if role is None and isinstance(message, Mapping) and not {"type", "role"} & message.keys():
        return "user"  # contents of Gemini, which may leave it out
    return role if isinstance(role, str) else ""


def _said(text: str, key: str, *, is_answer: bool = False) -> Json:
    """A message of the memory's, in the shape that has its messages under a key; or the answer to one."""
    if key == "contents":
        return {"role": "model" if is_answer else "user", "parts": [{"text": text}]}
    return {"role": "assistant" if is_answer else "user", "content": text}


def is_own(message: Any) -> bool:
    """Whether a message is one that the memory put in."""
    parts = message.get("parts") if isinstance(message, dict) else None
    content = parts[0].get("text") if isinstance(parts, list) and parts and isinstance(parts[0], dict) else None
    text = content if parts else message.get("content") if isinstance(message, dict) else None
    return isinstance(text, str) and ((text.startswith(OPENING) and _role(message) == "user") or text == READ)


def _tools_of(session: Session) -> list[str]:
    """The tools that a session's memory can answer: of facts and topics where it has any."""
    return [
        *RECALL_TOOLS,
        *(FACT_TOOLS if session.memory.facts.all() else ()),
        *(TOPIC_TOOLS if session.memory.tags.all() else ()),
    ]


def _offered(asked: Json, shape: Shape, settings: WindowAsk, tools: Sequence[str]) -> list[Any]:
    """The definitions of the memory's tools, but for those whose names the client gives its own; maybe none."""
    choice = asked.get("tool_choice", asked.get("toolConfig", asked.get("tool_config")))
    is_free = choice in (None, "auto") or (isinstance(choice, Mapping) and choice.get("type") == "auto")
    if not settings.rounds or not is_free or asked.get("n") not in (None, 1) or asked.get("background"):
        return []
    if shape is Shape.RESPONSES and asked.get("stream") and asked.get("store") is not False:
        return []  # a stream keeps the id of its first round, from which no later request could go on
    speaks = dialect(DIALECTS[shape])
    given = asked.get("tools")
    taken = set(speaks.names(given)) if isinstance(given, list) else set()
    wanted = [name for name in tools if name not in taken]
    return speaks.tools(wanted) if wanted else []


def _with_tools(request: Json, offered: list[Any]) -> Json:
    given = request.get("tools")
    return {**request, "tools": [*(given if isinstance(given, list) else ()), *offered]} if offered else request


def encoded(request: Json) -> bytes:
    """A request as it is sent."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _tokens(request: Json) -> int:
    """The tokens that a request is estimated at, pictures as a provider counts them."""
    try:
        return tokens_of(request, written(request), pictured=True)
    except (ValueError, TypeError):  # half a character, a number that JSON has not
        return len(encoded(request)) // CHARACTERS_PER_TOKEN
