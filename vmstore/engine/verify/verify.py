"""Verify: every hash, every rule, every view, each fault named.

The chain is checked commit by commit, the cells against their commitments, the rules by
replaying each session through the gate's own predicates, the views against a fresh fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import apsw
import msgspec

from vmstore.cells.cell import Cell
from vmstore.core.mutation import AnyMutation, Compress, Create, Erase, Open, Pack, Unknown, Update, decode
from vmstore.core.page import Origin
from vmstore.engine.head import EmptyLookups, GateHead
from vmstore.engine.lookups import ViewLookups
from vmstore.engine.named_cells import LogContents, reachable
from vmstore.engine.rules.field_types import sound
from vmstore.engine.rules.rules import MutationPlace, message_exists, words_are_listed
from vmstore.engine.rules.rules_by_kind import OF_CONTENTS, broken
from vmstore.engine.verify.history_tree import HistoryTree
from vmstore.errors import CorruptError, VmstoreError
from vmstore.log.commit import Commit, follows, genesis
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.erased_cells import Erasures, erasures_after
from vmstore.views.fold import fork_moment
from vmstore.views.projection import Progress, Projection
from vmstore.views.projector import Projector
from vmstore.views.projectors.residency import resident_at

Erased = Callable[[int], bool]
"""Whether the log records that the cell of a number was erased."""


def nothing_erased(number: int) -> bool:
    """Returns False: the lookup for a log that records no erasure."""
    return False


def unsound(cell: Cell | None, number: int, commitment: bytes, erased: Erased) -> str | None:
    """Explains what is wrong with a cell, None where it is sound; `commitment` is what its commit states."""
    if cell is None:
        return "it is missing"
    if cell.erased:
        return None if erased(number) else "its bytes were destroyed, and no erasure is recorded"
    return None if cell.keeps(commitment) else "its bytes do not match their commitment"


PROBLEMS_MAX = 1000
READ = 256  # commits at a time
CELLS = 256  # cells at a time, and those of one commit beyond
SOME = 64  # cells in memory at once
ROWS = 64  # compared at once; one may hold a long name
ARCHIVE = "archive"  # a finding about one, or about an object: what cannot be read is not in the log itself
OBJECTS = ("object-missing", "object-damaged")
ERASURE = "erasure"
UNREADABLE = "content"  # a finding about what a cell holds, in a log that is whole
RECENT_MAX = 32_768  # mutations of a session, before older ones are looked up in the fresh views


class Finding(NamedTuple):
    """Something that is not as it should be."""

    kind: str
    where: str
    what: str


def unsafe(found: Iterable[Finding]) -> list[Finding]:
    """The findings that make a log unreliable, without damage that an earlier version let in."""
    return [finding for finding in found if finding.kind != UNREADABLE]


class Counts(NamedTuple):
    """How much was checked."""

    commits: int
    mutations: int
    sessions: int


def verify(
    log: Log,
    projection: Projection,
    progress: Progress | None = None,
    *,
    views: bool = True,
    rules: bool = True,
    histories: HistoryTree | None = None,
    erased: Erased | None = None,
    chain: bool = True,
) -> tuple[Counts, list[Finding]]:
    """Checks every hash of a log and its cells, then the rules and, if asked, the views that follow it.

    What was erased is what the log records, unless `erased` says.

    `histories` follow what is read, for a caller that compares it with a seal. Without `chain` the hashes are taken as
    they are: somebody else checks them.
    """
    if not chain:
        return Counts(0, 0, 0), list(_folded(log, projection, progress, views, rules))
    check = ChainCheck(log, histories, erased)
    total = log.ordinal
    parts = 1 + (views or rules)
    try:
        last = log.last_cell  # before any commit is read: others may write while it runs
        for batch in batches_of(log):
            check.batch(batch)
            if progress is not None and batch[0].ordinal <= total:  # others may write on while it runs
                progress(min(batch[-1].ordinal, total), total * parts)
        check.end(last)
    except CorruptError as error:
        check.problems.append(Finding("log", "log", str(error)))
    counts = Counts(check.commits, check.mutations, len(check.heads))
    if any(problem.kind != ARCHIVE for problem in check.problems) or not (views or rules):
        return counts, check.problems[:PROBLEMS_MAX]
    return counts, check.problems + list(_folded(log, projection, progress, views, rules))


def batches_of(log: Log) -> Iterator[list[Commit]]:
    """Every commit of a log, in order, some at a time; of those that others write meanwhile only some."""
    position, end = 0, log.ordinal
    while batch := log.tail(position, READ):
        yield batch
        if batch[-1].ordinal <= position:  # else pages that changed places are walked for ever
            raise CorruptError(f"the log gives commit {batch[-1].ordinal} after {position}; put back a backup")
        position = batch[-1].ordinal
        if position >= end and log.ordinal > end:  # else who writes as fast as this reads is followed for ever
            return


def commits_of(log: Log) -> Iterator[Commit]:
    """Every commit of a log, in order."""
    return (commit for batch in batches_of(log) for commit in batch)


class ChainCheck:
    """Follows every session's chain and checks the cells it covers."""

    def __init__(self, log: Log, histories: HistoryTree | None = None, erased: Erased | None = None) -> None:
        self.log = log
        self.histories = histories
        self.erasures = Erasures(log)
        self.erased = erased or self.erasures
        self._erases = False  # whether any commit records an erasure
        self.problems: list[Finding] = []
        self.commits = 0
        self.mutations = 0
        self.heads: dict[int, tuple[int, bytes]] = {}
        self._ends: dict[tuple[int, int], bytes] = {}
        self._sessions: dict[bytes, int] = {}
        self._parents: dict[int, int | None] = {}
        self._last_cell = 0
        self._archives: set[str] = set()  # what is wrong with them

    def batch(self, commits: Sequence[Commit]) -> None:
        """Checks commits with the cells they brought, read some at a time."""
        waiting: list[Commit] = []
        cells = 0
        for commit in commits:
            self.commit(commit)
            waiting.append(commit)
            cells += commit.cell_count
            if cells >= CELLS:
                self._sealed(waiting)
                waiting, cells = [], 0
        self._sealed(waiting)

    def commit(self, commit: Commit) -> None:
        """Checks one commit: its link, its positions, its body, where its cells begin."""
        where = f"commit {commit.ordinal}"
        self.commits += 1
        self.mutations += commit.count
        if commit.ordinal != self.commits:
            self._add("commit", f"commit {self.commits}", f"it is missing; the next one is commit {commit.ordinal}")
            self.commits = commit.ordinal
        try:
            mutations = decode(commit.body)
        except ValueError as error:
            self._add("commit", where, f"its body cannot be read ({error})")
            mutations = []
        self._link(commit, mutations, where)
        if len(mutations) != commit.count:
            self._add("commit", where, f"it counts {commit.count} mutations and holds {len(mutations)}")
        self.heads[commit.session] = (commit.last, commit.hash)
        self._ends[(commit.session, commit.last)] = commit.hash
        self._erases = self._erases or any(isinstance(mutation, Erase) for mutation in mutations)
        if self.histories is not None:
            self.histories.follow(commit, mutations)
        self._cells(commit)

    def _link(self, commit: Commit, mutations: list[AnyMutation], where: str) -> None:
        first = mutations[0] if mutations else None
        known = self.heads.get(commit.session)
        if known is None:
            start = self._start(first, where)
            if start is None:
                return
            known = start
        if commit.first != known[0] + 1:
            self._add("position", where, f"it begins at position {commit.first}, after position {known[0]}")
        if not follows(known[1], commit):
            self._add("hash", where, f"session {commit.session}, position {commit.first}: its hash does not match")
        if isinstance(first, Open):
            if commit.session != commit.ordinal:
                self._add("commit", where, f"it opens a session and stands in session {commit.session}")
            if first.uid in self._sessions:
                self._add("commit", where, f"it opens session {self._sessions[first.uid]} a second time")
            self._sessions[first.uid] = commit.session
            if first.origin == Origin.FORK:
                self._parents[commit.session] = self._sessions.get(first.parent or b"")

    def _start(self, first: AnyMutation | None, where: str) -> tuple[int, bytes] | None:
        if not isinstance(first, Open):
            self._add("commit", where, "it belongs to a session that no commit opens")
            return None
        if first.origin != Origin.FORK:
            return 0, genesis(first.uid)
        parent = self._sessions.get(first.parent or b"")
        end = self._fork_end(parent, first.parent_position)
        if end is None:
            self._add(
                "fork",
                where,
                f"it forks at position {first.parent_position}, where nothing of its parent ends",
            )
            return None
        return first.parent_position, end

    def _fork_end(self, parent: int | None, position: int) -> bytes | None:
        """The hash that ends at a position of a session or of one it forked from."""
        while parent is not None:
            found = self._ends.get((parent, position))
            if found is not None:
                return found
            parent = self._parents.get(parent)
        return None

    def _cells(self, commit: Commit) -> None:
        numbers = range(commit.cell, commit.cell + commit.cell_count)
        if commit.cell != (self._last_cell + 1 if commit.cell_count else 0):
            self._add("commit", f"commit {commit.ordinal}", f"its cells begin at {commit.cell}, out of turn")
        self._last_cell = max(self._last_cell, numbers.stop - 1)
        if len(commit.commitments) % 32:
            self._add("commit", f"commit {commit.ordinal}", "its commitments are cut short")

    def _sealed(self, commits: Sequence[Commit]) -> None:
        """Checks the bytes of cells against their commitments."""
        sealed = {
            commit.cell + index: (commit, commit.commitment(index))
            for commit in commits
            for index in range(commit.cell_count)
        }
        wrong = set(sealed)  # until each was read and found sound
        try:
            for number, cell in self.log.each(sealed) if sealed else ():
                if unsound(cell, number, sealed[number][1], self.erased) is None:
                    wrong.discard(number)
        except CorruptError:  # an archive
            if len(commits) > 1:
                for commit in commits:
                    self._sealed([commit])
                return
            wrong = {number for some in _batched(list(sealed)) for number in self._beside(some, sealed)}
        for number in sorted(wrong):
            self._unsound(*sealed[number], number)

    def _beside(self, numbers: Sequence[int], sealed: Mapping[int, tuple[Commit, bytes]]) -> Iterator[int]:
        """Those of some cells that are unsound, where an archive cannot be read, which is named."""
        cells, whole = self._read(numbers)
        for number in numbers:
            cell = cells.get(number)
            if (cell is not None or whole) and unsound(cell, number, sealed[number][1], self.erased) is not None:
                yield number

    def _unsound(self, commit: Commit, commitment: bytes, number: int) -> None:
        """Looks at a cell once more, when nobody destroys any, and names it where it is still not as it should be."""
        with self.log.settled():
            cells, whole = self._read([number])
        cell = cells.get(number)
        wrong = unsound(cell, number, commitment, self.erased) if whole or cell is not None else None
        if wrong is not None:
            what = wrong if cell is None else f"position {commit.first}: {wrong}"
            self._add("cell", f"cell {number} of commit {commit.ordinal}", what)

    def _read(self, numbers: Sequence[int]) -> tuple[dict[int, Cell], bool]:
        """Cells, and whether those in archives are among them: one that cannot be read is named once."""
        try:
            return self.log.cells(numbers), True
        except CorruptError as error:
            if error.code in OBJECTS and len(numbers) > 1:  # each of them is named
                found = [self._read([number]) for number in numbers]
                return {number: cell for cells, _ in found for number, cell in cells.items()}, all(w for _, w in found)
        with self.log.settled():  # an archive may have been replaced meanwhile
            try:
                return self.log.cells(numbers), True
            except CorruptError as error:
                cells, what = self.log.cells(numbers, archived=False), str(error)
                if what not in self._archives:
                    self._add(ARCHIVE, "object" if error.code in OBJECTS else "archive", what)
                self._archives.add(what)
                return cells, False

    def end(self, last: int) -> None:
        """Checks that the cell that was the last one first lies in a commit, and that what was erased is gone."""
        if last > self._last_cell:
            self._add("cell", f"cell {self._last_cell + 1}", "no commit brought it: commits at the end are missing")
        if self._erases:
            self.erasures.follow()
            there = left_of(self.log, self.erasures.numbers)
            if there:  # somebody may be about to destroy them
                with self.log.settled():
                    there = left_of(self.log, there)
            for number in there:
                what = "it is recorded as erased and still there; run `vmstore erase STORE --finish`"
                self._add(ERASURE, f"cell {number}", what)

    def _add(self, kind: str, where: str, what: str) -> None:
        self.problems.append(Finding(kind, where, what))


def _batched(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[at : at + SOME] for at in range(0, len(numbers), SOME))


def left_of(log: Log, numbers: Sequence[int]) -> list[int]:
    """Those of some cells that were not destroyed; of an archive that cannot be read none is known."""
    return [number for number, cell in reachable(log, numbers) if not cell.erased]


def _folded(log: Log, projection: Projection, progress: Progress | None, views: bool, rules: bool) -> Iterator[Finding]:
    """Replays the rules over the log, and compares each view with a fresh fold of it."""
    fresh = Projection(log, projection.spare(), projectors=projection.projectors)
    total = log.ordinal
    try:
        fresh.catch_up(None if progress is None else lambda done, _: progress(total + done, total * 2), upto=total)
        if rules:
            yield from _rules(log, fresh, total)
    except (VmstoreError, apsw.Error, AssertionError, ValueError) as error:
        yield Finding("fold", "log", f"the log cannot be folded: {error}")
        return
    try:
        while True:
            projection.catch_up()
            with projection.moment_held() as ordinal:  # others may write meanwhile; the views stand still
                fresh.catch_up(upto=ordinal)
                found = list(_differences(projection, fresh)) if views else []
            if not found or not any(True for _ in erasures_after(log, ordinal)):
                break  # else it may be what was erased since, which the views had and the fresh fold had not
        yield from found
    except (apsw.Error, ValueError, TypeError) as error:  # what SQLite refuses, or gives of another type
        yield Finding("view", "views", f"the views cannot be read ({error}); delete them and they are rebuilt")
    finally:
        fresh.close()


def _differences(have: Projection, want: Projection) -> Iterator[Finding]:
    """Rows that the views have and a fresh fold lacks, or the other way round."""
    yield from _file(have.db, want.db)
    for projector in have.projectors:
        difference = _difference(have, want, projector)
        if difference is not None:
            yield Finding("view", projector.name, difference)


def _file(have: apsw.Connection, want: apsw.Connection) -> Iterator[Finding]:
    """Checks the file of the views itself: rows may be right where an index points elsewhere."""
    remedy = "delete them and they are rebuilt"
    tables = "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    if have.execute(tables).fetchall() != want.execute(tables).fetchall():
        yield Finding("view", "views", f"their tables are not those of this version; {remedy}")
    verdict = have.execute("PRAGMA integrity_check(1)").get
    if verdict != "ok":
        yield Finding("view", "views", f"their file is damaged ({verdict}); {remedy}")


def _difference(have: Projection, want: Projection, projector: type[Projector]) -> str | None:
    """The first row in which a view differs from a fresh fold; None where it holds what the log gives."""
    remedy = f"run `vmstore rebuild --view {projector.name}`"
    for table in sorted(projector.schema):
        mine, right = have.rows(table), want.rows(table)
        while True:
            some, wanted = list(islice(mine, ROWS)), list(islice(right, ROWS))
            for one, other in zip(some, wanted, strict=False) if some != wanted else ():
                if one != other:
                    return f"holds {_short(table, one)} where the log gives {_short(table, other)}; {remedy}"
            if len(some) != len(wanted):
                return f"holds more or fewer rows of {table} than the log gives; {remedy}"
            if not some:
                break
    return None


def _short(table: str, row: tuple[Any, ...]) -> str:
    text = f"{table} {msgspec.json.encode(row).decode('utf-8', 'replace')}"
    return text if len(text) <= 160 else text[:159] + "…"


def _rules(log: Log, fresh: Projection, total: int) -> Iterator[Finding]:
    """Every mutation against every rule, each session from its beginning."""
    heads: dict[int, GateHead] = {}
    contents = LogContents(log, fresh)
    for commit, mutations in _read(log, contents, total):
        before: AnyMutation | None = None
        for index, mutation in enumerate(mutations):
            position = commit.first + index
            if isinstance(mutation, Open):
                heads[commit.session] = _head(fresh, commit.session, mutation)
            head = heads[commit.session]
            if index == 0:
                head.recent.sealing = [commit.commitment(cell) for cell in range(commit.cell_count)]
                contents.begin(commit, head)
            reason = None
            if not isinstance(mutation, Unknown):
                place = MutationPlace(before, commit.cell_count, contents=contents)
                reason = broken(head, mutation, place, sound=sound(mutation) is not None)
            if reason is not None:
                yield _broken(commit, position, mutation, *reason)
                if isinstance(mutation, Pack) and reason[0] not in FOLDABLE:
                    return
            contents.note(position, mutation)
            if isinstance(mutation, Create | Update | Compress) and isinstance(mutation.content, tuple):
                head.recent.named[mutation.content] = fresh.fold.cellar.sealed(commit, mutation.content)[1]
            head.apply(mutation)
            before = mutation
        head = heads[commit.session]
        head.recent.end(commit.first, commit.commitments)
        if len(head.recent.mutations) > RECENT_MAX:
            head.settle(ViewLookups(fresh.db, commit.session, head.position))


FOLDABLE = {rule.__name__ for rule in (*OF_CONTENTS, words_are_listed, message_exists)}
"""The rules that a pack can break whose context can be folded all the same."""


def _broken(commit: Commit, position: int, mutation: AnyMutation, rule: str, why: str) -> Finding:
    """A rule that is broken, and what to do where nothing else is touched by it."""
    where, what = f"commit {commit.ordinal}", f"position {position}: {why} (rule {rule})"
    if rule not in FOLDABLE:
        return Finding("rule", where, what)
    return Finding(UNREADABLE, where, f"{what}; {mutation.kind} is answered as damaged, and nothing else is touched")


def _read(log: Log, contents: LogContents, total: int) -> Iterator[tuple[Commit, list[AnyMutation]]]:
    """Every commit up to an ordinal with its mutations, those cells read that a rule looks at, some at a time."""
    waiting: list[tuple[Commit, list[AnyMutation]]] = []
    cells = 0
    for commit in commits_of(log):
        if commit.ordinal > total:
            break
        waiting.append((commit, decode(commit.body)))
        cells += commit.cell_count
        if cells >= CELLS:
            contents.read(waiting)
            yield from waiting
            waiting, cells = [], 0
    contents.read(waiting)
    yield from waiting


def _head(fresh: Projection, session: int, opening: Open) -> GateHead:
    """A session's head before its first mutation; a fork's holds what it inherits."""
    if opening.origin != Origin.FORK:
        return GateHead(opening.uid, EmptyLookups(opening.uid))
    head = GateHead(opening.uid, ViewLookups(fresh.db, session).inherited())
    head.stand(opening.parent_position)
    head.begins = opening.parent_position
    head.turn, head.call = fork_moment(fresh.db, opening)
    head.restore(r[:4] for r in resident_at(Branch(fresh.db, session), opening.parent_position))
    return head
