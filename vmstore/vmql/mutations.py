"""The rows of MUTATIONS: commits of the log decoded as they are taken, only those that can be asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, get_args

import msgspec

from vmstore.core.mutation import (
    MUTATION_NAMES,
    Annotate,
    Compress,
    Create,
    Known,
    Link,
    Pack,
    Reply,
    Turn,
    Unknown,
    Update,
    decode,
)
from vmstore.core.page import Tier
from vmstore.log.commit import NO_REQUEST, Commit
from vmstore.log.port import Log
from vmstore.vmql.forms import iso

BATCH = 200  # commits read at once


class Written(NamedTuple):
    """What one session wrote and is wanted of it, with the turn and the call in force before."""

    session: int
    name: str
    low: int
    high: int
    turn: int
    call: int


Ordinals = Callable[[Written, int, int], list[int]]
"""The ordinals of a session's commits that end after a position, up to a number of them."""

Before = Callable[[Written, int], tuple[int, int]]
"""The turn and the call in force before a position of a session."""


class Stream:
    """Mutations in the order they are wanted; what no condition can choose is not even decoded."""

    def __init__(
        self,
        log: Log,
        wanted: Collection[str],
        kinds: Collection[str] | None,
        check: Callable[[], None],
        shown: bool = False,
    ) -> None:
        self.log = log
        self.shown = shown  # rows as they are shown, else as they are kept
        self.wanted = frozenset(wanted)
        self.kinds = None if kinds is None else frozenset(kinds)
        self.check = check

    def of_one(self, written: Iterable[Written], ordinals: Ordinals) -> Iterator[tuple[Any, ...]]:
        """Those of sessions one after the other: the stretches of a lane, the oldest first."""
        for one in written:
            after = one.low
            moment = Moment(one.turn, one.call)
            while found := ordinals(one, after, BATCH):
                for commit in self._read(found):
                    yield from self._rows(commit, one, moment)
                    after = commit.last
                self.check()

    def of_all(self, written: dict[int, Written], after: int, end: int, before: Before) -> Iterator[tuple[Any, ...]]:
        """Those of many sessions in the order of the log, after an ordinal up to another."""
        moments: dict[int, Moment] = {}
        while after < end:
            commits = self.log.tail(after, BATCH)
            if not commits:
                return
            for commit in commits:
                one = written.get(commit.session)
                if one is not None and commit.ordinal <= end:
                    if commit.session not in moments:
                        moments[commit.session] = Moment(*before(one, commit.first))
                    yield from self._rows(commit, one, moments[commit.session])
            after = commits[-1].ordinal
            self.check()

    def _read(self, ordinals: list[int]) -> Iterator[Commit]:
        """Commits by ordinal: those that lie together are read together."""
        at = 0
        while at < len(ordinals):
            end = at + 1
            while end < len(ordinals) and ordinals[end] == ordinals[end - 1] + 1:
                end += 1
            yield from self.log.tail(ordinals[at] - 1, end - at)
            at = end

    def _rows(self, commit: Commit, one: Written, moment: Moment) -> Iterator[tuple[Any, ...]]:
        request: Any = None
        if commit.request != NO_REQUEST and "request_id" in self.wanted:
            cell = self.log.cells([commit.cell + commit.request]).get(commit.cell + commit.request)
            request = None if cell is None else cell.content.decode("utf-8", "replace")
        told, kinds, low, high, name = "detail" in self.wanted, self.kinds, one.low, one.high, one.name
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
            page, tier, before, after, level, tokens = ABOUT.get(kind, _nothing)(mutation, position)
            yield (
                *(position, name, moment.turn, moment.call, word),
                f"p{page}" if page and self.shown else page,
                *(None, None, None, at, logged_at, None, tier, before, after, level, None, tokens, request),
                f"{ordinal}.{position - commit.first + 1}",
                self._detail(mutation) if told else None,
            )

    def _detail(self, mutation: Any) -> Any:
        text = detail(mutation)
        return json.loads(text) if self.shown else text


class Moment(msgspec.Struct):
    """The turn and the call in force as a stream goes on."""

    turn: int
    call: int


About = tuple[int | None, int | None, int | None, int | None, int | None, int | None]
"""Page, tier after, version before and after, level and tokens of what a mutation says."""


def _nothing(mutation: Any, position: int) -> About:
    return None, None, None, None, None, None


ABOUT: dict[type, Callable[[Any, int], About]] = {
    Create: lambda m, position: (position, int(Tier.L2), None, 1, 0, m.tokens),
    Update: lambda m, _: (m.page, None, m.version - 1, m.version, 0, m.tokens),
    Annotate: lambda m, _: (m.page, None, None, None, None, None),
    Compress: lambda m, _: (m.page, None, m.version, m.version, m.level, m.tokens),
    Link: lambda m, _: (m.source, None, None, None, None, None),
    Pack: lambda m, _: (None, None, None, None, None, m.tokens),
    Reply: lambda m, _: (None, None, None, None, None, m.tokens_out),
}
WORDS: dict[type, str] = {kind: MUTATION_NAMES[kind.NUMBER] for kind in get_args(Known)}


def detail(mutation: Any) -> str:
    """All the fields of a mutation as JSON; digests in hexadecimal."""
    if isinstance(mutation, Unknown):
        return json.dumps({"number": mutation.number})
    return json.dumps(msgspec.structs.asdict(mutation), default=lambda value: bytes(value).hex())
