"""A session as its users hold it: asks about any moment of it, forks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from vmstore.capture.skeleton import loads
from vmstore.core.asof import AsOf, Head, as_of
from vmstore.core.page import Fidelity, LinkKind, Status
from vmstore.core.reference import Reference, page_name, page_position, parse
from vmstore.engine.gate import Batch
from vmstore.errors import InputError, UnknownError
from vmstore.store.answers import (
    CallInfo,
    Diff,
    Event,
    Fault,
    Hit,
    Page,
    Recorded,
    Relation,
    SessionInfo,
    TurnInfo,
)
from vmstore.store.catalog import Wanted, chosen, faults_at
from vmstore.store.context import Context
from vmstore.store.diff import diff
from vmstore.store.namespace import Namespace, session_name
from vmstore.store.pages import history_of, pages_at, previews, relations
from vmstore.store.recording import Recording, within
from vmstore.store.searching import search
from vmstore.views.calls import CallRow, calls_of
from vmstore.views.context import Sealed, open_cell, read_cells
from vmstore.views.lane import Lane
from vmstore.views.lineage import walk
from vmstore.views.moment import Basis as Moment
from vmstore.views.moment import basis, packed


class Session:
    """One session of a store. Questions take a moment: `at=`, or `turn=`, `call=`, `position=`, `time=`."""

    def __init__(self, namespace: Namespace, recording: Recording, key: int, name: str) -> None:
        self._ns = namespace
        self._recording = recording
        self._key = key
        self._sees: Lane | None = None
        self.name = name

    def __repr__(self) -> str:
        return f"<Session {self.name!r}>"

    def _lane(self) -> Lane:
        """What the session sees, which is settled where it begins."""
        if self._sees is None:
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
            return Context(self._ns, lane, self.name, packed(lane, _moment(at, moment)))

    def pages(
        self,
        at: AsOf | None = None,
        *,
        type: str | None = None,
        role: str | None = None,
        modality: str | None = None,
        tier: int | str | None = None,
        importance_min: float | None = None,
        dirty: bool | None = None,
        order_by: str = "position",
        **moment: Any,
    ) -> list[Page]:
        """Every page there was at a moment, those out of context included, or those that are wanted.

        `dirty` pages were made from one that changed since. `order_by` is position, or importance,
        tokens or recency (when they last entered the context), greatest first.
        """
        wanted = Wanted(type, role, modality, tier, importance_min, dirty, order_by)
        with self._ns.asking():
            lane = self._lane()
            position = basis(lane, _moment(at, moment)).position
            return chosen(lane, position, pages_at(lane, position), wanted)

    def faults(self, at: AsOf | None = None, **moment: Any) -> list[Fault]:
        """Every time a page came back to the context after it had left, up to a moment."""
        with self._ns.asking():
            lane = self._lane()
            return faults_at(lane, basis(lane, _moment(at, moment)).position)

    def page(self, reference: str | int, at: AsOf | None = None, **moment: Any) -> Page:
        """One page as it stood at a moment; the reference may carry it: `p17@turn:3`."""
        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, reference, _moment(at, moment))
            return next(p for p in pages_at(lane, when.position) if p.position == number)

    def content(
        self, reference: str | int, at: AsOf | None = None, *, level: int | None = None, **moment: Any
    ) -> bytes:
        """A page's exact bytes: at level 0 as they were accepted, else as that level showed them."""
        with self._ns.asking():
            cell, commitment = self._sealed(reference, at, level, moment)
            return read_cells(self._ns.log, {cell: commitment})[cell]

    def open(
        self, reference: str | int, at: AsOf | None = None, *, level: int | None = None, **moment: Any
    ) -> BinaryIO:
        """A page's exact bytes as a file to read and seek in; close it, or use it in a `with`.

        A content over 64 KiB is read from its file in pieces: once through to check it, then as asked.
        """
        with self._ns.asking():
            cell, commitment = self._sealed(reference, at, level, moment)
            return open_cell(self._ns.log, cell, commitment)

    def _sealed(self, reference: str | int, at: AsOf | None, level: int | None, moment: dict[str, Any]) -> Sealed:
        """The cell of a page's content at a moment and a level."""
        lane = self._lane()
        if level is None and isinstance(reference, str):
            level = parse(reference).level
        number, when = self._resolve(lane, reference, _moment(at, moment))
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
        """What happened to a page: made, changed, entered, left, linked."""
        with self._ns.asking():
            lane = self._lane()
            number, when = self._resolve(lane, page, _moment(at, moment))
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
            return relations(lane, self._ns.log, edges, up=up)

    def search(self, query: str, at: AsOf | None = None, *, limit: int | None = 10, **moment: Any) -> list[Hit]:
        """The pages that hold words of a query at a moment, best first by BM25, in context or not."""
        with self._ns.asking():
            lane = self._lane()
            return search(self._ns, [(self.name, lane, basis(lane, _moment(at, moment)).position)], query, limit)

    def diff(self, before: AsOf, after: AsOf) -> Diff:
        """What changed between the contexts of two moments: `diff(Call(40), Call(42))`."""
        with self._ns.asking():
            first, second = self.context(before), self.context(after)
            lane = self._lane()
            return diff(first, second, previews(lane, self._ns.log, {*first.page_ids, *second.page_ids}))

    def messages(self, at: AsOf | None = None, **moment: Any) -> list[Any]:
        """The chat messages of a call's request."""
        return self.context(at, **moment).messages()

    def request(self, at: AsOf | None = None, **moment: Any) -> dict[str, Any]:
        """A recorded call's request, equal in every field to what was sent."""
        return self.context(at, **moment).request()

    def turns(self) -> list[TurnInfo]:
        """The turns in order, with how many calls each made."""
        with self._ns.asking():
            lane = self._lane()
            counts: dict[int, int] = {}
            for call in self.calls():
                counts[call.turn] = counts.get(call.turn, 0) + 1
            rows = [
                row
                for stretch in lane.stretches
                for row in lane.db.execute(
                    "SELECT turn, position, at FROM turns WHERE session = ? AND position <= ?",
                    (stretch.session, stretch.high),
                )
            ]
            return [TurnInfo(turn, position, at, counts.get(turn, 0)) for turn, position, at in sorted(rows)]

    def calls(self) -> list[CallInfo]:
        """The calls in order."""
        with self._ns.asking():
            lane = self._lane()
            rows = list(calls_of(lane))
            asides = read_cells(self._ns.log, {c.aside: c.aside_commitment for c in rows if c.aside is not None})
            return [_call(call, asides) for call in rows]

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
        with self._ns.lock:
            return self._recording.record(
                self.name, request, response, at=at, latency=latency, cost=cost, request_id=request_id
            )

    @contextmanager
    def batch(self, *, at: int | None = None) -> Iterator[Batch]:
        """Mutations of one's own as one commit, `at` microseconds since 1970: the store as a storage backend.

        Each is checked as it is added, RefusedError names the rule it breaks. All are durable when
        the block ends, and none is written where it raises. ConflictError where another process
        wrote to the session meanwhile: decide again.
        """
        with self._ns.lock:
            told = within("at", at)
            happened = self._ns.clock.now() if told is None else told
            batch = self._ns.engine.batch(self._key)
            yield batch
            if not batch.empty:
                batch.commit(happened)

    def fork(self, name: str, at: AsOf | None = None, **moment: Any) -> Session:
        """A new session that shares this one's past up to a moment, and nothing after."""
        with self._ns.lock:
            with self._ns.asking():
                position = basis(self._lane(), _moment(at, moment)).position
            now, child = self._ns.clock.now(), session_name(name)
            key = self._ns.retried(lambda: self._ns.engine.fork(self._key, position, child, now))
            self._ns.follow()
            return Session(self._ns, self._recording, key, name)

    # ---- references

    def position_of(self, page: str | int) -> int:
        """The position that made a page, which its name says; raises UnknownError naming the nearest."""
        with self._ns.asking():
            return self._resolve(self._lane(), page, Head())[0]

    def _resolve(self, lane: Lane, reference: str | int, when: AsOf) -> tuple[int, Moment]:
        """The page a reference names, and the moment it is asked of."""
        told = (
            Reference(namespace=None, session=None, page=f"p{reference}")
            if isinstance(reference, int)
            else parse(reference)
        )
        if told.session is not None and told.session != self.name:
            raise InputError(f"{reference} names a page of session {told.session!r}, and this is {self.name!r}")
        if told.namespace is not None and told.namespace != self._ns.name:
            raise InputError(f"{reference} stands in namespace {told.namespace!r}, and this is {self._ns.name!r}")
        moment = {k: v for k in ("turn", "call", "position") if (v := getattr(told, k)) is not None}
        if moment:
            when = as_of(**moment)
        found = basis(lane, when)
        number = self._page(lane, told.page)
        if number is None:
            raise UnknownError(
                f"there is no page {told.page!r} in session {self.name!r}; {self._nearest(lane, told.page)}"
            )
        if number > found.position:
            raise UnknownError(f"{page_name(number)} was created at position {number}, after {when} of {self.name!r}")
        return number, found

    def _page(self, lane: Lane, name: str) -> int | None:
        position = page_position(name)
        named = [] if position is None else self._pages(lane, "page = ?", position)
        hits = named or self._pages(lane, "hint = ?", name)
        if len(hits) > 1:
            listed = ", ".join(page_name(hit) for hit in hits[:5])
            raise UnknownError(f"{name!r} names {len(hits)} pages ({listed}); name one of them")
        return hits[0] if hits else None

    def _pages(self, lane: Lane, condition: str, value: object) -> list[int]:
        """The pages of the nearest stretch of a lane that meet a condition."""
        for stretch in lane.stretches:
            sql = f"SELECT page FROM pages WHERE session = ? AND page <= ? AND {condition} ORDER BY page"
            hits = [row[0] for row in lane.db.execute(sql, (stretch.session, stretch.high, value))]
            if hits:
                return hits
        return []

    def _nearest(self, lane: Lane, name: str) -> str:
        position = page_position(name)
        pages = [
            row
            for stretch in lane.stretches
            for row in lane.db.execute(
                "SELECT page, hint FROM pages WHERE session = ? AND page <= ?",
                (stretch.session, stretch.high),
            )
        ]
        if not pages:
            return "the session has no page yet"
        if position is not None:
            return f"the nearest is {page_name(min((p for p, _ in pages), key=lambda p: (abs(p - position), p)))}"
        return self._ns.nearest(name, [hint for _, hint in pages if hint] or [page_name(p) for p, _ in pages])


def _moment(at: AsOf | None, moment: dict[str, Any]) -> AsOf:
    if at is None:
        return as_of(**moment)
    if moment:
        raise InputError("give one moment: either `at` or one of turn, call, position, time, logged_time")
    return at


def _kind(word: str) -> int:
    kind = LinkKind.of(word)
    if kind is None:
        words = ", ".join(k.word for k in LinkKind)
        raise UnknownError(f"there is no kind of link {word!r}; the kinds are {words}")
    return int(kind)


def _call(call: CallRow, asides: dict[int, bytes]) -> CallInfo:
    told = loads(asides[call.aside]) if call.aside is not None else {}
    return CallInfo(
        call=call.call,
        turn=call.turn,
        position=call.position,
        at=call.at,
        model=call.model or told.get("model"),
        status=Status(call.status).word,
        fidelity=Fidelity(call.fidelity).word,
        pages=call.leaves,
        tokens=call.tokens,
        tokens_reported=call.tokens_in,
        tokens_cached=call.tokens_cached,
        tokens_out=call.tokens_out,
        cost=None if call.cost is None else call.cost / 1e9,
        latency_ms=None if call.latency is None else call.latency / 1000,
        stop=told.get("stop"),
        error=told.get("error"),
    )


_VERSIONS = "SELECT position, level, cell, commitment FROM versions WHERE session = ? AND page = ? AND position <= ?"
