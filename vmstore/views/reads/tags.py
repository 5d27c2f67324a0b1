"""Tags of a session at a moment: aliases, depths, pages of each, and tags that occur together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from vmstore.core.page import Modality, PageType, Role
from vmstore.core.tags import TOPIC, TagDepth, TagMethod
from vmstore.views.branch import Branch, BranchRange
from vmstore.views.reads.reasons import word_of
from vmstore.views.reads.resolve_asof import moment_at

RELATED_MAX = 5
NOTED = "noted"  # in place of a method: the page was born with the tag, or it was noted beside other things


class TagRow(NamedTuple):
    """A tag of a session: what it counts as, and its pages; of one that others count as, theirs too.

    `share` is of the turns there are, `related` the tags that stand in its turns most often.
    """

    tag: str
    canonical: str
    aliases: tuple[str, ...]
    pages: tuple[int, ...]
    turns: tuple[int, ...]
    tokens: int
    share: float
    related: tuple[str, ...]
    methods: tuple[str, ...]
    depth: str


def given(lane: Branch, position: int) -> dict[str, dict[int, int | None]]:
    """The pages that have each tag, each with the number of the method that found it; None where no `tag` said so.

    The words that pages are born with as what they are about are no tags.
    """
    found: dict[str, dict[int, int | None]] = {}
    for stretch in reversed(lane.upto(position)):
        for tag, page, held, method in lane.db.execute(_GIVEN, (stretch.session, stretch.low, stretch.high)):
            pages = found.setdefault(tag, {})
            if held:
                pages[page] = method
            else:
                pages.pop(page, None)
    return {tag: pages for tag, pages in found.items() if pages}


def tags_of_pages(lane: Branch, position: int, pages: Iterable[int]) -> dict[int, list[str]]:
    """The tags that mutations gave some pages and none took away, as they are named there."""
    wanted = str(sorted(set(pages)))
    found: dict[int, dict[str, None]] = {}
    for stretch in reversed(lane.upto(position)):
        rows = lane.db.execute(_OF_PAGES, (stretch.session, stretch.low, stretch.high, wanted))
        for tag, page, held in rows:
            tags = found.setdefault(page, {})
            if held:
                tags[tag] = None
            else:
                tags.pop(tag, None)
    return {page: list(tags) for page, tags in found.items()}


def aliases(lane: Branch, position: int) -> dict[str, str]:
    """The canonical name of each alias, through chains of aliases; names in a circle stand for themselves."""
    said: dict[str, str | None] = {}
    for stretch in reversed(lane.upto(position)):
        said.update(lane.db.execute(_ALIASES, (stretch.session, stretch.low, stretch.high)))
    return {name: end for name in said if (end := canonical(name, said)) != name}


def canonical(name: str, said: Mapping[str, str | None]) -> str:
    """The canonical name of a tag."""
    passed, end = {name}, name
    while (further := said.get(end)) is not None:
        if further in passed:
            return name
        passed.add(further)
        end = further
    return end


def depths(lane: Branch, position: int) -> dict[str, int]:
    """The depth at which each tag is shown, for those that have one."""
    found: dict[str, int] = {}
    for stretch in reversed(lane.upto(position)):
        found.update(lane.db.execute(_DEPTHS, (stretch.session, stretch.low, stretch.high)))
    return found


def tag_changes(lane: Branch, stretch: BranchRange, after: int) -> Iterator[tuple[str, int, int, int | None]]:
    """The tags that pages of a stretch gained and lost after a position: tag, page, whether held, method."""
    yield from lane.db.execute(_GIVEN, (stretch.session, after, stretch.high))


def turns_of_pages(lane: Branch, pages: set[int]) -> dict[int, int]:
    """The turn of each page."""
    return dict(lane.rows(_TURNS, sorted(pages)))


def turns_of_tags(lane: Branch, position: int) -> dict[int, set[str]]:
    """The tags of each turn that has any, by the names they count as."""
    ends, found = aliases(lane, position), dict[int, set[str]]()
    by_tag = given(lane, position)
    turn_of = turns_of_pages(lane, {page for pages in by_tag.values() for page in pages})
    for tag, pages in by_tag.items():
        for page in pages:
            found.setdefault(turn_of[page], set()).add(ends.get(tag, tag))
    return found


def narrowed(lane: Branch, position: int) -> frozenset[str]:
    """The tags that a split has made."""
    return frozenset(tag for tag, pages in given(lane, position).items() if TagMethod.SPLIT in pages.values())


def spoken_turns(lane: Branch, position: int) -> dict[int, dict[int, int]]:
    """The pages on which user and model said something in words, each with its role, by turn."""
    found: dict[int, dict[int, int]] = {}
    for stretch in reversed(lane.upto(position)):
        for page, turn, role in lane.db.execute(_SPOKEN, (stretch.session, stretch.low, stretch.high)):
            found.setdefault(turn, {})[page] = role
    return dict(sorted(found.items()))


def tag_rows(lane: Branch, position: int) -> Iterator[TagRow]:
    """The tags at a moment, in the order of their names; a name that counts as another has a row of its own."""
    by_tag, ends, deep = given(lane, position), aliases(lane, position), depths(lane, position)
    names = sorted({*by_tag, *ends, *ends.values(), *deep})
    others: dict[str, list[str]] = {}
    for name in sorted(ends):
        others.setdefault(ends[name], []).append(name)
    wanted = {page for pages in by_tag.values() for page in pages}
    turn_of, tokens = turns_of_pages(lane, wanted), tokens_of(lane, wanted, position)
    last = max(moment_at(lane, position)[0], 1)
    turns: dict[str, set[int]] = {}
    for tag, pages in by_tag.items():
        turns.setdefault(ends.get(tag, tag), set()).update(turn_of[page] for page in pages)
    in_turn: dict[int, set[str]] = {}
    for tag, some in turns.items():
        for turn in some:
            in_turn.setdefault(turn, set()).add(tag)
    for name in names:
        held: dict[int, int | None] = {}
        for other in (*others.get(name, ()), name):
            held |= by_tag.get(other, {})
        when = sorted({turn_of[page] for page in held})
        end = ends.get(name, name)
        beside = Counter(tag for turn in when for tag in in_turn[turn] if tag != end)
        related = sorted(beside, key=lambda tag: (-beside[tag], tag))[:RELATED_MAX]
        yield TagRow(
            name,
            end,
            tuple(others.get(name, ())),
            tuple(sorted(held)),
            tuple(when),
            sum(tokens[page] for page in held),
            min(len(when) / last, 1.0),
            tuple(related),
            tuple(sorted({_method(number) for number in held.values()})),
            TagDepth(deep.get(name, TagDepth.SUMMARY)).word,
        )


def _method(number: int | None) -> str:
    return NOTED if number is None else word_of(TagMethod, number) or NOTED


def tokens_of(lane: Branch, pages: set[int], position: int) -> dict[int, int]:
    """The tokens of each page's last full content."""
    found = dict(lane.rows(_BORN, sorted(pages)))
    for stretch in reversed(lane.upto(position)):
        found.update(lane.db.execute(_CHANGED, (stretch.session, stretch.high, str(sorted(pages)))))
    return found


_GIVEN = f"""SELECT tag, page, held, method FROM tags
  WHERE session = ? AND position > ? AND position <= ? AND substr(tag, 1, {len(TOPIC)}) <> '{TOPIC}'
  ORDER BY position, tag"""
_OF_PAGES = f"""SELECT tag, page, held FROM tags INDEXED BY tags_page
  WHERE session = ? AND position > ? AND position <= ? AND page IN (SELECT value FROM json_each(?))
  AND substr(tag, 1, {len(TOPIC)}) <> '{TOPIC}' ORDER BY position, tag"""
_SPOKEN = f"""SELECT page, turn, role FROM pages WHERE session = ? AND page > ? AND page <= ?
  AND message > 0 AND turn > 0
  AND type = {int(PageType.TRANSCRIPT)} AND modality = {int(Modality.TEXT)}
  AND role IN ({int(Role.USER)}, {int(Role.ASSISTANT)}) ORDER BY page"""
_ALIASES = "SELECT alias, canonical FROM aliases WHERE session = ? AND position > ? AND position <= ? ORDER BY position"
_DEPTHS = "SELECT tag, depth FROM depths WHERE session = ? AND position > ? AND position <= ? ORDER BY position"
_TURNS = "SELECT page, turn FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
_BORN = "SELECT page, tokens FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
_CHANGED = """SELECT page, tokens FROM changes WHERE session = ? AND position <= ? AND level = 0
  AND page IN (SELECT value FROM json_each(?)) ORDER BY position"""
