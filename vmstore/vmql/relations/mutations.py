"""The rows of MUTATIONS: commits of the log decoded as they are taken, only those that can be asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, get_args

import msgspec

from vmstore.core.decision import Cause, Denial, Holder, Load
from vmstore.core.mutation import (
    MUTATION_NAMES,
    Annotate,
    Cite,
    Close,
    Compress,
    Create,
    Delete,
    Embed,
    Evict,
    Fact,
    FaultDenied,
    FaultIn,
    Flush,
    GuardTrip,
    Known,
    Link,
    Pack,
    Pin,
    Prefetch,
    Pressure,
    Promote,
    Recall,
    Redact,
    Reference,
    Reply,
    Segment,
    Tag,
    ToolRun,
    Turn,
    Unknown,
    Unlink,
    Unpin,
    Update,
    decode,
)
from vmstore.core.page import Standing, Tier
from vmstore.core.tags import TagMethod
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.core.times import iso
from vmstore.core.work.trace import GuardType
from vmstore.log.commit import NO_REQUEST, Commit
from vmstore.log.port import Log
from vmstore.views.log_reader import read_commits
from vmstore.views.reads.reasons import use_of, word_of
from vmstore.vmql.relations.actors import Actor
from vmstore.vmql.relations.relation import SessionStream

BATCH = 200  # commits read at once
USES_MAX = 10_000  # references remembered


Ordinals = Callable[[SessionStream, int, int], list[int]]
"""The ordinals of a session's commits that end after a position, up to a number of them."""

Writer = Callable[[int], SessionStream | None]
"""What a session wrote, by its key; None of one whose rows are not wanted."""

Before = Callable[[SessionStream, int], tuple[int, int]]
"""The turn and the call in force before a position of a session."""


class Stream:
    """Mutations in the order they are wanted; what no condition can choose is not even decoded."""

    def __init__(
        self,
        log: Log,
        wanted: Collection[str],
        kinds: Collection[str] | None,
        check: Callable[[], None],
        asked: Callable[[int, int], str | None],
        requested: Callable[[int], str | None],
        before: Before,
        shown: bool = False,
        actor: Actor | None = None,
        page: int | None = None,
    ) -> None:
        self.log = log
        self._before = before
        self._moments: dict[int, StreamMoment] = {}  # of each session, where nothing was passed over
        self._page = page  # that all rows must be about
        self._forms = () if page is None else _forms(page)
        self._actor = actor
        self._requested = requested  # the request id that lies in a cell
        self._asked = asked  # what the reference at a position of a session's lane says it is for
        self._uses: dict[tuple[int, int], str | None] = {}
        self.shown = shown  # rows as they are shown, else as they are kept
        self.wanted = frozenset(wanted)
        self.kinds = None if kinds is None else frozenset(kinds)
        self.check = check

    def of_one(self, written: Iterable[SessionStream], ordinals: Ordinals) -> Iterator[tuple[Any, ...]]:
        """Those of sessions one after the other: the stretches of a lane, the oldest first."""
        for stream in written:
            after = stream.low
            while found := ordinals(stream, after, BATCH):
                for commit in read_commits(self.log, found):
                    yield from self._rows(commit, stream)
                    after = commit.last
                self.check()

    def of_all(self, written: Writer, after: int, end: int) -> Iterator[tuple[Any, ...]]:
        """Those of many sessions in the order of the log, after an ordinal up to another."""
        while after < end:
            commits = self.log.tail(after, BATCH)
            if not commits:
                return
            for commit in commits:
                stream = written(commit.session)
                if stream is not None and commit.ordinal <= end:
                    yield from self._rows(commit, stream)
            after = commits[-1].ordinal
            self.check()

    def _names(self, commit: Commit) -> bool:
        """Whether a commit may be about the page that is asked for: it makes it, or its number is written in it."""
        assert self._page is not None, "a page was asked for"
        return commit.first <= self._page <= commit.last or any(map(commit.body.__contains__, self._forms))

    def _rows(self, commit: Commit, stream: SessionStream) -> Iterator[tuple[Any, ...]]:
        if self._page is not None and not self._names(commit):
            self._moments.pop(commit.session, None)
            return
        if commit.session not in self._moments:
            self._moments[commit.session] = StreamMoment(*self._before(stream, commit.first))
        moment, request = self._moments[commit.session], None
        if commit.request != NO_REQUEST and "request_id" in self.wanted:
            request = self._requested(commit.cell + commit.request)
        detailed, asked = "detail" in self.wanted, "reason" in self.wanted
        whose = self._actor if self.wanted & {"actor", "actor_id"} else None
        kinds, low, high, name = self.kinds, stream.low, stream.high, stream.name
        at, logged_at, ordinal = commit.at, commit.logged_at, commit.ordinal
        if self.shown:
            at, logged_at = iso(at), iso(logged_at)  # type: ignore[assignment]
        position = commit.first - 1
        for mutation in decode(commit.body):
            position += 1
            kind = type(mutation)
            if kind is Turn:
                moment.turn = mutation.number  # type: ignore[union-attr]
            elif kind is Pack:
                moment.call = mutation.call  # type: ignore[union-attr]
            word = WORDS.get(kind) or mutation.kind
            if not low < position <= high or (kinds is not None and word not in kinds):
                continue
            page, cause, was, tier, before, after, level, tokens = ABOUT.get(kind, _nothing)(mutation, position)
            reason = self._reason(stream.session, position, mutation) if asked and kind in REASONS else None
            who = (None, None) if whose is None else whose(stream.session, moment.call, position, mutation)
            yield (
                *(position, name, moment.turn, moment.call, word),
                f"p{page}" if page and self.shown else page,
                *(*who, cause, at, logged_at, was, tier, before, after, level, reason, tokens, request),
                f"{ordinal}.{position - commit.first + 1}",
                self._detail(mutation) if detailed else None,
            )

    def _reason(self, session: int, position: int, mutation: Any) -> str | None:
        """Why something was asked for or decided; what came says it by the reference that it answers."""
        if type(mutation) is Reference:
            if len(self._uses) >= USES_MAX:
                self._uses.clear()
            self._uses[session, position] = use_of(mutation.use, mutation.reason, mutation.signal)
        elif type(mutation) in (FaultIn, Prefetch):
            key = session, mutation.reference
            if key not in self._uses:
                self._uses[key] = self._asked(*key)
            return self._uses[key]
        else:
            return REASONS[type(mutation)](mutation)
        return self._uses[session, position]

    def _detail(self, mutation: Any) -> Any:
        text = detail(mutation)
        return json.loads(text) if self.shown else text


class StreamMoment(msgspec.Struct):
    """The turn and the call in force as a stream advances."""

    turn: int
    call: int


def _forms(number: int) -> tuple[bytes, ...]:
    """What stands in any form that MessagePack has for a number: a writer may have taken a longer one than it needs."""
    power = next(power for power in range(4) if number < 1 << (8 << power))
    digits = number.to_bytes(1 << power, "big")
    return (digits,) if number < 128 else tuple(bytes([before]) + digits for before in (0xCC + power, 0xD0 + power, 0))


Maybe = int | None
About = tuple[Maybe, Maybe, Maybe, Maybe, Maybe, Maybe, Maybe, Maybe]
"""Page, cause, tier before and after, version before and after, level and tokens of what a mutation says."""

L0, L2 = int(Tier.L0), int(Tier.L2)


def _nothing(mutation: Any, position: int) -> About:
    return None, None, None, None, None, None, None, None


def _of_page(mutation: Any, position: int) -> About:
    return mutation.page or None, None, None, None, None, None, None, None


def _gone(m: Evict, position: int) -> About:
    return m.page, m.first or None, L0, L2 if m.level is None else L0, None, None, m.level, m.tokens


ABOUT: dict[type, Callable[[Any, int], About]] = {
    Create: lambda m, position: (position, None, None, L2, None, 1, 0, m.tokens),
    Update: lambda m, _: (m.page, None, None, None, m.version - 1, m.version, 0, m.tokens),
    Compress: lambda m, _: (m.page, None, None, None, m.version, m.version, m.level, m.tokens),
    **dict.fromkeys((Link, Unlink), lambda m, _: (m.source, None, None, None, None, None, None, None)),
    Pack: lambda m, _: (None, None, None, None, None, None, None, m.tokens),
    Reply: lambda m, _: (None, None, None, None, None, None, None, m.tokens_out),
    FaultIn: lambda m, _: (m.page, m.reference, m.tier, L0, None, None, m.level, m.tokens),
    FaultDenied: lambda m, _: (m.page or None, m.reference, None, None, None, None, None, None),
    Prefetch: lambda m, _: (m.page, m.reference, L2, L0, None, None, m.level, m.tokens),
    Evict: _gone,
    Cite: lambda m, _: (m.page, m.by, None, None, None, None, None, None),
    Segment: lambda m, _: (m.summary, None, None, None, None, None, None, None),
    ToolRun: lambda m, _: (m.call, m.result or None, None, None, None, None, None, None),
    GuardTrip: lambda m, _: (m.warning or None, m.calls[-1] if m.calls else None, None, None, None, None, None, None),
    **dict.fromkeys(
        (Annotate, Delete, Embed, Fact, Flush, Pin, Promote, Unpin, Redact, Reference, Recall, Tag), _of_page
    ),
}
REASONS: dict[type, Callable[[Any], str | None]] = {
    Close: lambda m: word_of(Standing, m.status),
    FaultDenied: lambda m: word_of(Denial, m.because),
    Evict: lambda m: word_of(Cause, m.cause),
    Recall: lambda m: "corrected" if m.corrected else "right",
    Pressure: lambda m: word_of(Load, m.level),
    Tag: lambda m: word_of(TagMethod, m.method),
    ToolRun: lambda m: word_of(ToolOutcome, m.outcome),
    GuardTrip: lambda m: word_of(GuardType, m.type),
    **dict.fromkeys((Pin, Unpin), lambda m: word_of(Holder, m.holder)),
    **dict.fromkeys((Reference, FaultIn, Prefetch), lambda m: None),  # see Stream
}
WORDS: dict[type, str] = {kind: MUTATION_NAMES[kind.NUMBER] for kind in get_args(Known)}


def detail(mutation: Any) -> str:
    """All the fields of a mutation as JSON; digests in hexadecimal."""
    if isinstance(mutation, Unknown):
        return json.dumps({"number": mutation.number})
    return json.dumps(msgspec.structs.asdict(mutation), default=lambda value: bytes(value).hex())
