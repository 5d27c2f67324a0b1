"""A session as its users hold it: asks about any moment of it, forks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Unpack

from vmstore.core.address import MOMENTS, page_name, parse
from vmstore.core.aliases import Aliased, old_keywords_of_methods
from vmstore.core.asof import AsOf, Call, Head, Moment, Position, When, one_moment
from vmstore.core.clock import within
from vmstore.core.decision import Recaller
from vmstore.core.page import Origin, PageType
from vmstore.errors import InputError, UnknownError
from vmstore.log.commit import Commit
from vmstore.namespace.group_commit import WriteDecision
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.namespace.resolve import resolved
from vmstore.namespace.results import (
    CallInfo,
    Diff,
    Hits,
    Page,
    RecordedCall,
    SessionInfo,
    TurnInfo,
)
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.redactions import barred_files
from vmstore.views.reads.context import SealedCell
from vmstore.views.reads.page_lines import page_lines
from vmstore.views.reads.resolve_asof import ResolvedMoment, basis, packed
from vmstore.views.stored_cells import open_cell, read_cells

if TYPE_CHECKING:
    from vmstore.capture.facts import FactAnswer
    from vmstore.engine.batch import Batch, HandBatch
    from vmstore.facts.addition import Addition
    from vmstore.seals.seal import Seal
    from vmstore.store.debug import Debug
    from vmstore.store.lineage import Lineage
    from vmstore.store.reads.context import Context
    from vmstore.store.reads.proofs import Proof
    from vmstore.store.recall.memory import SessionMemory
    from vmstore.store.recorder import CallRecorder
    from vmstore.store.wire import Wire
    from vmstore.store.work.session_work import SessionWork
    from vmstore.views.reads.spoken_turns import SpokenMessage

# What a live session can do besides; see `vmstore.store.live.live_session`.
ACTS = (
    "user", "assistant", "tool", "attach", "claim", "page_fault", "pack", "run", "developer_message", "pin", "unpin",
    "evict", "compress", "cite", "recall", "mark", "restore", "segment", "configure", "settings", "stream", "keep",
    "kept", "values", "checkpoint", "checkpoints", "rewind", "child", "children", "join",
    "update", "link", "unlink", "delete", "flush",
)  # fmt: skip


@old_keywords_of_methods(at="at_us", latency="latency_us", valid_from="valid_from_us", valid_to="valid_to_us")
class Session(Aliased):
    """One session of a store. Questions take a moment: `at=`, or `turn=`, `call=`, `position=`, `time=`."""

    _aliases: ClassVar[Mapping[str, str]] = {
        "open": "open_content",
        "prove": "_prove|Store.trust.prove, which takes the session",
        "history": "lineage.history",
        "versions": "lineage.versions",
        "affinity": "lineage.affinity",
        "sources": "lineage.ancestors",
        "derived": "lineage.descendants",
        "position_of": "lineage.position_of",
        "moment_of": "lineage.moment_of",
        "messages": "wire.messages",
        "request": "wire.request",
        "response": "wire.response",
        "faults": "debug.faults",
        "replay": "debug.replay",
        "check": "debug.check",
    }

    def __init__(self, namespace: Namespace, recording: Callable[[], CallRecorder], key: int, name: str) -> None:
        self._ns = namespace
        self._recording = recording
        self._key = key
        self._sees: Branch | None = None
        self.name = name

    def __repr__(self) -> str:
        return f"<Session {self.name!r}>"

    def _lacking(self, name: str) -> str:
        """The remedy where a recorded session is asked for a live one's method."""
        remedy = f"; {self.name!r} was recorded: store.admin.redrive copies it into a live one" if name in ACTS else ""
        return f"a recorded session has no {name!r}{remedy}"

    @property
    def lineage(self) -> Lineage:
        """Sources and dependents of single pages: ancestors, descendants, history, versions."""
        from vmstore.store.lineage import Lineage

        return Lineage(self)

    @property
    def wire(self) -> Wire:
        """Requests and responses of each call: messages, request, response."""
        from vmstore.store.wire import Wire

        return Wire(self)

    @property
    def memory(self) -> SessionMemory:
        """The memory of the session, by words, by time and as a whole, within a token budget."""
        from vmstore.store.recall.memory import SessionMemory

        return SessionMemory(self)

    @property
    def work(self) -> SessionWork:
        """The work of the agent: how its tools ran, what it is warned of, what it learned."""
        from vmstore.store.work.session_work import SessionWork

        return SessionWork(self)

    @property
    def debug(self) -> Debug:
        """Diagnosis of the memory: faults, the first moment a predicate holds, replays under other settings."""
        from vmstore.store.debug import Debug

        return Debug(self)

    def _searched(
        self,
        recaller: Recaller,
        query: str,
        pages: Sequence[int],
        total: int,
        tokens: int,
        scores: Sequence[float] = (),
    ) -> None:
        """Takes what was recalled; a recorded session logs nothing of who looks at it."""

    def _add_facts(
        self, added: Sequence[Addition], at: int | None = None, answer: FactAnswer | None = None
    ) -> list[int]:
        """Writes facts, and what a model answered from which they came; their pages."""
        from vmstore.store.recall.fact_reads import write_recorded

        return write_recorded(self._ns, self._key, self.name, added, at, answer)

    def _zone(self) -> str:
        """The time zone of its days; a session that manages its memory has it as a setting."""
        return "UTC"

    def _untold(self, pages: Sequence[int]) -> frozenset[int]:
        """Those of some pages that recall tells nobody: files that somebody denied, and what the memory itself said."""
        with self._ns.asking():
            lane = self._lane()
            own = frozenset(page for (page,) in lane.rows(_OF_MEMORY, pages))
            return own | barred_files(lane, NEVER, pages)

    def _spoken_values(self, spoken: Sequence[SpokenMessage], position: int) -> tuple[str, dict[int, list[Any]]]:
        """The values of some messages in the shape they were sent in, by message."""
        from vmstore.store.recall.assembly.assemble import recorded

        return recorded(self, spoken, position)

    def _lane(self) -> Branch:
        """The branch of the session, which is fixed when it begins."""
        if self._sees is None or self._sees.db is not self._ns.views:  # a forked process has views of its own
            self._sees = Branch(self._ns.views, self._key)
        return self._sees

    # ---- asking

    def info(self) -> SessionInfo:
        """The session's counts and origin."""
        with self._ns.asking():
            return self._ns.session_info(self._key)

    def context(self, at: When | None = None, **moment: Unpack[Moment]) -> Context:
        """The context of a call; of the last one where no moment is given."""
        from vmstore.store.reads.context import Context

        with self._ns.asking():
            lane = self._lane()
            return Context(self._ns, lane, self.name, packed(lane, one_moment(at, moment)))

    def pages(
        self,
        at: When | None = None,
        *,
        type: str | None = None,
        role: str | None = None,
        modality: str | None = None,
        tier: int | str | None = None,
        level: int | None = None,
        tag: str | None = None,
        actor: str | None = None,
        importance_min: float | None = None,
        dirty: bool | None = None,
        created_since: AsOf | None = None,
        entered_since: AsOf | None = None,
        order_by: str = "position",
        limit: int | None = None,
        after: str | int | None = None,
        **moment: Unpack[Moment],
    ) -> list[Page]:
        """Every page there was at a moment, those out of context included, or those that are wanted.

        `dirty` pages were made from one that changed since; `actor` made them. Since a
        moment is after it; entered is into the context, or into another level. `order_by` is
        position, or importance, tokens or recency (when they last entered), greatest first. `limit`
        gives that many, `after` continues after the last page of an answer about the same moment.
        """
        from vmstore.namespace.page_rows import described
        from vmstore.store.reads.page_query import PageQuery, chosen

        wanted = PageQuery(
            type, role, modality, tier, level, tag, actor, importance_min, dirty, created_since, entered_since,
            order_by, limit,
        )  # fmt: skip
        with self._ns.asking():
            lane = self._lane()
            when = basis(lane, one_moment(at, moment))
            last = None if after is None else self._resolve(lane, after, Position(when.position))[0]
            return described(lane, when.position, [number.page for number in chosen(lane, when.position, wanted, last)])

    def page(self, reference: str | int, at: When | None = None, **moment: Unpack[Moment]) -> Page:
        """One page as it stood at a moment; the reference may carry it: `p17@turn:3`."""
        from vmstore.namespace.page_rows import described

        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, reference, one_moment(at, moment))
            return described(lane, when.position, [number])[0]

    def content(
        self, reference: str | int, at: When | None = None, *, level: int | None = None, **moment: Unpack[Moment]
    ) -> bytes:
        """A page's exact bytes: at level 0 as they were accepted, else as that level showed them."""
        with self._ns.asking():
            cell, commitment = self._sealed(reference, at, level, moment)
            return read_cells(self._ns.log, self._ns.views, {cell: commitment})[cell]

    def open_content(
        self, reference: str | int, at: When | None = None, *, level: int | None = None, **moment: Unpack[Moment]
    ) -> BinaryIO:
        """A page's exact bytes as a file to read and seek in; close it, or use it in a `with`.

        A content over 64 KiB is read from its file in pieces: once through to check it, then as asked.
        """
        with self._ns.asking():
            cell, commitment = self._sealed(reference, at, level, moment)
            return open_cell(self._ns.log, self._ns.views, cell, commitment)

    def _sealed(self, reference: str | int, at: When | None, level: int | None, moment: Moment) -> SealedCell:
        """The cell of a page's content at a moment and a level."""
        lane = self._lane()
        if level is None and isinstance(reference, str):
            level = parse(reference).level
        number, when = self._resolve(lane, reference, one_moment(at, moment))
        rows = [
            row
            for stretch in lane.upto(when.position)
            for row in lane.db.execute(_VERSIONS, (stretch.session, number, stretch.high))
            if row[1] == (level or 0)
        ]
        if not rows:
            raise UnknownError(
                f"{page_name(number)} has no content at level {level}; level 0 always has", code="no-such-level"
            )
        _, _, cell, commitment = max(rows)
        if cell is None:
            raise UnknownError(f"{page_name(number)} is opaque: its source never held its content", code="opaque")
        return SealedCell(cell, commitment)

    def search(
        self, query: str, at: When | None = None, *, limit: int | None = 10, score: str | None = None,
        explain: bool = False, **moment: Unpack[Moment],
    ) -> Hits:  # fmt: skip
        """The pages that answer a query at a moment, best first, in context or not.

        By `score@5`, and where the store has an embedder by closeness too; by another `score` where one is named. If
        `explain`, each hit says what its score is made of, and the answer what was looked for among how many texts.
        """
        from vmstore.store.reads.search import question_of, search

        question = question_of(self._ns, query)
        with self._ns.asking():
            lane = self._lane()
            moments = [(self.name, lane, basis(lane, one_moment(at, moment)).position)]
            return search(self._ns, moments, query, limit, question, score, explain)

    def diff(self, before: When, after: When) -> Diff:
        """Changes between the contexts of two moments: `diff(Call(40), Call(42))`."""
        from vmstore.store.reads.diff import diff

        with self._ns.asking():
            first, second = self.context(before), self.context(after)
            lane = self._lane()
            return diff(first, second, page_lines(lane, self._ns.log, {*first.page_ids, *second.page_ids}))

    def _prove(self, page: str | int | None = None, *, call: int, seal: Seal | None = None) -> Proof:
        """The proof that a page was in the context of a call, as a seal covers it, or the oldest one kept that does.

        Without a page it is of what a live session's call was sent.
        """
        from vmstore.store.reads.proofs import proof_of, proof_of_request

        with self._ns.asking():
            lane, when = self._lane(), Call(call)
            if page is None:
                return proof_of_request(self._ns, lane, packed(lane, when), seal)
            return proof_of(self._ns, lane, self._resolve(lane, page, when)[0], packed(lane, when), seal)

    def turns(self) -> list[TurnInfo]:
        """The turns in order, with the calls each made, and its faults and evictions."""
        from vmstore.store.reads.calls import turns_in

        with self._ns.asking():
            return turns_in(self._lane(), self._ns.clock.now())

    def calls(self) -> list[CallInfo]:
        """The calls in order, with what each cost of the provider's cache."""
        from vmstore.store.reads.calls import calls_in

        with self._ns.asking():
            return calls_in(self._lane(), self._ns.log, self._ns.price_list)

    # ---- writing

    def record(
        self,
        request: dict[str, Any],
        response: Any = None,
        *,
        at_us: int | None = None,
        latency_us: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
    ) -> RecordedCall:
        """Records a call of this session: the request as it was sent, the answer as it came.

        `response` is the provider's, a list of its stream's parts, an exception, or None where the call was
        aborted. `at_us` is in microseconds since 1970 (default now), `latency_us` in microseconds, `cost` in
        dollars. The same `request_id` again returns the first answer.
        """
        return self._recording().record(
            self.name, request, response, at=at_us, latency=latency_us, cost=cost, request_id=request_id
        )

    @contextmanager
    def batch(self, *, at_us: int | None = None) -> Iterator[HandBatch]:
        """Mutations of one's own as one commit, `at_us` microseconds since 1970: the store as a storage backend.

        Each is checked as it is added, RefusedError names the rule it breaks. All are durable when
        the block ends, and none is written where it raises. OvertakenError where another process
        wrote to the session meanwhile: decide again.
        """
        from vmstore.engine.batch import HandBatch

        with self._ns.lock:
            at = within("at", at_us)
            happened = self._ns.clock.now() if at is None else at
            batch = self._ns.engine.batch_by_hand(self._key)
            try:
                yield HandBatch(batch)
                if not batch.spent and not batch.empty:
                    batch.close(happened)
                    self._ns.group_commit.commit(self.name, batch)
            finally:
                batch.spend("ended with its block")

    def annotate(
        self,
        page: str | int,
        *,
        importance: float | None = None,
        status: str | None = None,
        valid_from_us: int | None = None,
        valid_to_us: int | None = None,
        tags: Iterable[str] = (),
        untags: Iterable[str] = (),
        anchors: Mapping[str, str | None] | None = None,
        at_us: int | None = None,
    ) -> Page:
        """Says what is known of a page from here on; the page as it stands then. What is left out stays.

        `importance` is a share from 0 to 1; `status` active, planned, completed, abandoned,
        recurring or superseded; the validity, of what the page says, in microseconds since 1970, as `at_us` is. `tags`
        are added, `untags` taken away; `anchors` are values by name, None takes a name away.
        """
        from vmstore.store.reads.annotations import PageAnnotation, annotation, checked

        said = checked(PageAnnotation(importance, status, valid_from_us, valid_to_us, tags, untags, anchors))
        at = within("at", at_us)
        if isinstance(page, str) and any(getattr(parse(page), word) is not None for word in MOMENTS):
            raise InputError(f"{page} names a moment, and an annotation holds from now on; leave the moment out")
        engine, number = self._ns.engine, 0

        def read() -> None:
            nonlocal number
            with self._ns.asking():
                number, _ = self._resolve(self._lane(), page, Head())

        def decide() -> Batch:
            batch = engine.batch(self._key)
            batch.add(annotation(batch, number, said))
            batch.close(self._ns.clock.now() if at is None else at)
            return batch

        self._ns.group_commit.write(self.name, WriteDecision(decide, lambda commits: None, read))
        return self.page(number)

    def close(self, status: str = "completed", reason: str | None = None, *, at_us: int | None = None) -> SessionInfo:
        """Says that the session ended, `completed` or `abandoned`, and why; how it stands then.

        A later message takes it up again.
        """
        from vmstore.store.close import close

        with self._ns.lock:
            happened = within("at", at_us)
            self._ns.retried(lambda: close(self._ns, self._key, status, reason, happened))
            return self.info()

    def fork(self, name: str, at: When | None = None, **moment: Unpack[Moment]) -> Session:
        """A new session that shares this one's past up to a moment, and nothing after."""
        from vmstore.engine.head import NewSession

        engine, child, when, position = self._ns.engine, session_name(name), one_moment(at, moment), 0

        def read() -> None:
            nonlocal position
            with self._ns.asking():
                position = basis(self._lane(), when).position

        def decide() -> Batch:
            now = self._ns.clock.now()
            opening = NewSession(child, origin=Origin.FORK, parent=self._key, parent_position=position)
            batch = engine.begin(opening, now)
            batch.close(now)
            return batch

        def done(commits: list[Commit]) -> int:
            self._ns.follow()
            return commits[-1].session

        key = self._ns.group_commit.write(child, WriteDecision(decide, done, read))
        return Session(self._ns, self._recording, key, name)

    # ---- references

    def _resolve(self, lane: Branch, reference: str | int, when: AsOf) -> tuple[int, ResolvedMoment]:
        """The page a reference names, and the moment it is asked of."""
        return resolved(self._ns, lane, self.name, reference, when)


_VERSIONS = "SELECT position, level, cell, commitment FROM versions WHERE session = ? AND page = ? AND position <= ?"


_OF_MEMORY = f"""SELECT page FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))
  AND type = {int(PageType.INDEX)}"""
