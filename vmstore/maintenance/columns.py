"""Column segments of a store. numpy and duckdb come with the extra `columns`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from vmstore.core.asof import Position
from vmstore.core.page import Origin
from vmstore.core.system import after_fork
from vmstore.core.system.logger import notices
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.folder import COLUMNS
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import Columns, ColumnSegment
from vmstore.views.branch import Branch, BranchRange
from vmstore.views.projection import Progress
from vmstore.views.reads.resolve_asof import basis

if TYPE_CHECKING:
    import duckdb

    from vmstore.columns.page_table import PageTable
    from vmstore.columns.segments import Segments

VIEW = "columns"


class ColumnStore(after_fork.Owner):
    """The column segments of a namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self._ns = namespace
        self._shelf: Segments | None = None
        self._tables: tuple[int, duckdb.DuckDBPyConnection] | None = None
        after_fork.owns(self)

    def close(self) -> None:
        """Drops what is in memory."""
        self._forget()
        if self._shelf is not None:
            self._shelf.close()
            self._shelf = None

    @property
    def entry(self) -> after_fork.ReentrantLock:
        """The lock under which they are used."""
        return self._ns.entry

    def forking(self) -> None:
        """Closes DuckDB's: a copy of it lacks its threads, and ends its process when it is freed."""
        self._forget()
        if self._shelf is not None:
            self._shelf.close()

    def forked(self, quiet: bool) -> None:
        """Opens the segments again in a forked process."""
        if not quiet:
            after_fork.keep((self._shelf, self._tables))
        self._shelf = self._tables = None

    @property
    def shelf(self) -> Segments:
        """The segments; raises InputError where the extra is not installed."""
        if self._shelf is None:
            ns = self._ns
            folder = None if ns.views_folder is None else ns.views_folder / COLUMNS
            self._shelf = _opened()(folder, ns.log, ns.projection, readonly=ns.readonly)
        return self._shelf

    @property
    def there(self) -> bool:
        """Whether any segment was ever cut."""
        return self._ns.views_folder is not None and (self._ns.views_folder / COLUMNS).is_dir()

    @property
    def usable(self) -> bool:
        """Whether there are segments, and what reads them is installed; says so where only the former."""
        if not self.there:
            return False
        try:
            return self.shelf is not None
        except InputError as error:
            notices().warning("the column segments are left as they are: %s", error)
            return False

    # ---- asking

    def page_table(self, sessions: str | Iterable[str] | Mapping[str, int | None] | None) -> PageTable:
        """See `vmstore.Store.page_table`."""
        shelf = self.shelf
        from vmstore.columns.page_table import page_table

        with self._ns.asking() as ordinal:
            known = self._known()
            asked, names = {}, {}
            for name, position in _positions(sessions, known).items():
                if name not in known:
                    raise UnknownError(
                        f"there is no session {name!r}; {self._ns.nearest(name, list(known))}", code="no-session"
                    )
                key, end, forked = known[name]
                asked[key], names[key] = self._upto(key, end, forked, position), name
            return page_table(shelf, ordinal, dict(sorted(asked.items())), names)

    def _known(self) -> dict[str, tuple[int, int, bool]]:
        """Every session by name: its key, its last position, whether it is a fork."""
        rows: Any = self._ns.views.execute(
            "SELECT name, session, position, origin FROM sessions WHERE hidden = 0 ORDER BY session"
        )
        return {name: (key, end, origin == Origin.FORK) for name, key, end, origin in rows}

    def _upto(self, key: int, end: int, forked: bool, position: int | None) -> list[BranchRange]:
        """The ranges a session sees up to a position, or its end."""
        if position is None and not forked:  # nothing to look up, and most are so
            return [BranchRange(key, 0, end)]
        lane = Branch(self._ns.views, key)
        return lane.upto(end if position is None else basis(lane, Position(position)).position)

    def relations(self, db: duckdb.DuckDBPyConnection | None = None, suffix: str = "") -> duckdb.DuckDBPyConnection:
        """A connection of its own with the tables of the segments and of what is newer, and `sessions`; close it.

        With `db` they are put into that one, their names ending in `suffix`.
        """
        shelf = self.shelf
        from vmstore.columns.relations import ColumnFiles, relations, relations_of

        with self._ns.asking() as ordinal:
            rows: Any = self._ns.views.execute(
                "SELECT session, name, user, agent, title FROM sessions WHERE hidden = 0"
            ).fetchall()
            elsewhere = None if self._ns.place is None else self._ns.place.column_files()
            found = None if elsewhere is None else relations_of(ColumnFiles(*elsewhere), rows, db, suffix)
            return found or shelf.reading(ordinal, lambda held: relations(held, rows, db, suffix))

    def tables(self) -> duckdb.DuckDBPyConnection:
        """The same for one question after the other: kept until something is written."""
        with self._ns.asking() as ordinal:
            if self._tables is None or self._tables[0] != ordinal:
                self._forget()
                self._tables = ordinal, self.relations()
            return self._tables[1]

    def _forget(self) -> None:
        if self._tables is not None:
            self._tables[1].close()
            self._tables = None

    def report(self) -> Columns:
        """See `vmstore.Store.columns`."""
        shelf = self.shelf
        with self._ns.asking() as ordinal:
            found = shelf.fill(ordinal)
            end = found[-1].upto if found else 0
            segments = [
                ColumnSegment(str(segment.path), segment.after, segment.upto, segment.size) for segment in found
            ]
            return Columns(end, max(ordinal - end, 0), segments)

    # ---- keeping house

    def grow(self, progress: Progress | None = None) -> tuple[int, int]:
        """Seals what is worth it, where the extra is installed; how many segments there are, and up to which commit."""
        with self._ns.asking() as ordinal:
            from vmstore.columns.schema import TAIL_MAX

            count: Any = self._ns.views.execute("SELECT coalesce(sum(mutations), 0) FROM sessions").get
            if not self.there and count <= TAIL_MAX:  # nothing to load numpy for
                return 0, 0
            try:
                shelf = self.shelf
            except InputError:
                return 0, 0
            found = shelf.grow(ordinal, progress)
            return len(found), found[-1].upto if found else 0

    def rebuild(self, progress: Progress | None = None) -> int:
        """Cuts every segment again; the ordinal reached."""
        shelf = self.shelf
        with self._ns.asking() as ordinal:
            found = shelf.rebuild(ordinal, progress)
            return found[-1].upto if found else 0

    def problems(self) -> list[tuple[str, str]]:
        """Faults of the segments: place and description."""
        if not self.usable:
            return []
        from vmstore.columns.check import problems

        with self._ns.asking() as ordinal:
            rows: Any = self._ns.views.execute("SELECT session, name, position FROM sessions ORDER BY session")
            return list(problems(self.shelf, ordinal, {key: (name, position) for key, name, position in rows}))


def _opened() -> type[Segments]:
    try:
        from vmstore.columns.segments import Segments
    except ImportError as error:
        raise InputError(
            f"column segments need numpy and duckdb ({error}); get them with: pip install 'vmstore[columns]'"
        ) from error
    return Segments


def _positions(
    sessions: str | Iterable[str] | Mapping[str, int | None] | None, known: Iterable[str]
) -> Mapping[str, int | None]:
    """At which position of which session something is asked; None is its end."""
    if isinstance(sessions, Mapping):
        return sessions
    names = known if sessions is None else [sessions] if isinstance(sessions, str) else sessions
    return dict.fromkeys(names)
