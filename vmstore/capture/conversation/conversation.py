"""A session's conversation as capture keeps it: writes messages, packs and replies.

It turns messages into mutations on a batch and remembers which message of the log each one is.
The recorder feeds it requests, importers feed it records; both end in the same mutations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from itertools import accumulate, islice

from vmstore.capture.conversation.create_page import born, replied
from vmstore.capture.conversation.message_state import (
    MessagePages,
    MessageState,
    PageState,
    RecordedRequest,
    digest,
    kin,
)
from vmstore.capture.conversation.rank import assign
from vmstore.capture.conversation.response_cell import ResponseFields
from vmstore.core.draft import Draft, Part, ReplyDraft, TokenUsage
from vmstore.core.mutation import (
    CellRef,
    Compress,
    Configure,
    Create,
    Link,
    Message,
    Pack,
    Residence,
    Turn,
    Update,
)
from vmstore.core.page import Fidelity, LinkKind, Modality, PageType, Role, Status
from vmstore.core.text.skeleton import dumps
from vmstore.core.text.token_estimate import ESTIMATOR, estimate, factor_moved
from vmstore.engine.batch import Batch

SKELETONS_MAX = 256  # kept to be shared
OPAQUE_HINT = "opaque"
READABLE = (Modality.TEXT, Modality.STRUCTURED)


class Conversation:
    """The messages of a session between batches; `batch` is the one under way."""

    def __init__(self, read: Callable[[int], bytes] = lambda position: b"") -> None:
        self.read = read  # the content made at a position
        self.look: Callable[[int, bytes], None] = lambda page, content: None  # at each new page that can be read
        self.batch: Batch = None  # type: ignore[assignment]  # set before each use
        self.context: list[MessageState] = []  # as last packed
        self.sent: RecordedRequest | None = None  # the request it was recorded from, where it was
        self.ends: list[int] = []  # how many pages the context has up to each of its messages, as last packed
        self.changed: set[MessageState] = set()  # messages that read otherwise than they were last packed
        self.own = True  # by this conversation: nobody else put pages between those of a message
        self.messages: list[MessageState] = []  # every message, in order
        self.thread: list[MessageState] = []  # as the client last asked it, where it was sent otherwise
        self.pages = MessagePages()
        self.unshown: set[int] = set()  # pages somebody updated that no pack has shown since
        self._known: dict[
            int, MessageState | list[MessageState]
        ] = {}  # by a hash of what they said at some time, in order
        self._skeletons: dict[bytes, bytes] = {}  # few, that most messages have one of
        self.calls: dict[str, int] = {}  # tool call id -> its page
        self.hints: dict[str, list[int]] = {}
        self.answers: list[MessageState] = []  # what the last answer said
        self.answered = 0  # to which call
        self.final = True  # the next human message opens a turn
        self.opaque: int | None = None  # tokens the source omits; None until a call reports usage
        self.opaque_page: int | None = None
        self.rest: bytes | None = None
        self.shape: int | None = None
        self.responses = ResponseFields()
        self.factor_ppm = 1_000_000

    def copy(self) -> Conversation:
        """A conversation that can go on without changing this one; what was sent and sealed is shared."""
        other = copy(self)
        copies = {state: state.copy() for state in self.messages}
        other.messages = [*copies.values()]
        pages = {page: page.copy(copies[page.of]) for page in self.pages}
        other.pages = MessagePages()
        for page in pages.values():
            other.pages.add(page)
        for state, copied in copies.items():
            copied.pages = [pages[page] for page in state.pages]
        other.context, other.changed = (
            [copies[state] for state in self.context],
            {copies[state] for state in self.changed},
        )
        other.answers = [copies[state] for state in self.answers]
        other.thread = [copies[state] for state in self.thread]
        other._known = {
            key: [copies[state] for state in alike] if isinstance(alike, list) else copies[alike]
            for key, alike in self._known.items()
        }
        other.hints = {hint: named.copy() for hint, named in self.hints.items()}
        other.ends, other.unshown, other.calls = self.ends.copy(), self.unshown.copy(), self.calls.copy()
        other.responses = copy(self.responses)
        return other

    def know(self, state: MessageState) -> None:
        """Finds a message by what it says from now on."""
        key = hash(state.key)
        alike = self._known.setdefault(key, state)
        if alike is state:
            return
        if isinstance(
            alike, MessageState
        ):  # most are like no other: a list of each would be a tenth of all that is kept
            alike = self._known[key] = [alike]
        at = bisect_left(alike, state.message, key=number_of)
        if at == len(alike) or alike[at] is not state:
            alike.insert(at, state)  # in whichever order they came to say it

    def alike(self, key: Hashable) -> Sequence[MessageState]:
        """The messages that may have said this at some time, in order."""
        known = self._known.get(hash(key), ())
        return (known,) if isinstance(known, MessageState) else known

    def answer(self, call: int, state: MessageState) -> None:
        """Takes a message as part of the answer to a call."""
        if call != self.answered:
            self.answered, self.answers = call, []
        self.answers.append(state)

    # ---- messages

    def say(
        self,
        draft: Draft,
        *,
        at: int,
        reply_to: int | None = None,
        sources: Sequence[int] = (),
        type_: PageType | None = None,
    ) -> MessageState:
        """Writes a message and its pages; `sources` are the pages it was made from.

        What the model said without being `reply_to` a call ends the turn where it asks for no tool.
        """
        if draft.human and self.final:
            self.batch.end(at)
            self.batch.add(Turn(self.batch.head.turn + 1))
            self.final = False
        envelope = self.batch.cell(draft.skeleton)
        aside = None if draft.aside is None else self.batch.cell(draft.aside)
        message = self.batch.add(Message(draft.role, draft.slot, envelope, int(draft.human), aside, reply_to))
        if len(self._skeletons) > SKELETONS_MAX:
            self._skeletons.clear()
        skeleton = self._skeletons.setdefault(draft.skeleton, draft.skeleton)
        state = MessageState(message, draft.role, draft.slot, skeleton)
        for index, part in enumerate(draft.parts):
            links = (*self._links(draft, part), *((int(LinkKind.DERIVES), page) for page in sources))
            state.pages.append(self._create(draft, part, state, index, links, type_))
        if draft.role is Role.ASSISTANT and reply_to is None:
            self.final = not any(part.is_call for part in draft.parts)
        if reply_to is not None:
            self.answer(reply_to, state)
        self.messages.append(state)
        self.know(state)
        return state

    def add_page(self, state: MessageState, draft: Draft, index: int) -> PageState:
        """Adds a part that a message did not have before."""
        part = draft.parts[index]
        return self._create(draft, part, state, index, self._links(draft, part), None)

    def apart(self, draft: Draft) -> None:
        """Writes pages that no message holds, under the draft's name: they stand in no context."""
        for index, part in enumerate(draft.parts):
            self._write(draft, part, 0, index, self._links(draft, part), part.type)

    def _create(
        self,
        draft: Draft,
        part: Part,
        state: MessageState,
        index: int,
        links: Sequence[tuple[int, int]],
        type_: PageType | None,
    ) -> PageState:
        page = self._write(draft, part, state.message, index, links, part.type if type_ is None else type_)
        return self.pages.add(PageState(page, digest(part.content), kin(part), state))

    def _write(
        self, draft: Draft, part: Part, message: int, index: int, links: Sequence[tuple[int, int]], type_: PageType
    ) -> int:
        """Writes the page of a part, and has it found by its name and by the tool call it makes."""
        page = self.batch.add(born(draft, index, message, self.batch.cell, links, type_))
        if part.modality in READABLE:
            self.look(page, part.content)
        if asks := kin(part).asks:
            self.calls[asks] = page
        if draft.hint:
            self.hints.setdefault(draft.hint, []).append(page)
        return page

    def _links(self, draft: Draft, part: Part) -> list[tuple[int, int]]:
        found = [(int(kind), page) for kind, hint in draft.links for page in self.hints.get(hint, ())]
        answers = kin(part).answers
        if answers in self.calls:
            found.append((int(LinkKind.CAUSED_BY), self.calls[answers]))
        return found

    def raw(self, content: bytes, where: str, reason: str) -> int:
        """Keeps a record nobody can read as a raw page that no message holds."""
        labels = self.batch.cell(dumps({"where": where, "reason": reason}))
        return self.batch.add(
            Create(
                type=PageType.RAW,
                modality=Modality.TEXT,
                role=Role.OTHER,
                message=0,
                part=0,
                content=self.batch.cell(content),
                size=len(content),
                tokens=estimate(content, Modality.TEXT),
                labels=labels,
            )
        )

    # ---- changes of what a page shows

    def show(self, page: PageState, part: Part, content: bytes, shorter: tuple[int, int] | None) -> None:
        """Shows another content on a page: one it had before, a shorter form, or a new version."""
        known = page.contents.get(content)
        if known is not None:
            page.show_again(content)
            return
        cell = self.batch.cell(part.content)
        size, tokens = len(part.content), estimate(part.content, part.modality)
        if shorter is not None:
            level, method = shorter
            compress = Compress(page.page, page.version, level, method, 1, cell, size, tokens)
            page.show(content, self.batch.add(compress), level)
            return
        page.version += 1
        page.show(content, self.batch.add(Update(page.page, page.version, cell, size, tokens)), 0)

    def sum_up(self, summary: MessageState, replaced: Sequence[MessageState]) -> None:
        """Links a summary to every page it replaces."""
        for page in summary.pages:
            for state in replaced:
                for source in state.pages:
                    self.batch.add(Link(page.page, source.page, LinkKind.DERIVES))

    # ---- calls

    def pack(
        self,
        context: Sequence[MessageState],
        *,
        fidelity: Fidelity,
        at: int,
        rest: bytes | None = None,
        shape: int | None = None,
        since: int = 0,
    ) -> int:
        """Writes the call whose request holds these messages; its number. Ends the commit.

        Those before `since` are the first ones of the last pack's: they are not looked at, unless some changed.
        """
        same = self._same(context, since)
        entered, left = self._changes(context, same)
        totals = self.batch.head.foresee(entered, left)
        tail = context[same:]
        changed = [state for state in tail if state.skeleton != state.packed]
        envelopes = tuple((state.message, self.batch.cell(state.skeleton)) for state in changed)
        rest_cell: CellRef | None = None
        if rest is not None and rest != self.rest:
            rest_cell = self.batch.cell(rest)
        call = self.batch.head.call + 1
        self.batch.add(
            Pack(
                call=call,
                fidelity=fidelity,
                leaves=totals.leaves,
                tokens=totals.tokens,
                root=totals.root,
                entered=tuple(entered),
                left=tuple(left),
                rest=rest_cell,
                envelopes=envelopes,
                shape=shape if shape != self.shape else None,
            )
        )
        self.batch.end(at)
        self.place(entered, left)
        for state in tail:
            state.packed = state.skeleton
        self.changed.difference_update(tail)
        self._stand(tail, same)
        self.sent = None
        self.rest, self.shape = rest or self.rest, shape if shape is not None else self.shape
        return call

    def place(self, entered: Iterable[Residence], left: Iterable[int]) -> dict[MessageState, list[PageState]]:
        """Ranks pages as a pack places them; by message, those that entered."""
        moved: dict[MessageState, list[PageState]] = {}
        for number, rank in (*((page, None) for page in left), *((page, rank) for page, _, _, rank in entered)):
            if (page := self.pages.get(number)) is not None:
                page.rank, page.of.seen = rank, True
                self.unshown.discard(number)
                moved.setdefault(page.of, []).append(page)
        return moved

    def _stand(self, tail: Sequence[MessageState], same: int) -> None:
        """Keeps the context as it was packed: its first messages stand as they stood."""
        if not self.own:
            self.ends = [*accumulate(len(state.pages) for state in self.context[:same])]
        if len(self.context) > same:
            stays = set(tail)
            for state in self.context[same:]:
                if state not in stays:
                    state.take(None)  # its words are in the log, and the next request is held against what stood last
        self.context[same:] = tail
        before = self.ends[same - 1] if same else 0
        self.ends[same:] = islice(accumulate((len(state.pages) for state in tail), initial=before), 1, None)
        self.own = True

    def _same(self, context: Sequence[MessageState], since: int) -> int:
        """How many messages from the first on stand and read as they did at the last pack."""
        changed, before = self.changed, self.context
        same = 0 if changed else min(since, len(context), len(before))
        for index in range(same, min(len(context), len(before))):
            now = context[index]
            if now is not before[index] or now in changed:
                return index
            same = index + 1
        return same

    def _standing(self, context: Sequence[MessageState], at: int) -> int:
        """How many messages from the first on have their pages in a row in what somebody else packed last."""
        order = self.batch.head.order
        for same, state in enumerate(context):
            for page in state.pages:
                if at >= len(order) or order[at][0] != page.page:
                    return same
                at += 1
        return len(context)

    def _changes(self, context: Sequence[MessageState], unchanged: int) -> tuple[list[Residence], list[int]]:
        """Pages that enter or change, and pages that leave, between the last pack and this context."""
        order = self.batch.head.order
        opaque = [] if self.opaque_page is None else [(self.opaque_page, self.opaque_page, 0)]
        same = 0
        if not opaque or (order and order[0][0] == self.opaque_page):
            if self.own:
                same = self.ends[unchanged - 1] if unchanged else 0
            else:
                unchanged = self._standing(context[:unchanged], len(opaque))
                same = sum(len(state.pages) for state in context[:unchanged])
            same, opaque = same + len(opaque), []
        else:
            unchanged = 0
        assert same <= len(order), "what a conversation packed is what the head holds"
        wanted = opaque + [(p.page, p.position, p.level) for state in context[unchanged:] for p in state.pages]
        ranks = {have[0]: have for have in order[same:]}
        old = [ranks[page][3] if page in ranks else None for page, _, _ in wanted]
        floor = order[same - 1][3] if same else 0
        entered = []
        for (page, content, level), rank in zip(wanted, assign(old, floor), strict=True):
            now = (page, content, level, rank)
            if ranks.pop(page, None) != now:
                entered.append(now)
        return entered, list(ranks)

    def reply(self, reply: ReplyDraft, call: int, *, at: int) -> list[MessageState]:
        """Writes what came back for a call; its messages."""
        states = [self.say(draft, at=at, reply_to=call) for draft in reply.drafts]
        final = reply.final and reply.status is Status.OK
        self.batch.add(replied(reply, call, final, self.responses, self.batch.cell))
        if reply.status is Status.OK:
            self.final = reply.final  # a call that failed leaves it as it was
        self._correct(reply.usage)
        return states

    def reckon(self, usage: TokenUsage, context: Sequence[MessageState]) -> None:
        """At the first call that reports usage, counts what the source omits as one opaque page."""
        if self.opaque is not None or not usage.tokens_in:
            return
        counted = sum(estimate_held(self.batch, page) for state in context for page in state.pages)
        self.opaque = max(0, usage.tokens_in - counted)
        if self.opaque:
            self.opaque_page = self.batch.add(
                Create(
                    type=PageType.PROCEDURE,
                    modality=Modality.TEXT,
                    role=Role.SYSTEM,
                    message=0,
                    part=0,
                    content=None,
                    size=0,
                    tokens=self.opaque,
                    labels=self.batch.cell(dumps({"hint": OPAQUE_HINT})),
                )
            )

    def _correct(self, usage: TokenUsage) -> None:
        """Logs the token factor where reported usage moved it."""
        opaque = self.opaque or 0
        order = self.batch.head.order
        shown = bool(order) and order[0][0] == self.opaque_page  # made after its call's pack it enters with the next
        counted = self.batch.head.tokens - (opaque if shown else 0)
        if not usage.tokens_in or counted <= 0 or usage.tokens_in <= opaque:
            return
        factor = (usage.tokens_in - opaque) * 1_000_000 // counted
        if factor_moved(factor, self.factor_ppm):
            self.batch.add(Configure(ESTIMATOR, factor))
            self.factor_ppm = factor


def number_of(state: MessageState) -> int:
    """The number messages are ordered by."""
    return state.message


def estimate_held(batch: Batch, page: PageState) -> int:
    """The estimated tokens of what a page shows."""
    found = batch.head.content(page.position)
    assert found is not None, "a held page shows a content of the log"
    return found.tokens
