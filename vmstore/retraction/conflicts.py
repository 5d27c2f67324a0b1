"""Conflicts of a retraction: each kind, found in one session's views."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from vmstore.core.address import page_name
from vmstore.core.decision import Holder
from vmstore.core.page import LinkKind, Standing
from vmstore.retraction.closure import AffectedPages
from vmstore.views.projectors.decisions import holders
from vmstore.views.reads.annotations import notes_of
from vmstore.views.reads.dependents import replacing, steps
from vmstore.views.reads.reasons import word_of

NAMED_MAX = 3


class PageDispute(NamedTuple):
    """A kind of conflict about a page, 0 of the session as a whole, in words."""

    kind: str
    page: int
    about: str


class JudgedPages(NamedTuple):
    """Affected pages of a session to mark, those superseded `already`, and those `settled` before."""

    marked: list[int]
    already: list[int]
    settled: dict[int, int]


def judged(fallen: AffectedPages) -> JudgedPages:
    """Tells what falls apart: a page that a sound one replaced is settled, unless it is the cause itself."""
    lane, position, pages = fallen.lane, fallen.position, fallen.pages
    already = {page for page, note in notes_of(lane, position, pages).items() if note.status == Standing.SUPERSEDED}
    links = [(new, old) for new, old in replacing(lane, position, pages) if old in pages and new not in pages]
    unsound = superseded(fallen, {new for new, _ in links})
    settled = {old: new for new, old in links if old not in fallen.roots and old not in already and new not in unsound}
    marked = [page for page in sorted(pages) if page not in already and page not in settled]
    return JudgedPages(marked, sorted(already), settled)


def superseded(fallen: AffectedPages, pages: Collection[int]) -> set[int]:
    """Those of some pages that are superseded."""
    notes = notes_of(fallen.lane, fallen.position, pages)
    return {page for page, note in notes.items() if note.status == Standing.SUPERSEDED}


def disputes(fallen: AffectedPages, found: JudgedPages) -> Iterator[PageDispute]:
    """Everything a person should know before the pages are marked."""
    marked = found.marked
    if found.already:
        yield PageDispute("already", 0, f"{_names(found.already)} superseded before")
    for page, new in sorted(found.settled.items()):
        yield PageDispute("settled", page, f"{page_name(new)} took its place and is sound, so it is left as it is")
    for page, sound in _sound_grounds(fallen, marked).items():
        yield PageDispute("partly", page, f"made from {_names(sound)} too, which stand")
    for page, holds in sorted(holders(fallen.lane, fallen.position, marked).items()):
        by = ", ".join(word_of(Holder, holder) or "" for holder in holds)
        yield PageDispute("pinned", page, f"held in the prompt ({by}), and stays there until it is unpinned")
    for page, ways in sorted(_by_hand(fallen, marked).items()):
        yield PageDispute("annotated", page, f"somebody said of it at position {ways} what holds of it")
    for new, old in replacing(fallen.lane, fallen.position, marked):
        if old not in fallen.pages and new in marked:
            yield PageDispute(
                "replaced", new, f"took the place of {page_name(old)}, which is sound and does not come back"
            )
    shared = [page for page in marked if fallen.lane.owner(page) != fallen.lane.session]
    if shared:
        yield PageDispute("shared", 0, f"shares {_names(shared)} with the session it was forked from; marked in both")


def _sound_grounds(fallen: AffectedPages, marked: Collection[int]) -> dict[int, list[int]]:
    """The sound pages that some marked ones were made from too; that a call brought one about makes it no sounder."""
    derived = [page for page in marked if page not in fallen.roots]
    found: dict[int, set[int]] = {}
    for step in steps(fallen.lane, fallen.position, derived, up=True):
        if step.on not in fallen.pages and step.kind != LinkKind.CAUSED_BY.word:
            found.setdefault(step.page, set()).add(step.on)
    unsound = superseded(fallen, {on for grounds in found.values() for on in grounds})
    return {page: sorted(left) for page in sorted(found) if (left := found[page] - unsound)}


def _by_hand(fallen: AffectedPages, marked: Collection[int]) -> dict[int, int]:
    """The position at which a person last annotated each page; replacement by a newer claim does not count."""
    listed = f"[{','.join(map(str, marked))}]"
    found: Mapping[int, int] = {}
    for stretch in reversed(fallen.lane.upto(fallen.position)):
        found = {**found, **dict(fallen.lane.db.execute(_SAID, (listed, stretch.session, stretch.high)))}
    return dict(found)


def _names(pages: Collection[int]) -> str:
    named = ", ".join(page_name(page) for page in list(pages)[:NAMED_MAX])
    return named if len(pages) <= NAMED_MAX else f"{named} and {len(pages) - NAMED_MAX} more"


_SAID = f"""SELECT n.page, max(n.position) FROM json_each(?) one
  CROSS JOIN notes n ON n.session = ? AND n.page = one.value AND n.position <= ?
  WHERE n.status IS NOT {int(Standing.SUPERSEDED)}
   AND NOT (n.status IS {int(Standing.ABANDONED)} AND n.importance IS 0) GROUP BY n.page"""
