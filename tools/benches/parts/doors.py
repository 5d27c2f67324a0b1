"""Every face of vmstore that the benches measure, one function each, so that a face is changed in one place."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw

import vmstore
from benches.parts.story import AT, AT_STEP, Changed, Deed, Linked, Made, Packed, Replied, Shortened, Turned, Utterance
from vmstore.cells.cell import Cell
from vmstore.core.clock import SystemIds
from vmstore.core.mutation import (
    PARTIAL,
    Compress,
    Create,
    Link,
    Message,
    Mutation,
    Pack,
    Reply,
    Turn,
    Update,
    encode,
)
from vmstore.core.page import Fidelity, LinkKind, Method, Mime, Modality, PageType, Slot, Status
from vmstore.engine.batch import Batch
from vmstore.engine.head import NewSession
from vmstore.log.commit import NO_REQUEST, Commit, genesis, seal
from vmstore.log.sqlite import SqliteLog
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.projection import PROJECTORS, Projection
from vmstore.views.projectors.lineage import walk

# ---- writing through the gate


def batch(session: Session, at: int) -> AbstractContextManager[Batch]:
    """One commit of a session, durable when the block ends."""
    return session.batch(at_us=at)


@contextmanager
def opening(store: Store, name: str, at: int) -> Iterator[Batch]:
    """The first commit of a session, which opens it."""
    under_way = store._ns.engine.begin(NewSession(name), at)
    yield under_way
    under_way.commit(at)


def write(session: Session, deeds: Sequence[Deed]) -> None:
    """The public call: deeds as one commit, checked, folded into the head, sealed, appended, durable."""
    with batch(session, AT + AT_STEP * deeds[0].position) as under_way:
        play(under_way, deeds)


def play(under_way: Batch, deeds: Sequence[Deed]) -> None:
    """Adds deeds to a batch."""
    for deed in deeds:
        under_way.add(_MUTATIONS[type(deed)](deed, under_way))


def _ref(under_way: Any, content: bytes | None) -> Any:
    return None if content is None else under_way.cell(content)


def _message(deed: Utterance, under_way: Any) -> Mutation:
    return Message(deed.role, Slot.MESSAGES, under_way.cell(deed.envelope), deed.human)


def _made(deed: Made, under_way: Any) -> Mutation:
    return Create(
        PageType.TRANSCRIPT,
        Modality.STRUCTURED if deed.structured else Modality.TEXT,
        deed.role,
        deed.message,
        0,
        _ref(under_way, deed.content),
        deed.size,
        deed.size // 4,
        Mime.JSON if deed.structured else Mime.TEXT,
        ((int(LinkKind.CAUSED_BY), deed.source),) if deed.source else (),
    )


def _changed(deed: Changed, under_way: Any) -> Mutation:
    return Update(deed.page, deed.version, under_way.cell(deed.content), deed.size, deed.size // 4)


def _shortened(deed: Shortened, under_way: Any) -> Mutation:
    content = under_way.cell(deed.content)
    return Compress(deed.page, deed.version, 2, Method.SHORTENED, 1, content, deed.size, deed.size // 4)


def _linked(deed: Linked, under_way: Any) -> Mutation:
    return Link(deed.source, deed.target, LinkKind.REFERENCES)


def _packed(deed: Packed, under_way: Any) -> Mutation:
    """A request nobody sent, of which some pages of a message may be missing."""
    totals = under_way.head.foresee(deed.entered, deed.left)
    return Pack(deed.call, Fidelity.DERIVED, *totals, deed.entered, deed.left, renderer=PARTIAL)


def _replied(deed: Replied, under_way: Any) -> Mutation:
    return Reply(
        deed.call, Status.OK, 0, deed.tokens, deed.tokens * 9 // 10, 300, latency=2_000_000,
        aside=under_way.cell(deed.aside),
    )  # fmt: skip


def _turned(deed: Turned, under_way: Any) -> Mutation:
    return Turn(deed.number)


_MUTATIONS: dict[type, Callable[[Any, Any], Mutation]] = {
    Utterance: _message,
    Made: _made,
    Changed: _changed,
    Shortened: _shortened,
    Linked: _linked,
    Packed: _packed,
    Replied: _replied,
    Turned: _turned,
}


def texts(session: Session) -> Any:
    """What a search of a session sees at its head: the texts in force, with their postings."""
    ns = session._ns
    with ns.asking():
        key = ns.key(session.name)
        return ns.texts([(Branch(ns.views, key or 0), session.info().position)])


# ---- the log alone


class Sheet:
    """Stands in for a batch where mutations are prepared for the log alone: cells by index, roots as zeros."""

    def __init__(self) -> None:
        self.cells: list[bytes] = []
        self.head = self

    def cell(self, content: bytes) -> int:
        """Takes content down; its index."""
        self.cells.append(content)
        return len(self.cells) - 1

    def foresee(self, entered: object, left: object) -> tuple[int, int, bytes]:
        """Totals nobody checks."""
        return 0, 0, bytes(32)


def prepared(deeds: Sequence[Deed]) -> tuple[list[Mutation], list[bytes]]:
    """The mutations of a commit and the contents of its cells."""
    sheet = Sheet()
    return [_MUTATIONS[type(deed)](deed, sheet) for deed in deeds], sheet.cells


class Appender:
    """Appends commits of one session to a log past the gate: commitments, chain and rows, nothing else."""

    def __init__(self, store: Store) -> None:
        self._log = store.admin.log
        self._salt = SystemIds().salt
        self._session = self._position = self._ordinal = 0
        self._hash = genesis(bytes(16))

    def append(self, mutations: Sequence[Mutation], contents: Sequence[bytes]) -> None:
        """Seals and appends one commit, durable."""
        salt = self._salt
        cells = tuple([Cell(salt(), content) for content in contents])
        at = AT + AT_STEP * self._position
        body = encode(mutations)  # type: ignore[arg-type]
        commit: Commit = seal(self._hash, self._position + 1, len(mutations), at, 0, body, cells, NO_REQUEST)
        (stored,) = self._log.append([commit], self._session, self._position, after=self._ordinal)
        self._session, self._position, self._hash = stored.session, stored.last, stored.hash
        self._ordinal = stored.ordinal


# ---- asking


def cut(path: Path, *, again: bool = False) -> None:
    """Cuts column segments of all that a store holds; where `again`, those it has too."""
    with vmstore.open(path) as store:
        if again:
            store.admin.rebuild("columns")
        else:
            store.admin.column_segments()


def page_table(path: Path) -> Any:
    """The page table of all sessions from column segments on disk, which are checked first."""
    with vmstore.open(path) as store:
        return store.admin.page_table()


def page_rows(table: Any) -> Iterator[tuple[int, ...]]:
    """A page table as rows: session, page, version, level, tier, tokens, position of the content."""
    for _, *rest in table.rows():
        yield (1, *rest)


def page_table_folded(path: Path) -> Any:
    """The page table from the log on disk, folded by as many views as it takes."""
    log = SqliteLog(path / "default" / "log.sqlite", readonly=True)
    projectors = tuple(p for p in PROJECTORS if p.name in ("sessions", "commits", "pages", "residency"))
    db = apsw.Connection(":memory:")
    Projection(log, db, projectors=projectors).catch_up()
    shown = {(s, page): rest for s, page, *rest in db.execute("SELECT session, page, level, content FROM residents")}
    table: dict[tuple[int, int], tuple[int, ...]] = {}
    tokens: dict[tuple[int, int], int] = {}
    for session, page, version, level, count, position in db.execute(_VERSIONS):
        tokens[session, position] = count
        if level == 0:
            table[session, page] = (version, 0, 2, count, position)
    for key, (level, content) in shown.items():
        table[key] = (table[key][0], level, 0, tokens[key[0], content], content)
    db.close()
    log.close()
    return table


def folded_rows(table: Any) -> Iterator[tuple[int, ...]]:
    """The same of a folded one."""
    for key, rest in table.items():
        yield (*key, *rest)


_VERSIONS = "SELECT session, page, version, level, tokens, position FROM versions ORDER BY session, position"


def context_rows(session: Session, position: int) -> Sequence[Any]:
    """The context at a position: every page in order with all columns."""
    return session.context(position=position).shown


def closure(store: Store, session: Session, page: int, position: int) -> set[int]:
    """The pages a page rests on, as of a position."""
    with store._ns.asking():
        return {edge.target for edge in walk(session._lane(), page, position, up=True)}


def verify(store: Store, *, views: bool) -> bool:
    """Checks log and cells, and with `views` the views too; whether all is well."""
    return store.verify(views=views, rules=False).ok


def compact(store: Store) -> None:
    """Packs what can be packed."""
    store.admin.compact()


VIEWS = ("views-", "columns", "text")  # what a namespace can lose: it is folded again


def log_bytes(path: Path) -> int:
    """The bytes of a closed store that are no views, its WAL folded in."""
    return _bytes(path)[0]


def views_bytes(path: Path) -> int:
    """The bytes of everything that can be deleted and folded again."""
    return _bytes(path)[1]


def _bytes(path: Path) -> tuple[int, int]:
    folder = path / "default"
    for file in folder.glob("*.sqlite"):
        db = apsw.Connection(str(file))
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.close()
    sizes = [0, 0]
    for file in folder.rglob("*"):
        if file.is_file() and not file.name.endswith("-shm"):
            sizes[str(file.relative_to(folder)).startswith(VIEWS)] += file.stat().st_size
    return sizes[0], sizes[1]


def forget_views(path: Path) -> None:
    """Deletes the views of a closed store."""
    for place in (path / "default").iterdir():
        if place.name.startswith(VIEWS):
            shutil.rmtree(place) if place.is_dir() else place.unlink()


def opened(path: Path, key: Path | None = None) -> Store:
    """A store, made where there is none, encrypted with a key."""
    return vmstore.open(path, key=key)
