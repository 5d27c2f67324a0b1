"""The pages of a live session as the protocol shows them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from copy import copy
from itertools import islice
from typing import NamedTuple

import msgspec

from vmstore.core.images import size_of
from vmstore.core.page import Modality, PageType, Slot, Tier
from vmstore.core.reference import page_name
from vmstore.live.forms import Forms
from vmstore.live.spoken import Spoken
from vmstore.vm.held import Held
from vmstore.vm.protocol.leaf import MEDIA, Leaf
from vmstore.vm.protocol.select import Left, Lowered, Selection
from vmstore.vm.state import State
from vmstore.vm.window import leaf_of, shown

AVAILABLE_MAX = 64  # pages out of the prompt that a manifest may name
LOOKED_AT_MAX = 512  # of them, the newest, and those with a name
HINT_CHARS = 120


class Seen(NamedTuple):
    """A prompt at a moment: its pages in order, the weightiest of those that were away and how many those were.

    `lowered` and `left` say of which pages a smaller window shows less, and nothing.
    """

    here: list[Held]
    away: list[Held]
    away_in_all: int
    segment: int
    names: dict[int, str]
    lowered: tuple[Lowered, ...] = ()
    left: tuple[Left, ...] = ()


class Leaves:
    """Makes leaves of pages: what they say, how they are called, where they stand.

    Those of the whole prompt are of the moment it was first seen; whoever changes the state looks before.
    """

    def __init__(self, state: State, spoken: Spoken, forms: Forms, choice: Selection | None = None) -> None:
        self._state = state
        self._spoken = spoken
        self._forms = forms
        self._choice = choice
        self._seen: Seen | None = None

    def see(self) -> Seen:
        """The prompt at its moment, or what was chosen of it, to make leaves of later."""
        if self._seen is None:
            self._seen = self._look()
        return self._seen

    def _look(self) -> Seen:
        state, choice = self._state, self._choice
        sent = {page: held.level for page, held in state.here.items()} if choice is None else shown(choice)
        here = sorted((_at(state.here[page], level) for page, level in sent.items()), key=_rank)
        claims = [state.pages[page] for page in self._spoken.named.values() if page not in sent]
        newest = islice((held for page, held in reversed(state.pages.items()) if page not in sent), LOOKED_AT_MAX)
        unsaid = self._spoken.thoughts.keys() | state.retracted.pages.keys()
        beside = (PageType.RAW, PageType.VALUE)  # the conversation
        out = {held.page: held for held in (*claims, *newest) if held.type not in beside and held.page not in unsaid}
        away = list(map(copy, heapq.nlargest(AVAILABLE_MAX, out.values(), key=_weight)))
        names = {held.page: self.name(held.page) for held in (*here, *away)}
        lowered = tuple(one._replace(name=self._named(one.name)) for one in choice.lowered) if choice else ()
        left = tuple(
            one._replace(name=self._named(one.name), instead=self._named(one.instead)) for one in choice.left
        ) if choice else ()  # fmt: skip
        return Seen(here, away, len(state.pages) - len(here), state.segment, names, lowered, left)

    def here(self) -> list[Leaf]:
        """The prompt in order."""
        seen = self.see()
        contents = self._forms.all({position for held in seen.here for position in _needed(held, held.level)})
        return [self._leaf(seen, held, held.level, contents, Tier.L0) for held in seen.here]

    def away(self) -> list[Leaf]:
        """The weightiest pages that were not in the prompt."""
        seen = self.see()
        return [self._leaf(seen, held, 0, {}, Tier.L2) for held in seen.away]

    def of(self, held: Held, level: int, tier: Tier, *, words: bool = True) -> Leaf:
        """One page as it is shown at a level now, with what it says or without."""
        now = Seen([held], [], 0, self._state.segment, {held.page: self.name(held.page)})
        contents = self._forms.all(_needed(held, level)) if words else {}
        return self._leaf(now, held, level, contents, tier)

    def _leaf(self, seen: Seen, held: Held, level: int, contents: Mapping[int, bytes], tier: Tier) -> Leaf:
        spoken = self._spoken
        known = spoken.known.get(held.page)
        said = spoken.messages.get(held.message)
        bare = leaf_of(held, seen.segment, level)
        full = held.mime.type if known is None or known.mime is None else known.mime
        content = _content(held, level, contents)
        others = tuple(
            msgspec.structs.replace(form, content=_content(held, form.level, contents)) for form in bare.others
        )
        width, height = _size(held, level, content)
        return msgspec.structs.replace(
            bare,
            name=seen.names[held.page],
            slot=said.slot if said else Slot.MESSAGES,
            content=content,
            mime=full if bare.mime == held.mime.type else bare.mime,
            others=others if held.modality in MEDIA else bare.others,
            hint=self.hint(held),
            tier=tier,
            origin=self._named(bare.origin),
            provenance=self._sources(held.page),
            part=said.parts.index(held.page) if said else 0,
            call_id=(known.call_id or known.answers or "") if known else "",
            is_call=bool(known and known.call_id),
            is_result=bool(known and known.answers),
            thought=held.page in spoken.thoughts,
            width=width,
            height=height,
        )

    def name(self, page: int) -> str:
        """What a page is called: its own name while it is the last of it, else its number."""
        known = self._spoken.known.get(page)
        if known is not None and known.name is not None and self._spoken.named.get(known.name) == page:
            return known.name
        return page_name(page)

    def _sources(self, page: int) -> tuple[str, ...]:
        """What the pages are called that a page was made from."""
        return tuple(map(self.name, self._spoken.sources.get(page, ())))

    def _named(self, number: str) -> str:
        """What the page of a number is called."""
        return self.name(int(number[1:])) if number else ""

    def hint(self, held: Held) -> str:
        """What a page is about, as the manifest says it: a name, else how it begins."""
        known = self._spoken.known.get(held.page)
        if known is not None and known.name:
            return known.name
        full = held.forms[0]
        if held.modality.value or full is None:
            return held.modality.word
        return self._forms.of(full.position)[: HINT_CHARS * 4].decode("utf-8", "replace")[:HINT_CHARS]


def _at(held: Held, level: int) -> Held:
    """A page as it is shown at a level."""
    form = held.forms[level]
    assert form is not None, "what is shown has a form"
    now = copy(held)
    now.level, now.tokens = level, form.tokens
    return now


def _needed(held: Held, level: int) -> list[int]:
    """The contents a page is shown with: its form at a level, and of a medium the words there are about it."""
    leaf = leaf_of(held, 0, level)
    levels = [level, *(form.level for form in leaf.others if form.is_text)] if held.modality in MEDIA else [level]
    return [held.residence_at(one)[1] for one in levels]


def _content(held: Held, level: int, contents: Mapping[int, bytes]) -> bytes | None:
    return None if held.opaque else contents.get(held.residence_at(level)[1])


def _size(held: Held, level: int, content: bytes | None) -> tuple[int, int]:
    """The pixels of a picture that is shown in full; nothing of any other."""
    is_picture = held.modality is Modality.IMAGE and level == 0 and content is not None
    return (size_of(content) if is_picture and content is not None else None) or (0, 0)


def _rank(held: Held) -> int:
    return held.rank


def _weight(held: Held) -> tuple[int, int, int]:
    return held.importance, held.used, held.page
