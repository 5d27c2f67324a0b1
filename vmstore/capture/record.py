"""Records calls: takes a request as it was sent and the answer as it came, commits what changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.capture.conversation.conversation import Conversation
from vmstore.capture.conversation.message_state import IncomingMessage, MessageState, RecordedRequest, written
from vmstore.capture.conversation.reconcile import Reconciliation
from vmstore.capture.redaction import reply_of
from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.mutation import Turn
from vmstore.core.page import Fidelity, Slot, Status
from vmstore.engine.batch import Batch
from vmstore.providers import plain, split_request, take_message, take_reply

Value = tuple[Slot, Any]


class RecordedPosition(NamedTuple):
    """The position, call and turn of a recorded call."""

    call: int
    turn: int
    position: int


def record(
    conversation: Conversation,
    batch: Batch,
    request: Mapping[str, Any],
    response: Any,
    *,
    at: int,
    usage: TokenUsage,
) -> RecordedPosition:
    """Writes one call on a batch; the caller commits it. Raises InputError before anything is written.

    What the session is not to hold is masked first, so that the same conversation, sent again, is the same.
    """
    door = None if batch.redaction is None else batch.redaction.door
    split = split_request(request if door is None else door.value(plain(request), "request"))
    reply = measured(take_reply(split.shape, response), usage)
    if door is not None:
        reply = reply_of(door, reply, "response")
        door.recognised()

    def take(value: Value) -> IncomingMessage:
        clean = plain(value[1])
        return IncomingMessage(take_message(split.shape, value[0], clean), _copy(clean))

    return write(conversation, batch, split.messages, take, reply, at=at, rest=split.rest, shape=split.shape)


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
    same, singles = _unchanged(conversation, values, sent)
    context = settle(conversation, values, take, at, same, singles)
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
) -> list[MessageState]:
    """Matches each message of a request to one of the log; writes those that are new or changed.

    The first `same` stand where they stood, but for the `singles` among them.
    """
    old = conversation.context
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


def _unchanged(conversation: Conversation, values: Sequence[Value], sent: bytes | None) -> tuple[int, list[int]]:
    """How many messages stand where they stood, and which single ones among them changed in place."""
    old, singles = conversation.context, list[int]()
    if conversation.sent is not None and sent is not None and conversation.sent.begins(values, sent):
        return len(old), singles
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
