"""What a session is about, asked and said: its tags, tags given and taken away, names that mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from vmstore.core.address import MOMENTS, page_name, parse
from vmstore.core.asof import Head
from vmstore.core.mutation import Alias, Depth, Tag
from vmstore.core.tags import TagDepth, TagMethod
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.group_commit import WriteDecision
from vmstore.store.host import SessionHost
from vmstore.store.reads.annotations import tag_text
from vmstore.tags.canonical import suggested
from vmstore.views.branch import NEVER, Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.tags import aliases, depths, given, tag_rows


class TagInfo(msgspec.Struct, frozen=True):
    """A tag of a session: the tag it counts as, names that count as it, and the pages that have it or one of these.

    `turns` are those in which the pages were made, `share` is their part of all there are; `related` tags stand in
    them most often. `methods` say how it was found, `depth` how much of it the prompt shows.
    """

    tag: str
    canonical: str
    aliases: list[str]
    pages: int
    turns: int
    first_turn: int | None
    last_turn: int | None
    tokens: int
    share: float
    related: list[str]
    methods: list[str]
    depth: str


class AliasSuggestion(msgspec.Struct, frozen=True):
    """A name that may mean a tag that more pages have, and what speaks for it: plural, spelling, slip or short form."""

    alias: str
    canonical: str
    why: str


def tags_at(lane: Branch, position: int) -> list[TagInfo]:
    """The tags of a session at a moment, in the order of their names."""
    return [
        TagInfo(
            row.tag,
            row.canonical,
            list(row.aliases),
            len(row.pages),
            len(row.turns),
            row.turns[0] if row.turns else None,
            row.turns[-1] if row.turns else None,
            row.tokens,
            row.share,
            list(row.related),
            list(row.methods),
            row.depth,
        )
        for row in tag_rows(lane, position)
    ]


def give(session: SessionHost, wanted: str | int, tags: Iterable[str], untags: Iterable[str]) -> list[str]:
    """Gives a page, or each page of a message, tags, and takes others away: the pages that are meant.

    What changes nothing is not written.
    """
    gained, lost = _texts(tags), _texts(untags)
    if not gained and not lost:
        raise InputError("no tag is given and none taken away; name one")

    def changes(lane: Branch, position: int) -> Iterator[tuple[int, str, int]]:
        has = given(lane, position)
        for held, named in ((1, gained), (0, lost)):
            for tag in named:
                yield from ((page, tag, held) for page in pages if (page in has.get(tag, ())) != bool(held))

    pages: list[int] = []
    wanted_changes: list[tuple[int, str, int]] = []

    def read() -> None:
        with session._ns.asking():
            lane = session._lane()
            pages[:] = _pages(session, lane, wanted)
            wanted_changes[:] = changes(lane, basis(lane, Head()).position)

    def add(batch: Batch) -> None:
        cells = {tag: batch.cell(tag.encode()) for _, tag, _ in wanted_changes}
        for page, tag, held in wanted_changes:
            batch.add(Tag(page, cells[tag], int(TagMethod.HAND), held))

    _write(session, add, read)
    return [page_name(page) for page in pages]


def rename(session: SessionHost, alias: str, canonical: str | None) -> None:
    """Has a name count as a tag from here on; without one as itself again. Where it does already nothing is written."""
    name, end = tag_text(alias), None if canonical is None else tag_text(canonical)
    differs = [True]

    def read() -> None:
        with session._ns.asking():
            lane = session._lane()
            known = aliases(lane, basis(lane, Head()).position)
            if end is not None and known.get(end, end) == name:
                raise InputError(f"{end!r} counts as {name!r} already; take that back first, or swap the two")
            differs[0] = known.get(name) != (None if end is None else known.get(end, end))

    def add(batch: Batch) -> None:
        if differs[0]:
            batch.add(Alias(batch.cell(name.encode()), None if end is None else batch.cell(end.encode())))

    _write(session, add, read)


def show(session: SessionHost, tag: str, depth: str) -> None:
    """Has the prompt show so much of a tag from here on; what is so already is not written."""
    name = tag_text(tag)
    wanted = TagDepth.of(depth) if isinstance(depth, str) else None
    if wanted is None:
        words = ", ".join(one.word for one in TagDepth)
        raise InputError(f"{depth!r:.40} is no depth; a tag is shown as one of {words}")
    named = [name]

    def read() -> None:
        with session._ns.asking():
            lane = session._lane()
            position = basis(lane, Head()).position
            known, ends = given(lane, position), aliases(lane, position)
            named[:] = [ends.get(name, name)]
            if not known.keys() & {name, *named} and named[0] not in ends.values():
                raise UnknownError(
                    f"no page of {session.name!r} has the tag {name!r}; session.memory.tags.all() lists them"
                )
            if depths(lane, position).get(named[0]) == wanted:
                named.clear()

    def add(batch: Batch) -> None:
        for one in named:
            batch.add(Depth(batch.cell(one.encode()), int(wanted)))

    _write(session, add, read)


def suggestions(lane: Branch, position: int) -> list[AliasSuggestion]:
    """Names of tags that may mean the same, by their spelling."""
    pages = {row.tag: len(row.pages) for row in tag_rows(lane, position)}
    return [AliasSuggestion(*found) for found in suggested(pages, aliases(lane, position))]


def _pages(session: SessionHost, lane: Branch, wanted: str | int) -> list[int]:
    """The page that is named, or the pages of the message."""
    if isinstance(wanted, str) and _MESSAGE.fullmatch(wanted):
        message = int(wanted[1:])
        found = [
            page
            for stretch in reversed(lane.upto(NEVER))
            for (page,) in lane.db.execute(_OF_MESSAGE, (stretch.session, message, stretch.high))
        ]
        if not found:
            raise UnknownError(f"there is no message {wanted} with pages in {session.name!r}; MESSAGES lists them")
        return found
    if isinstance(wanted, str) and any(getattr(parse(wanted), word) is not None for word in MOMENTS):
        raise InputError(f"{wanted} names a moment, and what is said holds from now on; leave the moment out")
    return [session._resolve(lane, wanted, Head())[0]]


def _texts(tags: Iterable[str]) -> list[str]:
    if isinstance(tags, str):
        raise InputError(f"{tags!r:.40} is one text; give a list of tags")
    return [tag_text(tag) for tag in dict.fromkeys(tags)]


def _write(session: SessionHost, add: Callable[[Batch], None], read: Callable[[], None]) -> None:
    """Writes what is to be added as one commit; nothing where nothing is."""
    ns = session._ns

    def decide() -> Batch | None:
        batch = ns.engine.batch(session._key)
        add(batch)
        if batch.empty:
            return None
        batch.close(ns.clock.now())
        return batch

    ns.group_commit.write(session.name, WriteDecision(decide, lambda commits: None, read))


_MESSAGE = re.compile(r"m\d{1,18}")
_OF_MESSAGE = "SELECT page FROM pages WHERE session = ? AND message = ? AND page <= ? ORDER BY page"
