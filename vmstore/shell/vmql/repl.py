"""Where one reader asks one store: takes statements and commands, has them answered, shows the answers."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from vmstore.errors import InputError
from vmstore.shell.terminal.format import count, number, seconds
from vmstore.shell.terminal.pager import PagerClosedError
from vmstore.shell.terminal.render import Screen
from vmstore.shell.terminal.sign_of_life import WaitingSign
from vmstore.shell.vmql.interruptible import InterruptibleThread
from vmstore.shell.vmql.output.formats import QueryOutput, Row, write
from vmstore.shell.vmql.output.targets import Outputs
from vmstore.shell.vmql.script import ScriptPiece, file_text, pieces
from vmstore.shell.vmql.settings import AUTO, NAMES, SETTINGS, ShellSettings, set_to
from vmstore.store.store import Store
from vmstore.vmql.execution.result import Column, Result
from vmstore.vmql.parse import parse
from vmstore.vmql.planner.scope import as_of
from vmstore.vmql.relations.catalog import DESCRIBED
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import (
    NOWHERE,
    Apply,
    ContextAt,
    DiffSession,
    Explain,
    InSession,
    LineageQuery,
    MomentNode,
    OfPage,
    RelationQuery,
    SearchQuery,
    SelectItem,
    Set,
    Show,
    SourceSpan,
    Statement,
    Tail,
    Value,
    Verify,
    Watch,
    WhyQuery,
    Word,
)

if TYPE_CHECKING:
    from vmstore.store.fleet.fleet import Fleet

TAILED = (RelationQuery, SearchQuery, OfPage, LineageQuery)
PAGED = (RelationQuery, SearchQuery)  # those whose answer continues after a cursor


def _fills(statement: Any) -> str:
    """What makes rows of the relation that a statement asks, where recording alone makes none."""
    relation = DESCRIBED.get(statement.name) if isinstance(statement, RelationQuery) else None
    return f"; {relation.filled}" if relation is not None and relation.filled else ""


def at_moment(statement: Statement, moment: MomentNode) -> Statement:
    """The statement at a moment, where it names none itself."""
    if isinstance(statement, Explain):
        return msgspec.structs.replace(statement, statement=at_moment(statement.statement, moment))
    if isinstance(statement, ContextAt | WhyQuery | DiffSession):
        stated = statement.moment or (None if isinstance(statement, WhyQuery) else statement.tail.as_of)
        return statement if stated else msgspec.structs.replace(statement, moment=moment)
    if isinstance(statement, TAILED) and _timeless(statement.tail):
        return msgspec.structs.replace(statement, tail=msgspec.structs.replace(statement.tail, as_of=moment))
    return statement


def limited(statement: Statement, most: int) -> Statement:
    """The statement with a limit, where it has none itself and its answer can go on after a cursor."""
    if not isinstance(statement, PAGED) or statement.tail.limit is not None:
        return statement
    return msgspec.structs.replace(statement, tail=msgspec.structs.replace(statement.tail, limit=Value(value=most)))


def read_by_people(statement: Statement, before: Sequence[str] = ()) -> Statement:
    """The statement with the columns that people are shown, where it names none and does not ask for every one.

    Before them stand those that say whose a row is, where many namespaces are asked.
    """
    if not isinstance(statement, PAGED) or statement.columns or statement.every or statement.tail.by:
        return statement
    name = "SEARCH" if isinstance(statement, SearchQuery) else statement.name
    relation, scope = DESCRIBED[name], statement.tail.scope
    named = isinstance(scope, InSession) and isinstance(scope.name, Value) and "%" not in str(scope.name.value)
    one = not before and (named or (scope is None and not relation.wide))  # whose name each row would repeat
    shown = [column for column in relation.brief if column != "session" or not one or name == "SESSIONS"]
    columns = tuple(SelectItem(expr=Word(path=(column,))) for column in (*before, *shown))
    return msgspec.structs.replace(statement, columns=columns)


def _timeless(tail: Tail) -> bool:
    return tail.as_of is None and tail.since is None and tail.until is None


T = TypeVar("T")
CHUNK = 500
READ = (AUTO, "table")  # modes for people; the others, for programs, have every column
HITS = 10  # of a search that says no limit
KEPT = 10_000  # rows of the last answer
DEPTH = 20  # files that read files
PAUSE_S = 0.5  # between two looks of a WATCH


class LastAnswer(NamedTuple):
    """The last answer, to be shown again; of more rows than KEPT the first are here, and one more."""

    answer: QueryOutput
    result: Result
    rows: list[Row]


class Repl:
    """One reader's seat: the store asked, what is set, what was asked last."""

    def __init__(
        self, opener: Callable[[str], Store | Fleet], place: str, settings: ShellSettings, outputs: Outputs
    ) -> None:
        self.settings = settings
        self.outputs = outputs
        self.store = opener(place)
        self.place = place
        self._opener = opener
        self._worker = InterruptibleThread()
        self._statement: str | None = None
        self._kept: LastAnswer | None = None
        self._depth = 0

    def open(self, place: str) -> None:
        """Turns to another store; the one before is let go of once the other is open."""
        store = self._opener(place)
        self.store.close()
        self.store, self.place = store, place
        self.settings.session = self.settings.moment = self._kept = None

    def close(self) -> None:
        """Closes the store and the files written to."""
        self._worker.close()
        self.outputs.close()
        self.store.close()

    @property
    def _session(self) -> dict[str, Any]:
        """The session that is set, for a store; many namespaces have none."""
        return {"session": self.settings.session} if isinstance(self.store, Store) else {}

    # ---- asking

    def run(self, text: str, command: Callable[[Repl, ScriptPiece], None]) -> None:
        """Has every statement and command of a text answered, in order, until one fails."""
        line, at = 0, 0
        for piece in pieces(text):
            if piece.command:
                command(self, piece)
                continue
            begins = piece.start + len(piece.text) - len(piece.text.lstrip())
            line, at = line + text.count("\n", at, begins), begins
            try:
                self.ask(piece.text.strip())
            except QueryError as error:  # it names the line of the whole text
                error.text = "\n" * line + error.text if error.text else ""
                error.span = SourceSpan(error.span.start + line, error.span.end + line)
                raise

    def read(self, path: Path, command: Callable[[Repl, ScriptPiece], None]) -> None:
        """Runs what a file holds; raises InputError where it cannot be read, or reads itself without end."""
        if self._depth >= DEPTH:
            raise InputError(f"{path} is read by files that read files, {DEPTH} deep; one of them reads itself")
        self._depth += 1
        try:
            self.run(file_text(path), command)
        finally:
            self._depth -= 1

    def ask(self, text: str, *, remember: bool = True) -> None:
        """Asks one statement and shows the answer; raises QueryError, or KeyboardInterrupt where it is cancelled."""
        if remember:
            self._statement = text.strip()
        statement = parse(text)
        if isinstance(statement, Set):
            self.set(statement.name, set_to(statement, self.settings.params), statement.span, text)
        elif isinstance(statement, Show) and statement.what.lower() in (*NAMES, SETTINGS):
            self._show(shown_settings(self.settings, statement.what.lower()), "table", None)
        else:
            self._answer(statement, text, remember=remember)

    def sql(self, text: str) -> None:
        """Asks one statement of SQL over the relations and shows the answer, with what is set."""
        settings = self.settings
        at = as_of(settings.moment, settings.params, 0)
        asked: dict[str, Any] = {**self._session, "params": settings.params, **settings.limits}
        result = self._patient(lambda: self.store.sql(text, at=at, **asked))
        self._give(result, self._chunks(result), remember=True)

    def explain(self, text: str) -> None:
        """Shows how a statement, or the last one, is answered, with the time each step took."""
        statement = parse(text or self.asked())
        if not isinstance(statement, Explain):
            statement = Explain(statement=statement, analyze=True)
        self._answer(statement, text or self.asked(), remember=False)

    def set(self, name: str, value: Any, span: SourceSpan = NOWHERE, text: str = "") -> None:
        """Sets something, as SET does; raises QueryError or InputError naming what can be set."""
        if name == "session" and value is not None:
            if not isinstance(self.store, Store):
                raise InputError("a session is of one namespace, and many are asked; write WHERE session = 'name'")
            value = self.store.catalog.find_session(str(value)).name
        self.settings.put(name, value, span, text)

    def asked(self) -> str:
        """The last statement; raises InputError where there is none yet."""
        if self._statement is None:
            raise InputError("nothing was asked yet; ask something first")
        return self._statement

    def again(self, mode: str | None) -> None:
        """Shows the last answer once more, in this mode or the one that is set."""
        if self._kept is None:
            raise InputError("there is no answer yet; ask something first")
        kept = self._kept
        answer = kept.answer._replace(chunks=iter([kept.rows[:KEPT]]))
        self._show(answer, kept.result.kind, kept.result.statement, mode)
        if len(kept.rows) > KEPT:
            self.outputs.note(f"the first {KEPT:,} rows; \\once FILE and the statement again give them all")

    # ---- taking and showing

    def _answer(self, statement: Statement, text: str, *, remember: bool) -> None:
        """Has a statement answered with what is set, and shows the answer."""
        if self.settings.moment is not None:
            statement = at_moment(statement, self.settings.moment)
        asked = statement
        if self.settings.limit and self.outputs.on_terminal:
            statement = limited(statement, self.settings.limit)
        if self.settings.mode in READ:
            statement = read_by_people(statement, () if isinstance(self.store, Store) else self.store.columns)
            if isinstance(statement, SearchQuery) and statement.within is None:
                statement = limited(statement, HITS)
        result = self._asked_of_store(statement, text)
        chunks = self._chunks(result)
        if isinstance(statement, Watch) and statement.tail.limit is None:
            chunks = itertools.chain(chunks, self._coming(statement, text, result))
        self._give(result, chunks, remember=remember)
        if result.next is not None and isinstance(asked, PAGED) and asked.tail.limit is None:
            self._say_rest(asked, text)

    def _say_rest(self, statement: RelationQuery | SearchQuery, text: str) -> None:
        """Says how many rows there are where the shell itself, and nobody else, showed fewer."""
        count_all = SelectItem(expr=Apply(name="count", star=True))
        tail = msgspec.structs.replace(statement.tail, order=(), limit=None)
        counted = msgspec.structs.replace(statement, columns=(count_all,), every=False, tail=tail)
        ((total,),) = list(self._asked_of_store(counted, text))
        self.outputs.note(f"{number(total)} rows in all; LIMIT n shows more of them")

    def _give(self, result: Result, chunks: Iterator[Sequence[Row]], *, remember: bool) -> None:
        """Shows an answer, and keeps it to be shown again."""
        answer = QueryOutput(result.columns, chunks, result.basis, lambda: end_of(result))
        if remember and self.outputs.interactive:
            self._kept = LastAnswer(answer, result, [])
            answer = answer._replace(chunks=self._keeping(answer.chunks, self._kept.rows))
        taken = self._show(answer, result.kind, result.statement)
        if not taken and result.columns and result.kind != "verdict" and self.settings.mode in READ:
            self.outputs.note(f"0 rows{_fills(result.statement)}")
        if self.settings.timing:
            self.outputs.note(f"{count(taken, 'row')} in {seconds(result.elapsed_ms)}")

    def _asked_of_store(self, statement: Statement, text: str) -> Result:
        """The store's answer; Ctrl-C cancels it, and an error shows the text as it was typed."""
        settings = self.settings
        try:
            asked: dict[str, Any] = {**self._session, "params": settings.params, **settings.limits}
            return self._patient(lambda: self.store.query(statement, **asked))
        except QueryError as error:
            error.text = error.text or text
            raise

    def _coming(self, statement: Watch, text: str, result: Result) -> Iterator[Sequence[Row]]:
        """The rows that come while somebody watches."""
        while True:
            self.outputs.flush()
            time.sleep(PAUSE_S)
            statement = msgspec.structs.replace(statement, cursor=Value(value=result.next))
            result = self._asked_of_store(statement, text)
            yield from self._chunks(result)

    def _patient(self, work: Callable[[], T]) -> T:
        """Has the worker do something that Ctrl-C cancels."""
        sign = WaitingSign("asking the store").start()
        try:
            return self._worker.run(work, self._interrupt)
        finally:
            sign.stop()

    def _interrupt(self) -> None:
        store = self.store
        (store.admin if isinstance(store, Store) else store).interrupt()

    def _chunks(self, rows: Iterator[Row]) -> Iterator[Sequence[Row]]:
        while chunk := self._patient(lambda: list(itertools.islice(rows, CHUNK))):
            yield chunk

    @staticmethod
    def _keeping(chunks: Iterator[Sequence[Row]], kept: list[Row]) -> Iterator[Sequence[Row]]:
        for chunk in chunks:
            kept += chunk[: max(0, KEPT + 1 - len(kept))]
            yield chunk

    def _show(self, answer: QueryOutput, kind: str, statement: Statement | None, mode: str | None = None) -> int:
        """Writes an answer where answers go; how many rows were taken of it."""
        mode = mode or self.settings.mode
        counted = CountedRows(answer.chunks)
        answer = answer._replace(chunks=iter(counted))
        with contextlib.suppress(PagerClosedError), self.outputs.screen(self.settings.pager) as screen:
            if isinstance(statement, Verify):
                kind = "verdict"
            if mode != AUTO or kind == "table" or not self._drawn(answer, kind, statement, screen):
                write(answer, "table" if mode == AUTO else mode, screen)
        return counted.count

    def _drawn(self, answer: QueryOutput, kind: str, statement: Statement | None, screen: Screen) -> bool:
        from vmstore.shell.vmql.output import draw  # loaded where something is drawn

        store = self.store if isinstance(self.store, Store) else self.store.stores[0]
        return draw.drawn(kind, answer, screen, draw.Look(store, statement, answer.basis, screen.width))


class CountedRows:
    """Rows by the chunk, counted as they are taken."""

    def __init__(self, chunks: Iterator[Sequence[Row]]) -> None:
        self._chunks = chunks
        self.count = 0

    def __iter__(self) -> Iterator[Sequence[Row]]:
        for chunk in self._chunks:
            self.count += len(chunk)
            yield chunk


def end_of(result: Result) -> dict[str, Any]:
    """The facts of an answer once it was read: how long it took, and the cursor where it continues."""
    fields: dict[str, Any] = {"elapsed_ms": round(result.elapsed_ms, 3)}
    return fields if result.next is None else {**fields, "next": result.next}


def shown_settings(settings: ShellSettings, what: str) -> QueryOutput:
    """One setting, or all of them, as an answer."""
    rows = [(name, value) for name, value in settings.shown() if what in (name, SETTINGS)]
    columns = (Column("setting", "text"), Column("value", "text"))
    return QueryOutput(columns, iter([rows]), {}, lambda: {"elapsed_ms": 0.0})
