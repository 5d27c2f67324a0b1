"""Settles what each message of a request is: one held before, a changed one, or a new one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence

import msgspec

from vmstore.capture.conversation.align import Gap, SettledMessages, align, pair
from vmstore.capture.conversation.conversation import Conversation
from vmstore.capture.conversation.message_state import (
    Digest,
    IncomingMessage,
    MessageState,
    PageIdentity,
    PageState,
    kin,
)
from vmstore.capture.conversation.part_diff import alike, reads_like_a_summary, shorter
from vmstore.core.page import PageType, Role, Slot

INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)
REPLACED_MIN = 2  # messages a summary takes the place of


class Reconciliation:
    """One request being settled against what a conversation held before."""

    def __init__(
        self,
        conversation: Conversation,
        old: Sequence[MessageState],
        new: Sequence[IncomingMessage],
        at: int,
        before: Sequence[MessageState] = (),
    ) -> None:
        self.conversation = conversation
        self.before = before  # messages of the request that are settled already
        self.old = old
        self.new = new
        self.at = at
        self.settled: dict[int, MessageState] = {}
        self._changed: dict[int, int] = {}  # new index -> old index it is a changed form of
        self._summaries: dict[int, list[MessageState]] = {}

    def plan(self) -> Reconciliation:
        """Decides what every message is; writes nothing."""
        asked = bool(self.new) and self.new[-1].draft.human
        found = align(self.old, self.new, last_is_new=asked)
        for index, old_index in found.same.items():
            self.settled[index] = self.old[old_index]
        self._recall()
        taken = SettledMessages(set(found.same.values()), set(self.settled))
        for gap in found.gaps:
            self._settle_gap(gap, taken)
        return self

    def plan_changed(self) -> Reconciliation:
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

    def write(self) -> list[MessageState]:
        """Writes what is new or changed, and answers every message in order."""
        return [self._write(index) for index in range(len(self.new))]

    def _recall(self) -> None:
        """Messages said before and not in the last context come back under their identity.

        The last message of a request, where a person wrote it, is new, unless it was asked and never sent.
        """
        used = _Used(self)
        alike: dict[Hashable, Iterator[MessageState]] = {}  # by what they say, those that no message was yet
        for index, entry in enumerate(self.new):
            is_last = entry.draft.human and index == len(self.new) - 1
            if index in self.settled:
                continue
            if entry.key not in alike:
                alike[entry.key] = iter(self.conversation.alike(entry.key))
            for state in alike[entry.key]:
                if state not in used and state.key == entry.key and not (is_last and state.seen):
                    self.settled[index] = state
                    used.add(state)
                    break
        for index, entry in enumerate(self.new):
            if index not in self.settled and entry.draft.role is Role.ASSISTANT:
                reply = self._reply_with(entry, used)
                if reply is not None:
                    self.settled[index] = reply
                    used.add(reply)

    def _reply_with(self, entry: IncomingMessage, used: _Used) -> MessageState | None:
        """A late answer of the model that shares a part with a message sent back changed."""
        digests = set(entry.digests)
        for state in reversed(self.conversation.messages[-8:]):
            if state.role is Role.ASSISTANT and state not in used and digests & {p.shown for p in state.pages}:
                return state
        return None

    def _settle_gap(self, gap: Gap, taken: SettledMessages) -> None:
        for old_index, index in self._instructions(gap, taken):
            self._change(old_index, index, taken)
        for old_index, index in pair(gap, self.old, self.new, taken):
            if gap.inner or self._is_edit(old_index, index):
                self._change(old_index, index, taken)
        olds, fresh = taken.left(gap)
        gone = [self.old[i] for i in olds]
        fresh = [i for i in fresh if self.new[i].draft.role not in INSTRUCTIONS]
        gone = [state for state in gone if state.slot is Slot.MESSAGES and state.role not in INSTRUCTIONS]
        if len(gone) >= REPLACED_MIN and fresh and self._is_summary(fresh[0], gone, gap.inner):
            self._summaries[fresh[0]] = gone

    def _change(self, old_index: int, index: int, taken: SettledMessages) -> None:
        """Has a message of the request be a changed form of one that stood before."""
        self._changed[index] = old_index
        taken.old.add(old_index)
        taken.new.add(index)

    def _instructions(self, gap: Gap, taken: SettledMessages) -> list[tuple[int, int]]:
        """Instructions that stand alone before and now are the same ones, edited."""
        left, right = taken.left(gap)
        olds = [i for i in left if self.old[i].role in INSTRUCTIONS]
        news = [i for i in right if self.new[i].draft.role in INSTRUCTIONS]
        if len(olds) != 1 or len(news) != 1 or self.old[olds[0]].place != self.new[news[0]].place:
            return []
        before = self.conversation.read(self.old[olds[0]].pages[0].full)
        return [(olds[0], news[0])] if alike(before, self.new[news[0]].draft.parts[0].content) else []

    def _is_edit(self, old_index: int, index: int) -> bool:
        """At the end of a request, only what resembles the old message is that message edited."""
        state, entry = self.old[old_index], self.new[index]
        if state.slot is not Slot.MESSAGES or isinstance(entry.place, str):
            return True
        before, after = self.conversation.read(state.pages[0].full), entry.draft.parts[0].content
        return alike(before, after) or (not entry.draft.human and shorter(before, after) is not None)

    def _is_summary(self, index: int, gone: Sequence[MessageState], inner: bool) -> bool:
        draft = self.new[index].draft
        if draft.slot is not Slot.MESSAGES or draft.role is Role.TOOL or any(part.is_call for part in draft.parts):
            return False
        if reads_like_a_summary(draft.parts[0].content):
            return True
        size = sum(len(part.content) for part in draft.parts)
        replaced = sum(len(self.conversation.read(page.full)) for state in gone for page in state.pages)
        return inner and size < replaced

    def _write(self, index: int) -> MessageState:
        entry = self.new[index]
        state = self.settled.get(index)
        if state is None and index in self._changed:
            state = self.old[self._changed[index]]
        if state is not None:
            self._revise(state, entry)
        elif index in self._summaries:
            draft = msgspec.structs.replace(entry.draft, human=False)
            state = self.conversation.say(draft, at=self.at, type_=PageType.SUMMARY)
            self.conversation.sum_up(state, self._summaries[index])
        else:
            call = self.conversation.batch.head.call if self._stands_in(entry) else None
            state = self.conversation.say(entry.draft, at=self.at, reply_to=call)
        state.take(entry.value)
        return state

    def _stands_in(self, entry: IncomingMessage) -> bool:
        """Whether an answer of the model's is the last one in other words: that one is not sent back."""
        if entry.draft.role is not Role.ASSISTANT or not self.conversation.answers:
            return False
        calls, pages = self.conversation.calls, [page for state in self.conversation.answers for page in state.pages]
        if any(page.kin.asks is not None and calls.get(page.kin.asks) == page.page for page in pages):
            return False
        stays = self.settled.values()
        return not any(state in stays or state in self.before for state in self.conversation.answers)

    def _revise(self, state: MessageState, entry: IncomingMessage) -> None:
        """Brings a held message to what the request says: parts matched, changed, added, dropped."""
        conversation = self.conversation
        kins = [kin(part) for part in entry.draft.parts]
        wanted = list(zip(kins, entry.digests, strict=True))
        if [(page.kin, page.shown) for page in state.pages] != wanted:
            spare = SparePages(state.pages)
            pages = [spare.take(is_, content) for is_, content in wanted]
            for index, part in enumerate(entry.draft.parts):
                page = pages[index] or spare.take(kins[index])
                if page is None:
                    page = conversation.add_page(state, entry.draft, index)
                elif page.shown != entry.digests[index]:
                    change = shorter(conversation.read(page.full), part.content)
                    conversation.show(page, part, entry.digests[index], change)
                pages[index] = page
            state.pages = [page for page in pages if page is not None]
            conversation.know(state)
            conversation.changed.add(state)
        if state.skeleton != entry.draft.skeleton:
            state.skeleton = entry.draft.skeleton
            conversation.changed.add(state)


class _Used:
    """The messages that a message of a request can no longer be; gathered once one is asked for."""

    def __init__(self, settling: Reconciliation) -> None:
        self._settling = settling
        self._more: list[MessageState] = []
        self._held: set[MessageState] | None = None

    def __contains__(self, state: MessageState) -> bool:
        if self._held is None:
            settling = self._settling
            self._held = {*settling.settled.values(), *settling.old, *settling.before, *self._more}
        return state in self._held

    def add(self, state: MessageState) -> None:
        """Uses one more."""
        (self._more.append if self._held is None else self._held.add)(state)


class SparePages:
    """The pages of a message that none of its parts is yet, in order."""

    def __init__(self, pages: Sequence[PageState]) -> None:
        self._taken: set[int] = set()
        self._having: defaultdict[tuple[PageIdentity, Digest | None], deque[PageState]] = defaultdict(deque)
        for page in pages:
            self._having[page.kin, None].append(page)
            for content in page.contents:
                self._having[page.kin, content].append(page)

    def take(self, is_: PageIdentity, content: Digest | None = None) -> PageState | None:
        """Takes out the first page of a kin; with `content`, the first that has it."""
        pages = self._having.get((is_, content))
        while pages:
            page = pages.popleft()
            if page.page not in self._taken:
                self._taken.add(page.page)
                return page
        return None
