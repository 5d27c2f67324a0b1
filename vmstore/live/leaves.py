"""The pages of a live session as the protocol shows them."""

from __future__ import annotations

import heapq
from copy import copy
from itertools import islice
from typing import NamedTuple

from vmstore.core.page import PageType, Role, Slot, Tier
from vmstore.core.reference import page_name
from vmstore.live.forms import Forms
from vmstore.live.spoken import Spoken
from vmstore.vm.held import Held
from vmstore.vm.protocol.leaf import Form, Leaf
from vmstore.vm.state import State

AVAILABLE_MAX = 64  # pages out of the prompt that a manifest may name
LOOKED_AT_MAX = 512  # of them, the newest, and those with a name
HINT_CHARS = 120


class Seen(NamedTuple):
    """A prompt at a moment: its pages in order, the weightiest of those that were away and how many those were."""

    here: list[Held]
    away: list[Held]
    away_in_all: int
    segment: int
    names: dict[int, str]


class Leaves:
    """Makes leaves of pages: what they say, how they are called, where they stand.

    Those of the whole prompt are of the moment it was first seen; whoever changes the state looks before.
    """

    def __init__(self, state: State, spoken: Spoken, forms: Forms) -> None:
        self._state = state
        self._spoken = spoken
        self._forms = forms
        self._seen: Seen | None = None

    def see(self) -> Seen:
        """The prompt at its moment, to make leaves of later."""
        if self._seen is None:
            self._seen = self._look()
        return self._seen

    def _look(self) -> Seen:
        state = self._state
        here = sorted(map(copy, state.here.values()), key=_rank)
        claims = [state.pages[page] for page in self._spoken.named.values() if page not in state.here]
        newest = islice((held for page, held in reversed(state.pages.items()) if page not in state.here), LOOKED_AT_MAX)
        out = {held.page: held for held in (*claims, *newest) if held.type != PageType.RAW}
        away = list(map(copy, heapq.nlargest(AVAILABLE_MAX, out.values(), key=_weight)))
        names = {held.page: self.name(held.page) for held in (*here, *away)}
        return Seen(here, away, len(state.pages) - len(here), state.segment, names)

    def here(self) -> list[Leaf]:
        """The prompt in order."""
        seen = self.see()
        shown = {held.page: held.residence[1] for held in seen.here}
        contents = self._forms.all(shown.values())
        return [self._leaf(seen, held, held.level, contents[shown[held.page]], Tier.L0) for held in seen.here]

    def away(self) -> list[Leaf]:
        """The weightiest pages that were not in the prompt."""
        seen = self.see()
        return [self._leaf(seen, held, 0, None, Tier.L2) for held in seen.away]

    def of(self, held: Held, level: int, content: bytes | None, tier: Tier) -> Leaf:
        """One page as it is shown at a level now."""
        now = Seen([held], [], 0, self._state.segment, {held.page: self.name(held.page)})
        return self._leaf(now, held, level, content, tier)

    def _leaf(self, seen: Seen, held: Held, level: int, content: bytes | None, tier: Tier) -> Leaf:
        spoken = self._spoken
        known = spoken.known.get(held.page)
        said = spoken.messages.get(held.message)
        form = held.forms[level]
        assert form is not None, "what is shown has a form"
        call_id = (known.call_id or known.answers or "") if known else ""
        return Leaf(
            name=seen.names[held.page],
            type=held.type,
            modality=held.modality,
            role=Role(held.role),
            slot=said.slot if said else Slot.MESSAGES,
            level=level,
            tokens=form.tokens,
            content=content,
            mime=(known.mime if known and known.mime else None) or held.mime.type if level == 0 else "text/plain",
            others=tuple(
                Form(level=at, tokens=other.tokens)
                for at, other in enumerate(held.forms)
                if other is not None and at != level
            ),
            version=held.version,
            hint=self.hint(held),
            importance=held.importance,
            tier=tier,
            pinned=held.pinned,
            turn=max(held.created, held.entered),
            segment=0 if held.segment == seen.segment else held.segment + 1,
            message=held.message,
            part=said.parts.index(held.page) if said else 0,
            call_id=call_id,
            is_call=bool(known and known.call_id),
            is_result=bool(known and known.answers),
        )

    def name(self, page: int) -> str:
        """What a page is called: its own name while it is the last of it, else its number."""
        known = self._spoken.known.get(page)
        if known is not None and known.name is not None and self._spoken.named.get(known.name) == page:
            return known.name
        return page_name(page)

    def hint(self, held: Held) -> str:
        """What a page is about, as the manifest says it: a name, else how it begins."""
        known = self._spoken.known.get(held.page)
        if known is not None and known.name:
            return known.name
        full = held.forms[0]
        if held.modality.value or full is None:
            return held.modality.word
        return self._forms.of(full.position)[: HINT_CHARS * 4].decode("utf-8", "replace")[:HINT_CHARS]


def _rank(held: Held) -> int:
    return held.rank


def _weight(held: Held) -> tuple[int, int, int]:
    return held.importance, held.used, held.page
