"""The pages of a live session as the protocol shows them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from vmstore.core.address import page_name
from vmstore.core.page import Modality, PageType, Slot, Tier
from vmstore.core.text.image_size import size_of
from vmstore.live.content_cache import ContentCache
from vmstore.live.transcript import Transcript
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.state import State
from vmstore.vm.kernel.window import leaf_of, shown
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.prompt_page import MEDIA, PromptPage
from vmstore.vm.protocol.select import LoweredPage, OmittedPage, Selection
from vmstore.vm.protocol.tool_calls import NAMED, named_in

AVAILABLE_MAX = 64  # pages out of the prompt that a manifest may name
LOOKED_AT_MAX = 512  # of them, the newest, and those with a name
HINT_CHARS = 120


class Kept(NamedTuple):
    """The leaf of a page in the prompt, the page as it was then, and all that the leaf follows from."""

    held: ManagedPage
    level: int
    told: tuple[object, ...]
    leaf: PromptPage | None


class PromptPages:
    """Makes leaves of pages: what they say, how they are called, where they stand, of the state as it is when asked.

    With a `memo` a leaf that was made before of the same is that very leaf.
    """

    def __init__(
        self,
        state: State,
        spoken: Transcript,
        forms: ContentCache,
        choice: Selection | None = None,
        memo: Memo | None = None,
    ) -> None:
        self._state = state
        self._spoken = spoken
        self._forms = forms
        self._choice = choice
        self._memo = memo or Memo()

    def here(self) -> list[PromptPage]:
        """The prompt in order, or what was chosen of it."""
        here, memo = self._state.here, self._memo
        placed = sorted(self._sent().items(), key=lambda one: here[one[0]].rank)
        names = self._spoken.renamed, self._state.segment, self._names_calls
        last, before = memo.last.get("pages", (None, {}))
        kept: dict[int, Kept] = {}
        missing = []
        for page, level in placed:
            held, one = here[page], before.get(page)
            if one is None or last != names or one.level != level or one.held != held:
                told = self._told(held, level)
                if one is not None and one.told == told:
                    one = Kept(_copied(held), level, told, one.leaf)
                else:
                    one = Kept(_copied(held), level, told, None)
                    missing.append(page)
            kept[page] = one
        contents = self._forms.all({at for page in missing for at in _needed(here[page], kept[page].level)})
        for page in missing:
            one = kept[page]
            kept[page] = one._replace(leaf=self._leaf(here[page], one.level, contents, Tier.L0))
        memo.last["pages"] = names, kept
        return [one.leaf for one in kept.values() if one.leaf is not None]

    def _sent(self) -> dict[int, int]:
        """The level each page of the prompt is shown at."""
        return shown(self._choice) if self._choice else {page: held.level for page, held in self._state.here.items()}

    def away(self) -> tuple[list[PromptPage], int]:
        """The weightiest pages that are not in the prompt, and how many are not there in all."""
        state, sent = self._state, self._sent()
        claims = [state.pages[page] for page in self._spoken.named.values() if page not in sent]
        newest = islice((held for page, held in reversed(state.pages.items()) if page not in sent), LOOKED_AT_MAX)
        unsaid = self._spoken.thoughts.keys() | state.retracted.pages.keys()
        beside = (PageType.RAW, PageType.VALUE)  # the conversation
        out = {held.page: held for held in (*claims, *newest) if held.type not in beside and held.page not in unsaid}
        away = heapq.nlargest(AVAILABLE_MAX, out.values(), key=_weight)
        return [self._leaf(held, 0, {}, Tier.L2) for held in away], len(state.pages) - len(sent)

    def of(self, held: ManagedPage, level: int, tier: Tier, *, words: bool = True) -> PromptPage:
        """One page as it is shown at a level, with what it says or without."""
        contents = self._forms.all(_needed(held, level)) if words else {}
        return self._leaf(held, level, contents, tier)

    def lowered(self) -> tuple[LoweredPage, ...]:
        """The pages that are shown at a higher level than L0 has them at."""
        lowered = self._choice.lowered if self._choice else ()
        return tuple(one._replace(name=self._named(one.name)) for one in lowered)

    def left(self) -> tuple[OmittedPage, ...]:
        """The pages of L0 that are not shown, why, and what stands for them."""
        left = self._choice.left if self._choice else ()
        return tuple(one._replace(name=self._named(one.name), instead=self._named(one.instead)) for one in left)

    def _told(self, held: ManagedPage, level: int) -> tuple[object, ...]:
        """All that the leaf of a page of the prompt follows from."""
        page, spoken, origin = held.page, self._spoken, held.origin
        forms, is_past = tuple(held.forms), held.segment != self._state.segment
        names = self.name(page), self.name(origin) if origin else "", self._sources(page)
        lived = held.created, held.entered, held.faulted, held.importance, held.holders
        thought = page in spoken.thoughts
        return level, held.version, held.mime, held.answers, held.opaque, forms, is_past, names, lived, thought

    def _leaf(self, held: ManagedPage, level: int, contents: Mapping[int, bytes], tier: Tier) -> PromptPage:
        spoken = self._spoken
        known = spoken.known.get(held.page)
        said = spoken.messages.get(held.message)
        bare = leaf_of(held, self._state.segment, level)
        full = held.mime.type if known is None or known.mime is None else known.mime
        content = _content(held, level, contents)
        others = tuple(
            msgspec.structs.replace(form, content=_content(held, form.level, contents)) for form in bare.others
        )
        width, height = _size(held, level, content)
        return msgspec.structs.replace(
            bare,
            name=self.name(held.page),
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
            tool=self._tool(content) if known and known.call_id else "",
            is_result=bool(known and known.answers),
            thought=held.page in spoken.thoughts,
            width=width,
            height=height,
        )

    @property
    def _names_calls(self) -> bool:
        """Whether calls that only some agents write are sent as calls of their tools."""
        settings = self._state.settings
        return settings is not None and settings.behaviour > 1

    def _tool(self, content: bytes | None) -> str:
        """The tool of such a call."""
        if content is None or not self._names_calls or NAMED.encode() not in content:
            return ""
        return named_in(content.decode("utf-8", "replace"))

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

    def hint(self, held: ManagedPage) -> str:
        """What a page is about, as the manifest says it: a name, else how it begins."""
        known = self._spoken.known.get(held.page)
        if known is not None and known.name:
            return known.name
        full = held.forms[0]
        if held.modality.value or full is None:
            return held.modality.word
        return self._forms.of(full.position)[: HINT_CHARS * 4].decode("utf-8", "replace")[:HINT_CHARS]


def _copied(held: ManagedPage) -> ManagedPage:
    """A page as it is now, whatever becomes of it."""
    return msgspec.structs.replace(held, forms=[*held.forms])


def _needed(held: ManagedPage, level: int) -> list[int]:
    """The contents a page is shown with: its form at a level, and of a medium the words there are about it."""
    leaf = leaf_of(held, 0, level)
    levels = [level, *(form.level for form in leaf.others if form.is_text)] if held.modality in MEDIA else [level]
    return [held.residence_at(one)[1] for one in levels]


def _content(held: ManagedPage, level: int, contents: Mapping[int, bytes]) -> bytes | None:
    return None if held.opaque else contents.get(held.residence_at(level)[1])


def _size(held: ManagedPage, level: int, content: bytes | None) -> tuple[int, int]:
    """The pixels of a picture that is shown in full; nothing of any other."""
    is_picture = held.modality is Modality.IMAGE and level == 0 and content is not None
    return (size_of(content) if is_picture and content is not None else None) or (0, 0)


def _weight(held: ManagedPage) -> tuple[int, int, int]:
    return held.importance, held.used, held.page
