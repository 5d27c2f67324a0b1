"""What a call is sent of L0: all of it, or what a smaller window holds, chosen by what feels like a conversation.

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
    """What a pack says: places that are new, pages that left, how many there are and their tokens.

    `choice` is how they were chosen; None where all of L0 is sent.
    """

    entered: list[Residence]
    left: list[int]
    leaves: int
    tokens: int
    choice: Selection | None


def membership(state: State) -> Membership:
    """What the next call is sent, against the last one; InputError where its window cannot hold what is pinned."""
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
            f"{state.beside:,}; widen it, or use shorter rules"
        )
    here = sorted(state.here.values(), key=_rank)
    leaves = [leaf_of(held, state.segment) for held in here]
    return select(leaves, state.window, turns=max(1, settings.pinned_turns))


def shown(choice: Selection) -> dict[int, int]:
    """The level each chosen page is shown at, by page."""
    return {int(leaf.name[1:]): leaf.level for leaf in choice.shown}


def leaf_of(held: ManagedPage, segment: int, level: int | None = None) -> PromptPage:
    """A page as the kernel knows it, at the level it is shown at or another; `segment` is the one under way."""
    at = held.level if level is None else level
    form = held.forms[at]
    assert form is not None, "what is shown has a form"
    others = ((other, one) for other, one in enumerate(held.forms) if one is not None and other != at)
    return PromptPage(
        name=page_name(held.page),
        type=held.type,
        modality=held.modality,
        role=Role(held.role),
        slot=Slot.SYSTEM if held.holders & BEFORE_ALL else Slot.MESSAGES,
        level=at,
        tokens=form.tokens,
        mime=mime_of(held, at),
        others=tuple(PageForm(level=other, tokens=one.tokens, mime=mime_of(held, other)) for other, one in others),
        version=held.version,
        importance=held.importance,
        pinned=held.pinned,
        task=bool(held.holders >> Holder.PLAN & 1),
        turn=max(held.created, held.entered, held.faulted),
        segment=0 if held.segment == segment else held.segment + 1,
        origin=page_name(held.origin) if held.origin else "",
        message=held.message,
        call_id=page_name(held.answers or held.page),
        is_result=bool(held.answers),
        is_call=not held.answers,
    )


def mime_of(held: ManagedPage, level: int) -> str:
    """The content type of a form, which follows from how it was made."""
    form = held.forms[level]
    method = None if form is None else form.method
    if method is None or method in _OF_THE_SOURCE:
        return held.mime.type
    return MIMES.get(method, Mime.TEXT).type


def _has_stand_ins(state: State) -> bool:
    """Whether a page here is told in words once its turn is over, or stands for another."""
    return any(held.modality in MEDIA or held.origin in state.here for held in state.here.values())


def _rank(held: ManagedPage) -> int:
    return held.rank
