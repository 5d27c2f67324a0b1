"""The mutations of a message: the page of a message's part, and the reply to a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vmstore.capture.conversation.message_state import kin
from vmstore.capture.conversation.response_cell import ResponseFields
from vmstore.core.draft import Draft, Part, ReplyDraft
from vmstore.core.mutation import CellRef, Create, Reply
from vmstore.core.page import IMPORTANCE, PageType
from vmstore.core.text.skeleton import dumps
from vmstore.core.text.token_estimate import estimate


def born(
    draft: Draft,
    index: int,
    message: int,
    cell: Callable[[bytes], CellRef],
    links: Sequence[tuple[int, int]] = (),
    type_: PageType | None = None,
) -> Create:
    """The mutation that creates the page of part `index` of a message; `cell` seals its content and its labels."""
    part: Part = draft.parts[index]
    is_ = kin(part)
    described: dict[str, object] = {
        "hint": draft.hint,
        "mime": part.mime_name,
        "asks": is_.asks,
        "answers": is_.answers,
    }
    described |= {"tags": draft.tags, "actor": draft.actor, "origin": draft.origin}
    described |= draft.metadata
    labels = {key: value for key, value in described.items() if value}
    return Create(
        type=type_ if type_ is not None else part.type,
        modality=part.modality,
        role=draft.role,
        message=message,
        part=index,
        content=cell(part.content),
        size=len(part.content),
        tokens=estimate(part.content, part.modality),
        mime=part.mime,
        links=tuple(dict.fromkeys(links)),
        labels=cell(dumps(labels)) if labels else None,
        importance=IMPORTANCE if draft.importance is None else draft.importance,
    )


def replied(
    answer: ReplyDraft, call: int, final: bool, responses: ResponseFields, cell: Callable[[bytes], CellRef]
) -> Reply:
    """The mutation that states how a call ended and its usage; `cell` seals the rest of the response."""
    usage, beside = answer.usage, responses.beside(answer, call)
    return Reply(
        call=call,
        status=answer.status,
        final=int(final),
        tokens_in=usage.tokens_in,
        tokens_cached=usage.tokens_cached,
        tokens_out=usage.tokens_out,
        cost=usage.cost,
        latency=usage.latency,
        aside=None if beside is None else cell(beside),
        tokens_written=usage.tokens_written,
    )
