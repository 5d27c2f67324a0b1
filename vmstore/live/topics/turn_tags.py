"""Tags a live session gives its turns as they end, by the keyword rule, where the setting `tags` says so.

What is found is logged as mutations in the commit of the answer: a replay reads it and looks at no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import Alias, Tag
from vmstore.core.page import Role
from vmstore.core.tags import TagMethod
from vmstore.live.runtime import Act
from vmstore.tags.split import TagSplit
from vmstore.tags.tagger import TurnText
from vmstore.tags.turns import tag_turn


def tag(act: Act) -> None:
    """Tags the turn that a final answer ended; nothing where the setting is off, or the turn has tags already."""
    settings = act.state.settings
    if settings is None or settings.tags != "keyword" or not act.spoken.final or not act.state.turn:
        return
    number, topics = act.state.turn, act.topics
    pages = topics.pages
    own = pages.get(number, [])
    if not own or any(page in act.spoken.tags for page in own):
        return
    outcome = tag_turn(
        number, topics.history, topics.aliases, topics.narrowed, lambda turns: texts_of_turns(act, pages, turns)
    )
    for found in outcome.found:
        _tell(act, own, found.tag, found.method)
    if outcome.split is not None:
        _narrow(act, outcome.split, pages)


def _tell(act: Act, pages: Iterable[int], name: str, method: TagMethod, held: int = 1) -> None:
    wanted = [page for page in pages if (name in act.spoken.tags.get(page, {})) != bool(held)]
    if wanted:
        cell = act.cell(name.encode())
        for page in wanted:
            act.tell(Tag(page, cell, int(method), held))


def _narrow(act: Act, split: TagSplit, pages: Mapping[int, Sequence[int]]) -> None:
    """Has the turns of a tag go under narrower ones, and the tag count as the largest of these."""
    for turn, name in split.turns.items():
        its = [page for page in pages[turn] if split.tag in act.spoken.tags.get(page, {})]
        _tell(act, its, split.tag, TagMethod.SPLIT, 0)
        _tell(act, its, name, TagMethod.SPLIT)
    act.tell(Alias(act.cell(split.tag.encode()), act.cell(split.canonical.encode())))


def texts_of_turns(act: Act, pages: Mapping[int, Sequence[int]], turns: Sequence[int]) -> dict[int, TurnText]:
    """The texts of some turns, without erased ones."""
    found: dict[int, TurnText] = {}
    for turn in turns:
        said: dict[bool, list[str]] = {True: [], False: []}
        for page in pages.get(turn, ()):
            content = _full(act, page)
            if not isinstance(content, ErasedContent):
                said[act.state.pages[page].role == Role.USER].append(content.decode("utf-8", "replace"))
        if said[True] or said[False]:
            found[turn] = TurnText("\n".join(said[True]), "\n".join(said[False]))
    return found


def _full(act: Act, page: int) -> bytes | ErasedContent:
    form = act.state.pages[page].forms[0]
    assert form is not None, "every page has its full content"
    return act.forms.of(form.position)
