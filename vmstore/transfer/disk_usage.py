"""Bytes on disk: files by purpose, and contents, as they were accepted, by session and by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw

from vmstore.core.mutation import (
    CELL_FIELDS,
    Alias,
    Annotate,
    AnyMutation,
    CellRef,
    Cite,
    Close,
    Compress,
    Create,
    Depth,
    Fact,
    GuardTrip,
    Mark,
    Message,
    Open,
    Pack,
    Promote,
    Reference,
    Reply,
    Search,
    Segment,
    Settings,
    Tag,
    ToolRun,
    Update,
    decode,
)
from vmstore.core.page import PageType
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projection import BATCH, Progress

DBSTAT = "ENABLE_DBSTAT_VTAB"
PARTS = ("log", "views", "blobs", "columns", "text", "known", "archive")
Weights = Counter[tuple[str, str]]


def files(folder: Path) -> Weights:
    """Bytes on disk by part (log, views, blobs, …) and what in it: a table with its indexes, free pages."""
    found: Weights = Counter()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        part = _part(file.relative_to(folder))
        if file.suffix == ".sqlite":
            for name, size in tables(file):
                found[part, name] += size
        elif not file.name.endswith((".sqlite-wal", ".sqlite-shm")):  # counted with their database, and memory
            found[part, file.stem if part == "columns" else "files"] += file.stat().st_size
    return +found


def _part(path: Path) -> str:
    """The folder a file lies in, or what its name begins with."""
    first = path.parts[0]
    name = first if len(path.parts) > 1 else first.partition(".")[0].partition("-")[0]
    return name if name in PARTS else "other"


def tables(file: Path) -> list[tuple[str, int]]:
    """The tables of a database by the bytes of their pages, its free pages, and what is only in its WAL.

    Together they are the bytes of the file and its WAL; the shared index is memory and left out.
    """
    wal = file.with_name(f"{file.name}-wal")
    pending = wal.stat().st_size if wal.exists() else 0
    db = as_it_is(file)
    try:
        page = int(db.execute("PRAGMA page_size").get)
        free = int(db.execute("PRAGMA freelist_count").get) * page
        pages = int(db.execute("PRAGMA page_count").get) * page
        found = dict(_trees(db)) if DBSTAT in apsw.compile_options else {"the file": pages - free}
    finally:
        db.close()
    rest = file.stat().st_size + pending - sum(found.values()) - free
    return [*found.items(), ("free pages", free), ("write-ahead log", rest)]


def as_it_is(file: Path) -> apsw.Connection:
    """A connection that leaves no file behind: where nobody writes, or nobody may, it reads the file as it is."""
    uri, flags = file.absolute().as_uri(), apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    frozen = uri + "?immutable=1"
    if not file.with_name(f"{file.name}-wal").exists():
        return apsw.Connection(frozen, flags=flags)
    try:
        db = apsw.Connection(uri, flags=flags)
        db.setbusytimeout(10_000)
        db.execute("PRAGMA page_count").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        db = apsw.Connection(frozen, flags=flags)
    return db


def _trees(db: apsw.Connection) -> Iterator[tuple[str, int]]:
    """Tables with their indexes; what SQLite keeps for itself is its schema."""
    yield from db.execute(
        "SELECT coalesce(s.tbl_name, 'schema'), sum(d.pgsize) FROM dbstat d LEFT JOIN sqlite_schema s"
        " ON s.name = d.name WHERE d.aggregate = TRUE GROUP BY 1"
    )


class ContentUsage:
    """Cells counted and weighed, by session and by kind; a content named again is weighed once."""

    def __init__(self, log: Log, views: apsw.Connection) -> None:
        self._log = log
        self._views = views
        self._lanes: dict[int, Branch] = {}
        self._names: dict[int, str] = dict(views.execute("SELECT session, name FROM sessions"))
        self.sessions: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.cells_by_session: Counter[str] = Counter()
        self.cells_by_kind: Counter[str] = Counter()

    def weigh(self, progress: Progress | None = None) -> None:
        """Reads every cell of the log."""
        ordinal, end = 0, self._log.ordinal
        while batch := self._log.tail(ordinal, BATCH):
            for commit in batch:
                self._commit(commit)
                if progress is not None and commit.ordinal % 64 == 0:
                    progress(commit.ordinal, end)
            ordinal = batch[-1].ordinal

    def _commit(self, commit: Commit) -> None:
        if not commit.cell_count:
            return
        kinds = self._kinds(commit)
        name = self._names.get(commit.session, f"session {commit.session}")
        for number, cell in self._log.cells(range(commit.cell, commit.cell + commit.cell_count)).items():
            kind = kinds.get(number - commit.cell, "other")
            self.sessions[name] += len(cell.content)
            self.kinds[kind] += len(cell.content)
            self.cells_by_session[name] += 1
            self.cells_by_kind[kind] += 1

    def _kinds(self, commit: Commit) -> dict[int, str]:
        """The kind of each cell of a commit, by index."""
        found = {commit.request: "request ids"}
        for position, mutation in enumerate(decode(commit.body), commit.first):
            for ref, kind in self._named(commit.session, position, mutation):
                if isinstance(ref, int):
                    found[ref] = kind
        return found

    def _named(self, session: int, position: int, mutation: AnyMutation) -> Iterator[tuple[CellRef | None, str]]:
        match mutation:
            case Create():
                yield mutation.labels, "labels"
                yield mutation.content, PageType(mutation.type).word
            case Update() | Compress():
                yield mutation.content, self._type(session, mutation.page)
            case Annotate():
                yield from ((ref, "labels") for ref in (mutation.tags, mutation.untags, mutation.anchors))
            case Fact():
                yield from ((getattr(mutation, name), "facts") for name in CELL_FIELDS[Fact])
            case ToolRun():
                yield mutation.error, "labels"
                yield mutation.tags, "labels"
            case GuardTrip():
                yield mutation.tool, "labels"
            case Promote():
                yield mutation.skill, "labels"
            case Tag() | Depth():
                yield mutation.tag, "labels"
            case Alias():
                yield from ((ref, "labels") for ref in (mutation.alias, mutation.canonical))
            case Message():
                yield mutation.aside, "asides"
                yield mutation.envelope, "envelopes"
            case Reply():
                yield mutation.aside, "asides"
            case Pack():
                yield mutation.rest, "requests"
                yield from ((ref, "envelopes") for _, ref in mutation.envelopes)
            case Mark():
                yield mutation.name, "names"
                yield mutation.note, "asides"
            case Segment():
                yield mutation.title, "names"
            case Close():
                yield mutation.reason, "names"
            case Settings():
                yield mutation.told, "settings"
            case Reference() | Cite():
                yield mutation.evidence, "evidence"
            case Search():
                yield mutation.query, "queries"
            case Open():
                yield from ((ref, "names") for ref in (mutation.name, mutation.meta, mutation.source, mutation.key))

    def _type(self, session: int, page: int) -> str:
        if session not in self._lanes:
            self._lanes[session] = Branch(self._views, session)
        owner = self._lanes[session].owner(page)
        found = self._views.execute("SELECT type FROM pages WHERE session = ? AND page = ?", (owner, page)).get
        return PageType(found).word
