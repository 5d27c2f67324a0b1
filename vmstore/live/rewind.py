"""Sets a session back to a moment: what came after is undone by mutations of its own, and stays in the log.

Pages that came after leave as what was superseded does; what was said of older ones, their links, contents, pins
and settings, what names count as and how deep tags are shown are said again as they were; the pages of the prompt come
back where they are missing. A mark that says how far back it went ends the commit, and what a session remembers of
words is folded from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from vmstore.core.decision import Cause, FaultReason, Holder, Segment
from vmstore.core.mutation import Alias, Annotate, CellRef, Depth, Evict, Link, Mark, Pin, Tag, Unlink, Unpin, Update
from vmstore.core.page import LinkKind, Standing
from vmstore.core.tags import TagDepth, TagMethod
from vmstore.core.text.skeleton import dumps
from vmstore.live.page_moves import PageAnswer, fault
from vmstore.live.runtime import Act, Runtime
from vmstore.live.settings import configure
from vmstore.views.reads.annotations import PageNotes
from vmstore.vm.kernel.state import State

HOLDERS = tuple(holder for holder in Holder if holder is not Holder.TURNS)  # those hold while a turn is recent
NOTHING = PageNotes()


Links = Mapping[tuple[int, int, int], set[tuple[int | None, int | None]]]
"""Links by source, target and kind, each with when it is valid."""


class RewoundState(NamedTuple):
    """A session's state and contents at a position; annotations, links and tags then and now."""

    position: int
    runtime: Runtime
    notes: Mapping[int, PageNotes]
    notes_now: Mapping[int, PageNotes]
    links: Links
    links_now: Links
    depths: Mapping[str, int] = {}
    depths_now: Mapping[str, int] = {}

    @property
    def state(self) -> State:
        """The kernel's state at that position."""
        return self.runtime.state


def rewind(act: Act, then: RewoundState, name: str) -> list[PageAnswer]:
    """Sets the session back; what came of each page that had left the prompt since. `name` is of the moment."""
    after = [page for page in act.spoken.pages if page > then.position and not act.spoken.undone(page)]
    _release(act, then)
    for page in after:
        if page not in act.state.barred:
            act.tell(Annotate(page, status=Standing.SUPERSEDED))
    retagged = _retag(act, then)
    _say_again(act, then, retagged)
    _link_again(act, then)
    _name_again(act, then)
    for page, managed in then.state.pages.items():
        form = managed.forms[0]
        if act.state.pages[page].version != managed.version and form is not None:
            content = then.runtime.forms.of(form.position)
            version = act.state.pages[page].version + 1
            act.tell(Update(page, version, act.cell(content), len(content), form.tokens))
    if act.state.segment != then.state.segment:
        act.tell(Segment(then.state.segment))
    for page, here in sorted(act.state.here.items()):
        if page <= then.position and page not in then.state.here and not here.pinned:
            act.tell(Evict(page, Cause.RESTORE, here.tokens))
    if then.state.settings is not None and then.state.settings != act.state.settings:
        configure(act, msgspec.structs.asdict(then.state.settings))
    act.react()
    why = FaultReason.USER_REQUESTED_RECALL
    came = [fault(act, page, level, why, by_model=False) for page, level in _lacking(act, then)]
    for page, managed in then.state.here.items():
        for holder in _holding(managed.holders & ~act.state.pages[page].holders):
            if page in act.state.here:
                act.tell(Pin(page, holder))
    levels = [[page, managed.level] for page, managed in sorted(act.state.here.items())]
    act.end(Mark(Mark.NAMED, name=act.cell(name.encode()), note=act.cell(dumps(levels)), back_to=then.position))
    return came


def _release(act: Act, then: RewoundState) -> None:
    """Releases the holds that did not exist then."""
    for page, managed in sorted(act.state.pages.items()):
        before = then.state.pages.get(page)
        for holder in _holding(managed.holders & ~(before.holders if before is not None else 0)):
            act.tell(Unpin(page, holder))


def _holding(holders: int) -> Iterable[Holder]:
    return [holder for holder in HOLDERS if holders >> holder & 1]


def _retag(act: Act, then: RewoundState) -> set[tuple[int, str]]:
    """Gives older pages the tags they had by a mutation of each, by the method that found them; those it changed."""
    changed: set[tuple[int, str]] = set()
    for page, now in sorted(act.spoken.tags.items()):
        if page > then.position:
            continue
        was = then.runtime.spoken.tags.get(page, {})
        for name in sorted({*was, *now}):
            if was.get(name) != now.get(name):
                method = was.get(name, now.get(name, TagMethod.HAND))
                act.tell(Tag(page, act.cell(name.encode()), method, int(name in was)))
                changed.add((page, name))
    return changed


def _say_again(act: Act, then: RewoundState, retagged: set[tuple[int, str]]) -> None:
    """Says of older pages what was said of them then."""
    for page, now in sorted(then.notes_now.items()):
        was = then.notes.get(page, NOTHING)
        if was == now:
            continue
        tags, untags = (
            [name for name in names if (page, name) not in retagged]
            for names in (_texts(was.tags, now.tags), _texts(now.tags, was.tags))
        )
        anchors = {name: was.anchors.get(name) for name in (*was.anchors, *now.anchors)}
        anchors = {name: value for name, value in anchors.items() if value != now.anchors.get(name)}
        weight = then.state.pages[page].importance
        annotate = Annotate(
            page,
            importance=None if weight == act.state.pages[page].importance else weight,
            status=_other(was.status, now.status, int(Standing.ACTIVE)),
            valid_from=_other(was.valid_from, now.valid_from, None),
            valid_to=_other(was.valid_to, now.valid_to, None),
            tags=_sealed(act, tags),
            untags=_sealed(act, untags),
            anchors=_sealed(act, anchors),
        )
        if annotate != Annotate(page):
            act.tell(annotate)


def _link_again(act: Act, then: RewoundState) -> None:
    """Ends what older pages were linked by since, and links them as they were; an answer stays with its call."""
    for ends in sorted({*then.links, *then.links_now}):
        source, target, kind = ends
        was, now = then.links.get(ends, set()), then.links_now.get(ends, set())
        if was == now or kind == LinkKind.CAUSED_BY or max(source, target) > then.position:
            continue
        if now:
            act.tell(Unlink(source, target, kind))
        for valid_from, valid_to in sorted(was, key=str):
            act.tell(Link(source, target, kind, valid_from, valid_to))


def _name_again(act: Act, then: RewoundState) -> None:
    """Has names count as what they counted as, and tags shown as deep as they were."""
    was, now = then.runtime.spoken.aliases, act.spoken.aliases
    for name in sorted({*was, *now}):
        canonical = was.get(name)
        if canonical != now.get(name):
            act.tell(Alias(act.cell(name.encode()), None if canonical is None else act.cell(canonical.encode())))
    for tag, depth in sorted(then.depths_now.items()):
        before = then.depths.get(tag, TagDepth.SUMMARY)
        if before != depth:
            act.tell(Depth(act.cell(tag.encode()), int(before)))


def _other(was: int | None, now: int | None, unsaid: int | None) -> int | None:
    """The value to write where it differs now; `unsaid` stands for one that was not set then."""
    return None if was == now else unsaid if was is None else was


def _texts(some: Iterable[str], without: Iterable[str]) -> list[str]:
    known = frozenset(without)
    return [text for text in some if text not in known]


def _sealed(act: Act, value: object) -> CellRef | None:
    return act.cell(msgspec.json.encode(value)) if value else None


def _lacking(act: Act, then: RewoundState) -> list[tuple[int, int]]:
    """The pages of the prompt of then that are missing now, or shown shorter, and their levels."""
    here = act.state.here
    return [
        (page, resident.level)
        for page, resident in sorted(then.state.here.items())
        if (page not in here or here[page].level > resident.level) and page not in act.state.barred
    ]
