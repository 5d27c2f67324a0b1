"""Folds commits into the rows of `tables`: one pass over the log, one session after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.core.asof import Position
from vmstore.core.erasure import gone
from vmstore.core.mutation import (
    Annotate,
    AnyMutation,
    CellRef,
    Compress,
    Create,
    Delete,
    Link,
    Message,
    Mutation,
    Open,
    Pack,
    Redact,
    Reply,
    Tag,
    Turn,
    Update,
    decode,
)
from vmstore.core.page import (
    Fidelity,
    Level,
    LinkKind,
    Method,
    Mime,
    Modality,
    Origin,
    PageType,
    Role,
    Slot,
    Standing,
    Status,
    WordEnum,
)
from vmstore.core.redaction import TAG
from vmstore.core.times import moment_of
from vmstore.engine.transfer.ingest import content_of
from vmstore.log.commit import Commit
from vmstore.views.branch import Branch
from vmstore.views.projection import Projection
from vmstore.views.projectors.calls import before
from vmstore.views.projectors.pages import born_tags, object_of, texts_of
from vmstore.views.projectors.residency import resident_at
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.selection import Portion, commits_of

Row = tuple[str, tuple[Any, ...]]


def rows(projection: Projection, portions: Sequence[Portion]) -> Iterator[Row]:
    """Every row of every table, by the table's name; a row stands after those it names by key."""
    names = {portion.session: portion.name for portion in portions}
    for portion in portions:
        yield from _Session(projection, portion, names).rows()


class _Stay(NamedTuple):
    """A page in the prompt since a position and a call."""

    content: int
    level: int
    rank: int
    since: int
    call: int


class _Session:
    """The fold of one session: its moment, its call under way, the pages in its prompt."""

    def __init__(self, projection: Projection, portion: Portion, names: dict[int, str]) -> None:
        self._projection = projection
        self._portion = portion
        self._names = names
        self._lane = Branch(projection.db, portion.session)
        self._turn = self._call = 0
        self._at = 0
        self._commit: Commit
        self._model: str | None = None
        self._stays: dict[int, _Stay] = {}
        self._packed: dict[str, Any] = {}

    def rows(self) -> Iterator[Row]:
        """The rows of the session's own mutations; a fork's go on from what it inherits."""
        fork = self._lane.stretches[0].low
        if fork:
            moment = basis(self._lane, Position(fork))
            self._turn, self._call = moment.turn, moment.call
            self._model = (before(self._lane, fork + 1) or (None, None))[1]
            for page, content, level, rank, _ in resident_at(self._lane, fork):
                self._stays[page] = _Stay(content, level, rank, fork, self._call)
        for commit in commits_of(self._projection, self._portion):
            self._commit = commit
            for position, mutation in enumerate(decode(commit.body), commit.first):
                self._at = position
                if isinstance(mutation, Turn):
                    self._turn = mutation.number
                elif isinstance(mutation, Pack):
                    yield from self._called()
                    self._call = mutation.call
                yield from self._mutation(mutation)
        yield from self._called()
        for page, stay in self._stays.items():
            yield self._stayed(page, stay, None)

    # ---- what a mutation adds

    def _mutation(self, m: AnyMutation) -> Iterator[Row]:
        match m:
            case Open():
                yield self._open(m)
            case Turn():
                yield "turns", (self._id("t", m.number), self._portion.name, m.number, self._at, self._time())
            case Message():
                yield self._message(m)
            case Create():
                yield self._page(m)
                yield self._version(self._at, 1, Level.FULL, m, None, None)
                for kind, target in m.links:
                    yield self._link(self._at, kind, target, None, None)
                yield from self._tags(self._at, dict.fromkeys(born_tags(object_of(self._bytes(m.labels))), True))
            case Annotate():
                yield from self._annotation(m)
            case Delete():
                yield from self._annotation(Annotate(m.page, status=Standing.SUPERSEDED))
            case Tag():
                tag = self._text(m.tag)
                yield from self._tags(m.page, {} if tag is None else {tag: bool(m.held)})
            case Redact() if m.page and m.count:
                yield from self._tags(m.page, {TAG: True})
            case Update():
                yield self._version(m.page, m.version, Level.FULL, m, None, None)
            case Compress():
                yield self._version(m.page, m.version, m.level, m, _word(Method, m.method), bool(m.lossy))
            case Link():
                yield self._link(m.source, m.link, m.target, m.valid_from, m.valid_to)
            case Pack():
                self._pack(m)
                yield from self._residency(m)
            case Reply():
                self._reply(m)
        yield self._logged(m)

    def _open(self, m: Open) -> Row:
        meta = self._json(m.meta)
        parent = self._projection.db.execute("SELECT session FROM sessions WHERE uid = ?", (m.parent or b"",)).get
        return "sessions", (
            self._portion.name,
            _word(Origin, m.origin),
            self._names.get(parent),
            m.parent_position if m.origin == Origin.FORK else None,
            *(_text(meta.get(word)) for word in ("user", "agent", "title")),
            self._text(m.source),
            self._time(),
            self._portion.upto,
        )

    def _message(self, m: Message) -> Row:
        answers = None if m.reply_to is None else self._call_id(m.reply_to)
        fields = (_word(Role, m.role), _word(Slot, m.slot), bool(m.human), answers)
        return "messages", (self._id("m"), self._portion.name, self._at, *fields, *self._moment())

    def _page(self, m: Create) -> Row:
        labels = object_of(self._bytes(m.labels))
        mime = _text(labels.get("mime")) or Mime(m.mime).type
        words = (_word(PageType, m.type), _word(Modality, m.modality), _word(Role, m.role), mime)
        place = (self._owned("m", m.message) if m.message else None, m.part)
        fields = (*place, *words, m.importance / 1e6, _text(labels.get("hint")), *self._moment())
        return "pages", (self._id("p"), self._portion.name, self._at, *fields)

    def _annotation(self, m: Annotate) -> Iterator[Row]:
        """Rows of an annotation, and of each tag that a page gained or lost; a tag that is both is lost."""
        place = (self._id(""), self._portion.name, self._at, self._owned("p", m.page))
        importance = None if m.importance is None else m.importance / 1e6
        status = None if m.status is None else _word(Standing, m.status)
        valid = (time_text(m.valid_from), time_text(m.valid_to))
        anchors = self._text(m.anchors) if object_of(self._bytes(m.anchors)) else None
        yield "annotations", (*place, importance, status, *valid, anchors, self._time())
        gained, lost = (texts_of(self._bytes(ref)) for ref in (m.tags, m.untags))
        yield from self._tags(m.page, dict.fromkeys(gained, True) | dict.fromkeys(lost, False))

    def _tags(self, page: int, tags: dict[str, bool]) -> Iterator[Row]:
        for tag, pages in tags.items():
            place = (f"{self._id('')}-{tag}", self._portion.name, self._at, self._owned("p", page))
            yield "tags", (*place, tag, pages, self._time())

    def _version(
        self, page: int, version: int, level: int, m: Create | Update | Compress, method: str | None, lossy: bool | None
    ) -> Row:
        fields = (version, _word(Level, level), m.size, m.tokens, method, lossy, self._time(), self._text(m.content))
        return "versions", (self._id(""), self._owned("p", page), self._portion.name, self._at, *fields)

    def _link(self, source: int, kind: int, target: int, begins: int | None, ends: int | None) -> Row:
        key = f"{self._id('')}/{source}-{kind}-{target}"
        ends_at = (self._owned("p", source), _word(LinkKind, kind), self._owned("p", target))
        return "links", (key, self._portion.name, self._at, *ends_at, time_text(begins), time_text(ends))

    def _logged(self, m: AnyMutation) -> Row:
        page = self._at if isinstance(m, Create) else getattr(m, "page", None)
        fields = msgspec.json.encode(msgspec.structs.asdict(m)).decode() if isinstance(m, Mutation) else None
        subject = self._owned("p", page) if page else None
        row = (m.kind, *self._moment(), time_text(self._commit.logged_at), subject, fields)
        return "mutations", (self._id(""), self._portion.name, self._at, *row)

    # ---- calls

    def _pack(self, m: Pack) -> None:
        if m.rest is not None:
            self._model = _text(self._json(m.rest).get("model"))
        self._packed = {
            "position": self._at,
            "turn": self._turn,
            "at": self._time(),
            "fidelity": _word(Fidelity, m.fidelity),
            "pages": m.leaves,
            "tokens": m.tokens,
            "reply": Reply(m.call, Status.OPEN),
            "aside": {},
        }

    def _reply(self, m: Reply) -> None:
        if self._packed:  # else it answers a call of the session it forked from
            self._packed |= {"reply": m, "aside": self._json(m.aside)}

    def _called(self) -> Iterator[Row]:
        """The row of the call before, once all that was said of it is known."""
        if not self._packed:
            return
        packed, self._packed = self._packed, {}
        reply: Reply = packed["reply"]
        aside = packed["aside"]
        place = (
            self._id("c", self._call),
            self._portion.name,
            self._call,
            packed["turn"],
            packed["position"],
            packed["at"],
        )
        yield (
            "calls",
            (
                *place,
                self._model or _text(aside.get("model")),
                packed["fidelity"],
                _word(Status, reply.status),
                packed["pages"],
                packed["tokens"],
                *(reply.tokens_in, reply.tokens_cached, reply.tokens_out),
                None if reply.cost is None else reply.cost / 1e9,
                None if reply.latency is None else reply.latency / 1000,
                _text(aside.get("stop")),
                _text(aside.get("error")),
            ),
        )

    # ---- residency

    def _residency(self, m: Pack) -> Iterator[Row]:
        for page in (*m.left, *(entered[0] for entered in m.entered)):
            if page in self._stays:
                yield self._stayed(page, self._stays.pop(page), self._at)
        for page, content, level, rank in m.entered:
            self._stays[page] = _Stay(content, level, rank, self._at, self._call)

    def _stayed(self, page: int, stay: _Stay, to: int | None) -> Row:
        key = f"{self._portion.name}/{page}@{stay.since}"
        shown = (self._owned("p", page), self._owned("", stay.content), _word(Level, stay.level), stay.rank)
        until = (stay.since, to, stay.call, None if to is None else self._call)
        return "residency", (key, self._portion.name, *shown, *until)

    # ---- names, times, contents

    def _id(self, letter: str, number: int | None = None) -> str:
        return f"{self._portion.name}/{letter}{self._at if number is None else number}"

    def _owned(self, letter: str, position: int) -> str:
        """The id of what stands at a position, by the session that wrote it."""
        return f"{self._names[self._lane.owner(position)]}/{letter}{position}"

    def _call_id(self, call: int) -> str | None:
        """The id of a call of the lane; an inherited one is its parent's."""
        for stretch in self._lane.stretches:
            sql = "SELECT 1 FROM calls WHERE session = ? AND call = ? AND position <= ?"
            if self._projection.db.execute(sql, (stretch.session, call, stretch.high)).fetchone() is not None:
                return f"{self._names[stretch.session]}/c{call}"
        return None

    def _moment(self) -> tuple[int, int, str | None]:
        return self._turn, self._call, self._time()

    def _time(self) -> str | None:
        return time_text(self._commit.at)

    def _bytes(self, ref: CellRef | None) -> bytes | None:
        return None if ref is None else content_of(self._projection.log, self._lane, self._commit, ref, gone)

    def _text(self, ref: CellRef | None) -> str | None:
        """A content as text; None for one that is none."""
        content = self._bytes(ref)
        try:
            return None if content is None else _text(content.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            return None

    def _json(self, ref: CellRef | None) -> dict[str, Any]:
        return object_of(self._bytes(ref))


def _word(words: type[WordEnum], number: int) -> str:
    """The word a number stands for, or the number where a later version made it."""
    try:
        return words(number).word
    except ValueError:
        return str(number)


def _text(value: Any) -> str | None:
    """A text as every table can hold it: lone surrogates become question marks."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def time_text(at: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601; None for what no calendar holds."""
    try:
        return None if at is None else moment_of(at).isoformat(timespec="microseconds")
    except OverflowError:
        return None
