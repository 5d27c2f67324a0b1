"""A session as its users hold it: asks about any moment of it, forks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from vmstore.core.address import MOMENTS, page_name, parse
from vmstore.core.asof import AsOf, Call, Head, Position, one_moment
from vmstore.core.clock import within
from vmstore.core.page import LinkKind
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.namespace.page_rows import described, previews, relations
from vmstore.namespace.resolve import resolved
from vmstore.namespace.results import (
    Affinity,
    CallInfo,
    Diff,
    Event,
    Fault,
    Hit,
    Page,
    Recorded,
    Relation,
    Response,
    SessionInfo,
    TurnInfo,
    Version,
)
from vmstore.store.reads.annotations import Said, annotation, checked
from vmstore.store.reads.calls import calls_in, turns_in
from vmstore.store.reads.context import Context
from vmstore.store.reads.diff import diff
from vmstore.store.reads.history import history_of
from vmstore.store.reads.page_query import Wanted, chosen, faults_of
from vmstore.store.reads.search import search
from vmstore.store.reads.versions import affinity_of, versions_of
from vmstore.views.branch import Lane
from vmstore.views.projectors.lineage import walk
from vmstore.views.reads.context import Sealed
from vmstore.views.reads.resolve_asof import Basis as Moment
from vmstore.views.reads.resolve_asof import basis, begin_of, end_of, packed
from vmstore.views.stored_cells import open_cell, read_cells

if TYPE_CHECKING:
    from vmstore.replay.check import Checked
    from vmstore.replay.whatif import Run
    from vmstore.seals.seal import Seal
    from vmstore.store.reads.proofs import Proof
    from vmstore.store.recorder import Recording

# What a live session can do besides; see `vmstore.store.live.live_session`.
ACTS = (
    "user", "assistant", "tool", "attach", "claim", "page_fault", "pack", "run", "developer_message", "pin", "unpin",
    "evict", "compress", "cite", "recall", "mark", "restore", "segment", "configure", "settings", "stream", "keep",
    "kept", "values", "checkpoint", "checkpoints", "rewind", "child", "children", "join",
    "update", "link", "unlink", "delete", "flush",
)  # fmt: skip


class Session:
    """One session of a store. Questions take a moment: `at=`, or `turn=`, `call=`, `position=`, `time=`."""

    def __init__(self, namespace: Namespace, recording: Callable[[], Recording], key: int, name: str) -> None:
        self._ns = namespace
        self._recording = recording
        self._key = key
        self._sees: Lane | None = None
        self.name = name

    def __repr__(self) -> str:
        return f"<Session {self.name!r}>"

    if not TYPE_CHECKING:  # a checker tells the two kinds of sessions apart by their types

        def __getattr__(self, name: str) -> Any:
            """Says what to do where a recorded session is told what only a live one can do."""
            remedy = ""
            if name in ACTS:
                remedy = f"; {self.name!r} was recorded: store.redrive says it again to one that has"
            raise AttributeError(f"a recorded session has no {name!r}{remedy}")

    def _lane(self) -> Lane:
        """What the session sees, which is settled where it begins."""
        if self._sees is None or self._sees.db is not self._ns.views:  # a forked process has views of its own
            self._sees = Lane(self._ns.views, self._key)
        return self._sees

    # ---- asking

    def info(self) -> SessionInfo:
        """The session's counts and origin."""
        with self._ns.asking():
            return self._ns.session_info(self._key)

    def context(self, at: AsOf | None = None, **moment: Any) -> Context:
        """What the model saw at a call; at the last one where no moment is given."""
        with self._ns.asking():
            lane = self._lane()
            return Context(self._ns, lane, self.name, packed(lane, one_moment(at, moment)))

    def pages(
        self,
        at: AsOf | None = None,
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
        **moment: Any,
    ) -> list[Page]:
        """Every page there was at a moment, those out of context included, or those that are wanted.

        `dirty` pages were made from one that changed since; `actor` made them (see `Page`). Since a
        moment is after it; entered is into the context, or anew at another level. `order_by` is
        position, or importance, tokens or recency (when they last entered), greatest first. `limit`
        gives that many, `after` goes on after the last page of an answer about the same moment.
        """
        wanted = Wanted(
            type, role, modality, tier, level, tag, actor, importance_min, dirty, created_since, entered_since,
            order_by, limit,
        )  # fmt: skip
        with self._ns.asking():
            lane = self._lane()
            when = basis(lane, one_moment(at, moment))
            last = None if after is None else self._resolve(lane, after, Position(when.position))[0]
            return described(lane, when.position, [one.page for one in chosen(lane, when.position, wanted, last)])

    def faults(self, at: AsOf | None = None, **moment: Any) -> list[Fault]:
        """Every time a page was asked for up to a moment; without a kernel, every time one came back to the context."""
        with self._ns.asking():
            lane = self._lane()
            return faults_of(lane, basis(lane, one_moment(at, moment)).position)

    def page(self, reference: str | int, at: AsOf | None = None, **moment: Any) -> Page:
        """One page as it stood at a moment; the reference may carry it: `p17@turn:3`."""
        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, reference, one_moment(at, moment))
            return described(lane, when.position, [number])[0]

    def versions(self, page: str | int, at: AsOf | None = None, *, delta: bool = False, **moment: Any) -> list[Version]:
        """Every content a page was given, up to a moment, in order; with `delta` what changed as a unified diff."""
        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, page, one_moment(at, moment))
            return versions_of(lane, self._ns.log, number, when.position, delta=delta)

    def affinity(
        self, page: str | int, at: AsOf | None = None, *, limit: int | None = 20, **moment: Any
    ) -> list[Affinity]:
        """The pages that were in the context together with a page, those it shared most calls with first.

        Costs one pass over all stays of the session up to the moment.
        """
        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, page, one_moment(at, moment))
            return affinity_of(lane, self._ns.log, number, when.position, limit)

    def content(
        self, reference: str | int, at: AsOf | None = None, *, level: int | None = None, **moment: Any
    ) -> bytes:
        """A page's exact bytes: at level 0 as they were accepted, else as that level showed them."""
        with self._ns.asking():
            cell, commitment = self._sealed(reference, at, level, moment)
            return read_cells(self._ns.log, self._ns.views, {cell: commitment})[cell]

    def open(
        self, reference: str | int, at: AsOf | None = None, *, level: int | None = None, **moment: Any
    ) -> BinaryIO:
        """A page's exact bytes as a file to read and seek in; close it, or use it in a `with`.

        A content over 64 KiB is read from its file in pieces: once through to check it, then as asked.
        """
        with self._ns.asking():
            cell, commitment = self._sealed(reference, at, level, moment)
            return open_cell(self._ns.log, self._ns.views, cell, commitment)

    def _sealed(self, reference: str | int, at: AsOf | None, level: int | None, moment: dict[str, Any]) -> Sealed:
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
            raise UnknownError(f"{page_name(number)} has no content at level {level}; level 0 always has")
        _, _, cell, commitment = max(rows)
        if cell is None:
            raise UnknownError(f"{page_name(number)} is opaque: its source never held its content")
        return Sealed(cell, commitment)

    def history(self, page: str | int, at: AsOf | None = None, **moment: Any) -> list[Event]:
        """What happened to a page: made, changed, linked, used, entered, left, and what was decided about it."""
        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, page, one_moment(at, moment))
            return history_of(lane, number, when.position)

    def sources(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[Relation]:
        """Where a page comes from: the links walked towards its sources."""
        return self._walk(page, depth, kinds, up=True)

    def derived(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[Relation]:
        """What came of a page: the links walked towards what was made from it."""
        return self._walk(page, depth, kinds, up=False)

    def _walk(self, page: str | int, depth: int | None, kinds: Iterable[str] | None, *, up: bool) -> list[Relation]:
        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, page, Head())
            if depth is not None and (type(depth) is not int or depth < 1):
                raise InputError(f"depth {depth!r} is no number of steps from 1 up")
            wanted = None if kinds is None else [_kind(word) for word in kinds]
            edges = walk(lane, number, when.position, up=up, depth=depth, kinds=wanted)
            return relations(lane, self._ns.log, edges, when.position, up=up)

    def search(self, query: str, at: AsOf | None = None, *, limit: int | None = 10, **moment: Any) -> list[Hit]:
        """The pages that hold words of a query at a moment, best first by BM25, in context or not."""
        with self._ns.asking():
            lane = self._lane()
            return search(self._ns, [(self.name, lane, basis(lane, one_moment(at, moment)).position)], query, limit)

    def diff(self, before: AsOf, after: AsOf) -> Diff:
        """What changed between the contexts of two moments: `diff(Call(40), Call(42))`."""
        with self._ns.asking():
            first, second = self.context(before), self.context(after)
            lane = self._lane()
            return diff(first, second, previews(lane, self._ns.log, {*first.page_ids, *second.page_ids}))

    def prove(self, page: str | int | None = None, *, call: int, seal: Seal | None = None) -> Proof:
        """The proof that a page was in the context of a call, as a seal covers it, or the oldest one kept that does.

        Without a page it is of what a live session's call was sent.
        """
        from vmstore.store.reads.proofs import proof_of, proof_of_request

        with self._ns.asking():
            lane, when = self._lane(), Call(call)
            if page is None:
                return proof_of_request(self._ns, lane, packed(lane, when), seal)
            return proof_of(self._ns, lane, self._resolve(lane, page, when)[0], packed(lane, when), seal)

    def messages(self, at: AsOf | None = None, **moment: Any) -> list[Any]:
        """The chat messages of a call's request."""
        return self.context(at, **moment).messages()

    def request(self, at: AsOf | None = None, **moment: Any) -> dict[str, Any]:
        """A recorded call's request, equal in every field to what was sent."""
        return self.context(at, **moment).request()

    def response(self, at: AsOf | None = None, **moment: Any) -> Response:
        """What came back for a call: its body equal in every field to what was handed in, or what is known of it."""
        from vmstore.store.reads.responses import response_of

        with self._ns.asking():
            lane = self._lane()
            return response_of(self._ns.log, lane, packed(lane, one_moment(at, moment)))

    def turns(self) -> list[TurnInfo]:
        """The turns in order, with the calls each made, and its faults and evictions."""
        with self._ns.asking():
            return turns_in(self._lane())

    def calls(self) -> list[CallInfo]:
        """The calls in order, with what each cost of the provider's cache."""
        with self._ns.asking():
            return calls_in(self._lane(), self._ns.log)

    # ---- writing

    def record(
        self,
        request: dict[str, Any],
        response: Any = None,
        *,
        at: int | None = None,
        latency: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
    ) -> Recorded:
        """Records a call of this session; see `Store.record`."""
        return self._recording().record(
            self.name, request, response, at=at, latency=latency, cost=cost, request_id=request_id
        )

    @contextmanager
    def batch(self, *, at: int | None = None) -> Iterator[Batch]:
        """Mutations of one's own as one commit, `at` microseconds since 1970: the store as a storage backend.

        Each is checked as it is added, RefusedError names the rule it breaks. All are durable when
        the block ends, and none is written where it raises. OvertakenError where another process
        wrote to the session meanwhile: decide again.
        """
        with self._ns.lock:
            told = within("at", at)
            happened = self._ns.clock.now() if told is None else told
            batch = self._ns.engine.batch_by_hand(self._key)
            try:
                yield batch
                if not batch.spent and not batch.empty:
                    batch.commit(happened)
            finally:
                batch.spend("ended with its block")

    def annotate(
        self,
        page: str | int,
        *,
        importance: float | None = None,
        status: str | None = None,
        valid_from: int | None = None,
        valid_to: int | None = None,
        tags: Iterable[str] = (),
        untags: Iterable[str] = (),
        anchors: Mapping[str, str | None] | None = None,
        at: int | None = None,
    ) -> Page:
        """Says what is known of a page from here on; the page as it stands then. What is left out stays.

        `importance` is a share from 0 to 1; `status` active, planned, completed, abandoned,
        recurring or superseded; the validity, of what the page says, in microseconds since 1970, as `at` is. `tags`
        are added, `untags` taken away; `anchors` are values by name, None takes a name away.
        """
        said = checked(Said(importance, status, valid_from, valid_to, tags, untags, anchors))
        with self._ns.lock:
            told = within("at", at)
            if isinstance(page, str) and any(getattr(parse(page), word) is not None for word in MOMENTS):
                raise InputError(f"{page} names a moment, and what is said holds from now on; leave the moment out")
            with self._ns.asking():
                number, _ = self._resolve(self._lane(), page, Head())

            def write() -> None:
                batch = self._ns.engine.batch(self._key)
                batch.add(annotation(batch, number, said))
                batch.commit(self._ns.clock.now() if told is None else told)

            self._ns.retried(write)
            return self.page(number)

    def close(self, status: str = "completed", reason: str | None = None, *, at: int | None = None) -> SessionInfo:
        """Says that the session ended, `completed` or `abandoned`, and why; how it stands then.

        What is said in it later takes it up again.
        """
        from vmstore.store.close import close

        with self._ns.lock:
            happened = within("at", at)
            self._ns.retried(lambda: close(self._ns, self._key, status, reason, happened))
            return self.info()

    def fork(self, name: str, at: AsOf | None = None, **moment: Any) -> Session:
        """A new session that shares this one's past up to a moment, and nothing after."""
        with self._ns.lock:
            with self._ns.asking():
                position = basis(self._lane(), one_moment(at, moment)).position
            now, child = self._ns.clock.now(), session_name(name)
            key = self._ns.retried(lambda: self._ns.engine.fork(self._key, position, child, now))
            self._ns.follow()
            return Session(self._ns, self._recording, key, name)

    # ---- what if

    def replay(
        self, *, policy: str | None = None, budget: int | None = None, keep: str | None = None, **settings: Any
    ) -> Run:
        """Decides a live session again, given the same references; without other settings the run as it was recorded.

        `keep` stores it as a session of that name, which writes all contents again (specs/replay.md).
        """
        from vmstore.store.replay import replayed

        return replayed(self._ns, self._key, self.name, policy, budget, settings, keep)

    def check(self) -> Checked:
        """Decides a live session again under its own settings and compares every decision with the recorded one."""
        from vmstore.store.replay import checked

        return checked(self._ns, self._key, self.name)

    # ---- references

    def position_of(self, page: str | int) -> int:
        """The position that made a page, which its name says; raises UnknownError naming the nearest."""
        with self._ns.asking():
            return self._resolve(self._lane(), page, Head())[0]

    def moment_of(self, page: str | int, *, before: bool = False) -> Position:
        """The moment right after a page came to be, or right before: where a fork can begin."""
        with self._ns.asking():
            lane = self._lane()
            number, _ = self._resolve(lane, page, Head())
            return Position(begin_of(lane, number) - 1 if before else end_of(lane, number))

    def _resolve(self, lane: Lane, reference: str | int, when: AsOf) -> tuple[int, Moment]:
        """The page a reference names, and the moment it is asked of."""
        return resolved(self._ns, lane, self.name, reference, when)


def _kind(word: str) -> int:
    kind = LinkKind.of(word)
    if kind is None:
        words = ", ".join(k.word for k in LinkKind)
        raise UnknownError(f"there is no kind of link {word!r}; the kinds are {words}")
    return int(kind)


_VERSIONS = "SELECT position, level, cell, commitment FROM versions WHERE session = ? AND page = ? AND position <= ?"
