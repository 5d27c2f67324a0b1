"""Migrates stores: every namespace of one comes into another commit by commit, and is the same store there.

The log is copied in its own order, so ordinals, keys of sessions, positions, salts and hashes stay what they are.
What is there already has to be the beginning of what comes, so a migration that was killed goes on where it
stopped, and one of a store that is written meanwhile catches up when it is run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vmstore.cells.cell import Cell
from vmstore.core.clock import SystemClock, SystemIds
from vmstore.core.system.atomic_file import naming, new_file
from vmstore.core.system.safe_files import read_within
from vmstore.engine.verify.verify import unsafe, unsound, verify
from vmstore.erasure import certificates
from vmstore.erasure.erase import finish_brought, mark
from vmstore.errors import ConflictError, CorruptError, InputError, OvertakenError, StoreError
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.namespace.backends.address import Address, backend_of
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.encryption import Key
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.open import attach
from vmstore.namespace.reports import MigratedNamespace, MigratedSession, MigrationReport
from vmstore.seals import seals
from vmstore.views.erased_cells import Erasures, erasures_in
from vmstore.views.projection import Progress

READ = 256  # commits at a time
RUN_BYTES = 4 << 20  # of contents written with one flush, and those of one commit beyond


class _Way(NamedTuple):
    """A namespace on its way: its name and key in the one store, and in the other."""

    name: str
    key: Key | None
    into: str
    its_key: Key | None


def migrate(
    source: Address | Backend,
    target: Address | Backend,
    *,
    namespaces: Sequence[str] = (),
    key: Key | None = None,
    progress: Progress | None = None,
) -> MigrationReport:
    """Copies every namespace of a store, or those named, into another store, commits as they are, and proves them.

    What the target holds of a namespace has to be the beginning of what the source does: nothing, or what an
    earlier migration brought. Contents, erasures, certificates and seals come along; views are folded there. The
    source is only read, and may be written meanwhile: what it held when its namespace was begun is copied. `key`
    is the store key of namespaces that are encrypted, which the target encrypts too. Raises ConflictError where the
    target holds something else, StoreError where it cannot encrypt, CorruptError where the source is damaged.
    """
    there, here = backend_of(source), backend_of(target)
    ways = _ways(there, here, namespaces, key)
    return MigrationReport(
        [_migrated(there, here, way, _share(progress, nth, len(ways))) for nth, way in enumerate(ways)]
    )


def _ways(source: Backend, target: Backend, named: Sequence[str], key: Key | None) -> list[_Way]:
    """The namespaces that come and where to; refused before anything is copied."""
    if source.identity == target.identity:
        raise InputError(f"{source.address} and {target.address} are one store; name another", code="same-store")
    source.check()
    names = list(named) or ([source.named] if source.named else source.namespaces())
    if target.named and len(names) > 1:
        raise InputError(
            f"{target.address} is named with the namespace {target.named!r}, and {len(names)} would come into it; "
            "leave it out of the address, or name one with --namespace",
            code="two-namespaces",
        )
    ways = []
    for name in names:
        its_key, into = source.key_for(name, key), target.named or name
        ways.append(_Way(name, its_key, into, target.key_for(into, its_key)))
        if ways[-1].its_key is None and its_key is not None:
            raise StoreError(
                f"namespace {name!r} of {source.address} is encrypted, and {into!r} at {target.address} would not "
                "be; name a store that can be encrypted, or keep it where it is",
                code="not-encrypted-here",
            )
    return ways


def _migrated(source: Backend, target: Backend, way: _Way, progress: Progress | None) -> MigratedNamespace:
    clock, ids = SystemClock(), SystemIds()
    with ExitStack() as opened:
        there = opened.enter_context(closing(attach(source, "r", way.name, clock, ids, way.key, believed=False)))
        if there.place is None:
            raise InputError(
                f"{source.address} is an archive of one session; bring that in with `vmstore merge`", code="not-a-store"
            )
        here = opened.enter_context(closing(attach(target, "rw", way.into, clock, ids, way.its_key)))
        opened.enter_context(there.log.settled())  # what is recorded as erased there is not about to be destroyed
        before = here.log.ordinal
        upto = _copied(there, here, source, target, _share(progress, 0, 2))
        documents = _documents(there, here)
        finish_brought(here)
        heads = _proven(there.log, here, upto, before, source, target, _share(progress, 1, 2))
        return MigratedNamespace(way.name, way.into, upto - before, upto, there.log.ordinal - upto, documents, heads)


def _copied(there: Namespace, here: Namespace, source: Backend, target: Backend, progress: Progress | None) -> int:
    """Copies what the source holds now; the ordinal up to which both are the same."""
    reading = _Reading(there.log, source.address)
    done = here.log.ordinal
    _compare(there.log, here.log, 0, done, source, target)
    try:
        for runs in reading.runs(done):
            erases = any(True for run in runs for commit in run for _ in erasures_in(commit))
            with here.engine.log.destroying() if erases else nullcontext():
                if erases:
                    mark(here)  # so that who opens it next finishes what a kill interrupts
                done = here.engine.mirror(runs, done)
            if progress is not None:
                progress(done, reading.upto)
    except OvertakenError as error:
        raise ConflictError(
            f"{target.address} was written by somebody else, up to ordinal {here.log.ordinal}, while this copied into "
            "it; see that nobody does, then look whether it is still a copy by running this again",
            code="written-meanwhile",
        ) from error
    return done


class _Reading:
    """The commits of a log with their cells, each cell held against its commitment, up to where the log ends now."""

    def __init__(self, log: Log, address: str) -> None:
        self._log = log
        self._address = address
        self._erasures = Erasures(log)
        self.upto = self._erasures.follow()

    def runs(self, after: int) -> Iterator[list[list[Commit]]]:
        """The commits beyond an ordinal, as many as are written at once, in runs of one session each."""
        taken, size = list[Commit](), 0
        while after < self.upto:
            batch = self._log.tail(after, min(READ, self.upto - after))
            if not batch:
                raise self._unsound(f"commit {after + 1}", "it is missing")
            after = batch[-1].ordinal
            for commit in self._whole(batch):
                taken.append(commit)
                size += sum(len(cell.content) for cell in commit.cells)
                if size >= RUN_BYTES:
                    yield _by_session(taken)
                    taken, size = [], 0
            if taken:
                yield _by_session(taken)
                taken, size = [], 0

    def _whole(self, batch: Sequence[Commit]) -> Iterator[Commit]:
        numbers = [number for commit in batch for number in range(commit.cell, commit.cell + commit.cell_count)]
        found = self._log.each(numbers)
        at, cell = next(found, (0, None))
        for commit in batch:
            cells = list[Cell]()
            for index in range(commit.cell_count):
                number = commit.cell + index
                mine = cell if at == number else None
                if (wrong := unsound(mine, number, commit.commitment(index), self._recorded)) is not None:
                    raise self._unsound(f"cell {number} of commit {commit.ordinal}", wrong)
                assert mine is not None, "a cell that is missing is unsound"
                cells.append(mine)
                at, cell = next(found, (0, None))
            yield msgspec.structs.replace(commit, cells=tuple(cells))

    def _recorded(self, number: int) -> bool:
        """Whether a cell is recorded as erased; what was erased since this began is copied up to its record."""
        if not self._erasures.known(number):
            self.upto = max(self.upto, self._erasures.follow())
        return self._erasures.known(number)

    def _unsound(self, where: str, what: str) -> CorruptError:
        return CorruptError(
            f"{self._address} is not sound, so no more was taken from it: {where}: {what}; `vmstore verify` names all "
            "problems",
            code="not-sound",
        )


def _by_session(commits: Sequence[Commit]) -> list[list[Commit]]:
    return [list(run) for _, run in groupby(commits, attrgetter("session"))]


def _compare(there: Log, here: Log, after: int, upto: int, source: Backend, target: Backend) -> None:
    """Raises ConflictError where two logs differ beyond an ordinal, up to another."""
    while after < upto:
        mine = here.tail(after, min(READ, upto - after))
        theirs = there.tail(after, len(mine))
        same = sum(1 for one, other in zip(mine, theirs, strict=False) if _link(one) == _link(other))
        if not mine or same < len(mine):
            raise ConflictError(
                f"{target.address} is no copy of {source.address}: they are the same up to ordinal {after + same}, and "
                "the one to come into went on by itself; name one that is empty, or bring single sessions with "
                "`vmstore merge`",
                code="not-a-beginning",
            )
        after = mine[-1].ordinal


def _link(commit: Commit) -> tuple[int, int, bytes]:
    return commit.session, commit.first, commit.hash


def _proven(
    there: Log, here: Namespace, upto: int, before: int, source: Backend, target: Backend, progress: Progress | None
) -> list[MigratedSession]:
    """Verifies what came and compares it to the last hash; where every session stands."""
    _compare(there, here.log, before, upto, source, target)
    _, problems = verify(here.log, here.projection, progress, views=False)
    if problems := unsafe(problems):
        kind, where, what = problems[0]
        raise CorruptError(
            f"{source.address} is not sound, as its copy shows: {kind}, {where}: {what}; `vmstore verify` names all "
            "problems, in either",
            code="not-sound",
        )
    here.follow()
    rows: Any = here.views.execute("SELECT hex(uid), name, position, session FROM sessions ORDER BY session").fetchall()
    heads = {row[3]: here.log.head(row[3]) for row in rows}
    return [
        MigratedSession(uid.lower(), name, position, head.hash.hex())
        for uid, name, position, session in rows
        if (head := heads[session]) is not None
    ]


def _documents(there: Namespace, here: Namespace) -> int:
    """Copies certificates of erasures and seals to beside the target; how many are new there."""
    assert there.cache is not None and here.cache is not None, "neither is in memory"
    count = 0
    for folder_of, suffix in ((certificates.folder_of, certificates.SUFFIX), (seals.folder_of, seals.SEAL)):
        for file in sorted(folder_of(there.cache).glob(f"*{suffix}")):
            rest = file.name.removeprefix(f"{there.name}-")
            if rest == file.name or rest.count("-") != 1:  # of a namespace whose name begins alike
                continue
            path = folder_of(here.cache) / f"{here.name}-{rest}"
            if not path.exists():
                _copy(file, path)
                count += 1
    return count


def _copy(file: Path, path: Path) -> None:
    with naming(path):
        path.parent.mkdir(exist_ok=True)
        with new_file(path) as copy:
            copy.write(read_within(file))


def _share(progress: Progress | None, number: int, of: int) -> Progress | None:
    """The progress of one part among `of` parts of some work."""
    if progress is None:
        return None
    return lambda done, total: progress(number * 1000 + 1000 * done // max(total, 1), of * 1000)
