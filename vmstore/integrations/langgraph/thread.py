"""A thread of a graph as a session of the store: its checkpoints as pages, and an index of them in memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.core.page import LinkKind, Role
from vmstore.engine.batch import HandBatch
from vmstore.errors import ErasedError, OvertakenError, UnknownError
from vmstore.integrations.langgraph.pages import (
    BLOCK_BYTES,
    INLINE_BYTES_MAX,
    ChannelValue,
    CheckpointState,
    TaskWrites,
    Typed,
    add_message,
    add_state,
    add_text,
    head_bytes,
    hint_of,
    named,
    shared_blocks,
    state_of,
)
from vmstore.store.session import Session
from vmstore.store.store import Store

AGENT = "langgraph"
OPENED = 1  # the position of a session that holds nothing but its opening
TRIES = 5  # where other processes write to the same thread
CACHE_BYTES = 16 << 20  # of contents that were read or written last
_STATE = msgspec.msgpack.Decoder(CheckpointState)
_VALUE = msgspec.msgpack.Decoder(ChannelValue)
_WRITES = msgspec.msgpack.Decoder(TaskWrites)
_encode = msgspec.msgpack.Encoder().encode
Key = tuple[str, str]
"""A checkpoint's namespace and its id."""
TextsOf = Callable[[CheckpointState], Mapping[str, bytes]]
"""What the messages of a checkpoint say, by their ids."""


class NewCheckpoint(NamedTuple):
    """A checkpoint to be written: its values by channel, serialized, and its messages by id.

    `changed` are the channels whose values are not those of the parent.
    """

    key: Key
    parent: str | None
    run: str | None
    metadata: Typed
    envelope: Typed
    values: Mapping[str, Typed]
    changed: frozenset[str]
    messages: Mapping[str, Any]


class GraphThread:
    """One thread; not for several threads of Python at once."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self.name = name
        self._forget()

    def _forget(self) -> None:
        self._session: Session | None = None
        self._position = 0
        self._pages: dict[Key, int] = {}
        self._runs: dict[Key, str] = {}
        self._ids: dict[str, list[str]] = {}
        self._writes: dict[Key, list[int]] = {}
        self._said: dict[str, int] = {}
        self._forget_contents()

    def _forget_contents(self) -> None:
        """Lets go of all contents at hand: some may have been erased."""
        self._contents: dict[int, bytes] = {}
        self._cached_bytes = 0
        self._values: dict[tuple[str, str], tuple[int, ChannelValue, bytes]] = {}

    # ---- what is there

    def refresh(self) -> None:
        """Looks whether others wrote to the thread, and takes in what they wrote."""
        if self._session is not None:
            head = self._store.admin.log.head(self._session._key)
            if head is not None and head.position == self._position:
                return
        try:
            session = self._store.session(self.name)
        except UnknownError:
            self._forget()
            return
        if self._session is None or session._key != self._session._key:
            self._forget()
        self._session = session
        self._forget_contents()
        position = session.info().position  # first: what others write from here on is read by the next look
        if position > OPENED:
            between = {"after": self._position, "upto": position}
            for _, page, hint in list(self._store.query(_PAGES, session=self.name, params=between)):
                if hint:
                    self._index(page, hint)
        self._position = position

    def ids(self, namespace: str) -> Sequence[str]:
        """The ids of the checkpoints of a namespace, the oldest first."""
        return self._ids.get(namespace, ())

    @property
    def namespaces(self) -> list[str]:
        """LangGraph's namespaces that have a checkpoint."""
        return [namespace for namespace, ids in self._ids.items() if ids]

    @property
    def said(self) -> Container[str]:
        """The ids of the messages that have a page."""
        return self._said

    def newest(self, namespace: str) -> str | None:
        """The id of the newest checkpoint of a namespace."""
        ids = self.ids(namespace)
        return ids[-1] if ids else None

    def of_runs(self, runs: frozenset[str]) -> list[Key]:
        """The checkpoints that some runs made."""
        return [key for key, run in self._runs.items() if run in runs]

    def page_of(self, namespace: str, id_: str | None) -> int | None:
        """The page of a checkpoint; None where there is none."""
        return None if id_ is None else self._pages.get((namespace, id_))

    def state(self, key: Key) -> CheckpointState | None:
        """A checkpoint; None where there is none, or it was erased."""
        page = self._pages.get(key)
        content = None if page is None else self._content(page)
        if content is None:
            self._drop(key)
            return None
        return _STATE.decode(content)

    def value(self, page: int) -> Typed:
        """A channel's value by its page."""
        content = self._content(page)
        if content is None:
            raise ErasedError(f"a channel's value in {self.name!r} was erased; its checkpoint can't be loaded")
        value = _VALUE.decode(content)
        return value.type, self._whole(value)

    def pending(self, key: Key) -> list[TaskWrites]:
        """The writes of tasks for a checkpoint, in the order of the tasks."""
        contents = [self._content(page) for page in self._writes.get(key, ())]
        return [_WRITES.decode(content) for content in contents if content is not None]

    # ---- what is written

    def put(self, new: NewCheckpoint) -> None:
        """Writes a checkpoint as one commit: what changed of its values, and what its new messages say."""
        self._commit(lambda batch: self._add(batch, new))

    def put_writes(self, key: Key, writes: TaskWrites) -> None:
        """Writes what a task wrote for a checkpoint."""

        def add(batch: HandBatch) -> None:
            """Adds the page, caused by the checkpoint where that is there already."""
            content = _encode(writes)
            at = self._pages.get(key)
            links = [] if at is None else [(LinkKind.CAUSED_BY, at)]
            hint = hint_of("writes", key[1], key[0])
            self._keep(add_state(batch, content, hint, links), hint, content)

        self._commit(add)

    def copy(self, source: GraphThread) -> None:
        """Copies all that another thread holds, under the same ids: its state, then what its messages say."""

        def add(batch: HandBatch) -> None:
            """Adds the pages; those that name others name the copies."""
            numbers: dict[int, int] = {}
            for page, content, hint in source.everything():
                links: list[tuple[LinkKind, int]] = []
                kind = named(hint).kind
                if kind == "channel":
                    value = _VALUE.decode(content)
                    content = _encode(msgspec.structs.replace(value, blocks=[numbers[block] for block in value.blocks]))
                elif kind == "checkpoint":
                    state = _STATE.decode(content)
                    pages = {channel: numbers[value] for channel, value in state.pages.items()}
                    content = _encode(msgspec.structs.replace(state, pages=pages))
                    before = source.page_of(state.namespace, state.parent)
                    links = _links(None if before is None else numbers.get(before), pages.values())
                numbers[page] = add_state(batch, content, hint, links)
                self._keep(numbers[page], hint, content)
            for id_, role, content, checkpoint in source.messages():
                if id_ not in self._said:
                    page = add_text(batch, id_, role, content, numbers.get(checkpoint))
                    self._keep(page, hint_of("message", id_), b"")

        self._commit(add)

    def everything(self) -> Iterator[tuple[int, bytes, str]]:
        """All pages of state that are left, in the order they were written, with their contents and hints."""
        assert self._session is not None, "asked only of a thread that is there"
        rows = self._store.query(_PAGES, session=self.name, params={"after": 0, "upto": self._position})
        for _, page, hint in list(rows):
            if hint and named(hint).kind != "message" and (content := self._content(page)) is not None:
                yield page, content, hint

    def messages(self) -> Iterator[tuple[str, Role, bytes, int]]:
        """The messages that have a page: of each its id, its role, what it says, and the checkpoint that brought it."""
        assert self._session is not None, "asked only of a thread that is there"
        checkpoints = sorted(self._pages.values())
        for id_, page in self._said.items():
            if (text := self._text(page)) is not None:
                role = Role[str(self._session.page(page).role).upper()]
                before = checkpoints[: bisect_left(checkpoints, page)]  # a message stands right after its checkpoint
                yield id_, role, text, before[-1] if before else 0

    def erase(self, keys: Iterable[Key], texts_of: TextsOf) -> None:
        """Destroys checkpoints, and of values, blocks, writes and messages those that no other checkpoint needs.

        `texts_of` gives what the messages of a checkpoint say, by their ids: one may say what its page does not, for
        a graph may put another in its place under the same id.
        """
        gone = [key for key in keys if key in self._pages]
        if not gone:
            return
        texts = {page: self._text(page) for page in self._said.values()}
        lost = self._needed(gone, texts_of, texts)
        kept = self._needed(self._pages.keys() - set(gone), texts_of, texts)
        kept_texts = {texts[page] for page in kept & texts.keys()}  # pages that say the same share its bytes
        lost -= kept | {page for page in lost & texts.keys() if texts[page] in kept_texts}
        pages = ", ".join(f"p{page}" for page in sorted(lost))
        self._store.trust.erase(where=f"page IN ({pages})", in_session=self.name)
        for key in gone:
            self._drop(key)
        self._said = {said: page for said, page in self._said.items() if page not in lost}
        self._forget_contents()

    def destroy(self) -> None:
        """Destroys the thread for good: contents and name."""
        if self._session is not None:
            self._store.trust.erase(session=self.name)
        self._forget()

    # ---- the parts of it

    def _commit(self, add: Callable[[HandBatch], None]) -> None:
        """Writes a batch; again, with what others wrote meanwhile, where they were faster."""
        for attempt in range(TRIES):
            if self._session is None:
                self._store.session(self.name, create=True, agent=AGENT)
                self.refresh()  # another process may have made it, and written to it
            assert self._session is not None, "there is one now"
            self._added: list[tuple[int, str, bytes]] = []
            try:
                with self._session.batch() as batch:
                    if batch.position != self._position + 1:
                        raise OvertakenError(f"another process wrote to {self.name!r} meanwhile; decide again")
                    add(batch)
                    position = batch.position - 1
            except OvertakenError:
                if attempt == TRIES - 1:
                    raise
                self.refresh()
                continue
            for page, hint, content in self._added:
                self._index(page, hint)
                self._cache(page, content)
            self._position = position
            return

    def _add(self, batch: HandBatch, new: NewCheckpoint) -> None:
        namespace, id_ = new.key
        before = None if new.parent is None else self.state((namespace, new.parent))
        inline: dict[str, Typed] = {}
        pages: dict[str, int] = {}
        for channel, value in new.values.items():
            stays = before is not None and channel not in new.changed
            if len(value[1]) <= INLINE_BYTES_MAX or (not stays and len(value[1]) < BLOCK_BYTES):
                inline[channel] = value  # one that stays is a page at its second checkpoint, and named from then on
            elif before is not None and stays and channel in before.pages:
                pages[channel] = before.pages[channel]
            else:
                pages[channel] = self._add_value(batch, namespace, channel, value, before)
        state = CheckpointState(namespace, id_, new.parent, new.run, new.metadata, new.envelope, inline, pages)
        content, hint = _encode(state), hint_of("checkpoint", id_, new.run or "", namespace)
        page = add_state(batch, content, hint, _links(self.page_of(namespace, new.parent), pages.values()))
        self._keep(page, hint, content)
        for said, message in new.messages.items():
            if said not in self._said and (number := add_message(batch, message, page)) is not None:
                self._keep(number, hint_of("message", said), b"")

    def _add_value(
        self, batch: HandBatch, namespace: str, channel: str, value: Typed, before: CheckpointState | None
    ) -> int:
        """Adds a large value: blocks that the parent's has already are named, not written again."""
        kind, content = value
        cut = head_bytes(value)
        blocks: list[int] = []
        if len(content) - cut >= BLOCK_BYTES and (old := self._before(namespace, channel, before)) is not None:
            alike = shared_blocks(old[1], len(old[0].head), content, cut)
            blocks = old[0].blocks[:alike]
        for start in range(cut + len(blocks) * BLOCK_BYTES, len(content) - BLOCK_BYTES + 1, BLOCK_BYTES):
            blocks.append(add_state(batch, content[start : start + BLOCK_BYTES], "block"))
        written = ChannelValue(kind, content[:cut], blocks, content[cut + len(blocks) * BLOCK_BYTES :])
        encoded, hint = _encode(written), hint_of("channel", channel, namespace)
        page = add_state(batch, encoded, hint)
        self._keep(page, hint, encoded)
        self._values[namespace, channel] = page, written, content
        return page

    def _before(
        self, namespace: str, channel: str, before: CheckpointState | None
    ) -> tuple[ChannelValue, bytes] | None:
        """The value that a channel had at the parent, with its bytes; None where it had none of a page."""
        page = None if before is None else before.pages.get(channel)
        if page is None:
            return None
        last = self._values.get((namespace, channel))
        if last is not None and last[0] == page:
            return last[1], last[2]
        content = self._content(page)
        if content is None:
            return None
        value = _VALUE.decode(content)
        return value, self._whole(value)

    def _whole(self, value: ChannelValue) -> bytes:
        """The bytes of a value, put together."""
        blocks = [self._content(block) for block in value.blocks]
        if None in blocks:
            raise ErasedError(f"a part of a channel's value in {self.name!r} was erased; nothing can bring it back")
        return b"".join([value.head, *(block for block in blocks if block is not None), value.tail])

    def _needed(self, keys: Iterable[Key], texts_of: TextsOf, texts: Mapping[int, bytes | None]) -> set[int]:
        """The pages that some checkpoints are made of; `texts` is what the pages of messages say."""
        needed: set[int] = set()
        for key in keys:
            state = self.state(key)
            if state is None:
                continue
            needed |= {self._pages[key], *self._writes.get(key, ()), *state.pages.values()}
            contents = [self._content(page) for page in state.pages.values()]
            needed |= {block for content in contents if content for block in _VALUE.decode(content).blocks}
            said = ((self._said.get(id_), text) for id_, text in texts_of(state).items())
            needed |= {page for page, text in said if page is not None and texts[page] == text}
        return needed

    def _text(self, page: int) -> bytes | None:
        """The bytes of a message's page; None where they were erased."""
        assert self._session is not None, "there are messages"
        try:
            return self._session.content(page)
        except ErasedError:
            return None

    def _keep(self, page: int, hint: str, content: bytes) -> None:
        """Remembers a page that is under way; it is indexed once it is durable."""
        self._added.append((page, hint, content))

    def _index(self, page: int, hint: str) -> None:
        kind, names = named(hint)
        if kind == "checkpoint":
            key = names[2], names[0]
            ids = self._ids.setdefault(names[2], [])
            if key not in self._pages:
                insort(ids, names[0])
            self._pages[key] = page
            if names[1]:
                self._runs[key] = names[1]
        elif kind == "writes":
            self._writes.setdefault((names[1], names[0]), []).append(page)
        elif kind == "message":
            self._said[names[0]] = page

    def _drop(self, key: Key) -> None:
        """Takes a checkpoint that is gone out of the index."""
        if self._pages.pop(key, None) is not None:
            ids = self._ids[key[0]]
            ids.pop(bisect_left(ids, key[1]))
        self._writes.pop(key, None)
        self._runs.pop(key, None)

    def _content(self, page: int) -> bytes | None:
        """A page's bytes; None where they were erased."""
        found = self._contents.get(page)
        if found is None:
            assert self._session is not None, "pages are known only of a session that is there"
            try:
                found = state_of(self._session.content(page))
            except ErasedError:
                return None
            self._cache(page, found)
        return found

    def _cache(self, page: int, content: bytes) -> None:
        """Keeps a content at hand, and lets go of those that were kept longest."""
        if page not in self._contents:
            self._contents[page] = content
            self._cached_bytes += len(content)
        while self._cached_bytes > CACHE_BYTES:
            oldest = next(iter(self._contents))
            self._cached_bytes -= len(self._contents.pop(oldest))


def _links(before: int | None, pages: Iterable[int]) -> list[tuple[LinkKind, int]]:
    """A checkpoint is caused by its parent, whose erasure leaves it whole, and refers to the values it has."""
    links = [(LinkKind.REFERENCES, page) for page in pages]
    return links if before is None else [(LinkKind.CAUSED_BY, before), *links]


_PAGES = """PAGES page, position, hint WHERE type IN (value, transcript) AND position > $after AND position <= $upto
  ORDER BY position"""
