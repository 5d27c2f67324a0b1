"""One live session in memory: its kernel's state and its words, brought up to the log before each use.

Each act is one commit: what happened, then what the kernel decided of it. An act that fails leaves
nothing in the log, and what was folded of it is forgotten.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from vmstore.core.decision import Cause
from vmstore.core.mutation import AnyMutation, CellRef, Compress, Create, Erase, Evict, Update
from vmstore.core.page import Level
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.errors import OvertakenError, RefusedError
from vmstore.live.compression import FormMaker
from vmstore.live.content_cache import ContentCache
from vmstore.live.prompt_pages import PromptPages
from vmstore.live.recall.claim_finder import ClaimFinder
from vmstore.live.recall.index import RecallIndex
from vmstore.live.recall.topic_ledger import TopicLedger
from vmstore.live.recall.uses import UseDetector
from vmstore.live.session_log import SessionLog
from vmstore.live.snapshots.snapshot import EVERY, FoldedSession, Snapshot, unfold
from vmstore.live.transcript import Transcript
from vmstore.views.branch import NEVER, Branch
from vmstore.views.dispatch import hash_at
from vmstore.vm.compressors.form import Form
from vmstore.vm.kernel.eviction import Compression
from vmstore.vm.kernel.kernel import Kernel
from vmstore.vm.kernel.state import State
from vmstore.vm.metrics.metrics import Metrics
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.select import Selection
from vmstore.vm.recall.topics import tagged

T = TypeVar("T")


def _erases(entry: tuple[int, AnyMutation]) -> bool:
    """Whether contents that may be in memory were erased."""
    return isinstance(entry[1], Erase) or (isinstance(entry[1], Evict) and entry[1].cause == Cause.ERASED)


_WITH_CONTENT = (Create, Update, Compress)


class Act:
    """One commit of a live session under way."""

    def __init__(self, runtime: Runtime, batch: Batch, at: int) -> None:
        self.batch = batch
        self.at = at
        self.pause_us = max(0, at - runtime.metrics.last_at) if runtime.metrics.last_at else 0
        self.state = runtime.state
        self.spoken = runtime.spoken
        self.forms = runtime.forms
        self.shorter = runtime.shorter
        self.finder = runtime.finder
        self.index = runtime.index
        self.uses = runtime.uses
        self.memo = runtime.memo
        self._ledger = runtime.ledger
        self.kernel = Kernel(self.state, self._write, self._perform, runtime.note)
        self.written: list[AnyMutation] = []
        self.ended = False
        self._contents: dict[CellRef, bytes] = {}

    def tell(self, mutation: AnyMutation) -> int:
        """Writes a stimulus, and beside it the record of what was masked in it; its position."""
        redaction = self.batch.redaction
        record = None if redaction is None else redaction.record(mutation, self.batch.position)
        if record is not None and isinstance(mutation, Compress):  # what answers a decision follows the stimulus
            self.kernel.tell(record)
            record = None
        position = self.kernel.tell(mutation)
        if record is not None:
            self.kernel.tell(record)
        return position

    @property
    def topics(self) -> TopicLedger:
        """The ledger of topics and tags of the turns so far, brought up to date."""
        return self._ledger().follow()

    @property
    def shape(self) -> str:
        """The shape that requests are written in and answers are read in."""
        settings = self.state.settings
        return (settings.shape if settings is not None else None) or "chat"

    def leaves(self, choice: Selection | None) -> list[PromptPage]:
        """The prompt as it is now, or what was chosen of it, in order."""
        return PromptPages(self.state, self.spoken, self.forms, choice, self.memo).here()

    def react(self) -> list[AnyMutation]:
        """Lets the kernel decide now; what it wrote."""
        before = len(self.written)
        self.kernel.react()
        return self.written[before:]

    def end(self, mutation: AnyMutation) -> int:
        """Writes the mutation that ends the commit, after the kernel decided; its position."""
        self.ended = True
        return self.kernel.tell(mutation)

    def cell(self, content: bytes) -> CellRef:
        """Seals bytes."""
        ref = self.batch.cell(content)
        self._contents[ref] = self.masked(content)
        return ref

    def masked(self, content: bytes) -> bytes:
        """Bytes as the session may hold them."""
        return content if self.batch.redaction is None else self.batch.redaction.content(content)

    def read(self, position: int, ref: CellRef) -> bytes:
        """The bytes a mutation of this act names."""
        return self._contents[ref]

    def shorten(self, page: int, level: int, spoken: str = "") -> Compress:
        """Makes a form of a page at a level, or at a higher one where there is none so short.

        `said` are words that were handed in about it.
        """
        managed = self.state.pages[page]
        full = managed.forms[0]
        assert full is not None, "every page has its full content"
        below = [
            Form(self.forms.of(form.position), form.method)
            for form in managed.forms[1:level]
            if form is not None and form.method is not None
        ]
        content = self.forms.of(full.position)
        made = self.shorter.of(managed, self.spoken.known.get(page), content, level, below, spoken)
        form = self.masked(made.content)
        return Compress(
            page, managed.version, made.level, made.method, int(made.lossy), self.cell(form), len(form), made.tokens
        )

    def _write(self, mutation: AnyMutation) -> int:
        position = self.batch.take(mutation)
        self.spoken.apply(position, mutation)
        self.written.append(mutation)
        if isinstance(mutation, _WITH_CONTENT) and mutation.content is not None:
            self.forms.note(position, self._contents[mutation.content])
        return position

    def _perform(self, request: Compression) -> Compress:
        return self.shorten(request.page, Level(request.level))


class Block:
    """Acts of one thread that are written at once; `broken` where one failed half-way."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.batch: Batch | None = None
        self.at = 0
        self.broken = False


class Runtime:
    """A live session, ready to act, or one that looks at its `past` alone, which the views hold already.

    Not for two threads at a time: the store's lock sees to that.
    """

    def __init__(
        self,
        engine: Engine,
        lane: Branch,
        shorter: FormMaker | None = None,
        finder: ClaimFinder | None = None,
        *,
        past: bool = False,
        snapshot: Snapshot | None = None,
    ) -> None:
        self._engine = engine
        self._lane = lane
        self.shorter = shorter or FormMaker()
        self.finder = finder or ClaimFinder()
        self.forms = ContentCache(engine, lane, past=past)
        self._snapshot = snapshot
        self._block: Block | None = None
        self._erasure = -1  # the store's last one that what was folded takes into account
        self._source: SessionLog | Act | None = None
        self._fresh = False  # whether all is being read, knowing what was erased
        self.forget()

    @property
    def session(self) -> int:
        """The session's key in the log."""
        return self._lane.session

    def forget(self) -> None:
        """Forgets what was folded; the next act reads the log again."""
        self.state = State(self._read)
        self.spoken = Transcript(self._read)
        self.metrics = Metrics(self._about)
        self.index = RecallIndex()
        self.uses = UseDetector(self.state, self.spoken, self.forms)
        self.memo = Memo()
        self._topics: TopicLedger | None = None
        self.forms.forget()

    def ledger(self) -> TopicLedger:
        """The ledger of topics and tags of the turns, as it was last brought up to date."""
        if self._topics is None or self._topics.state is not self.state or self._topics.spoken is not self.spoken:
            self._topics = TopicLedger(self.state, self.spoken)
        return self._topics

    def leaves(self, choice: Selection | None = None) -> PromptPages:
        """The prompt as it is when it is asked, or what was chosen of it."""
        return PromptPages(self.state, self.spoken, self.forms, choice)

    def note(self, position: int, mutation: AnyMutation) -> None:
        """Counts a mutation that was just folded."""
        self.metrics.note(self.state, position, mutation)

    def current(self) -> State:
        """The state at the log's end."""
        if self._block is not None and self._block.batch is not None:
            return self.state  # what was done within is not in the log yet
        head = self._engine.head(self._lane.session)
        if head.position != self.state.position:
            self._engine.follow()
            if self._snapshot is not None and not self.state.position:
                self._resume(self._snapshot)
            self._fold(NEVER)
            self._erasure = self._engine.projection.last_erasure
            self.keep()
        return self.state

    def _resume(self, snapshot: Snapshot) -> None:
        """Resumes from the snapshot, where it is one of this log as it is now."""
        found = snapshot.read(self._engine.projection.last_erasure)
        if found is None:
            return
        try:
            if hash_at(self._engine.log, self._lane, found.position) == found.hash:
                folded = FoldedSession(self.state, self.spoken, self.metrics, self.index)
                unfold(found.written, folded)
                snapshot.work = folded.work
        except (ValueError, LookupError, TypeError, AttributeError, msgspec.MsgspecError):
            self.forget()  # it is of something else, or damaged: the log has it all

    def keep(self) -> None:
        """Leaves a snapshot, where much was folded since the last one; none of what was erased by then."""
        snapshot, position = self._snapshot, self.state.position
        folded = FoldedSession(self.state, self.spoken, self.metrics, self.index)
        if snapshot is None or folded.work - snapshot.work < EVERY:
            return
        self._engine.follow()
        if self._engine.projection.last_erasure == self._erasure:
            stands = hash_at(self._engine.log, self._lane, position)
            snapshot.write(position, stands, self._erasure, folded)
            self._engine.follow()
            if self._engine.projection.last_erasure != self._erasure:  # its own look for files may have been before
                snapshot.remove()

    def stand(self, position: int) -> State:
        """The state as it stood at a position; asked for in order, each commit is read once."""
        if self.state.position > position:
            self.forget()
        if self.state.position < position:
            self._fold(position)
        return self.state

    def _fold(self, upto: int) -> None:
        """Folds what the log holds after the state, up to a position."""
        facts = SessionLog(self._engine.log, self._lane)
        self._source = facts
        try:
            for commit in facts.after(self.state.position, upto):
                if any(map(_erases, commit.mutations)) and not self._fresh:
                    return self._anew(upto)
                self.metrics.begin(commit.at)
                for position, mutation in commit.mutations:
                    self.state.apply(position, mutation)
                    self.note(position, mutation)
                    self.spoken.apply(position, mutation)
        except BaseException:
            self.forget()  # half of a mutation may be folded
            raise
        return None

    def _anew(self, upto: int) -> None:
        """Reads all of the log again: something was erased, and nothing of it is to stay in memory."""
        self.forget()
        self._fresh = True
        try:
            self._fold(upto)
        finally:
            self._fresh = False

    def act(self, do: Callable[[Act], T], at: int, commit: Callable[[Batch], object] | None = None) -> T:
        """Does something to the session and lets the kernel react, as one durable commit; what it answers.

        `commit` writes the closed batch, by default by itself.
        Within a block of `together` it is one all the same, durable when the block ends.
        """
        block = self._block
        if block is not None:
            return self._within(block, do, at)
        batch = self._batch()
        self.forms.hold()
        try:
            answer = self._do(batch, do, at)
            if not batch.empty:
                _written(batch, at, commit)
        except BaseException:
            if not batch.empty:
                self.forget()
            raise
        finally:
            self.forms.release()
        return answer

    def _batch(self) -> Batch:
        """A batch that begins at the position of the state."""
        batch = self._engine.batch(self._lane.session)
        if batch.head.position != self.state.position:
            self.current()
            batch = self._engine.batch(self._lane.session)
            if batch.head.position != self.state.position:
                raise OvertakenError("the session moved on while it was read; read it and decide again")
        return batch

    def _do(self, batch: Batch, do: Callable[[Act], T], at: int) -> T:
        act = self._source = Act(self, batch, at)
        self.metrics.begin(at)
        self.shorter.begin()
        answer = do(act)
        if not act.ended:
            act.react()
        return answer

    @property
    def in_block(self) -> bool:
        """Whether acts are gathered that are written at once."""
        return self._block is not None

    def begin(self) -> None:
        """Begins a block: acts of this thread are written at once when it ends, each a commit of its own."""
        if self._block is not None:
            raise RefusedError(
                "a turn of this session is under way already; end it, or act within it", code="turn-under-way"
            )
        self._block = Block()

    def end(self, commit: Callable[[Batch], object] | None = None) -> None:
        """Ends the block and writes what was done in it, durable; nothing where an act of it failed half-way."""
        block, self._block = self._block, None
        if block is None or block.batch is None:
            return
        try:
            if not block.broken and not block.batch.empty:
                _written(block.batch, block.at, commit)
        except BaseException:
            self.forget()
            raise
        finally:
            self.forms.release()

    def _within(self, block: Block, do: Callable[[Act], T], at: int) -> T:
        """Does something within a block."""
        if block.thread != threading.get_ident():
            raise RefusedError("another thread is within a turn of this session; wait until that ends")
        if block.broken:
            raise RefusedError(
                "an act of this turn failed half-way, so nothing of the turn is written; begin another",
                code="turn-failed",
            )
        if block.batch is None:
            block.batch = self._batch()
            self.forms.hold()
        before = block.batch.head.position
        try:
            answer = self._do(block.batch, do, at)
            block.batch.end(at)
        except BaseException:
            if block.batch.head.position != before:
                block.broken = True
                self.forget()
            raise
        block.at = at
        return answer

    def play(
        self,
        batch: Batch,
        acts: Iterable[tuple[int, Callable[[Act], object]]],
        tell: Callable[[int], None] | None = None,
    ) -> int:
        """Does many things on a new session's batch, each a commit of its own at its time; the last time.

        Nothing is written: the caller commits the batch, whole. `tell` hears how many were done.
        """
        at = 0
        self.forms.hold()
        for done, (at, do) in enumerate(acts, 1):
            act = self._source = Act(self, batch, at)
            self.metrics.begin(at)
            do(act)
            if not act.ended:
                act.react()
            batch.end(at)
            if tell is not None:
                tell(done)
        return at

    def _about(self, position: int, made: Create) -> bytes:
        return b"" if made.labels is None else tagged(self._read(position, made.labels))

    def _read(self, position: int, ref: CellRef) -> bytes:
        if isinstance(self._source, Act):
            return self._source.read(position, ref)
        assert self._source is not None, "something is folded where a cell is read"
        return self._source.cell(position, ref)


def _written(batch: Batch, at: int, commit: Callable[[Batch], object] | None) -> None:
    """Closes a batch and has it written."""
    if commit is None:
        batch.commit(at)
    else:
        batch.close(at)
        commit(batch)
