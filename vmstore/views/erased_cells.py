"""Erased cells: which cells the log records as destroyed, and by which commits.

A cell counts as erased from the moment its `erase` is in the log, be its bytes still there or not:
readers hold to that, and destruction comes after. A cell that is destroyed and that no
`erase` names is damage.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from vmstore.cells.cell import ERASED, Cell
from vmstore.core.erasure import Erase
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit
from vmstore.log.port import NOTHING, Log

READ = 256  # commits at a time
_WIRE = bytes([Erase.NUMBER])
assert Erase.NUMBER < 0x80, "on the wire a smaller number is that byte alone, so a body without it has no erasure"


class Erasures:
    """The cells a log records as erased, by its commits and what it states beside; follows it when asked of others."""

    def __init__(self, log: Log, after: int = 0, *, stated: bool = True) -> None:
        self._log = log
        self._end = after
        self._found: dict[int, int] = {}
        self._stated = log.erased if stated else NOTHING

    def __call__(self, number: int) -> bool:
        """Whether a cell is recorded as erased."""
        return self.position(number) is not None

    def position(self, number: int) -> int | None:
        """The position that records a cell as erased, in the session that brought it; None where none does."""
        found = self._at(number)
        if found is None and self._end < self._log.ordinal:
            self.follow()
            found = self._at(number)
        return found

    def _at(self, number: int) -> int | None:
        return self._found.get(number, self._stated.get(number))

    def known(self, number: int) -> bool:
        """Whether a cell is recorded as erased, as far as the log was followed."""
        return self._at(number) is not None

    @property
    def numbers(self) -> list[int]:
        """Every cell the log records as erased, as far as it was followed."""
        return sorted(self.recorded)

    @property
    def recorded(self) -> dict[int, int]:
        """The same, each with where it is recorded."""
        return {**self._stated, **self._found}

    @property
    def beyond(self) -> list[int]:
        """Those that the log's own commits do not record: taking these alone takes cells without a record."""
        own = Erasures(self._log, stated=False)
        own.follow()
        return sorted(self._log.erased.keys() - own.recorded.keys())

    def follow(self) -> int:
        """Reads what the log gained; the ordinal reached."""
        before, self._end = self._end, self._log.ordinal
        erasures = list(erasures_after(self._log, before, self._end))
        if erasures:
            self._resolve(erasures)
        return self._end

    def _resolve(self, erasures: list[tuple[int, int, Erase]]) -> None:
        """Finds the numbers of cells that erasures name by session and position."""
        single: dict[int, list[tuple[int, int, int]]] = {}  # position, index, where it was erased; by session
        whole: dict[int, list[tuple[int, int]]] = {}  # up to where, where it was erased
        for session, position, erase in erasures:
            single.setdefault(session, []).extend((*ref, position) for ref in erase.cells)
            whole.setdefault(session, []).append((erase.upto, position))
        assert single.keys() == whole.keys(), "an erasure is looked for by both of its fields"
        for refs in single.values():
            refs.sort()
        for commit in _commits(
            self._log, max(min(whole) - 1, 0), self._end
        ):  # a session's key is the ordinal it begins with
            if commit.session not in whole or not commit.cell_count:
                continue
            for upto, position in whole[commit.session]:
                if commit.last <= upto:
                    for number in range(commit.cell, commit.cell + commit.cell_count):
                        self._take(number, position)
            refs = single[commit.session]
            for at in range(bisect_left(refs, (commit.first,)), bisect_left(refs, (commit.last + 1,))):
                _, index, position = refs[at]
                if 0 <= index < commit.cell_count:
                    self._take(commit.cell + index, position)

    def _take(self, number: int, position: int) -> None:
        self._found[number] = min(position, self._found.get(number, position))


def erasures_in(commit: Commit) -> Iterator[tuple[int, int, Erase]]:
    """Every erasure of a commit, with its session and position."""
    if _WIRE not in commit.body:  # its number would stand there
        return
    from vmstore.core.mutation import decode

    try:
        mutations = decode(commit.body)
    except ValueError:  # damaged, as verify says
        return
    for position, mutation in enumerate(mutations, commit.first):
        if isinstance(mutation, Erase):
            yield commit.session, position, mutation


def erasures_after(log: Log, ordinal: int, upto: int | None = None) -> Iterator[tuple[int, int, Erase]]:
    """Every erasure that was logged after an ordinal, up to another or the end of the log."""
    for commit in _commits(log, ordinal, log.ordinal if upto is None else upto):
        yield from erasures_in(commit)


def _commits(log: Log, after: int, upto: int) -> Iterator[Commit]:
    """The commits after an ordinal up to another: who writes as fast as this reads is not followed for ever."""
    while after < upto and (batch := log.tail(after, READ)):
        yield from (commit for commit in batch if commit.ordinal <= upto)
        after = batch[-1].ordinal


def seen(log: Log, db: apsw.Connection, numbers: Iterable[int]) -> dict[int, Cell]:
    """Cells by number as they may be seen: what the views have as erased is, be its bytes still there or not."""
    wanted = list(numbers)
    return {**log.cells(wanted), **dict.fromkeys(erased_among(db, wanted), ERASED)}


def erased_among(db: apsw.Connection, numbers: Sequence[int]) -> list[int]:
    """Those of some cells that the views have as erased."""
    if not db.execute("SELECT EXISTS(SELECT 1 FROM erased)").get:
        return []
    return [cell for (cell,) in db.execute(_AMONG, (str(list(numbers)),))]


_AMONG = "SELECT cell FROM erased WHERE cell IN (SELECT value FROM json_each(?))"


def erased_at(log: Log, db: apsw.Connection, number: int) -> int:
    """The position that records a destroyed cell as erased; raises CorruptError where none does.

    The views may be behind: what they have not folded is read.
    """
    found: Any = db.execute("SELECT position FROM erased WHERE cell = ?", (number,)).get
    if found is None:
        reached: Any = db.execute("SELECT min(ordinal) FROM positions").get
        found = Erasures(log, int(reached or 0)).position(number)
    return _recorded(number, found)


def recorded(erasures: Erasures, number: int) -> int:
    """The position that records a destroyed cell as erased; raises CorruptError where none does."""
    return _recorded(number, erasures.position(number))


def check_erased(log: Log, db: apsw.Connection, number: int, erasures: Erasures | None) -> None:
    """Raises CorruptError where a destroyed cell is not recorded as erased; by the views where they can be asked."""
    if erasures is None:
        erased_at(log, db, number)
    else:
        recorded(erasures, number)


def _recorded(number: int, position: int | None) -> int:
    if position is None:
        raise CorruptError(
            f"cell {number} was destroyed, and no erasure is recorded; run `vmstore verify`, or, where a migration "
            "into this store was interrupted, run it again",
            code="destroyed-unrecorded",
        )
    return position
