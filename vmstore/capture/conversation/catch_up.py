"""Folding mutations that a conversation has not seen into it.

They say where everything stands; only then is read what it says, each cell once, and none that a
later one took the place of.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from vmstore.capture.conversation.conversation import OPAQUE_HINT, Conversation, number_of
from vmstore.capture.conversation.message_state import MessageState, PageIdentity, PageState, digest
from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import CellRef, Compress, Configure, Create, Message, Pack, Reply, Turn, Update
from vmstore.core.page import Role, Slot, Status
from vmstore.core.text.json_text import plain
from vmstore.core.text.skeleton import fill, loads
from vmstore.log.port import Log
from vmstore.views.projector import PlacedMutation
from vmstore.views.projectors.pages import object_of
from vmstore.views.stored_cells import read_cells

Sealed = tuple[int, bytes | None]
"""A cell by the log's number and what it must hash to; number 0 where the source never had the content."""


class CreatedContent(NamedTuple):
    """A content of a page that was made: where, at which level, sealed as what."""

    position: int
    level: int
    sealed: Sealed


class Labels(NamedTuple):
    """Data of a new page still to be read: its labels, whether its source omits it, its length."""

    omitted: bool
    tokens: int
    sealed: Sealed


def unlike(position: int) -> bytes:
    """The stand-in for an erased content: nothing that is sent equals it, so that the page is written again."""
    return ErasedContent(b"\0erased\0%d" % position)


class CatchUp:
    """Mutations on their way into a conversation: walk through them in order, then `settle`."""

    def __init__(self, conversation: Conversation, position: int, hash: bytes) -> None:
        self.position = position  # where the conversation stands, and the hash its next commit follows
        self.hash = hash
        self._conversation = conversation
        self._changed: dict[MessageState, None] = {}
        self._made: dict[int, list[CreatedContent]] = {}  # by page
        self._labels: dict[int, Labels] = {}  # by page
        self._skeletons: dict[MessageState, Sealed] = {}
        self._rest: Sealed | None = None
        self._replies: dict[int, Sealed] = {}  # what each keeps beside its messages, by call
        self._last: MessageState | None = None  # what was said last, where that may have ended the turn

    def on_commit(self, placed: PlacedMutation, mutations: Sequence[Any]) -> None:
        """Notes where the conversation will stand."""
        self.position, self.hash = placed.commit.last, placed.commit.hash

    def on_turn(self, placed: PlacedMutation, m: Turn) -> None:
        """A turn that opened has not had its last word."""
        self._conversation.final, self._last = False, None

    def on_configure(self, placed: PlacedMutation, m: Configure) -> None:
        """Notes the factor."""
        self._conversation.factor_ppm = m.factor_ppm

    def on_message(self, placed: PlacedMutation, m: Message) -> None:
        """Adds the message; its pages follow."""
        state = MessageState(placed.position, Role(m.role), Slot(m.slot), b"")
        self._skeletons[state] = _sealed(placed, m.envelope)
        self._conversation.messages.append(state)
        self._changed[state] = None
        if m.reply_to is not None:
            self._conversation.answer(m.reply_to, state)
        elif m.role == Role.ASSISTANT:
            self._last = state

    def on_create(self, placed: PlacedMutation, m: Create) -> None:
        """Adds a page to its message, where it has one."""
        if m.labels is not None:
            self._labels[placed.position] = Labels(
                not m.message and m.content is None, m.tokens, _sealed(placed, m.labels)
            )
        state = self._held(m.message)
        if state is None:
            return
        page = PageState(placed.position, b"", PageIdentity(m.modality), state)
        self._conversation.pages.add(page)
        self._made[page.page] = [CreatedContent(placed.position, 0, _sealed(placed, m.content))]
        self._changed[state] = None
        if not state.seen:  # else the pack that shows it brings it in
            state.pages.append(page)

    def _held(self, message: int) -> MessageState | None:
        messages = self._conversation.messages
        if messages and messages[-1].message == message:
            return messages[-1]
        at = bisect_left(messages, message, key=number_of)
        return messages[at] if at < len(messages) and messages[at].message == message else None

    def on_update(self, placed: PlacedMutation, m: Update) -> None:
        """Has the page show its new content, as its writer did."""
        page = self._conversation.pages.get(m.page)
        if page is None:
            return
        page.version, page.full, page.position, page.level = m.version, placed.position, placed.position, 0
        self._made[m.page] = [CreatedContent(placed.position, 0, _sealed(placed, m.content))]
        self._conversation.unshown.add(m.page)
        self._changed[page.of] = None

    def on_compress(self, placed: PlacedMutation, m: Compress) -> None:
        """Adds a representation, which a pack may show."""
        page = self._conversation.pages.get(m.page)
        if page is not None:
            made = CreatedContent(placed.position, m.level, _sealed(placed, m.content))
            self._made.setdefault(m.page, []).append(made)
            self._changed[page.of] = None

    def on_pack(self, placed: PlacedMutation, m: Pack) -> None:
        """Has the pages stand where the call put them."""
        self._conversation.own = False
        for message, ref in m.envelopes:
            if (state := self._held(message)) is not None:
                self._skeletons[state] = _sealed(placed, ref)
                self._changed[state] = None
        if m.rest is not None:
            self._rest = _sealed(placed, m.rest)
        if m.shape is not None:
            self._conversation.shape = m.shape
        for state, pages in self._conversation.place(m.entered, m.left).items():
            self._changed[state] = None
            here = {page for page in (*state.pages, *pages) if page.rank is not None}
            if here:  # else it left as it was
                state.pages = sorted(here, key=_rank)
        for page, content, level, _ in m.entered:
            if (shown := self._conversation.pages.get(page)) is not None:
                shown.position, shown.level = content, level

    def on_reply(self, placed: PlacedMutation, m: Reply) -> None:
        """Notes whether that was the final answer, that usage was reported, and what came back."""
        self._replies[m.call] = _sealed(placed, m.aside)
        if m.status == Status.OK:
            self._conversation.final, self._last = bool(m.final), None
        if m.tokens_in and self._conversation.opaque is None:
            self._conversation.opaque = 0  # usage was reported, so what the source omits is settled

    # ---- what it says

    def settle(self, log: Log, db: apsw.Connection) -> None:
        """Reads what was taken in, and has the conversation know it."""
        conversation = self._conversation
        contents = self._read(log, db)
        for position, labels in self._labels.items():
            self._name(position, labels, object_of(contents[labels.sealed[0]]))
        for state, sealed in self._skeletons.items():
            state.skeleton = state.packed = contents[sealed[0]]
        if self._rest is not None:
            conversation.rest = contents[self._rest[0]]
        if self._replies:
            self._answered(log, db)
        if self._last is not None:
            conversation.final = not any(page.kin.asks for page in self._last.pages)
        for number, made in self._made.items():
            page = conversation.pages.get(number)
            assert page is not None, "it is one of a message"
            before = {} if made[0].level == 0 else page.contents
            page.contents = {**before, **{digest(contents[content.sealed[0]]): content[:2] for content in made}}
        for state in self._changed:
            self._show(state)
            conversation.know(state)
        self._stand(contents)

    def _read(self, log: Log, db: apsw.Connection) -> dict[int, bytes]:
        """The bytes of every cell that counts, by number; number 0 is empty."""
        sealed = [content.sealed for made in self._made.values() for content in made]
        sealed += [labels.sealed for labels in self._labels.values()]
        sealed += self._skeletons.values()
        sealed += [] if self._rest is None else [self._rest]
        return {0: b"", **read_cells(log, db, {number: commitment for number, commitment in sealed if number}, unlike)}

    def _answered(self, log: Log, db: apsw.Connection) -> None:
        """Has the conversation know what the last response held."""

        def beside(call: int) -> dict[str, Any]:
            number, commitment = self._replies.get(call, (0, None))
            return object_of(read_cells(log, db, {number: commitment}, unlike)[number]) if number else {}

        last = next(reversed(self._replies))
        self._conversation.responses.follow(last, beside(last), beside)

    def _name(self, page: int, labels: Labels, names: dict[str, Any]) -> None:
        """Takes in what a page is called, and which tool call it makes or answers."""
        conversation = self._conversation
        hint, asks = names.get("hint"), plain(names.get("asks"))
        if hint == OPAQUE_HINT and labels.omitted:
            conversation.opaque_page, conversation.opaque = page, labels.tokens
        elif isinstance(hint, str) and hint:
            conversation.hints.setdefault(hint, []).append(page)
        if (page_state := conversation.pages.get(page)) is not None:
            page_state.kin = PageIdentity(page_state.kin.modality, asks or None, plain(names.get("answers")) or None)
            if asks:
                conversation.calls[asks] = page

    def _show(self, state: MessageState) -> None:
        """Has each page of a message show the content that lies where it stands, or else its last full one.

        Not what was made last: whether a shorter form came with the pack or after it would then matter.
        """
        for page in state.pages:
            lies = {position: content for content, (position, _) in page.contents.items()}
            if page.position not in lies:
                self._conversation.unshown.add(page.page)
            page.show_again(lies.get(page.position) or lies.get(page.full) or next(reversed([*page.contents])))

    def _stand(self, contents: dict[int, bytes]) -> None:
        """Orders the context, and has each of its messages that changed stand as it was sent."""
        places = {made.position: made.sealed[0] for several in self._made.values() for made in several}
        self._conversation.own, self._conversation.sent = False, None  # its messages may have other pages now
        held_now = {**dict.fromkeys(self._conversation.context), **self._changed}
        here = [state for state in held_now if state.pages and state.pages[0].rank is not None]
        self._conversation.context = sorted(here, key=lambda state: _rank(state.pages[0]))
        for state in here:
            if state in self._changed:
                at = [page.position for page in state.pages]
                shown = [contents[places[p]] if p in places else self._conversation.read(p) for p in at]
                state.take(_filled(state, shown))
                if any(page.page in self._conversation.unshown for page in state.pages):
                    self._conversation.changed.add(state)
                else:
                    self._conversation.changed.discard(state)


def _rank(page: PageState) -> int:
    assert page.rank is not None, "it is in the context"
    return page.rank


def _filled(state: MessageState, contents: Sequence[bytes]) -> Any:
    """A message as it was sent; where a pack of somebody's own shows half of it, what equals nothing that is sent."""
    try:
        return fill(loads(state.skeleton), contents)
    except (LookupError, TypeError, ValueError):
        return object()


def _sealed(placed: PlacedMutation, ref: CellRef | None) -> Sealed:
    number, commitment = placed.sealed(ref)
    return number or 0, commitment
