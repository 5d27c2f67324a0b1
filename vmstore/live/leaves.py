"""The pages of a live session as the protocol shows them."""

from __future__ import annotations

import heapq

from vmstore.core.page import PageType, Role, Slot, Tier
from vmstore.core.reference import page_name
from vmstore.live.forms import Forms
from vmstore.live.spoken import Spoken
from vmstore.vm.held import Held
from vmstore.vm.protocol.leaf import Form, Leaf
from vmstore.vm.state import State

AVAILABLE_MAX = 64  # pages out of the prompt that a manifest may name
HINT_CHARS = 120


class Leaves:
    """Makes leaves of pages: what they say, how they are called, where they stand."""

    def __init__(self, state: State, spoken: Spoken, forms: Forms) -> None:
        self._state = state
        self._spoken = spoken
        self._forms = forms

    def here(self) -> list[Leaf]:
        """The prompt in order."""
        residents = sorted(self._state.here.values(), key=_rank)
        shown = {held.page: held.residence[1] for held in residents}
        contents = self._forms.all(shown.values())
        return [self.of(held, held.level, contents[shown[held.page]], Tier.L0) for held in residents]

    def available(self) -> tuple[list[Leaf], int]:
        """The weightiest pages that are not in the prompt, and how many there are."""
        state = self._state
        out = [held for page, held in state.pages.items() if page not in state.here and held.type != PageType.RAW]
        chosen = heapq.nlargest(AVAILABLE_MAX, out, key=_weight)
        return [self.of(held, 0, None, Tier.L2) for held in chosen], len(out)

    def of(self, held: Held, level: int, content: bytes | None, tier: Tier) -> Leaf:
        """One page as it is shown at a level."""
        spoken, state = self._spoken, self._state
        known = spoken.known.get(held.page)
        said = spoken.messages.get(held.message)
        form = held.forms[level]
        assert form is not None, "what is shown has a form"
        call_id = (known.call_id or known.answers or "") if known else ""
        return Leaf(
            name=self.name(held.page),
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
            segment=0 if held.segment == state.segment else held.segment + 1,
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
