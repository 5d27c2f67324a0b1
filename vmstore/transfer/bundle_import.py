"""Takes bundles in: the whole bundle is read and proven before the first commit of it is written."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, NamedTuple

from vmstore.core.grants import CHARTER_NAME
from vmstore.core.mutation import Open
from vmstore.core.system.safe_files import regular
from vmstore.engine.engine import Engine, Ingested
from vmstore.engine.transfer.ingest import CommitCollector, ForeignSession, adopt
from vmstore.engine.transfer.rewrite import opening_of, rewrite_session
from vmstore.errors import ConflictError, CorruptError, ErasedError, InputError, OvertakenError, RefusedError
from vmstore.log.port import Log
from vmstore.transfer.bundle import BEGINS, BundledSession, Reader
from vmstore.views.projection import Progress


class Bundle(NamedTuple):
    """A bundle that holds what it says: its sessions and, in a log of their own, their commits."""

    name: str
    sessions: list[BundledSession]
    gathering: CommitCollector


def is_bundle(path: Path) -> bool:
    """Whether a file begins as bundles do."""
    try:
        with regular(path) as file:
            return file.read(len(BEGINS)) == BEGINS
    except OSError:
        return False  # reading it says why


def check_bundle(path: Path) -> None:
    """Reads a bundle to its end; InputError where it is damaged or cut short."""
    with _opened(path) as file:
        for _ in Reader(file, str(path)).commits():
            pass


def _opened(path: Path) -> BinaryIO:
    try:
        return regular(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}; give the path of a bundle", code="unreadable-file"
        ) from error


def read_bundle(path: Path, scratch: Log, progress: Progress | None = None) -> Bundle:
    """Reads a bundle into a log of its own and proves every byte of it; InputError names what is wrong."""
    gathering = CommitCollector(scratch, path)
    with _opened(path) as file:
        total = path.stat().st_size * 2
        reader = Reader(file, str(path))
        try:
            for name, commit in reader.commits():
                gathering.take(name, commit)
                if progress is not None:
                    progress(reader.done, total)
        except (ConflictError, CorruptError) as error:  # of the log of its own, which holds each against its head
            raise InputError(
                f"{path} is damaged: a commit in it does not follow the one before; nothing was taken from it, "
                "export it again",
                code="bundle-damaged",
            ) from error

    def proving(done: int, of: int) -> None:
        if progress is not None:
            progress(total // 2 + done * (total // 2) // max(of, 1), total)

    _, problems = gathering.prove(proving)
    if problems:
        kind, where, what = problems[0]
        raise InputError(
            f"{path} is damaged: {kind}, {where}: {what}; nothing was taken from it, export it again",
            code="bundle-damaged",
        )
    stated = [(session.name, session.uid, session.upto) for session in reader.sessions]
    if stated != [(session.name, session.uid, session.position) for session in gathering.sessions()]:
        raise InputError(
            f"{path} is damaged: its first line lists other sessions than it holds; export it again",
            code="bundle-damaged",
        )
    if any(session.hidden == Open.CHARTER for session in gathering.sessions()):
        raise InputError(
            f"{path} holds the own session of another namespace, whose grants are none here; leave it out",
            code="foreign-grants",
        )
    return Bundle(str(path), reader.sessions, gathering)


def take_exact(engine: Engine, bundle: Bundle) -> list[Ingested]:
    """Adopts the sessions of a bundle with the same commits, salts and hashes."""
    for inside, foreign in zip(bundle.sessions, bundle.gathering.sessions(), strict=True):
        if inside.asked and foreign.hidden and _key(engine, "uid", foreign.uid) is None:
            raise InputError(
                f"{bundle.name} holds session {inside.name!r} up to where its own import was not complete, so nobody "
                "would see it; import it without --exact, or export all of it",
                code="import-unfinished",
            )
    return adopt(engine, bundle.gathering)


def take_anew(engine: Engine, bundle: Bundle, name: str | None) -> list[Ingested]:
    """Writes the sessions of a bundle as new ones; one that was written from the same commits before stays as it is."""
    if name is not None and sum(session.asked for session in bundle.sessions) != 1:
        raise InputError(
            f"{bundle.name} holds {len(bundle.sessions)} sessions, and one name cannot be all of theirs",
            code="one-name-for-many",
        )
    keys: dict[bytes, int] = {}
    taken = []
    for inside, foreign in zip(bundle.sessions, bundle.gathering.sessions(), strict=True):
        new_name = name if name is not None and inside.asked else inside.name
        taken.append(_anew(engine, bundle.gathering, foreign, new_name, keys))
        keys[foreign.uid] = taken[-1].session
    return taken


def _anew(
    engine: Engine, gathering: CommitCollector, foreign: ForeignSession, name: str, keys: dict[bytes, int]
) -> Ingested:
    source = f"bundle:{foreign.hash.hex()}"

    def write() -> Ingested:
        """Rewrites the session in this log, unless the log holds it already."""
        seen = engine.follow()
        there = _key(engine, "source", source)
        if there is not None:
            return Ingested(there, 0)
        try:
            opening = opening_of(gathering, foreign, keys, _free(engine, name), source)
            return rewrite_session(engine, gathering, foreign, opening)
        except ErasedError as error:
            raise InputError(
                f"session {foreign.name!r} lost contents that were erased, and cannot be rewritten without them; "
                "import it with --exact"
            ) from error
        except RefusedError as error:  # of a name that another writer took meanwhile
            if engine.log.ordinal == seen:
                raise
            raise OvertakenError(f"the log went on beyond ordinal {seen}; decide again") from error

    return engine.retried(write)


def _key(engine: Engine, column: str, value: bytes | str) -> int | None:
    found = engine.projection.db.execute(f"SELECT session FROM sessions WHERE {column} = ?", (value,)).get
    return None if found is None else int(found)


def _free(engine: Engine, name: str) -> str:
    """The name, with a number behind it where it is taken."""
    free, count = name, 1
    while free == CHARTER_NAME or _key(engine, "name", free) is not None:
        count += 1
        free = f"{name}-{count}"
    return free
