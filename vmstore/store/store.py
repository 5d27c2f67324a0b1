"""The public object: composes what a namespace offers; decides nothing itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Unpack

import msgspec

from vmstore.core.aliases import Aliased, old_keywords_of_methods, warn_once
from vmstore.core.asof import AsOf, Moment, When, one_moment
from vmstore.core.clock import Clock, IdSource, SystemClock, SystemIds
from vmstore.core.redaction import policy_of
from vmstore.core.system.file_descriptors import named
from vmstore.core.system.waits import WAIT_S
from vmstore.erasure.resume import open_namespace
from vmstore.errors import InputError
from vmstore.namespace.backends.address import Address
from vmstore.namespace.backends.port import directory_of
from vmstore.namespace.encryption import Key
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.namespace.open import memory_namespace
from vmstore.namespace.reports import Backup, ExportReport, ImportReport, Info, Verdict
from vmstore.namespace.results import Entry, Hits, Page, RecordedCall, SessionInfo
from vmstore.prices.price_list import PriceList
from vmstore.views.projection import Progress

if TYPE_CHECKING:
    from vmstore.embedders.embedder import Embedder
    from vmstore.namespace.effects import Agree
    from vmstore.seals.seal import Seal
    from vmstore.store.live.live_session import Live
    from vmstore.store.live.options import LiveOptions
    from vmstore.store.notes.exporter import NotesExport
    from vmstore.store.notes.importer import NotesImport
    from vmstore.store.parts.admin import Admin
    from vmstore.store.parts.catalog import Catalog
    from vmstore.store.parts.regions import Sharing
    from vmstore.store.parts.search_index import SearchIndex
    from vmstore.store.parts.trust import Trust
    from vmstore.store.recall.store_memory import StoreMemory
    from vmstore.store.recorder import CallRecorder
    from vmstore.store.session import Session
    from vmstore.store.work.store_work import StoreWork
    from vmstore.vm.kernel.keywords import LiveSettings
    from vmstore.vm.kernel.settings import KernelSettings
    from vmstore.vmql.execution.engine import QueryEngine
    from vmstore.vmql.execution.result import Result
    from vmstore.vmql.syntax.nodes import Statement


ALIASES = {
    "log": "admin.log",
    "views": "admin.views",
    "follow": "admin.follow",
    "find": "catalog.find_page",
    "find_session": "catalog.find_session",
    "overview": "catalog.overview",
    "embed": "index.embed",
    "redrive": "admin.redrive",
    "record_gap": "admin.record_gap",
    "interrupt": "admin.interrupt",
    "usage": "admin.usage",
    "page_table": "admin.page_table",
    "columns": "admin.column_segments",
    "compact": "admin.compact",
    "sweep": "admin.collect_garbage",
    "rebuild": "admin.rebuild",
    "region": "sharing.region",
}


@old_keywords_of_methods(at="at_us", latency="latency_us")
class Store(Aliased):
    """One namespace of a store. Close it, or use it in a `with`; any thread may use it."""

    _aliases: ClassVar[Mapping[str, str]] = ALIASES

    def __init__(self, namespace: Namespace) -> None:
        from vmstore.maintenance.columns import ColumnStore
        from vmstore.store.parts.single_sessions import SingleSessions
        from vmstore.store.sessions import Sessions

        self._ns = namespace
        self._columns = ColumnStore(namespace)
        self._sessions = Sessions(namespace, lambda: self._recording)
        self._asker: QueryEngine | None = None
        self._alone = SingleSessions(namespace, Store)
        namespace.query = self.query

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the files; closing twice does nothing."""
        with self._ns.lock:
            self._columns.close()
            self._alone.close()
        self._ns.close()

    @property
    def admin(self) -> Admin:
        """Care: compact, collect_garbage, archive, merge, rebuild, doctor, usage, the log and the views."""
        from vmstore.store.parts.admin import Admin

        return Admin(self, self._sessions)

    @property
    def trust(self) -> Trust:
        """Erasure, retention, retraction, seals, proofs and approvals."""
        from vmstore.store.parts.trust import Trust

        return Trust(self)

    @property
    def sharing(self) -> Sharing[Store]:
        """Whom this namespace is shared with, and the regions others share with it."""
        from vmstore.store.parts.regions import Sharing

        return Sharing(self, Store)

    @property
    def catalog(self) -> Catalog:
        """Sessions as people look for them: an overview, and the one that the beginning of a name means."""
        from vmstore.store.parts.catalog import Catalog

        return Catalog(self)

    @property
    def index(self) -> SearchIndex:
        """The index that a search looks in: the language of the texts, and their vectors."""
        from vmstore.store.parts.search_index import SearchIndex

        return SearchIndex(self)

    @property
    def memory(self) -> StoreMemory:
        """Memory across sessions: facts of a user, or of all."""
        from vmstore.store.recall.store_memory import StoreMemory

        return StoreMemory(self._ns)

    @property
    def work(self) -> StoreWork:
        """The work of agents across sessions: guards that warn, skills that were learned."""
        from vmstore.store.work.store_work import StoreWork

        return StoreWork(self)

    @property
    def folder(self) -> Path | None:
        """The namespace's directory; None in memory and in a database."""
        return None if self._ns.place is None else self._ns.place.directory

    # ---- sessions

    def sessions(self, *, user: str | None = None, agent: str | None = None, hidden: bool = False) -> list[SessionInfo]:
        """Every session by name, or those of a user or an agent; where `hidden`, incomplete imports and its own too."""
        from vmstore.store.reads.pages_across import SessionFilter, sessions_of

        with self._ns.asking():
            keys = sessions_of(self._ns, SessionFilter(user, agent), hidden=hidden)
            return [self._ns.session_info(key) for key, _ in keys]

    def pages(
        self, at: When | None = None, *, user: str | None = None, agent: str | None = None, type: str | None = None,
        role: str | None = None, modality: str | None = None, tier: int | str | None = None, level: int | None = None,
        tag: str | None = None, actor: str | None = None, importance_min: float | None = None,
        dirty: bool | None = None, created_since: AsOf | None = None, entered_since: AsOf | None = None,
        order_by: str = "position", limit: int | None = None, after: str | None = None, **moment: Unpack[Moment],
    ) -> list[Page]:  # fmt: skip
        """The pages of all sessions, or of a user's or an agent's, each as the session that made it has it.

        The choices are those of `Session.pages`, the moment a `time` or a `logged_time`. By position
        session comes after session in the order of their names; `after` names the last page of an
        answer, as `s1/p17`.
        """
        from vmstore.store.reads.page_query import PageQuery
        from vmstore.store.reads.pages_across import SessionFilter, pages_across

        wanted = PageQuery(
            type, role, modality, tier, level, tag, actor, importance_min, dirty, created_since, entered_since,
            order_by, limit,
        )  # fmt: skip
        when = one_moment(at, moment)
        with self._ns.asking():
            return pages_across(self._ns, when, wanted, SessionFilter(user, agent), after)

    def search(self, query: str, *, limit: int | None = 10, score: str | None = None, explain: bool = False) -> Hits:
        """The pages of all sessions that answer a query, best first, each by who wrote it.

        An embedder at hand adds closeness to the words; `score` and `explain` are as in a session's search.
        """
        from vmstore.store.reads.search import everywhere, question_of, search

        question = question_of(self._ns, query)
        with self._ns.asking():
            return search(self._ns, everywhere(self._ns), query, limit, question, score, explain)

    def session(
        self, name: str, *, create: bool = False, user: str | None = None, agent: str | None = None,
        title: str | None = None, redaction: str | None = None, **live: Unpack[LiveOptions],
    ) -> Session:  # fmt: skip
        """The session of a name; raises UnknownError naming the nearest, unless `create` opens it.

        `user`, `agent` and `title` are recorded at a session's beginning and stay; `redaction` (off,
        mask or refuse) holds from here on, and in its forks. One that manages its memory is opened by
        `live_session`, whose settings this takes too for one more release.
        """
        if live:
            warn_once("Store.session(l0_tokens_max=)", "Store.live_session(l0_tokens_max=)")
            return self.live_session(name, user=user, agent=agent, title=title, redaction=redaction, **live)
        writes = create or redaction is not None
        if not writes and (alone := self._alone.of(name)) is not None:
            return alone.session(name)
        with self._ns.lock if writes else self._ns.views_lock:
            owner = {"user": user, "agent": agent, "title": title}
            return self._sessions.find(name, create=create, owner=owner, redaction=redaction)

    def live_session(
        self, name: str, settings: LiveSettings | KernelSettings | None = None, *, user: str | None = None,
        agent: str | None = None, title: str | None = None, redaction: str | None = None,
        **options: Unpack[LiveOptions],
    ) -> Live:  # fmt: skip
        """The session of a name that manages its memory, opened where there is none.

        Of one there is what differs is changed. Its settings are `LiveSettings`, as one value or as keywords:
        `l0_tokens_max` is its budget. `system` and the schemas of `tools` stand before all else. `compressor`,
        `finder`, `fact_model` and `tagger` are callbacks, asked for at most `callback_timeout_s`; they work through
        this handle alone, and what they say is logged. `user`, `agent` and `title` are recorded at its beginning and
        stay. RefusedError where the session was recorded.
        """
        if isinstance(settings, msgspec.Struct):
            options = {**msgspec.structs.asdict(settings), **options}  # type: ignore[typeddict-item]
        elif settings is not None:
            options = {**settings, **options}
        with self._ns.lock:
            owner = {"user": user, "agent": agent, "title": title}
            return self._sessions.live(name, owner=owner, options=dict(options), redaction=redaction)

    # ---- querying

    def query(
        self,
        text: str | Statement,
        /,
        *,
        session: str | None = None,
        params: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
        rows: int | None = None,
        memory: int | None = None,
        **named: Any,
    ) -> Result:
        """Answers a VMQL statement, a text or one parsed: an iterable of tuples with its `columns` and its `basis`.

        `session` is asked where the text names none; `params` and whatever else is `named` are the values of
        its `$names`. `timeout_s` seconds, `rows` of the answer and `memory` in bytes are what it may take, None
        for as much as it needs. Raises QueryError, which points at what is wrong with the text, or says which
        limit was passed (`timeout`, `too-large`).
        """
        given = {**(params or {}), **named}
        questions = self._alone.asker(text, session, given) or self._questions
        return questions.ask(text, session=session, params=given, limits=(timeout_s, rows, memory))

    @property
    def _questions(self) -> QueryEngine:
        """The query engine, loaded with the first question."""
        if self._asker is None:
            with named():
                from vmstore.store.query_host import asker

            self._asker = asker(self._ns, self.session, self.verify, self._columns)
            self._ns.on_erasure.append(self._asker.forget)
        return self._asker

    def sql(
        self,
        text: str,
        *,
        at: When | None = None,
        session: str | None = None,
        params: Mapping[str, Any] | None = None,
        timeout_s: float | None = 30.0,
        rows: int = 100_000,
        memory: int = 256 << 20,
        **moment: Unpack[Moment],
    ) -> Result:
        """Answers one statement of SQL that reads the relations as of a moment: `pages`, `calls`, `residencies`, …

        `pages_at('turn', 40)` is of another moment, a third argument names another session. Without `session` all
        are asked, or the only one. `params` are the values of its `:names`. `timeout_s`, `rows` of the answer and
        `memory` in bytes are what it may take. Raises QueryError, which points at what is wrong with the text.
        """
        limits = (timeout_s, rows, memory)
        return self._questions.sql(text, at=one_moment(at, moment), session=session, params=params or {}, limits=limits)

    # ---- recording

    @cached_property
    def _recording(self) -> CallRecorder:
        """The recorder of calls, loaded with the first one."""
        with named():
            from vmstore.store.recorder import CallRecorder

        return CallRecorder(self._ns)

    def record(
        self,
        session: str | Session,
        request: dict[str, Any],
        response: Any = None,
        *,
        at_us: int | None = None,
        latency_us: int | None = None,
        cost: float | None = None,
        request_id: str | None = None,
        redaction: str | None = None,
        asked: dict[str, Any] | None = None,
        beside: dict[str, Any] | None = None,
    ) -> RecordedCall:
        """Records one call: the request as it was sent, the answer as it came.

        `session` is a name, opened at first use, or a session. `response` is the provider's, a
        list of its stream's parts, an exception, or None where the call was aborted. `at_us` is in
        microseconds since 1970 (default now), `latency_us` in microseconds, `cost` in dollars. The
        same `request_id` again returns the first answer; `redaction` is as in `session`. `asked` is the request
        that a client made, where this one was made of it: its messages are the session's, and the call's context
        is what was sent. `beside` is JSON that is kept with the answer.
        """
        fields: dict[str, Any] = {"at": at_us, "latency": latency_us, "cost": cost, "request_id": request_id}
        fields |= {"asked": asked, "beside": beside}
        policy = None if redaction is None else policy_of(redaction)
        return self._recording.record(_named(session), request, response, **fields, redaction=policy)

    # ---- importing

    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        session: str | None = None,
        format: str | None = None,
        exact: bool = False,
        redaction: str | None = None,
        agreed: Agree = False,
        uses: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Imports a file somebody's agent wrote, or a bundle; its format is detected unless given.

        The same file again changes nothing, a grown one adds its new part. Raises InputError
        before anything is written where the file cannot be read at all. A bundle's sessions become
        new ones, or, where `exact`, the very same with their positions, salts and hashes. What is secret
        in another file is masked or refused by `redaction`, by default as the sessions there are have it.
        An exact bundle that would erase here, or change how a session here works, raises RefusedError
        unless it was `agreed` to. With `uses` it is read once more, and what each call used of the pages and
        what was said is about are logged.
        """
        from vmstore.capture.importers.formats import read
        from vmstore.transfer.bundle_import import is_bundle
        from vmstore.transfer.imports import import_source
        from vmstore.transfer.sessions import BUNDLE, import_bundle

        file = Path(path)
        if format == BUNDLE or (format is None and is_bundle(file)):
            if redaction is not None or uses:
                word = "uses" if redaction is None else "redaction"
                raise InputError(
                    f"{file} is a bundle, which is taken in as it was exported; leave {word} out",
                    code="bundle-as-it-is",
                )
            with self._ns.lock:
                self._recording.forget()
                name = None if session is None else session_name(session)
                return import_bundle(self._ns, file, name=name, exact=exact, progress=progress, agreed=agreed)
        policy = None if redaction is None else policy_of(redaction)
        if exact:
            raise InputError(
                f"{file} is no vmstore bundle, and only those can be taken in exactly; leave exact out",
                code="not-a-bundle",
            )
        reading = read(file, format)
        with self._ns.lock:
            self._recording.forget()
            return import_source(self._ns, reading, file, name=session, progress=progress, redaction=policy, uses=uses)

    # ---- handing on

    def export(
        self,
        out: str | os.PathLike[str] | BinaryIO,
        sessions: str | Iterable[str] | None = None,
        *,
        format: str = "jsonl",
        at: When | None = None,
        exact: bool = False,
        redact: bool = True,
        progress: Progress | None = None,
        **moment: Unpack[Moment],
    ) -> ExportReport:
        """Exports sessions (all by default) up to a moment, with the past that forks among them share.

        `out` is a path where nothing is yet, which appears when it is whole, or, but for tables, a binary
        stream. `format` is jsonl (a bundle, which `import_file` takes in), parquet or sqlite for tables, markdown
        for people, chat, a line of messages a session, for training and evaluation, or otlp, spans of
        OpenTelemetry that `import_file` reads as calls. What is secret
        is masked; a bundle keeps it, and its hashes, only where `exact`, the others where not `redact`.
        """

        from vmstore.transfer.sessions import SPANS, export, portions_of

        when = one_moment(at, moment)
        target = Path(out) if isinstance(out, str | os.PathLike) else out
        with self._ns.views_lock:
            names = [sessions] if isinstance(sessions, str) else sessions
            chosen = [info.session for info in self.sessions()] if names is None else list(names)
            portions = portions_of(self._ns, chosen, when)
        if exact and format != "jsonl":
            raise InputError(f"only a bundle can be exact, and {format} is none; leave exact out", code="not-a-bundle")
        if format == SPANS:
            from vmstore.store.spans.exporter import export_spans

            return export_spans(self, target, portions, progress, hide=redact)
        return export(self._ns, target, portions, format, progress, hide=redact and not exact)

    def export_notes(
        self,
        folder: str | os.PathLike[str],
        sessions: Iterable[str] | None = None,
        *,
        types: Iterable[str] | None = None,
        redact: bool = True,
        overwrite: bool = False,
    ) -> NotesExport:
        """Brings a folder of Markdown to what the store says now: a file a page, by tag, links between them as links.

        Only what changed is written, and files of pages that are gone are removed. A file that was edited and not
        taken in stays and is named, unless `overwrite`. `types` are the types of pages that are wanted.
        """
        from vmstore.store.notes.exporter import export_notes

        names, wanted = None if sessions is None else list(sessions), None if types is None else frozenset(types)
        options: dict[str, Any] = {"types": wanted, "redact": redact, "overwrite": overwrite}
        return export_notes(self, Path(folder), sessions=names, **options)

    def import_notes(
        self, folder: str | os.PathLike[str], *, by: str | None = None, overwrite: bool = False
    ) -> NotesImport:
        """Takes in what is new or edited in a folder of Markdown, with its path, the commit checked out, and `by` whom.

        What the store changed too is named in `conflicts` and not taken, unless `overwrite`. InputError and
        RefusedError name the file that cannot be taken; nothing is written then.
        """
        from vmstore.store.notes.importer import import_notes

        with self._ns.lock:
            return import_notes(self, Path(folder), by=by, overwrite=overwrite)

    def backup(self, to: str | os.PathLike[str], progress: Progress | None = None) -> Backup:
        """Copies this namespace as it stood at one moment to a new folder, verified, while others may write."""
        from vmstore.maintenance.backup import backup

        folder = directory_of(self._ns.let.place, "export it")
        return backup(folder.parent, to, namespace=self._ns.name, key=self._ns.store_key, progress=progress)

    # ---- columns and tails

    def tail(self, after: str | None = None, *, limit: int | None = None, wait_s: float = 0.0) -> Iterator[Entry]:
        """Mutations in the order they were logged, from the start or after a cursor, up to now.

        Where there is none yet the first is waited for, for up to `wait_s` seconds.
        """
        from vmstore.store.reads.tail import tail

        return tail(self._ns, after, limit, wait_s)

    # ---- prices

    @property
    def prices(self) -> PriceList:
        """Prices of models: the published ones that ship with vmstore, unless others were handed in.

        Setting it takes a `PriceList` or the path of a JSON file; None brings the published ones back. Costs that a
        source recorded stay as they are.
        """
        return self._ns.price_list

    @prices.setter
    def prices(self, given: object) -> None:
        from vmstore.prices.price_list import price_list_of

        self._ns.prices = None if given is None else price_list_of(given)

    # ---- vectors

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that gives texts vectors; None where none was passed in.

        Setting it takes an object with `name`, `dimension` and `embed(texts)`, or a function with the first two; from
        then on `index.embed` asks it about texts, and a search about its words.
        """
        return self._ns.embedder

    @embedder.setter
    def embedder(self, given: object) -> None:
        self._ns.embedder = _embedder(given)

    # ---- keeping house

    def info(self) -> Info:
        """Counts of the namespace's contents and the sizes of its parts."""
        from vmstore.maintenance.usage import info

        return info(self._ns)

    def verify(
        self, progress: Progress | None = None, *, views: bool = True, rules: bool | None = None,
        seals: Sequence[Seal] = (),
    ) -> Verdict:  # fmt: skip
        """Checks every hash of the log; every view against a fresh fold, and every rule, unless declined.

        The rules are left out where the views are, unless asked for; `seals` say what the log must hold.
        """
        from vmstore.maintenance.verify import verdict_on

        every = views if rules is None else rules
        return verdict_on(self._ns.let, self._columns, progress, views=views, rules=every, seals=seals)


def open_store(
    path: Address, mode: str = "rw", *, namespace: str = "default", key: Key | None = None,
    wait_s: float | None = WAIT_S, clock: Clock | None = None, ids: IdSource | None = None, embedder: object = None,
    prices: object = None,
) -> Store:  # fmt: skip
    """Opens a store; in mode 'rw' it is made where there is none, in mode 'r' nothing is written.

    With `key`, the file of a store key or an object that wraps and unwraps, it is an encrypted one.
    Another process that holds what a call needs is waited for `wait_s` seconds, then LockedError names
    it; None waits for as long as it holds it. `embedder` is what gives texts vectors; see `Store.embedder`.
    `prices` are what models cost, a list or a file; see `Store.prices`.
    """
    from vmstore.prices.price_list import price_list_of

    given, costs = _embedder(embedder), None if prices is None else price_list_of(prices)
    opened = open_namespace(path, mode, namespace, clock or SystemClock(), ids or SystemIds(), key, wait_s)
    opened.embedder, opened.prices = given, costs
    return Store(opened)


def memory_store(
    *, clock: Clock | None = None, ids: IdSource | None = None, embedder: object = None, prices: object = None
) -> Store:
    """A store that lives in memory and ends with the process."""
    from vmstore.prices.price_list import price_list_of

    given, costs = _embedder(embedder), None if prices is None else price_list_of(prices)
    store = Store(memory_namespace(clock or SystemClock(), ids or SystemIds()))
    store._ns.embedder, store._ns.prices = given, costs
    return store


def _embedder(given: object) -> Embedder | None:
    """The embedder that was handed in, where one was."""
    if given is None:
        return None
    from vmstore.embedders.embedder import embedder_of

    return embedder_of(given)


def _named(session: str | Session) -> str:
    from vmstore.store.session import Session

    return session.name if isinstance(session, Session) else session
