"""One namespace open: its log, its views and its gate, under one lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import apsw

from vmstore.cells.storekey import StoreKey
from vmstore.core.clock import Clock, IdSource
from vmstore.core.system import after_fork
from vmstore.core.system.waits import MINE, WAIT_S, queued
from vmstore.core.text.suggest import LOOSE, suggest
from vmstore.errors import (
    CorruptError,
    InputError,
    InternalError,
    OvertakenError,
    ReadOnlyError,
    RefusedError,
    StoreError,
    VmstoreError,
)
from vmstore.log.port import Log, Progress
from vmstore.log.readonly import LentLog
from vmstore.namespace.folder import SNAPSHOTS
from vmstore.namespace.group_commit import GroupCommit
from vmstore.namespace.results import SessionInfo
from vmstore.views.projection import Projection
from vmstore.views.projectors.sessions import NAMED
from vmstore.views.reads.system_entries import Languages, StatedLanguage

if TYPE_CHECKING:
    from vmstore.embedders.embedder import Embedder
    from vmstore.engine.batch import Batch
    from vmstore.engine.dedup import KnownContents
    from vmstore.engine.engine import Engine
    from vmstore.engine.head import NewSession
    from vmstore.engine.system_session import RegionGuard
    from vmstore.live.compression import FormMaker
    from vmstore.live.recall.claim_finder import ClaimFinder
    from vmstore.live.runtime import Runtime
    from vmstore.namespace.backends.port import Place
    from vmstore.namespace.closeness import MomentCloseness
    from vmstore.prices.price_list import PriceList
    from vmstore.search.index import Moments, TextIndex
    from vmstore.search.moment import MomentTexts
    from vmstore.search.naive import NaiveTexts

KNOWN = "known.sqlite"
T = TypeVar("T")
Opened = Callable[[], tuple[Log, Projection]]


class NamespaceParts(NamedTuple):
    """The open files of a namespace handle; each process has its own."""

    log: Log
    projection: Projection


class Namespace(after_fork.Owner):
    """The state shared by all handles on a namespace; any thread may use it while holding the lock.

    `opened` opens the log and the views, here and again in a process that was forked; what lives in
    memory has none, and stays the copy it is.
    """

    def __init__(
        self, log: Log, projection: Projection, *, place: Place | None, readonly: bool, clock: Clock, ids: IdSource,
        store_key: StoreKey | None = None, opened: Opened | None = None,
    ) -> None:  # fmt: skip
        self._opened = opened
        self.ids = ids
        self._absolute = None if place is None else place.absolute()
        self.place, self.cache = place, None if place is None else place.cache  # None in memory
        self.store_key = store_key
        self.views_folder = self.cache if store_key is None else None  # where what is made from contents may lie
        self.name = "default" if place is None else place.name
        self.readonly = readonly
        self.clock = clock
        self.wait_s: float | None = WAIT_S  # for other processes
        self.lock = HandleLock(self)
        self.views_lock = self.lock.views
        self.query: Callable[..., Any] | None = None  # of the store that holds it: answers statements
        self.access: RegionGuard | None = None  # of a handle on a region: what its principals may do
        self.prices: PriceList | None = None  # of models, where another list than the published one was handed in
        self.embedder: Embedder | None = None  # what gives texts vectors, where one was handed in
        self.callbacks: dict[int, tuple[FormMaker, ClaimFinder]] = {}  # of live sessions that were given any
        self.fact_models: dict[int, tuple[Any, float]] = {}  # of those too, with the time each is given
        self.taggers: dict[int, Any] = {}  # of those too: who is asked for the tags of a turn
        self.on_erasure: list[Callable[[], None]] = []  # of those who remember what was asked
        self._closed = False
        self._parts: NamespaceParts | None = NamespaceParts(log, projection)
        self._gate: Engine | None = None  # made for the first that writes, or folds what a kernel goes on from
        self._forget()
        after_fork.owns(self)

    def _forget(self) -> None:
        """Remembers nothing of what the log holds."""
        self.group_commit = GroupCommit(self.lock, lambda: self.engine)
        self.elsewhere: dict[str, Any] = {}  # what sessions of a user hold, for those that remember it
        self.live: dict[int, Runtime] = {}  # live sessions that acted here, the last used last
        # Live sessions as they stood where a call was last asked for, and the last erasure before that.
        self.past: dict[int, tuple[int, Runtime]] = {}
        self.conversations: dict[
            int, tuple[int, Any]
        ] = {}  # recorded sessions as a recorder reads them, and up to where
        self.running: set[int] = set()  # live sessions that call their model
        self._keys: dict[str, int] = {}
        self.erased = 0  # the last erasure that what this handle remembers takes into account
        self._language = StatedLanguage()
        self._index: TextIndex | None = None
        self._closeness: MomentCloseness | None = None
        self._lent: apsw.Connection | None = None  # of a region: the views, for looking

    @property
    def parts(self) -> NamespaceParts:
        """The open parts; a forked process opens its own on first use."""
        if self._parts is None:
            with self.views_lock:
                if self._parts is None:
                    if self._closed or self._opened is None:
                        raise InputError("the store is closed; open it again")
                    self._parts = NamespaceParts(*self._opened())
        return self._parts

    @property
    def log(self) -> Log:
        """The log."""
        return self.parts.log

    @property
    def projection(self) -> Projection:
        """The views."""
        return self.parts.projection

    @property
    def known(self) -> KnownContents:
        """The index of sealed contents."""
        return self._engine.known

    @property
    def _engine(self) -> Engine:
        if self._gate is None:
            from vmstore.engine.dedup import KnownContents
            from vmstore.engine.engine import Engine

            log, projection = self.parts
            with self.views_lock:
                if self._gate is None:
                    place = None if self.views_folder is None or self.readonly else self.views_folder / KNOWN
                    gate = Engine(log, projection, self.clock, self.ids, KnownContents(place))
                    gate.warden = self.access
                    self._gate = gate
        return self._gate

    def close(self) -> None:
        """Closes the files; closing twice does nothing."""
        with self.lock:
            parts, closed = self._parts, self._closed
            if parts is not None and not closed:
                self._keep()
            self._closed = True
            if parts is not None and not closed:
                if self._gate is not None:
                    self._gate.known.close()
                if self._index is not None:
                    self._index.close()
                if self._lent is not None:
                    self._lent.close()
                parts.projection.close()
                parts.log.close()

    @property
    def snapshots(self) -> Path | None:
        """The folder for snapshots of live sessions; None for a store in memory or opened for reading."""
        return None if self.views_folder is None or self.readonly else self.views_folder / SNAPSHOTS

    def _keep(self) -> None:
        """Leaves snapshots of the live sessions that went on for long; none where their log cannot be read."""
        for runtime in self.live.values():
            with suppress(VmstoreError, ValueError, apsw.Error, OSError):
                runtime.keep()

    # ---- in a process that is forked

    @property
    def entry(self) -> after_fork.ReentrantLock:
        """The lock under which views and digests are used."""
        return self.views_lock.entry

    def connections(self) -> list[apsw.Connection]:
        """The views' and the digests'; the log has its own owner."""
        found = [] if self._lent is None else [self._lent]
        if self._parts is not None:
            found += self._parts.projection.connections()
        if self._gate is not None:
            found += self._gate.known.connections()
        return found

    def forked(self, quiet: bool) -> None:
        """Forgets what its parent opened and read: the next use opens it here."""
        self.lock.forked(quiet)
        if self._opened is not None or not quiet:
            self._parts = None
            self._gate = None
            self._lent = None
        if (place := self._absolute) is not None:  # a child that continues alone may change its folder too
            self.place, self.cache, self.views_folder = place, place.cache, self.views_folder and place.cache
        self._forget()

    # ---- what is open

    @property
    def within_moment(self) -> bool:
        """Whether the views stand still for somebody now."""
        return self._parts is not None and self._parts.projection.db.in_transaction

    @property
    def views(self) -> apsw.Connection:
        """The views' database."""
        return self.projection.db

    @property
    def engine(self) -> Engine:
        """The gate; refuses where the handle is for reading."""
        self.check()
        if self.readonly:
            raise ReadOnlyError("this handle was opened for reading; open the store with mode 'rw' to write")
        if self.access is not None:
            self.access.change()
        return self._engine

    @property
    def reader(self) -> Engine:
        """The gate, for callers that only fold what the log holds."""
        self.check()
        return self._engine

    def follow(self) -> None:
        """Brings the views to the end of the log."""
        self.check()
        if self._gate is None:
            self.projection.catch_up()
        else:
            self._gate.follow()
        self._look()

    @contextmanager
    def asking(self) -> Iterator[int]:
        """All that is asked within is answered from one moment, whatever others fold meanwhile; its ordinal."""
        with self.views_lock:
            self.check()
            with self.projection.now_held() as ordinal:
                self._look()
                yield ordinal

    def in_turns(self, found: Iterator[T]) -> Iterator[T]:
        """Reads under the lock, item by item, so that other threads may ask and write in between."""
        while True:
            with self.views_lock:
                try:
                    item = next(found)
                except StopIteration:
                    return
            yield item

    def _look(self) -> None:
        """Forgets what it remembers of contents and names where something was erased since.

        What a writer has at hand, who waits meanwhile, is forgotten at the next look.
        """
        if self.projection.last_erasure != self.erased:
            self._keys.clear()
            with self.lock.where_free() as free:
                if free:
                    self.forget_erased()

    def forget_erased(self) -> None:
        """Forgets names, contents of live sessions and digests of what was sealed: the log says what is left."""
        from vmstore.search.place import forget_words

        self.erased = self.projection.last_erasure
        self._keys.clear()
        self.live.clear()
        self.past.clear()
        self.conversations.clear()
        self.elsewhere.clear()
        forget_words()
        for forget in self.on_erasure:
            forget()
        if self._closeness is not None:
            self._closeness.forget()
        if self._gate is not None:
            self._gate.known.reload()

    def as_read(self, erasure: int) -> bool:
        """Whether nothing was erased since `erasure` was the last; asked under the lock by who read, and writes now."""
        assert self.lock.mine, "who holds no lock learns nothing of the moment it writes at"
        self.follow()
        return self.projection.last_erasure == erasure

    def forget(self, key: int, positions: Iterable[int]) -> None:
        """Forgets which contents a session sealed in the commits that begin at some positions."""
        self.known.forget(key, positions)

    def texts(self, moments: Moments) -> MomentTexts | NaiveTexts:
        """The texts in force at the moments of some lanes; from the text index, or read where there is none."""
        from vmstore.search.naive import NaiveTexts

        index = self.text_index
        return NaiveTexts(self.log, self.views, moments, self.languages) if index is None else index.texts(moments)

    @property
    def languages(self) -> Languages:
        """The language of the texts, and of the sessions that have another."""
        return self._language.read(self.log, self.views)

    @property
    def closeness(self) -> MomentCloseness:
        """Closeness of texts by the vectors in the log."""
        if self._closeness is None:
            from vmstore.namespace.closeness import MomentCloseness

            self._closeness = MomentCloseness(self)
        return self._closeness

    @property
    def text_index(self) -> TextIndex | None:
        """The text index; None where the extra it needs is not installed."""
        from vmstore.search.place import installed

        if self._index is not None and not self._index.reads(self.languages):
            self._index.close()
            self._index = None
        if self._index is None and installed():
            from vmstore.search.index import TextIndex

            self._index = TextIndex(
                self.views_folder, self.log, self.views, writable=not self.readonly, languages=self.languages
            )
        return self._index

    @property
    def text_index_made(self) -> TextIndex | None:
        """The text index where it holds anything, in its folder or in memory, and can be read."""
        from vmstore.search.place import TEXT

        lies = self.views_folder is not None and (self.views_folder / TEXT).is_dir()
        return self.text_index if lies else self._index

    def rebuild_text(self, progress: Progress | None = None) -> int:
        """Rebuilds the text index; the ordinal reached. InputError where the extra that it needs is not installed."""
        index = self.text_index
        if index is None:
            raise InputError("the text index needs numpy: pip install 'vmstore[search]'")
        with self.asking() as ordinal:
            index.rebuild(progress)
            return ordinal

    def text_problem(self) -> str | None:
        """The fault of the text index, where there is an index that can be checked."""
        from vmstore.search.place import TEXT

        if self.views_folder is None or not (self.views_folder / TEXT).is_dir() or (index := self.text_index) is None:
            return None
        return index.problem()

    def check(self) -> None:
        """Raises InputError where the store was closed, UnknownError where it is a region of others."""
        if self._closed:
            raise InputError("the store is closed; open it again", code="closed")
        if self.access is not None:
            self.access.read()

    @property
    def let(self) -> Namespace:
        """Itself, where it is open, and no region or one that may be read."""
        self.check()
        return self

    @property
    def lent_log(self) -> Log:
        """The log for the holder of the handle: of a region for reading, as long as the grant lasts."""
        return self.log if self.access is None else LentLog(self.log, self.cache or Path(self.name), self.check)

    @property
    def lent_views(self) -> apsw.Connection:
        """The views for the holder of the handle: of a region a connection of its own that writes nothing.

        It refuses each statement once they may read no more. Views in memory are this process's own.
        """
        if self.access is None or not self.views.filename:
            return self.views
        if self._lent is None:
            uri = Path(self.views.filename).as_uri() + "?mode=ro"
            self._lent = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
            self._lent.exec_trace = self._lets
        return self._lent

    def _lets(self, *statement: object) -> bool:
        """Whether a statement may be run on lent views: raises where nothing may be read any more."""
        self.check()
        return True

    def guard(self, access: RegionGuard) -> None:
        """Lets this handle do what the principals of `access` may."""
        self.access = access
        if self._gate is not None:
            self._gate.warden = access

    def key(self, name: str) -> int | None:
        """A session's key in the log by its name, which never changes."""
        self.check()
        if name not in self._keys:
            if self._gate is not None and (opened := self._gate.opened(name)) is not None:
                return opened
            self.follow()
            key = self.views.execute(f"SELECT session FROM sessions WHERE name = ? AND {NAMED}", (name,)).get
            if key is None:
                return None
            self._keys[name] = key
        return self._keys[name]

    def begin(self, opening: NewSession, at: int) -> Batch:
        """A batch that opens a session whose name was free; OvertakenError where another process was first."""
        try:
            return self.engine.begin(opening, at)
        except RefusedError as error:
            if self.key(opening.name) is None:
                raise
            raise OvertakenError(f"session {opening.name!r} was opened meanwhile; read it and decide again") from error

    def retried(self, write: Callable[[], T]) -> T:
        """Decides and writes as `Engine.retried` does, with no other thread in between."""
        with self.lock:
            return self._engine.retried(write)

    @property
    def price_list(self) -> PriceList:
        """Prices of models: the list that was handed in, else the published one."""
        from vmstore.prices.price_list import published

        return self.prices or published()

    def session_info(self, key: int) -> SessionInfo:
        """One session's row as an answer."""
        from vmstore.namespace.session_rows import session_infos

        return session_infos(self.views, [key])[0]

    @staticmethod
    def nearest(name: str, names: list[str]) -> str:
        """A hint with the known name that is nearest to an unknown one."""
        if not names:
            return "there is none yet"
        close = suggest(name, names, LOOSE)
        if close or len(names) == 1:
            return f"the nearest is {close!r}" if close else f"there is only {names[0]!r}"
        return f"there are {len(names)}, {names[0]!r} among them"


class ViewsLock:
    """Lets one thread at a time use the views, and says what is wrong where a question stumbles over them.

    Who waits for another process while it holds this one gives it up meanwhile, unless it holds a moment.
    """

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self.renew()

    def renew(self) -> None:
        """Begins unlocked: of a lock that another thread held a forked process has a copy that nobody opens."""
        self._lock = threading.RLock()
        self._depth = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            MINE.loans.append(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            MINE.loans.remove(self)
        self._lock.release()
        if isinstance(error, (apsw.ConnectionClosedError, apsw.CursorClosedError)) and self._namespace.cache:
            raise StoreError(after_fork.belongs_to_parent(self._namespace.cache), code="forked") from error
        if isinstance(error, (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError)):
            raise explained(self._namespace, error) from error

    @property
    def entry(self) -> after_fork.ReentrantLock:
        """The lock itself."""
        return self._lock

    def give_up(self) -> int:
        """Lets other threads use the views; how often this one held them."""
        with suppress(apsw.ConnectionClosedError):  # the log is closed after the views
            if self._namespace.within_moment:
                return 0
        depth, self._depth = self._depth, 0
        for _ in range(depth):
            self._lock.release()
        return depth

    def take_back(self, depth: int, seconds: float = -1.0) -> bool:
        """Uses them again, as often as before; whether that was possible within some seconds."""
        if not self._lock.acquire(timeout=seconds):
            return False
        for _ in range(depth - 1):
            self._lock.acquire()
        self._depth = depth
        return True


class HandleLock:
    """Lets one thread at a time write to a namespace, which uses the views too, except while it waits."""

    def __init__(self, namespace: Namespace) -> None:
        self.views = ViewsLock(namespace)
        self._lock = threading.RLock()
        self._holder = 0
        self._depth = 0

    def forked(self, quiet: bool) -> None:
        """Releases what threads of the parent held, in a forked process; `quiet` where none used the views."""
        if not quiet:
            self.views.renew()
        alone = after_fork.unlocked(self._lock)
        if alone is not self._lock:
            self._lock, self._holder, self._depth = alone, 0, 0

    @property
    def mine(self) -> bool:
        """Whether this thread writes now."""
        return self._holder == threading.get_ident()

    @property
    def outermost(self) -> bool:
        """Whether this thread holds it once, so that nothing around is half decided."""
        return self.mine and self._depth == 1

    @contextmanager
    def where_free(self) -> Iterator[bool]:
        """Keeps others from writing, for who uses the views; False where somebody writes now, who may wait."""
        free = self._lock.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._lock.release()

    def __enter__(self) -> None:
        assert self.mine or self.views not in MINE.loans, "who asks does not write"
        if not self._lock.acquire(blocking=False):
            with queued():
                self._lock.acquire()
        self._holder = threading.get_ident()
        self._depth += 1
        self.views.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            self.views.__exit__(kind, error, trace)
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._holder, MINE.since = 0, None
            self._lock.release()


def explained(namespace: Namespace, error: Exception) -> VmstoreError:
    """Translates a failure of the views: they are damaged, or vmstore made a statement SQLite cannot run."""
    if isinstance(error, apsw.SQLError) and namespace.projection.sound():
        return InternalError(
            f"vmstore asked its views what they cannot answer ({error}); nothing is damaged, and a rebuild does not "
            "help: report it, with the statement",
            code="views-misunderstood",
        )
    return CorruptError(
        f"the views in {namespace.cache or 'memory'} are damaged ({error}); run `vmstore rebuild`",
        code="views-damaged",
    )


def session_name(name: str) -> str:
    """A session's name, refused where files and terminals could not carry it."""
    if not isinstance(name, str) or not name:
        raise InputError("a session needs a name that is not empty", code="not-a-name")
    if any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in name) or len(name) > 500:
        raise InputError(f"{name[:40]!r} cannot name a session: up to 500 printable characters can", code="not-a-name")
    return name
