"""Moves pages by hand, answers faults, ends segments, marks and restores."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.address import page_name
from vmstore.core.decision import Cause, FaultReason, Holder, Use
from vmstore.core.mutation import AnyMutation, Evict, Mark, Pin, Reference, Segment, Unpin, Update
from vmstore.core.page import Level, LinkKind, Method, Modality, PageType, Role
from vmstore.core.text.skeleton import dumps
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError, RefusedError
from vmstore.live.messages import page
from vmstore.live.runtime import Act
from vmstore.vm.kernel.managed_page import ManagedPage


class PageAnswer(NamedTuple):
    """Answer to a request for a page: the decision, and the level it is shown at, None where it is not."""

    page: int
    decided: list[AnyMutation]
    level: int | None


def fault(act: Act, number: int, level: int, reason: FaultReason, *, by_model: bool, name: str = "") -> PageAnswer:
    """A page is asked for at a level; 0 is no page, of which `name` says how it was called."""
    use = Use.FAULT if by_model else Use.ASKED
    if number and act.state.pages[number].type is PageType.VALUE:  # it is for programs: to a prompt there is none
        number, name = 0, name or page_name(number)
    evidence = act.cell(name.encode("utf-8", "backslashreplace")) if name else None
    act.tell(Reference(number, use, act.state.call, level, reason, evidence=evidence))
    decided = act.react()
    resident = act.state.here.get(number)
    return PageAnswer(number, decided, None if resident is None else resident.level)


def pin(act: Act, number: int, holder: Holder = Holder.HAND) -> None:
    """Holds a page in the prompt, brought in first where it is not there; refused where it cannot fit."""
    state = act.state
    managed = state.pages[number]
    if managed.holders >> holder & 1:
        return
    full = managed.forms[0]
    tokens = managed.tokens if number in state.here else (full.tokens if full else 0)
    if state.barred.unapproved(number):
        raise RefusedError(
            f"nobody approved {page_name(number)}, so nothing holds it in a prompt; "
            f"`work.artifacts.approve({page_name(number)!r}, who=…)` says that somebody did",
            code="not-approved",
        )
    if not managed.pinned and state.pinned + tokens > state.room:
        raise RefusedError(
            f"{page_name(number)} takes {tokens:,} tokens and {state.pinned:,} of {state.room:,} are pinned already; "
            "unpin something, compress it, or give the session a larger l0_tokens_max (law pins_fit)"
        )
    if number not in state.here and fault(act, number, 0, FaultReason.TOOL_PREREQ, by_model=False).level is None:
        raise RefusedError(f"{page_name(number)} finds no room in the prompt; evict or compress something first")
    act.tell(Pin(number, holder))


def rewrite(act: Act, number: int, content: bytes) -> None:
    """Gives a page another content, as a version; RefusedError where it is pinned and would not fit."""
    managed = act.state.pages[number]
    tokens = estimate(content, managed.modality)
    act.tell(Update(number, managed.version + 1, act.cell(content), len(content), tokens))
    if act.state.pinned > act.state.room:
        raise RefusedError(
            f"{page_name(number)} is pinned and would take {tokens:,} tokens, {act.state.pinned:,} with the "
            f"other pins of {act.state.room:,}; unpin it first, or give a larger l0_tokens_max (law pins_fit)",
            code="pins-over-budget",
        )


def unpin(act: Act, number: int) -> None:
    """Unpins a page that was pinned by hand."""
    if not act.state.pages[number].holders >> Holder.HAND & 1:
        raise InputError(f"{page_name(number)} is not pinned by hand, so there is nothing to let go")
    act.tell(Unpin(number, Holder.HAND))


def evict(act: Act, number: int) -> None:
    """Takes a page out of the prompt; nothing of it is lost."""
    managed = _here(act, number)
    if managed.pinned:
        raise RefusedError(f"{page_name(number)} is pinned, and a pinned page is never evicted; unpin it first")
    act.tell(Evict(number, Cause.ASKED, managed.tokens))


def compress(act: Act, number: int, level: int) -> int:
    """Shows a page at a higher level, which is made where it was not; the level it is shown at then."""
    managed = _here(act, number)
    if isinstance(level, bool) or level not in (Level.REDUCED, Level.ABSTRACT, Level.REFERENCE):
        raise InputError(
            f"level {level!r} cannot be compressed to; ask for 1 reduced, 2 abstract or 3 reference", code="no-level"
        )
    if level <= managed.level:
        raise InputError(
            f"{page_name(number)} is shown at level {managed.level} already; fault it in to see more of it"
        )
    made = managed.made(level)
    if made is None:
        act.tell(act.shorten(number, level))
        made = managed.made(level)
    form = managed.forms[made] if made is not None else None
    assert made is not None and form is not None, "a form was made"
    if form.tokens >= managed.tokens:
        raise RefusedError(f"{page_name(number)} has no shorter form than the {managed.tokens} tokens it is shown in")
    act.tell(Evict(number, Cause.ASKED, managed.tokens - form.tokens, level=made, content=form.position))
    return made


def show_shorter(act: Act, number: int, words: str) -> None:
    """Shows a file that was taken in by a shorter form where there is one; `words` were handed in about it."""
    resident = act.state.here.get(number)
    if resident is None:  # it waits for somebody's word
        return
    if words:
        made = act.shorten(number, Level.ABSTRACT if resident.modality is Modality.IMAGE else Level.REDUCED, words)
        if made.method in (Method.CAPTION, Method.TRANSCRIPT) or made.tokens < resident.tokens:
            act.tell(made)
    if resident.forms[Level.REDUCED] is None:
        made, known = act.shorten(number, Level.REDUCED), resident.made(Level.REDUCED)
        if made.tokens < resident.tokens and (known is None or made.level < known):  # or no decision would need it
            act.tell(made)
    level = resident.made(Level.REDUCED)
    form = resident.forms[level] if level is not None else None
    if level is not None and form is not None and form.tokens < resident.tokens:
        compress(act, number, level)


def mark(act: Act, name: str, pages: list[int] | None) -> int:
    """Names a moment, and the pages that make it up: those in the prompt unless others are chosen."""
    act.react()
    chosen = list(act.state.here) if pages is None else pages
    levels = [[number, act.state.pages[number].level if number in act.state.here else 0] for number in sorted(chosen)]
    return act.end(Mark(Mark.NAMED, name=act.cell(name.encode()), note=act.cell(dumps(levels))))


def restore(act: Act, name: str) -> list[PageAnswer]:
    """Sets the prompt back to a mark: what it does not name leaves, what it names is asked for; what came of each."""
    wanted = dict(act.spoken.marks[name])
    for number, resident in sorted(act.state.here.items()):
        if number not in wanted and not resident.pinned:
            act.tell(Evict(number, Cause.RESTORE, resident.tokens))
    act.react()
    return [
        fault(act, number, level, FaultReason.USER_REQUESTED_RECALL, by_model=False)
        for number, level in sorted(wanted.items())
        if (number not in act.state.here or act.state.here[number].level > level) and number not in act.state.barred
    ]


def segment(act: Act, title: str, summary: bytes) -> int:
    """Ends a segment: a summary page stands for what was said in it, and that leaves; the summary's page."""
    state = act.state
    ended = state.segment
    spoken = [
        managed
        for managed in state.pages.values()
        if managed.segment == ended and managed.message and not managed.pinned
    ]
    if not spoken:
        raise InputError("nothing was said in this segment, so there is nothing to sum up")
    links = [(int(LinkKind.DERIVES), managed.page) for managed in spoken]
    name = f"summary_{ended + 1}"
    made = page(act, PageType.SUMMARY, summary, role=Role.SYSTEM, name=name, links=links, actor="vm")
    staying = state.yielding()
    for managed in spoken:
        if managed.page in state.here and managed.page not in staying:
            act.tell(Evict(managed.page, Cause.SEGMENT, managed.tokens))
    act.tell(Segment(ended + 1, made, act.cell(title.encode("utf-8", "backslashreplace")) if title else None))
    return made


def _here(act: Act, number: int) -> ManagedPage:
    resident = act.state.here.get(number)
    if resident is None:
        raise InputError(f"{page_name(number)} is not in the prompt; it is in L2, and page_fault brings it back")
    return resident
