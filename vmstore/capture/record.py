"""Records calls: takes a request as it was sent and the answer as it came, commits what changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.capture.conversation.conversation import Conversation
from vmstore.capture.conversation.message_state import IncomingMessage, MessageState, RecordedRequest, written
from vmstore.capture.conversation.part_diff import shorter
from vmstore.capture.conversation.reconcile import Reconciliation
from vmstore.capture.redaction import reply_of
from vmstore.core.draft import COMPONENT, Draft, ReplyDraft, TokenUsage
from vmstore.core.mutation import Turn
from vmstore.core.page import Fidelity, PageType, Slot, Status
from vmstore.core.text.skeleton import loads
from vmstore.engine.batch import Batch
from vmstore.errors import InputError
from vmstore.providers import Shape, plain, split_request, take_message, take_reply
from vmstore.providers.message import json_bytes

Value = tuple[Slot, Any]
ASKED = "asked"  # what the record of masked values calls a client's request
CUT = "[…]".encode()  # stands where a text was cut


class RecordedPosition(NamedTuple):
    """The position, call and turn of a recorded call."""

    call: int
    turn: int
    position: int


class SplitRequest(NamedTuple):
    """A request taken apart: its messages, how one of them is read, the rest, and its shape."""

    values: list[Value]
    take: Callable[[Value], IncomingMessage]
    rest: bytes
    shape: Shape


def record(
    conversation: Conversation,
    batch: Batch,
    request: Mapping[str, Any],
    response: Any,
    *,
    at: int,
    usage: TokenUsage,
    asked: Mapping[str, Any] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> RecordedPosition:
    """Writes one call on a batch; the caller commits it. Raises InputError before anything is written.

    What the session is not to hold is masked first, so that the same conversation, sent again, is the same.
    `asked` is the request that the client made, where another one was sent; `beside` is kept with the answer.
    """
    split = _split(batch, request, "request")
    reply = measured(take_reply(split.shape, response), usage)
    reply = _with(reply, beside)
    if (door := None if batch.redaction is None else batch.redaction.door) is not None:
        reply = reply_of(door, reply, "response")
        door.recognised()
    if asked is None:
        conversation.thread = []
        return write(
            conversation, batch, split.values, split.take, reply, at=at, rest=split.rest, shape=int(split.shape)
        )
    thread = _asked(conversation, batch, asked, at)
    values = [state.value for state in thread]
    context = sent_of(conversation, thread, split.values, split.take, at)
    call = conversation.pack(context, fidelity=Fidelity.RECORDED, at=at, rest=split.rest, shape=int(split.shape))
    for state, value in zip(thread, values, strict=True):
        if state.value is None:  # it was not sent, and is asked again
            state.take(value)
    conversation.thread = thread
    position, turn = batch.head.position, batch.head.turn
    conversation.reply(reply, call, at=at)
    return RecordedPosition(call, turn, position)


def _with(reply: ReplyDraft, beside: Mapping[str, Any] | None) -> ReplyDraft:
    """A reply with what its caller knows of it: the component that asked, and other JSON."""
    if not beside:
        return reply
    given = plain(dict(beside), "beside")
    component = given.pop("component", None)
    if component is not None and not (isinstance(component, str) and COMPONENT.fullmatch(component)):
        raise InputError(f"{component!r:.60} is no name of a component; write one like compactor", code="not-a-name")
    known = {} if reply.aside is None else loads(reply.aside)
    aside = json_bytes({**known, **given}) if given else reply.aside
    return msgspec.structs.replace(reply, aside=aside, component=component)


def ask(conversation: Conversation, batch: Batch, request: Mapping[str, Any], *, at: int) -> RecordedPosition:
    """Writes what is new of the messages that a client asks with, before it is known what is sent of them."""
    conversation.thread = _asked(conversation, batch, request, at)
    return RecordedPosition(batch.head.call, batch.head.turn, batch.head.position)


def held(batch: Batch, request: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """A request as its session holds it: without what that masks."""
    door = None if batch.redaction is None else batch.redaction.door
    masked: Mapping[str, Any] = request if door is None else door.value(plain(request), where)
    return masked


def _split(batch: Batch, request: Mapping[str, Any], where: str) -> SplitRequest:
    split = split_request(held(batch, request, where))

    def take(value: Value) -> IncomingMessage:
        clean = plain(value[1])
        return IncomingMessage(take_message(split.shape, value[0], clean), _copy(clean))

    return SplitRequest(split.messages, take, split.rest, split.shape)


def _asked(conversation: Conversation, batch: Batch, request: Mapping[str, Any], at: int) -> list[MessageState]:
    """The messages of a client's request, those written that are new since it asked last."""
    conversation.batch = batch
    split = _split(batch, request, ASKED)
    old = conversation.thread or conversation.context
    same, singles = _unchanged(old, split.values)
    return settle(conversation, split.values, split.take, at, same, singles, old)


def sent_of(
    conversation: Conversation,
    thread: Sequence[MessageState],
    values: Sequence[Value],
    take: Callable[[Value], IncomingMessage],
    at: int,
) -> list[MessageState]:
    """The messages of a request that was made of what a client asked, in the order they were sent.

    Each is one of the thread's, as it was asked or in a shorter form, or the memory's own: an answer to a call
    of its tools and what it tells are pages of type `index`, which recall tells nobody again.
    """
    context: list[MessageState] = []
    taken: set[MessageState] = set(thread)
    place = 0
    for value in values:
        following = next((index for index in range(place, len(thread)) if _is(thread[index], value)), None)
        if following is not None:
            context.append(thread[following])
            place = following + 1
            continue
        entry = take(value)
        is_cut = isinstance(entry.place, str) or any(CUT in part.content for part in entry.draft.parts)
        rest = range(place, len(thread)) if is_cut else ()
        shown_shorter = next((index for index in rest if _is_shorter(conversation, thread[index], entry)), None)
        if shown_shorter is not None:
            settled = Reconciliation(conversation, [thread[shown_shorter]], [entry], at).plan_changed().write()
            context += settled
            place = shown_shorter + 1
            continue
        state = next((one for one in conversation.alike(entry.key) if one not in taken and one.key == entry.key), None)
        if state is None:
            draft = msgspec.structs.replace(entry.draft, human=False)
            state = conversation.say(draft, at=at, type_=PageType.INDEX)
            state.take(entry.value)
        else:  # it says the same, and other fields of it may be sent otherwise
            Reconciliation(conversation, [state], [entry], at).plan_changed().write()
        taken.add(state)
        context.append(state)
    return context


def _is_shorter(conversation: Conversation, state: MessageState, entry: IncomingMessage) -> bool:
    """Whether a message is another one with its long texts cut."""
    parts = entry.draft.parts
    if state.place != entry.place or len(state.pages) != len(parts):
        return False
    changed = [
        (page, part) for page, part, said in zip(state.pages, parts, entry.digests, strict=True) if page.shown != said
    ]
    return bool(changed) and all(
        shorter(conversation.read(page.full), part.content) is not None for page, part in changed
    )


def write(
    conversation: Conversation,
    batch: Batch,
    values: Sequence[Value],
    take: Callable[[Value], IncomingMessage],
    reply: ReplyDraft,
    *,
    at: int,
    rest: bytes | None,
    shape: int | None,
    fidelity: Fidelity = Fidelity.RECORDED,
) -> RecordedPosition:
    """Writes a call whose request is known message by message; `take` makes a draft of a new one."""
    conversation.batch = batch
    sent = written(values)
    if conversation.sent is not None and sent is not None and conversation.sent.begins(values, sent):
        same, singles = len(conversation.context), list[int]()
    else:
        same, singles = _unchanged(conversation.context, values)
    context = settle(conversation, values, take, at, same, singles, conversation.context)
    since = 0 if singles else same
    pairs = [] if conversation.sent is None else conversation.sent.pairs[:since]
    call = conversation.pack(context, fidelity=fidelity, at=at, rest=rest, shape=shape, since=since)
    if sent is not None:
        pairs += [(state.slot, state.value) for state in context[len(pairs) :]]
        conversation.sent = RecordedRequest(pairs, sent)
    position, turn = batch.head.position, batch.head.turn
    conversation.reply(reply, call, at=at)
    return RecordedPosition(call, turn, position)


def settle(
    conversation: Conversation,
    values: Sequence[Value],
    take: Callable[[Value], IncomingMessage],
    at: int,
    same: int,
    singles: Sequence[int],
    old: Sequence[MessageState],
) -> list[MessageState]:
    """Matches each message of a request to one of the log; writes those that are new or changed.

    The first `same` stand where they stood in the `old` one, but for the `singles` among them.
    """
    changed = {index: take(values[index]) for index in singles}
    rest = [take(value) for value in values[same:]]
    keys = {entry.key for entry in rest}
    moved = [i for i, entry in changed.items() if entry.place != old[i].place or old[i].key in keys]
    if moved:  # somebody else speaks there now, or it stands elsewhere: no change in place
        same = moved[0]
        changed = {index: entry for index, entry in changed.items() if index < same}
        rest = [take(value) for value in values[same:]]
    context: list[MessageState] = list(old[:same])
    settling = Reconciliation(conversation, old[same:], rest, at, before=context).plan()
    if conversation.final and settling.opens_turn:
        conversation.batch.end(at)
        conversation.batch.add(Turn(conversation.batch.head.turn + 1))
        conversation.final = False
    for index, entry in changed.items():
        context[index : index + 1] = Reconciliation(conversation, [old[index]], [entry], at).plan_changed().write()
    return context + settling.write()


def _unchanged(old: Sequence[MessageState], values: Sequence[Value]) -> tuple[int, list[int]]:
    """How many messages stand where they stood, and which single ones among them changed in place."""
    singles = list[int]()
    end = min(len(old), len(values))
    index = 0
    while index < end:
        if not _is(old[index], values[index]):
            if (
                index + 1 >= end
                or not _is(old[index + 1], values[index + 1])
                or old[index].slot is not values[index][0]
            ):
                break
            singles.append(index)
        index += 1
    return index, singles


def _is(state: MessageState, value: Value) -> bool:
    return state.slot is value[0] and state.says(value[1])


def gap(conversation: Conversation, batch: Batch, reason: str, *, at: int) -> RecordedPosition:
    """Writes a call that could not be recorded: nothing is known of it but that it was made."""
    conversation.batch = batch
    call = conversation.pack(conversation.context, fidelity=Fidelity.DERIVED, at=at)
    position, turn = batch.head.position, batch.head.turn
    conversation.reply(ReplyDraft(Status.GAP, error=reason), call, at=at)
    return RecordedPosition(call, turn, position)


def drafts_as_values(drafts: Sequence[Draft]) -> list[Value]:
    """Recorded drafts as values to settle: each is its own value."""
    return [(draft.slot, draft) for draft in drafts]


def take_draft(value: Value) -> IncomingMessage:
    """A draft that came ready."""
    return IncomingMessage(value[1], value[1])


def measured(reply: ReplyDraft, measured_usage: TokenUsage) -> ReplyDraft:
    """A reply with what the caller measured where the provider said nothing."""
    usage = TokenUsage(
        *(t if t is not None else u for t, u in zip(_fields(measured_usage), _fields(reply.usage), strict=True))
    )
    return msgspec.structs.replace(reply, usage=usage)


def _fields(usage: TokenUsage) -> tuple[Any, ...]:
    return msgspec.structs.astuple(usage)


def _copy(value: Any) -> Any:
    """A copy of containers; strings and numbers are shared."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
