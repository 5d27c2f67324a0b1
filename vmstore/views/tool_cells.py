"""The contents that a fold reads to tell the calls and answers of tools: of them it keeps names and outcomes alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vmstore.core.page import Modality, PageType, Role

if TYPE_CHECKING:
    from vmstore.core.mutation_kind import CellRef

CALL_BYTES_MAX, ANSWER_BYTES_MAX = 1 << 20, 1 << 18  # of a content that is read for its name or its outcome
ANSWERERS = (Role.TOOL, Role.USER, Role.OTHER)

assert Role.ASSISTANT not in ANSWERERS, "a page calls a tool or answers for one"
assert ANSWER_BYTES_MAX <= CALL_BYTES_MAX, "of an answer its beginning is enough"


def answers_a_tool(page_type: int, role: int) -> bool:
    """Whether a page of a type and a role may be what a tool answered: an artifact, or what it stated for good."""
    return (page_type == PageType.ARTIFACT and role in ANSWERERS) or (page_type == PageType.CLAIM and role == Role.TOOL)


def cells_read(mutations: Sequence[Any], first: int) -> Iterator[CellRef]:
    """The cells of a commit that this view reads of what contents and envelopes are, beside labels."""
    from vmstore.core.mutation import Create, Message

    answered: set[int] = set()
    for m in mutations:
        if type(m) is not Create or not m.message or m.content is None:
            continue
        if m.role == Role.ASSISTANT:
            if m.modality == Modality.STRUCTURED and m.size <= CALL_BYTES_MAX:
                yield m.content
        elif answers_a_tool(m.type, m.role):
            answered.add(m.message)
            if m.size <= ANSWER_BYTES_MAX:
                yield m.content
    for at, m in enumerate(mutations, first):
        if at in answered and type(m) is Message:
            yield m.envelope
            if m.aside is not None and m.role == Role.TOOL:
                yield m.aside
