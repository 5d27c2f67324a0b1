"""The tail of a log: its mutations in the order they were logged, from any cursor on."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from vmstore.core.mutation import Unknown, decode
from vmstore.errors import InputError, UnknownError
from vmstore.log.port import wait_beyond
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Entry


def tail(namespace: Namespace, after: str | None, limit: int | None, wait_s: float = 0.0) -> Iterator[Entry]:
    """Mutations after a cursor, up to now; `limit` of them where one is given.

    Others may write meanwhile: no mutation is left out or returned twice, and a commit is returned whole. Where there
    is none yet the first is waited for, for up to `wait_s` seconds.
    """
    end, entry = namespace.let.log.ordinal, None
    for entry in _tail(namespace, after, limit):
        yield entry
    if entry is None and limit != 0 and wait_s > 0 and wait_beyond(namespace.log, end, wait_s):
        yield from _tail(namespace, after, limit)


def _tail(namespace: Namespace, after: str | None, limit: int | None) -> Iterator[Entry]:
    ordinal, skip = _cursor(after)
    if ordinal > namespace.let.log.ordinal:
        raise UnknownError(
            f"cursor {after!r} lies beyond the log, which ends at {namespace.log.ordinal}", code="past-the-end"
        )
    given = 0
    while limit is None or given < limit:
        with namespace.asking() as end:
            commits = [c for c in namespace.log.tail(max(ordinal - 1, 0), 100) if c.ordinal <= end]
            names = _names(namespace, {c.session for c in commits})
        if not commits:
            return
        for commit in commits:
            if commit.ordinal < ordinal:
                continue
            for index, mutation in enumerate(decode(commit.body)):
                if commit.ordinal == ordinal and index < skip:
                    continue
                if limit is not None and given >= limit:
                    return
                given += 1
                yield Entry(
                    cursor=f"{commit.ordinal}.{index + 1}",
                    session=names[commit.session],
                    position=commit.first + index,
                    kind=mutation.kind,
                    at=commit.at,
                    logged_at=commit.logged_at,
                    mutation=None if isinstance(mutation, Unknown) else msgspec.structs.asdict(mutation),
                )
        ordinal, skip = commits[-1].ordinal + 1, 0


def _names(namespace: Namespace, sessions: set[int]) -> dict[int, str]:
    sql = "SELECT name FROM sessions WHERE session = ?"
    return {session: namespace.views.execute(sql, (session,)).get for session in sessions}


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return 0, 0
    ordinal, _, index = after.partition(".")
    if not (ordinal.isdecimal() and index.isdecimal()):
        raise InputError(f"{after!r} is no cursor; pass one that a tail gave", code="not-a-cursor")
    return int(ordinal), int(index)
