"""The mutation that makes a page of a message's part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vmstore.capture.conversation.message_state import kin
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import CellRef, Create
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
    """What makes the page of part `index` of a message; `cell` seals its content and its labels."""
    part: Part = draft.parts[index]
    is_ = kin(part)
    told: dict[str, object] = {"hint": draft.hint, "mime": part.mime_name, "asks": is_.asks, "answers": is_.answers}
    told |= {"tags": draft.tags, "actor": draft.actor, "origin": draft.origin}
    labels = {key: value for key, value in told.items() if value}
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
