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
from vmstore.core.text.tool_call import NAMED
from vmstore.live.content_cache import ContentCache
from vmstore.live.transcript import Transcript
from vmstore.vm.assembly.choice import LoweredPage, OmittedPage
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.state import State
from vmstore.vm.kernel.window import leaf_of, shown
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.prompt_page import MEDIA, PromptPage
from vmstore.vm.protocol.select import Selection
from vmstore.vm.protocol.tool_calls import named_in

AVAILABLE_MAX = 64  # pages out of the prompt that a manifest may name
LOOKED_AT_MAX = 512  # of them, the newest, and those with a name
HINT_CHARS = 120


class Kept(NamedTuple):
    """The leaf of a page in the prompt, the page as it was then, and the values that the leaf depends on."""

    held: ManagedPage
    level: int
    basis: tuple[object, ...]
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
            managed, one = here[page], before.get(page)
            if one is None or last != names or one.level != level or one.held != managed:
                key = self._basis(managed, level)
                if one is not None and one.basis == key:
                    one = Kept(_copied(managed), level, key, one.leaf)
                else:
                    one = Kept(_copied(managed), level, key, None)
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
        return (
            shown(self._choice)
            if self._choice
            else {page: resident.level for page, resident in self._state.here.items()}
        )

    def away(self) -> tuple[list[PromptPage], int]:
        """The weightiest pages that are not in the prompt, and how many are not there in all."""
        state, sent = self._state, self._sent()
        claims = [state.pages[page] for page in self._spoken.named.values() if page not in sent]
        newest = islice((managed for page, managed in reversed(state.pages.items()) if page not in sent), LOOKED_AT_MAX)
        unsaid = self._spoken.thoughts.keys() | {page for page in state.barred.pages if not self._named_file(page)}
        beside = (PageType.RAW, PageType.VALUE)  # the conversation
        out = {
            managed.page: managed
            for managed in (*claims, *newest)
            if managed.type not in beside and managed.page not in unsaid
        }
        away = heapq.nlargest(AVAILABLE_MAX, out.values(), key=_weight)
        return [self._leaf(managed, 0, {}, Tier.L2) for managed in away], len(state.pages) - len(sent)

    def _named_file(self, page: int) -> bool:
        """Whether a page is a file that waits for approval, of which a manifest tells the name and nothing else."""
        known = self._spoken.known.get(page)
        is_named = known is not None and bool(known.name)
        return is_named and page not in self._state.barred.retracted

    def of(self, managed: ManagedPage, level: int, tier: Tier, *, words: bool = True) -> PromptPage:
        """One page as it is shown at a level, with what it says or without."""
        contents = self._forms.all(_needed(managed, level)) if words else {}
        return self._leaf(managed, level, contents, tier)

    def lowered(self) -> tuple[LoweredPage, ...]:
        """The pages that are shown at a higher level than L0 has them at."""
        lowered = self._choice.lowered if self._choice else ()
        return tuple(change._replace(name=self._named(change.name)) for change in lowered)

    def left(self) -> tuple[OmittedPage, ...]:
        """The pages of L0 that are not shown, why, and what stands for them."""
        left = self._choice.left if self._choice else ()
        return tuple(
            change._replace(name=self._named(change.name), instead=self._named(change.instead)) for change in left
        )

    def _basis(self, managed: ManagedPage, level: int) -> tuple[object, ...]:
        """The values that the leaf of a page of the prompt depends on."""
        page, spoken, origin = managed.page, self._spoken, managed.origin
        forms, is_past = tuple(managed.forms), managed.segment != self._state.segment
        names = self.name(page), self.name(origin) if origin else "", self._sources(page)
        lived = managed.created, managed.entered, managed.faulted, managed.importance, managed.holders
        thought = page in spoken.thoughts
        return (
            level,
            managed.version,
            managed.mime,
            managed.answers,
            managed.opaque,
            forms,
            is_past,
            names,
            lived,
            thought,
        )

    def _leaf(self, managed: ManagedPage, level: int, contents: Mapping[int, bytes], tier: Tier) -> PromptPage:
        spoken = self._spoken
        known = spoken.known.get(managed.page)
        message = spoken.messages.get(managed.message)
        bare = leaf_of(managed, self._state.segment, level)
        full = managed.mime.type if known is None or known.mime is None else known.mime
        content = _content(managed, level, contents)
        others = tuple(
            msgspec.structs.replace(form, content=_content(managed, form.level, contents)) for form in bare.others
        )
        width, height = _size(managed, level, content)
        return msgspec.structs.replace(
            bare,
            name=self.name(managed.page),
            slot=message.slot if message else Slot.MESSAGES,
            content=content,
            mime=full if bare.mime == managed.mime.type else bare.mime,
            others=others if managed.modality in MEDIA else bare.others,
            hint=self.hint(managed),
            tier=tier,
            origin=self._named(bare.origin),
            provenance=self._sources(managed.page),
            part=message.parts.index(managed.page) if message else 0,
            call_id=(known.call_id or known.answers or "") if known else "",
            is_call=bool(known and known.call_id),
            tool=self._tool(content) if known and known.call_id else "",
            is_result=bool(known and known.answers),
            thought=managed.page in spoken.thoughts,
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
        """The name of a page: its own while it is the last of that name, else its number."""
        known = self._spoken.known.get(page)
        if known is not None and known.name is not None and self._spoken.named.get(known.name) == page:
            return known.name
        return page_name(page)

    def _sources(self, page: int) -> tuple[str, ...]:
        """The names of the pages that a page was made from."""
        return tuple(map(self.name, self._spoken.sources.get(page, ())))

    def _named(self, number: str) -> str:
        """The name of the page with a number."""
        return self.name(int(number[1:])) if number else ""

    def hint(self, managed: ManagedPage) -> str:
        """The manifest's hint about a page: its name, else how it begins."""
        known = self._spoken.known.get(managed.page)
        if known is not None and known.name:
            return known.name
        full = managed.forms[0]
        if managed.modality.value or full is None:
            return managed.modality.word
        return self._forms.of(full.position)[: HINT_CHARS * 4].decode("utf-8", "replace")[:HINT_CHARS]


def _copied(managed: ManagedPage) -> ManagedPage:
    """A page as it is now, whatever becomes of it."""
    return msgspec.structs.replace(managed, forms=[*managed.forms])


def _needed(managed: ManagedPage, level: int) -> list[int]:
    """The contents a page is shown with: its form at a level, and of a medium the words there are about it."""
    leaf = leaf_of(managed, 0, level)
    levels = [level, *(form.level for form in leaf.others if form.is_text)] if managed.modality in MEDIA else [level]
    return [managed.residence_at(other_level)[1] for other_level in levels]


def _content(managed: ManagedPage, level: int, contents: Mapping[int, bytes]) -> bytes | None:
    return None if managed.opaque else contents.get(managed.residence_at(level)[1])


def _size(managed: ManagedPage, level: int, content: bytes | None) -> tuple[int, int]:
    """The pixels of a picture that is shown in full; nothing of any other."""
    is_picture = managed.modality is Modality.IMAGE and level == 0 and content is not None
    return (size_of(content) if is_picture and content is not None else None) or (0, 0)


def _weight(managed: ManagedPage) -> tuple[int, int, int]:
    return managed.importance, managed.used, managed.page
