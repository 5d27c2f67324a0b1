"""Settles what each message of a request is: one held before, a changed one, or a new one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from vmstore.capture.align import Gap, align, pair
from vmstore.capture.change import alike, reads_like_a_summary, shorter
from vmstore.capture.conversation import Conversation
from vmstore.capture.held import Digest, Held, HeldPage, Incoming, Kin, kin
from vmstore.core.page import PageType, Role, Slot

INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)
REPLACED_MIN = 2  # messages a summary takes the place of


class Settling:
    """One request being settled against what a conversation held before."""

    def __init__(
        self,
        conversation: Conversation,
        old: Sequence[Held],
        new: Sequence[Incoming],
        at: int,
        before: Sequence[Held] = (),
    ) -> None:
        self.conversation = conversation
        self.before = before  # messages of the request that are settled already
        self.old = old
        self.new = new
        self.at = at
        self.settled: dict[int, Held] = {}
        self._changed: dict[int, int] = {}  # new index -> old index it is a changed form of
        self._summaries: dict[int, list[Held]] = {}

    def plan(self) -> Settling:
        """Decides what every message is; writes nothing."""
        asked = bool(self.new) and self.new[-1].draft.human
        found = align(self.old, self.new, last_is_new=asked)
        for index, old_index in found.same.items():
            self.settled[index] = self.old[old_index]
        self._recall()
        for gap in found.gaps:
            self._settle_gap(gap, found.same)
        return self

    def plan_changed(self) -> Settling:
        """Decides that one message is another form of the one that stood in its place."""
        self._changed[0] = 0
        return self

    @property
    def opens_turn(self) -> bool:
        """Whether a person says something that was never said before."""
        return any(
            entry.draft.human
            and index not in self.settled
            and index not in self._changed
            and index not in self._summaries
            for index, entry in enumerate(self.new)
        )

    def write(self) -> list[Held]:
        """Writes what is new or changed, and answers every message in order."""
        return [self._write(index) for index in range(len(self.new))]

    def _recall(self) -> None:
        """Messages said before and not in the last context come back under their identity.

        The last message of a request, where a person wrote it, is new.
        """
        used = set(map(id, (*self.settled.values(), *self.old, *self.before)))
        for index, entry in enumerate(self.new):
            if entry.draft.human and index == len(self.new) - 1:
                continue
            if index in self.settled:
                continue
            for held in self.conversation.known.get(entry.key, ()):
                if held.key == entry.key and id(held) not in used:
                    self.settled[index] = held
                    used.add(id(held))
                    break
        for index, entry in enumerate(self.new):
            if index not in self.settled and entry.draft.role is Role.ASSISTANT:
                reply = self._reply_with(entry, used)
                if reply is not None:
                    self.settled[index] = reply
                    used.add(id(reply))

    def _reply_with(self, entry: Incoming, used: set[int]) -> Held | None:
        """A late answer of the model that shares a part with a message sent back changed."""
        digests = set(entry.digests)
        for held in reversed(self.conversation.messages[-8:]):
            if held.role is Role.ASSISTANT and id(held) not in used and digests & {p.shown for p in held.pages}:
                return held
        return None

    def _settle_gap(self, gap: Gap, same: dict[int, int]) -> None:
        taken = {**dict.fromkeys(self.settled, -1), **same}
        instructions = self._instructions(gap, taken)
        taken |= {new: old for old, new in instructions}
        pairs = instructions + [
            (o, n) for o, n in pair(gap, self.old, self.new, taken) if gap.inner or self._is_edit(o, n)
        ]
        for old_index, index in pairs:
            self._changed[index] = old_index
        changed = {o for o, _ in pairs} | set(same.values())
        gone = [self.old[i] for i in gap.old if i not in changed]
        fresh = [i for i in gap.new if i not in self.settled and i not in self._changed]
        fresh = [i for i in fresh if self.new[i].draft.role not in INSTRUCTIONS]
        gone = [held for held in gone if held.slot is Slot.MESSAGES and held.role not in INSTRUCTIONS]
        if len(gone) >= REPLACED_MIN and fresh and self._is_summary(fresh[0], gone, gap.inner):
            self._summaries[fresh[0]] = gone

    def _instructions(self, gap: Gap, taken: dict[int, int]) -> list[tuple[int, int]]:
        """Instructions that stand alone before and now are the same ones, edited."""
        held = set(taken.values())
        olds = [i for i in gap.old if i not in held and self.old[i].role in INSTRUCTIONS]
        news = [i for i in gap.new if i not in taken and self.new[i].draft.role in INSTRUCTIONS]
        if len(olds) != 1 or len(news) != 1 or self.old[olds[0]].place != self.new[news[0]].place:
            return []
        before = self.conversation.read(self.old[olds[0]].pages[0].full)
        return [(olds[0], news[0])] if alike(before, self.new[news[0]].draft.parts[0].content) else []

    def _is_edit(self, old_index: int, index: int) -> bool:
        """At the end of a request, only what resembles the old message is that message edited."""
        held, entry = self.old[old_index], self.new[index]
        if held.slot is not Slot.MESSAGES or isinstance(entry.place, str):
            return True
        before, after = self.conversation.read(held.pages[0].full), entry.draft.parts[0].content
        return alike(before, after) or (not entry.draft.human and shorter(before, after) is not None)

    def _is_summary(self, index: int, gone: Sequence[Held], inner: bool) -> bool:
        draft = self.new[index].draft
        if draft.slot is not Slot.MESSAGES or draft.role is Role.TOOL or any(part.is_call for part in draft.parts):
            return False
        if reads_like_a_summary(draft.parts[0].content):
            return True
        size = sum(len(part.content) for part in draft.parts)
        replaced = sum(len(self.conversation.read(page.full)) for held in gone for page in held.pages)
        return inner and size < replaced

    def _write(self, index: int) -> Held:
        entry = self.new[index]
        held = self.settled.get(index)
        if held is None and index in self._changed:
            held = self.old[self._changed[index]]
        if held is not None:
            self._revise(held, entry)
        elif index in self._summaries:
            draft = msgspec.structs.replace(entry.draft, human=False)
            held = self.conversation.say(draft, at=self.at, type_=PageType.SUMMARY)
            self.conversation.sum_up(held, self._summaries[index])
        else:
            call = self.conversation.batch.head.call if self._stands_in(entry) else None
            held = self.conversation.say(entry.draft, at=self.at, reply_to=call)
        held.take(entry.value)
        return held

    def _stands_in(self, entry: Incoming) -> bool:
        """Whether an answer of the model's is the last one in other words: that one is not sent back."""
        answers = self.conversation.answers
        asked = set(self.conversation.calls.values())
        if entry.draft.role is not Role.ASSISTANT or not answers or asked & {p.page for a in answers for p in a.pages}:
            return False
        held = {id(one) for one in (*self.settled.values(), *self.before)}
        return not any(id(one) in held for one in answers)

    def _revise(self, held: Held, entry: Incoming) -> None:
        """Brings a held message to what the request says: parts matched, changed, added, dropped."""
        conversation = self.conversation
        kins = [kin(part) for part in entry.draft.parts]
        wanted = list(zip(kins, entry.digests, strict=True))
        if [(page.kin, page.shown) for page in held.pages] != wanted:
            spare = list(held.pages)
            pages = [_take(spare, is_, content) for is_, content in wanted]
            for index, part in enumerate(entry.draft.parts):
                page = pages[index] or _take(spare, kins[index])
                if page is None:
                    page = conversation.add_page(held, entry.draft, index)
                elif page.shown != entry.digests[index]:
                    change = shorter(conversation.read(page.full), part.content)
                    conversation.show(page, part, entry.digests[index], change)
                pages[index] = page
            held.pages = [page for page in pages if page is not None]
            conversation.know(held)
            held.changed = True
        if held.skeleton != entry.draft.skeleton:
            held.skeleton, held.changed = entry.draft.skeleton, True


def _take(pages: list[HeldPage], is_: Kin, content: Digest | None = None) -> HeldPage | None:
    """Takes out of a list the first page of a kin, where a content is told one that has it."""
    for page in pages:
        if page.kin == is_ and (content is None or content in page.contents):
            pages.remove(page)
            return page
    return None
