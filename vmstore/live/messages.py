"""The messages of a live session with their pages, and the pages that belong to no message."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.capture.conversation.create_page import born, replied
from vmstore.capture.conversation.message_state import kin
from vmstore.capture.conversation.response_cell import ResponseFields
from vmstore.capture.redaction import draft_of
from vmstore.capture.thought_parts import is_thought
from vmstore.core.decision import Cause, Holder
from vmstore.core.draft import Draft, Part, ReplyDraft, TokenUsage
from vmstore.core.mutation import Configure, Evict, Message, Pin, Unpin, Update
from vmstore.core.page import IMPORTANCE, LinkKind, Mime, Modality, PageType, Role, Slot, Status
from vmstore.core.tags import TOPIC
from vmstore.core.text.token_estimate import ESTIMATOR, estimate, factor_moved
from vmstore.errors import InputError, RefusedError
from vmstore.live.likeness import turn
from vmstore.live.runtime import Act
from vmstore.live.topics import boundary
from vmstore.providers import Shape, plain, take_message
from vmstore.vm.kernel.settings import PPM
from vmstore.vm.kernel.state import State
from vmstore.vm.recall.topics import topics

TOPIC_BYTES_MAX = 4_000  # of a message, read for its topics
FACTOR_MIN_PPM, FACTOR_MAX_PPM = 500_000, 10_000_000  # who counts less or more than that counts something else


class LoggedMessage(NamedTuple):
    """A message that was said: its position, and those of its pages."""

    message: int
    pages: list[int]


def instruct(act: Act, system: str | None, tools: Sequence[Any] | None) -> bool:
    """Sets the instructions and tool schemas in front of the conversation; tells whether any changed.

    What is None stays as it is, what is empty is taken back. Either is a page that is held in the prompt, and
    another text of it a version of that page.
    """
    if not isinstance(system, str | None) or not isinstance(tools, list | tuple | None):
        raise InputError(
            "system is a text, and tools a list of schemas; pass those, or leave them out", code="not-an-instruction"
        )
    before = len(act.written)
    if tools is not None:
        _front(act, Holder.TOOLS, take_message(Shape.CHAT, Slot.TOOLS, plain(list(tools))) if tools else None)
    if system is not None:
        system_message = {"role": "system", "content": system}
        _front(act, Holder.SYSTEM, take_message(Shape.CHAT, Slot.MESSAGES, system_message) if system else None)
    return len(act.written) > before


def offer(act: Act, tools: Sequence[Any]) -> None:
    """Offers the model these tools from the next call on; with none those that were offered stay."""
    instruct(act, None, tools or None)


def _front(act: Act, holder: Holder, draft: Draft | None) -> None:
    """Has a message stand before the conversation, in the place of the one that was held so."""
    stand = [resident for resident in act.state.here.values() if resident.holders >> holder & 1]
    parts = () if draft is None else hidden(act, draft).parts
    if draft is not None and not stand:
        hold(act, write(act, draft).pages, holder)
        return
    for resident, part in zip(stand, parts, strict=False):
        form = resident.forms[0]
        assert form is not None, "every page has its full content"
        if act.forms.of(form.position) != part.content:
            tokens = estimate(part.content, part.modality)
            act.tell(Update(resident.page, resident.version + 1, act.cell(part.content), len(part.content), tokens))
    for resident in stand[len(parts) :]:
        for holder_of in (
            holder_of for holder_of in Holder if resident.holders >> holder_of & 1
        ):  # who pinned it by hand, too: it is not sent
            act.tell(Unpin(resident.page, holder_of))
        act.tell(Evict(resident.page, Cause.ASKED, resident.tokens))
    hold(act, (), holder)


def user(act: Act, content: Any) -> LoggedMessage:
    """A person says something; after a final answer it opens a turn."""
    draft = message_of("user", content)
    if act.spoken.final:
        words = words_of(draft)
        act.tell(turn(act, words))
        boundary.begin(act, words)
    return write(act, draft, human=True)


def words_of(draft: Draft) -> str:
    """The text of a message."""
    texts = [part.content for part in draft.parts if part.modality is Modality.TEXT and part.content is not None]
    return "\n".join(content.decode("utf-8", "replace") for content in texts)


def assistant(act: Act, message: Any, usage: TokenUsage, *, counted: int = 0) -> LoggedMessage:
    """The model answers the last call, or says what no call asked for; `counted` is what the call was estimated at."""
    draft = message_of("assistant", message)
    final = not any(part.is_call for part in draft.parts)
    (spoke,) = answered(act, ReplyDraft(Status.OK, (draft,), usage=usage, final=final), counted=counted)
    return spoke


def answered(act: Act, reply: ReplyDraft, *, counted: int = 0) -> list[LoggedMessage]:
    """Logs the response to the last call: its messages, how it ended, its usage."""
    call = act.state.call if act.state.call > act.spoken.answered else None
    spokes = [write(act, draft, reply_to=call) for draft in reply.drafts]
    if call is not None:
        act.tell(replied(reply, call, reply.final, ResponseFields(), act.cell))
        if reply.usage.tokens_in and counted:
            factor = corrected(act.state, reply.usage.tokens_in * PPM // counted)
            if factor_moved(factor, act.state.factor_ppm):
                act.tell(Configure(ESTIMATOR, factor, act.state.beside))
    return spokes


def identified(reply: ReplyDraft, ids: Sequence[str]) -> ReplyDraft:
    """An answer whose tool calls have these ids, in their order: what answers them names them."""
    left = OrderedDict.fromkeys(ids)
    stems: dict[str, deque[str]] = {}
    for name in ids:
        stems.setdefault(_stem(name), deque()).append(name)
    drafts = []
    for draft in reply.drafts:
        parts = []
        for part in draft.parts:
            stem = _stem(part.call_id or next(iter(left), ""))
            if part.is_call and stems.get(stem):  # what a provider's own tool was asked is not among them
                named = stems[stem].popleft()
                del left[named]
                part = msgspec.structs.replace(part, call_id=named)
            parts.append(part)
        drafts.append(msgspec.structs.replace(draft, parts=tuple(parts)))
    return msgspec.structs.replace(reply, drafts=tuple(drafts))


def _stem(call: str) -> str:
    """The common part of the ids of calls that were given one id: those after the first have underscores added."""
    return call.encode("utf-8", "replace").decode().rstrip("_")


def tool(act: Act, call_id: str, content: Any, name: str | None, *, origin: str | None = None) -> LoggedMessage:
    """A tool answers a call the model made; `origin` is the page of another session that it answers with."""
    if call_id not in act.spoken.calls:
        known = ", ".join(list(act.spoken.calls)[-3:]) or "none"
        raise InputError(f"no tool call has the id {call_id!r:.60}; the last ones are {known}", code="no-tool-call")
    result = {"role": "tool", "tool_call_id": call_id, "content": content}
    draft = message_of("tool", result if name is None else {**result, "name": name})
    return write(act, msgspec.structs.replace(draft, origin=origin))


def message_of(role: str, content: Any) -> Draft:
    """A message as a draft: a text, a list of content parts, or a whole chat-completions message of that role."""
    value = content if isinstance(content, dict) and "role" in content else {"role": role, "content": content}
    if value["role"] != role:
        raise InputError(f"a message of role {value['role']!r:.40} was handed in where {role} speaks")
    if content is None or content in ("", []) or (role == "user" and not _is_something(value.get("content"))):
        raise InputError(f"the {role} says nothing; pass a text, content parts or a message", code="nothing-said")
    if not isinstance(content, str | list | dict):
        raise InputError(f"the {role} says {content!r:.40}; pass a text, content parts or a message")
    if isinstance(content, list) and any(isinstance(part, dict) and "role" in part for part in content):
        raise InputError(f"the {role} says a list of messages; hand them in one by one", code="several-messages")
    return take_message(Shape.CHAT, Slot.MESSAGES, plain(value))


def _is_something(content: Any) -> bool:
    """Whether what somebody says holds anything: a text, or a part that is one and no empty text."""
    if not isinstance(content, list):
        return bool(content)
    parts = [part for part in content if isinstance(part, dict) and part]
    return len(parts) == len(content) and any(part.get("type") != "text" or part.get("text") for part in parts)


def write(act: Act, draft: Draft, *, human: bool = False, reply_to: int | None = None) -> LoggedMessage:
    """Writes a message and its pages; a model's thinking leaves the prompt at once, for no request sends it back."""
    draft = hidden(act, _uncalled(draft) if human else draft)
    message = act.tell(Message(draft.role, draft.slot, act.cell(draft.skeleton), int(human), None, reply_to))
    pages = []
    draft = msgspec.structs.replace(draft, tags=(*draft.tags, *_topics(draft)))
    for index, part in enumerate(draft.parts):
        answers = kin(part).answers
        links = [(int(LinkKind.CAUSED_BY), act.spoken.calls[answers])] if answers in act.spoken.calls else []
        pages.append(act.tell(born(draft, index, message, act.cell, links)))
    for number, part in zip(pages, draft.parts, strict=True):
        if draft.role in (Role.ASSISTANT, Role.OTHER) and (number in act.spoken.thoughts or is_thought(part)):
            act.tell(Evict(number, Cause.THOUGHT, act.state.here[number].tokens))
    return LoggedMessage(message, pages)


def _uncalled(draft: Draft) -> Draft:
    """A person's message, in which nothing is a call: only what a model asked for is answered by a tool."""
    parts = [
        msgspec.structs.replace(part, is_call=False, call_id=None) if part.is_call else part for part in draft.parts
    ]
    return msgspec.structs.replace(draft, parts=tuple(parts))


def page(
    act: Act,
    type_: PageType,
    content: bytes,
    *,
    role: Role,
    name: str | None = None,
    modality: Modality = Modality.TEXT,
    mime: Mime = Mime.TEXT,
    mime_name: str | None = None,
    links: Iterable[tuple[int, int]] = (),
    tags: Iterable[str] = (),
    importance: int | None = None,
    actor: str | None = None,
) -> int:
    """Writes a page that stands in no message; its position."""
    draft = Draft(
        role,
        b"",
        (Part(content, modality, mime, type_, mime_name=mime_name),),
        hint=name,
        tags=tuple(tags),
        importance=IMPORTANCE if importance is None else importance,
        actor=actor,
    )
    return alone(act, draft, links)


def alone(act: Act, draft: Draft, links: Iterable[tuple[int, int]] = ()) -> int:
    """Writes the one part of a draft as a page that stands in no message; its position."""
    return act.tell(born(hidden(act, draft), 0, 0, act.cell, list(links)))


def hidden(act: Act, draft: Draft) -> Draft:
    """A message without what its session is not to hold."""
    return draft if act.batch.redaction is None else draft_of(act.batch.redaction.door, draft, "what was said")


def _topics(draft: Draft) -> list[str]:
    """The topics of a message, as tags of its pages."""
    texts = [part.content for part in draft.parts if part.modality is Modality.TEXT]
    text = b"\n".join(texts)[:TOPIC_BYTES_MAX].decode("utf-8", "replace")
    return [TOPIC + topic for topic in topics(text)]


def hold(act: Act, pages: Iterable[int], holder: Holder) -> None:
    """Holds what stands before the conversation; RefusedError where the budget does not leave room for it."""
    for page in pages:
        act.tell(Pin(page, holder))
    if act.state.pinned > act.state.room:
        raise RefusedError(
            f"what stands before the conversation takes {act.state.pinned:,} tokens, and the budget leaves "
            f"{act.state.room:,} of {act.state.budget:,}; give a larger l0_tokens_max (law pins_fit)",
            code="over-budget",
        )


def corrected(state: State, factor_ppm: int) -> int:
    """A factor as far as it can be believed, and as far as what is pinned still fits."""
    factor = min(max(factor_ppm, FACTOR_MIN_PPM), FACTOR_MAX_PPM)
    if state.settings is not None and state.pinned:
        factor = min(factor, max(state.factor_ppm, state.settings.room * PPM // (state.pinned + state.beside)))
    return factor
