"""Tags a session's turns by their words after the fact: one that was recorded or imported, or was live without tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vmstore.capture.facts import FactAnswer
from vmstore.core.asof import Head
from vmstore.core.mutation import Alias, Tag
from vmstore.core.page import Role
from vmstore.core.tags import TagMethod
from vmstore.engine.batch import Batch
from vmstore.namespace.group_commit import WriteDecision
from vmstore.search.passages import texts_of
from vmstore.store.host import SessionHost
from vmstore.store.recall.tag_model import AskedTags, TurnMaterial, TurnTagger
from vmstore.tags.history import TagHistory
from vmstore.tags.split import TagSplit
from vmstore.tags.tagger import GENERAL, FoundTag, TurnText, tags_of
from vmstore.tags.turns import Tagger, tag_turn
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.tags import aliases, given, narrowed, spoken_turns

TURNS_AT_ONCE = 200  # in one commit


class TagChange(NamedTuple):
    """A page that gains a tag, or loses it, or with page 0 a tag that counts as `canonical`."""

    page: int
    tag: str
    method: int = 0
    held: int = 1
    canonical: str = ""


def tag_turns(session: SessionHost, tagger: TurnTagger | None = None) -> int:
    """Tags each turn that has an answer and no tag of its own yet; how many turns were tagged.

    By their words, or by a `tagger`, which is asked a turn at a time.
    """
    if tagger is not None:
        return sum(1 for _ in iter(lambda: _asked(session, tagger), False))
    done = 0
    while True:
        changes: list[TagChange] = []
        turns = [0]

        def read(changes: list[TagChange] = changes, turns: list[int] = turns) -> None:
            with session._ns.asking():
                lane = session._lane()
                changes[:], turns[0] = _found(session, lane, basis(lane, Head()).position)

        def decide(changes: list[TagChange] = changes) -> Batch | None:
            return _batch(session, changes)

        session._ns.group_commit.write(session.name, WriteDecision(decide, lambda commits: None, read))
        done += turns[0]
        if turns[0] < TURNS_AT_ONCE:
            return done


def _asked(session: SessionHost, tagger: TurnTagger) -> bool:
    """Tags the next turn by what a tagger answers, asked outside of every lock; whether there was one.

    Where something was erased while it was asked, it is asked again of what is left.
    """
    ns = session._ns
    while True:
        met: list[TurnMaterial] = []

        def meet(*turn: Any, met: list[TurnMaterial] = met) -> Sequence[FoundTag]:
            met.append(TurnMaterial(*turn))
            return [FoundTag(GENERAL, TagMethod.KEYWORD)]

        with ns.asking():
            lane, erasure = session._lane(), ns.projection.last_erasure
            changes, _ = _found(session, lane, basis(lane, Head()).position, meet, 1)
        if not met:
            return False
        asked = tagger.ask(met[0])
        with ns.lock:
            if ns.as_read(erasure):
                _write_asked(session, asked, changes)
                return True


def _write_asked(session: SessionHost, asked: AskedTags, changes: list[TagChange]) -> None:
    """Writes what a tagger answered of the next turn, and the tags that it found."""
    pages = tuple(sorted({change.page for change in changes if change.page}))
    if asked.log is not None:
        session._add_facts([], None, FactAnswer(asked.log, pages))

    def read() -> None:
        with session._ns.asking():
            lane = session._lane()
            changes[:], _ = _found(session, lane, basis(lane, Head()).position, lambda *turn: asked.found, 1)

    session._ns.group_commit.write(
        session.name, WriteDecision(lambda: _batch(session, changes), lambda commits: None, read)
    )


def _batch(session: SessionHost, changes: Sequence[TagChange]) -> Batch | None:
    if not changes:
        return None
    batch = session._ns.engine.batch(session._key)
    names = dict.fromkeys(name for change in changes for name in (change.tag, change.canonical) if name)
    cells = {name: batch.cell(name.encode()) for name in names}
    for change in changes:
        if change.canonical:
            batch.add(Alias(cells[change.tag], cells[change.canonical]))
        else:
            batch.add(Tag(change.page, cells[change.tag], change.method, change.held))
    batch.close(session._ns.clock.now())
    return batch


def _found(
    session: SessionHost, lane: Branch, position: int, tagger: Tagger = tags_of, most: int = TURNS_AT_ONCE
) -> tuple[list[TagChange], int]:
    """What the next turns without tags are tagged with, so many at most, and how many these are."""
    pages = spoken_turns(lane, position)
    ends, split = dict(aliases(lane, position)), set(narrowed(lane, position))
    has: dict[int, dict[str, None]] = {}
    for tag, its in given(lane, position).items():
        for page, method in its.items():
            if method is not None:
                has.setdefault(page, {})[tag] = None
    changes: list[TagChange] = []
    count = 0

    def read(turns: Sequence[int]) -> Mapping[int, TurnText]:
        wanted = [page for turn in turns for page in pages.get(turn, ())]
        said = dict(texts_of(session._ns.log, lane, {lane.session: position}, wanted))
        found: dict[int, TurnText] = {}
        for turn in turns:
            asked, answered = (
                "\n".join(said[page] for page, role in pages.get(turn, {}).items() if page in said and role == who)
                for who in (Role.USER, Role.ASSISTANT)
            )
            if asked or answered:
                found[turn] = TurnText(asked, answered)
        return found

    history = TagHistory()
    for turn, some in pages.items():
        named = dict.fromkeys(ends.get(tag, tag) for page in some for tag in has.get(page, ()))
        if named or Role.ASSISTANT not in some.values():
            history.put(turn, named)
            continue
        if count == most:
            break
        outcome = tag_turn(turn, history, ends, split, read, tagger)
        count += bool(outcome.found)  # a turn that was erased says nothing
        names = [found.tag for found in outcome.found]
        history.put(turn, names)
        for found in outcome.found:
            changes += [TagChange(page, found.tag, int(found.method)) for page in some]
        for page in some:
            has[page] = dict.fromkeys(names)
        if outcome.split is not None:
            changes += _narrowed(outcome.split, pages, has)
            for other in outcome.split.turns:
                history.put(other, (n for page in pages[other] for n in has.get(page, ())))
            split |= {*outcome.split.turns.values()}
            ends[outcome.split.tag] = outcome.split.canonical
            history.rename(ends)
    return changes, count


def _narrowed(
    split: TagSplit, pages: Mapping[int, Mapping[int, int]], has: dict[int, dict[str, None]]
) -> list[TagChange]:
    """The pages of a tag under narrower ones, and the tag counting as the largest of these."""
    changes = []
    for turn, name in split.turns.items():
        for page in pages[turn]:
            if split.tag in has.get(page, {}):
                del has[page][split.tag]
                has[page][name] = None
                changes.append(TagChange(page, split.tag, int(TagMethod.SPLIT), 0))
                changes.append(TagChange(page, name, int(TagMethod.SPLIT)))
    return [*changes, TagChange(0, split.tag, canonical=split.canonical)]
