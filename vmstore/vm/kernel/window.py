"""Selects what a call sends of L0: all of it, or the part a smaller window holds, by conversational relevance.

Pages are chosen by what the kernel knows of them, never by their words, so that a replay chooses the same.
"""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.address import page_name
from vmstore.core.decision import Holder
from vmstore.core.mutation import Residence
from vmstore.core.page import Method, Mime, Role, Slot
from vmstore.errors import InputError
from vmstore.vm.compressors.form import MIMES
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.state import State
from vmstore.vm.protocol.prompt_page import MEDIA, PageForm, PromptPage
from vmstore.vm.protocol.select import Selection, select

BEFORE_ALL = 1 << Holder.SYSTEM | 1 << Holder.TOOLS  # who hold what stands before the conversation
_OF_THE_SOURCE = (Method.CLIPPED, Method.SHORTENED, Method.REPLACED)  # forms of the page's own content type


class Membership(NamedTuple):
    """The membership a pack states: new places, pages that left, their number and tokens.

    `choice` is how they were chosen; None where all of L0 is sent.
    """

    entered: list[Residence]
    left: list[int]
    leaves: int
    tokens: int
    choice: Selection | None


def membership(state: State) -> Membership:
    """The membership of the next call against the last one; InputError where its window cannot hold what is pinned."""
    choice = chosen(state)
    if choice is None:
        return Membership(*state.residences(), len(state.here), state.used, None)
    levels = shown(choice)
    places = {page: state.here[page].residence_at(levels[page]) for page in sorted(levels)}
    entered = [place for page, place in places.items() if state.packed.get(page) != place]
    left = [page for page in sorted(state.packed) if page not in places]
    return Membership(entered, left, len(places), choice.tokens, choice)


def chosen(state: State) -> Selection | None:
    """The pages a call is sent and those it is not; None where that is all of L0 as it stands."""
    settings = state.settings
    if settings is None or not (state.used > state.window or (settings.conversation and _has_stand_ins(state))):
        return None
    if state.window <= 0:
        raise InputError(
            f"a window of {settings.window_tokens_max} tokens cannot hold rules and tools, which take "
            f"{state.beside:,}; widen it, or use shorter rules",
            code="over-budget",
        )
    here = sorted(state.here.values(), key=_rank)
    leaves = [leaf_of(managed, state.segment) for managed in here]
    return select(leaves, state.window, turns=max(1, settings.pinned_turns))


def shown(choice: Selection) -> dict[int, int]:
    """The level each chosen page is shown at, by page."""
    return {int(leaf.name[1:]): leaf.level for leaf in choice.shown}


def leaf_of(managed: ManagedPage, segment: int, level: int | None = None) -> PromptPage:
    """A page as the kernel knows it, at the level it is shown at or another; `segment` is the one under way."""
    at = managed.level if level is None else level
    form = managed.forms[at]
    assert form is not None, "what is shown has a form"
    others = ((other, one) for other, one in enumerate(managed.forms) if one is not None and other != at)
    return PromptPage(
        name=page_name(managed.page),
        type=managed.type,
        modality=managed.modality,
        role=Role(managed.role),
        slot=Slot.SYSTEM if managed.holders & BEFORE_ALL else Slot.MESSAGES,
        level=at,
        tokens=form.tokens,
        mime=mime_of(managed, at),
        others=tuple(PageForm(level=other, tokens=one.tokens, mime=mime_of(managed, other)) for other, one in others),
        version=managed.version,
        importance=managed.importance,
        pinned=managed.pinned,
        task=bool(managed.holders >> Holder.PLAN & 1),
        turn=max(managed.created, managed.entered, managed.faulted),
        segment=0 if managed.segment == segment else managed.segment + 1,
        origin=page_name(managed.origin) if managed.origin else "",
        message=managed.message,
        call_id=page_name(managed.answers or managed.page),
        is_result=bool(managed.answers),
        is_call=not managed.answers,
    )


def mime_of(managed: ManagedPage, level: int) -> str:
    """The content type of a form, which follows from how it was made."""
    form = managed.forms[level]
    method = None if form is None else form.method
    if method is None or method in _OF_THE_SOURCE:
        return managed.mime.type
    return MIMES.get(method, Mime.TEXT).type


def _has_stand_ins(state: State) -> bool:
    """Whether a page here is shown as text once its turn is over, or stands for another."""
    return any(resident.modality in MEDIA or resident.origin in state.here for resident in state.here.values())


def _rank(managed: ManagedPage) -> int:
    return managed.rank
