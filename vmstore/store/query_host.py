"""A namespace as a query sees it: the views and the log at one moment, and what only the store can answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import apsw
from msgspec import to_builtins
from msgspec.structs import replace

from vmstore.core.asof import AsOf
from vmstore.core.clock import SystemClock
from vmstore.errors import InputError
from vmstore.log.port import Log, Progress
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import Problem, Verdict
from vmstore.namespace.results import Change
from vmstore.prices.price_list import PriceList
from vmstore.views.branch import Branch
from vmstore.views.reads.system_entries import Languages
from vmstore.vmql.execution.engine import QueryEngine

if TYPE_CHECKING:
    from vmstore.maintenance.columns import ColumnStore
    from vmstore.views.projectors.redactions import UntoldFiles

LANES_MAX = 4_096
_ANSWERED = "SELECT 1 FROM calls WHERE session = ? AND call = ? AND replied = ?"
_ANSWERED_ELSEWHERE = "SELECT session FROM replies WHERE position = ? AND call = ? AND aside IS ?"
_NAME = "SELECT name FROM sessions WHERE session = ?"


class OpenQueryHost:
    """The host of a store's queries."""

    def __init__(
        self,
        namespace: Namespace,
        session: Callable[[str], Any],
        verify: Callable[[Progress], Verdict],
        columns: ColumnStore,
    ) -> None:
        self._ns = namespace
        self._columns = columns
        self._open = session
        self._verify = verify
        self._sessions: dict[str, Any] = {}  # each remembers what its contents are
        self._lanes: dict[int, Branch] = {}
        self.namespace = namespace.name
        self.ticks = SystemClock().ticks

    @property
    def views(self) -> apsw.Connection:
        """The views' database."""
        return self._ns.views

    @property
    def log(self) -> Log:
        """The log."""
        return self._ns.log

    @property
    def languages(self) -> Languages:
        """The languages by whose rules words are read."""
        return self._ns.languages

    def damaged(self) -> bool:
        """Whether the views' tables are not those that they should be."""
        return not self._ns.projection.sound()

    def asking(self) -> AbstractContextManager[int]:
        """Holds one moment; its ordinal."""
        return self._ns.asking()

    @property
    def prices(self) -> PriceList:
        """Prices of models."""
        return self._ns.price_list

    def spent(self, lane: Branch, low: int, position: int) -> list[tuple[int, float | None, float | None]]:
        """Turn and cost of each call of a session between two positions, as recorded and as estimated, in dollars."""
        from vmstore.namespace.costs import call_costs

        costs = call_costs(lane, self._ns.log, self._ns.price_list, position, low)
        return [(one.row.turn, one.cost, one.estimated) for one in costs]

    def saved(self, lane: Branch, name: str, low: int, position: int) -> tuple[int, int] | None:
        """The tokens of a session's calls of tools between two positions, and of their shorter forms; None of none."""
        from vmstore.views.observations import saved

        return saved(self._ns.log, lane, name, low, position)

    def now(self) -> int:
        """Microseconds since 1970."""
        return self._ns.clock.now()

    def lane(self, session: int) -> Branch:
        """The branch of a session, which is fixed when it begins."""
        found = self._lanes.get(session)
        if found is None or found.db is not self._ns.views:
            if len(self._lanes) >= LANES_MAX:
                self._lanes.clear()
            found = self._lanes[session] = Branch(self._ns.views, session)
        return found

    def session(self, name: str) -> Any:
        """A session by its name."""
        found = self._sessions.get(name)
        if found is None:
            if len(self._sessions) >= LANES_MAX:
                self._sessions.clear()
            found = self._sessions[name] = self._open(name)
        return found

    def page_position(self, session: str, page: str) -> int:
        """The position of the page that a name, a hint or a reference says; UnknownError names the nearest."""
        position: int = self.session(session).lineage.position_of(page)
        return position

    def differences(
        self, before: tuple[str, AsOf], after: tuple[str, AsOf]
    ) -> tuple[list[tuple[str, Change]], Mapping[str, Any]]:
        """Changes between two contexts, each with the session that wrote its page; and both bases."""
        from vmstore.store.reads.diff import differing
        from vmstore.views.reads.page_lines import page_lines

        if before[0] != after[0]:
            return self._sides(before, after)
        first, second = (self.session(name).context(at) for name, at in (before, after))
        lanes = [self.lane(self._ns.key(name) or 0) for name, _ in (before, after)]
        then, now = (
            {(lane.owner(shown.page), shown.page): shown for shown in context.shown}
            for lane, context in zip(lanes, (first, second), strict=True)
        )
        changes = differing(then, now, {})[0]
        texts: dict[tuple[int, int], str] = {}
        for lane, shown in zip(lanes, (then, now), strict=True):
            changed = [key for key, _ in changes if key in shown]
            said = page_lines(lane, self._ns.log, [page for _, page in changed])
            texts.update({key: said.get(key[1], "") for key in changed})
        owners = {key[0] for key, _ in changes}
        names = {owner: self._ns.views.execute(_NAME, (owner,)).get for owner in owners}
        basis = {"before": to_builtins(first.basis), "after": to_builtins(second.basis)}
        return [(names[key[0]], replace(change, text=texts[key])) for key, change in changes], basis

    def _sides(
        self, before: tuple[str, AsOf], after: tuple[str, AsOf]
    ) -> tuple[list[tuple[str, Change]], Mapping[str, Any]]:
        """Differences between the contexts of two sessions, aligned by content: a page's number says nothing there."""
        from vmstore.store.reads.diff import one_sided
        from vmstore.store.reads.session_diff import aligned, same_start, sides

        first, second = (self.session(name).context(at) for name, at in (before, after))
        lanes = [self.lane(self._ns.key(name) or 0) for name, _ in (before, after)]
        pages = [
            sides(
                lane,
                self._ns.log,
                [(one.page, one.role, one.tokens, one.cell, one.commitment) for one in context.shown],
            )
            for lane, context in zip(lanes, (first, second), strict=True)
        ]
        shown = [{one.page: one for one in context.shown} for context in (first, second)]
        found = []
        for pair in aligned(*pages):
            if pair[0] is not None and pair[1] is not None and pair[0].key == pair[1].key:
                continue
            for at, one in enumerate(pair):
                if one is not None:
                    owner = self._ns.views.execute(_NAME, (lanes[at].owner(one.page),)).get
                    found.append((owner, replace(one_sided(shown[at][one.page], entered=bool(at)), text=one.text)))
        same = same_start(*pages)
        basis = {"before": to_builtins(first.basis), "after": to_builtins(second.basis), "same_pages": same}
        return found, basis

    def numbers(self, lane: Branch, position: int, check: Callable[[], object]) -> Iterator[tuple[Any, ...]]:
        """The numbers of a session's memory at a position, each after policy and budget; none without a kernel."""
        from vmstore.store.reads.metrics import measured
        from vmstore.vm.metrics.report import numbers

        found = measured(self._ns.log, lane, position, check)
        if found is not None:
            for number in numbers(found.measures):
                yield (found.policy, found.budget, *number)

    def replayed(self, session: str, settings: Mapping[str, Any], check: Callable[[], object]) -> Any:
        """A session decided again under other settings; without any as it was recorded."""
        from vmstore.store.replay import replayed

        changes = dict(settings)
        own = (changes.pop("policy", None), changes.pop("budget", None), changes, changes.pop("keep", None))
        return replayed(self._ns, self._ns.key(session) or 0, session, *own, check)

    def response(self, session: int, reply: tuple[int, int, int, int | None, bytes | None]) -> Any:
        """The body of a response by its call's writer; see `World`."""
        from vmstore.store.reads.responses import ReplyRow, body_of

        ended = ReplyRow(*reply)
        args = (session, ended.call, ended.replied)
        if self._ns.views.execute(_ANSWERED, args).get is None:  # a fork that began at the call answered it
            session = self._ns.views.execute(_ANSWERED_ELSEWHERE, (ended.replied, ended.call, ended.aside)).get
        return body_of(self._ns.log, self.lane(session), ended)

    def texts(self, moments: Sequence[tuple[Branch, int]]) -> Any:
        """The texts in force at the moments of some lanes."""
        with self._ns.asking():
            return self._ns.texts(moments)

    def ask(self, question: str) -> None:
        """Has the embedder asked about a question, where one was handed in; the answer is remembered."""
        if self._ns.embedder is not None:
            self._ns.closeness.question(question)

    def closeness(self, question: str, moments: Sequence[tuple[Branch, int]], texts: Any) -> tuple[Any, str | None]:
        """Closeness of texts to a question; None where no embedder was passed in."""
        if self._ns.embedder is None:
            return None, None
        asked = self._ns.closeness.question(question)
        with self._ns.asking():
            return self._ns.closeness.of(asked, moments, texts)

    def columns(self, beside: Any = None, suffix: str = "") -> Any:
        """The tables of the column segments at the moment that is held; None where the extra is not installed."""
        try:
            return self._columns.relations(beside, suffix) if suffix else self._columns.tables()
        except InputError:  # numpy or duckdb is not there
            return None

    def untold(self) -> UntoldFiles:
        """The files that no prompt may hold by now, in whichever session."""
        from vmstore.views.projectors.redactions import untold_files

        with self._ns.asking():
            return untold_files(self._ns.views)

    def verified(self, session: str | None, check: Callable[[], object]) -> Verdict:
        """Verifies the whole namespace, or the chain of one session and of its past; `check` may end it."""
        from vmstore.engine.verify.chain import Chain

        key = None if session is None else self._ns.key(session)
        if key is None:

            def went_on(done: int, total: int) -> None:
                check()

            return self._verify(went_on)
        with self._ns.asking():
            chain = Chain(self._ns.log, self._ns.views, self.lane(key))
            problems = [Problem(*found) for found in chain.problems()]
            sessions = len({stretch.session for stretch in self.lane(key).stretches})
            return Verdict(not problems, chain.commits, chain.mutations, sessions, problems)


def asker(
    namespace: Namespace, session: Callable[[str], Any], verify: Callable[[Progress], Verdict], columns: ColumnStore
) -> QueryEngine:
    """The query engine of a namespace."""
    return QueryEngine(OpenQueryHost(namespace, session, verify, columns))
