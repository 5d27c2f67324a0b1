"""Tells the conversations of one client apart by what their requests begin with.

Requests are compared by the digests of their messages, instructions aside, since agents write
the time and more into those. What is held of a conversation is a number for each message of its
last request, and it is forgotten where too many others were active since.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.core.page import Slot, Status
from vmstore.errors import InputError
from vmstore.providers import Shape, shape_of, take_message, take_reply
from vmstore.providers.request import MESSAGES, SYSTEM

CONVERSATIONS_MAX = 1_024
INSTRUCTING = ("system", "developer")

Contents = frozenset[int]  # digests
PastCall = tuple[str, dict[str, Any], Any]
"""The last call of a session: the session's name, what was asked, and the response."""
Past = Callable[[frozenset[str]], Iterable[PastCall]]
"""Gives the last calls of sessions that may go on, but for those of names that are known."""


class ConversationKey(NamedTuple):
    """The key by which a request is matched to a conversation."""

    shape: Shape
    messages: list[Any]  # those that are no instructions
    digests: list[int]
    instructions: int
    opening: int  # how many messages there are up to the first of a person's
    follows: str | None  # the answer, or the conversation at the provider, that it says it follows

    @property
    def opener(self) -> int:
        """The digest of the messages up to the first of a person's."""
        return hash(tuple(self.digests[: self.opening]))


class ClientConversation:
    """A conversation as its last request and answer left it."""

    __slots__ = ("_contents", "_failed", "_response", "asked", "ids", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: ConversationKey | None = None
        self._response: Any = None  # the last answer, until it is asked for
        self._contents: Contents | None = frozenset()
        self._failed = False
        self.ids: list[str] = []

    def hear(self, response: Any) -> None:
        """Keeps an answer; it is read where something is asked of it, which mostly nothing is."""
        self._response, self._contents = response, None

    @property
    def answer(self) -> Contents:
        """The digests of the last answer's parts."""
        return self._read()[1]

    @property
    def failed(self) -> bool:
        """Whether the last call failed."""
        return self._read()[0]

    def _read(self) -> tuple[bool, Contents]:
        if self._contents is None:
            assert self.asked is not None, "an answer is to what was asked"
            self._failed, self._contents = _answer(self.asked.shape, self._response)
            self._response = None
        return self._failed, self._contents


class ClientConversations:
    """The conversations of a client that may still go on."""

    def __init__(self, name: Callable[[int], str], past: Past | None = None) -> None:
        self._name = name
        self._past = past
        self._count = 0
        self._open: OrderedDict[str, ClientConversation] = OrderedDict()  # least lately active first
        self._by_opener: defaultdict[int, list[ClientConversation]] = defaultdict(list)
        self._by_end: dict[tuple[int, ...], ClientConversation] = {}
        self._by_id: dict[str, ClientConversation] = {}

    @property
    def single(self) -> str | None:
        """The name of the one conversation there was so far; None where there were several."""
        return self._name(1) if self._count <= 1 else None

    def of(self, request: dict[str, Any]) -> tuple[ClientConversation, ConversationKey]:
        """The conversation a request belongs to, a new one where it is of none."""
        asked = asked_of(request)
        return self._known(asked) or self._remembered(asked) or self._begun(), asked

    def named(self, name: str) -> ClientConversation:
        """The conversation of a session, as it is known."""
        return self._open.get(name) or ClientConversation(name)

    def _known(self, asked: ConversationKey) -> ClientConversation | None:
        known = self._by_id.get(asked.follows) if asked.follows else None
        return known or self._alike(asked)

    def _remembered(self, asked: ConversationKey) -> ClientConversation | None:
        """The conversation of a request with a past, where others recorded that, or a process before this one."""
        if self._past is None or not (asked.follows or len(asked.digests) > asked.opening):
            return None
        for name, request, response in self._past(frozenset(self._open)):
            self.note(ClientConversation(name), asked_of(request), response)
        return self._known(asked)

    def note(self, conversation: ClientConversation, asked: ConversationKey, response: Any) -> None:
        """Keeps what the next request of a conversation is recognised by."""
        self._forget(conversation)
        # A request that names the answer it follows holds the new messages alone.
        conversation.asked = asked._replace(messages=[])
        conversation.hear(response)
        conversation.ids = list(filter(None, (asked.follows, _id_of(response))))
        self._open[conversation.name] = conversation
        self._by_opener[asked.opener].append(conversation)
        for key in conversation.ids:
            self._by_id[key] = conversation
        if len(end := tuple(asked.digests[-2:])) > 1:
            self._by_end[end] = conversation
        if len(self._open) > CONVERSATIONS_MAX:
            self._forget(next(iter(self._open.values())))

    def _begun(self) -> ClientConversation:
        self._count += 1
        return ClientConversation(self._name(self._count))

    def _alike(self, asked: ConversationKey) -> ClientConversation | None:
        """The conversation whose last request begins most like this one, or whose end stands in it."""
        best: tuple[Any, ...] = ()
        found = None
        alike_ones = self._by_opener.get(asked.opener, ())
        if len(alike_ones) == 1:  # the rule, and nothing is to be weighed then
            (candidate,) = alike_ones
            assert candidate.asked is not None, "a conversation is listed once it was asked something"
            if _goes_on(candidate, asked, _shared(candidate.asked.digests, asked.digests)):
                return candidate
            return self._cut(asked)
        for age, candidate in enumerate(alike_ones):
            assert candidate.asked is not None, "a conversation is listed once it was asked something"
            shared = _shared(candidate.asked.digests, asked.digests)
            if not _goes_on(candidate, asked, shared):
                continue
            whole = shared == len(candidate.asked.digests)
            alike = candidate.asked.instructions == asked.instructions
            rank = (shared, whole, whole and _answered(candidate, asked, shared), alike, age)
            if rank > best:
                best, found = rank, candidate
        return found or self._cut(asked)

    def _cut(self, asked: ConversationKey) -> ClientConversation | None:
        """The conversation whose beginning is gone, summed up or cut off: its end stands there, and its answer next."""
        for n in range(len(asked.digests) - 2, 0, -1):
            conversation = self._by_end.get((asked.digests[n - 1], asked.digests[n]))
            if conversation is not None and _answered(conversation, asked, n + 1):
                return conversation
        return None

    def _forget(self, conversation: ClientConversation) -> None:
        if self._open.pop(conversation.name, None) is None:
            return
        asked = conversation.asked
        assert asked is not None, "what is open was asked something"
        alike = self._by_opener[asked.opener]
        alike.remove(conversation)
        if not alike:
            del self._by_opener[asked.opener]
        for key in conversation.ids:
            if self._by_id.get(key) is conversation:
                del self._by_id[key]
        end = tuple(asked.digests[-2:])
        if self._by_end.get(end) is conversation:
            del self._by_end[end]


def asked_of(request: dict[str, Any]) -> ConversationKey:
    """The conversation key of a request."""
    shape = shape_of(request)
    given = request.get(MESSAGES[shape])
    listed = given if isinstance(given, list) else [] if given is None else [given]
    instructions: list[Any] = [_under(request, path) for path in SYSTEM[shape]]
    messages: list[Any] = []
    person: int | None = None
    for message in listed:
        role = message.get("role") if type(message) is dict else None
        if role is None or type(role) is not str:
            role = _role(message)
        if role in INSTRUCTING:
            instructions.append(message)
            continue
        if role == "user" and person is None:
            person = len(messages)
        messages.append(message)
    opening = len(messages) if person is None else person + 1
    return ConversationKey(
        shape, messages, _digests(messages), hash(tuple(_digests(instructions))), opening, _before(request)
    )


def _role(message: Any) -> str | None:
    """The role of a message; text, or contents without a role, are the user's."""
    if isinstance(message, str):
        return "user"
    if not isinstance(message, dict):
        return None
    role = message.get("role", "user" if "parts" in message else None)
    return role if isinstance(role, str) else None


def _under(request: dict[str, Any], path: Iterable[str]) -> Any:
    value: Any = request
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _before(request: dict[str, Any]) -> str | None:
    """The answer a request names as the one before it, or the conversation it says it is part of."""
    if isinstance(before := request.get("previous_response_id"), str):
        return before
    whole = request.get("conversation")
    named = whole.get("id") if isinstance(whole, dict) else whole
    return named if isinstance(named, str) else None


def _digests(messages: Sequence[Any]) -> list[int]:
    try:
        return [hash(msgspec.json.encode(message)) for message in messages]
    except (ValueError, TypeError, RecursionError, OverflowError):  # half a character, a number of any length
        return [hash(json.dumps(message)) for message in messages]


def _shared(before: Sequence[int], now: Sequence[int]) -> int:
    """How many messages two requests have in common from the first on."""
    if before == now[: len(before)]:
        return len(before)
    return next((n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))


def _goes_on(conversation: ClientConversation, asked: ConversationKey, shared: int) -> bool:
    """Whether a request that begins as a conversation did is part of it.

    Greetings are alike: nothing but the same first words is somebody else's beginning, unless the
    call before failed and this is the same one again.
    """
    assert conversation.asked is not None, "a conversation is listed once it was asked something"
    if len(asked.digests) == asked.opening:
        return conversation.failed and len(conversation.asked.digests) == shared
    if shared == len(conversation.asked.digests) or shared > asked.opening:
        return True
    return conversation.asked.instructions == asked.instructions


def _answered(conversation: ClientConversation, asked: ConversationKey, shared: int) -> bool:
    """Whether what follows the common beginning is what the model answered."""
    if shared >= len(asked.messages):
        return False
    draft = take_message(asked.shape, Slot.MESSAGES, asked.messages[shared])
    return any(hash(part.content) in conversation.answer for part in draft.parts)


def _answer(shape: Shape, response: Any) -> tuple[bool, Contents]:
    try:
        reply = take_reply(shape, response)
    except InputError:
        return True, frozenset()
    contents = frozenset(hash(part.content) for draft in reply.drafts for part in draft.parts)
    return reply.status is not Status.OK, contents


def _id_of(response: Any) -> str | None:
    """The id by which a later request may refer to this answer."""
    for part in response if isinstance(response, list) else [response]:
        if isinstance(part, dict):
            answer = part.get("response", part)
            if isinstance(answer, dict) and isinstance(answer.get("id"), str):
                return str(answer["id"])
    return None
