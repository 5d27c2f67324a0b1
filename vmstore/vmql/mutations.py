"""The rows of MUTATIONS: commits of the log decoded as they are taken, only those that can be asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from vmstore.core.mutation import Compress, Create, Link, Pack, Reply, Turn, Unknown, Update, decode
from vmstore.core.page import Tier
from vmstore.log.commit import NO_REQUEST, Commit
from vmstore.log.port import Log

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


class Stream:
    """Mutations in the order they are wanted; what no condition can choose is not even decoded."""

    def __init__(self, log: Log, wanted: Collection[str], kinds: Collection[str] | None, check: Callable[[], None]):
        self.log = log
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

    def of_all(self, written: dict[int, Written], after: int, end: int, skip: int = 0) -> Iterator[tuple[Any, ...]]:
        """Those of many sessions in the order of the log, after an ordinal up to another."""
        moments = {key: Moment(one.turn, one.call) for key, one in written.items()}
        while after < end:
            commits = self.log.tail(after, BATCH)
            if not commits:
                return
            for commit in commits:
                one = written.get(commit.session)
                if one is not None and commit.ordinal <= end:
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
        told = "detail" in self.wanted
        for index, mutation in enumerate(decode(commit.body)):
            position = commit.first + index
            kind = type(mutation)
            if kind is Turn:
                moment.turn = mutation.number  # type: ignore[union-attr]
            elif kind is Pack:
                moment.call = mutation.call  # type: ignore[union-attr]
            if not one.low < position <= one.high or (self.kinds is not None and mutation.kind not in self.kinds):
                continue
            page, tier, before, after, level, tokens = about(mutation, position)
            yield (
                position,
                one.name,
                moment.turn,
                moment.call,
                mutation.kind,
                page,
                None,
                None,
                None,
                commit.at,
                commit.logged_at,
                None,
                tier,
                before,
                after,
                level,
                None,
                tokens,
                request,
                f"{commit.ordinal}.{index + 1}",
                detail(mutation) if told else None,
            )


class Moment(msgspec.Struct):
    """The turn and the call in force as a stream goes on."""

    turn: int
    call: int


About = tuple[int | None, int | None, int | None, int | None, int | None, int | None]


def about(mutation: Any, position: int) -> About:
    """Page, tier after, version before and after, level and tokens of what a mutation says."""
    match mutation:
        case Create():
            return position, int(Tier.L2), None, 1, 0, mutation.tokens
        case Update():
            return mutation.page, None, mutation.version - 1, mutation.version, 0, mutation.tokens
        case Compress():
            return mutation.page, None, mutation.version, mutation.version, mutation.level, mutation.tokens
        case Link():
            return mutation.source, None, None, None, None, None
        case Pack():
            return None, None, None, None, None, mutation.tokens
        case Reply():
            return None, None, None, None, None, mutation.tokens_out
    return None, None, None, None, None, None


def detail(mutation: Any) -> str:
    """All the fields of a mutation as JSON; digests in hexadecimal."""
    if isinstance(mutation, Unknown):
        return json.dumps({"number": mutation.number})
    return json.dumps(msgspec.structs.asdict(mutation), default=lambda value: bytes(value).hex())
