"""What the debugger answers, by the address it is asked at: plain values, with nothing of the web in them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from vmstore.debug.contents import CUT_BYTES, digests, line_of_masked, texts
from vmstore.debug.export import File, exported
from vmstore.debug.json_bytes import Redact, encoded
from vmstore.debug.overview import overview
from vmstore.debug.params import QueryParams
from vmstore.debug.request import request
from vmstore.debug.search import masked, search_hits
from vmstore.debug.session_data import film
from vmstore.debug.whatif import WhatIfs, WhatIfSource
from vmstore.errors import InputError, UnknownError
from vmstore.store.breakpoints import until
from vmstore.store.completions import Candidates
from vmstore.store.store import Store
from vmstore.vmql.execution.result import Result
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import Explain, Fork, LineageQuery, SearchQuery, Watch, names_of

ROWS_MAX = 1_000
QUERY_S = 60  # that a statement may take, and the bytes it may keep
QUERY_BYTES = 512 << 20
FILMS_MAX = 8
SWEEP_MAX = 64  # what-ifs of one question


class DebugApi:
    """Answers about one store; any thread may ask. `redact` masks every text that is handed out."""

    def __init__(self, store: Store, place: str, namespace: str, redact: Redact | None = None) -> None:
        self._store = store
        self._about = {"store": place, "namespace": namespace}
        self._redact = redact
        self._whatifs = WhatIfs(store)
        self._films: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._key = store._ns.reader.ids.salt()  # of digests: another server gives others
        self._lock = threading.Lock()
        self._private: tuple[int, list[str]] = (-1, [])
        self._erased = store._ns.erased
        self.table: dict[str, Callable[[QueryParams], bytes]] = {
            "/api/store": lambda asked: self._json({**self._about, **overview(self._store)}),
            "/api/film": self._film,
            "/api/texts": lambda asked: self._json(self._texts(asked)),
            "/api/request": lambda asked: self._json(self._request(asked)),
            "/api/search": lambda asked: self._json(self._search(asked)),
            "/api/vmql": lambda asked: self._json(self._vmql(asked)),
            "/api/sweep": lambda asked: self._json(self._sweep(asked)),
            "/api/until": lambda asked: self._json(self._until(asked)),
            "/api/progress": lambda asked: encoded(self._whatifs.progress.get(self.named(asked), {"done": 0, "of": 0})),
            "/api/digests": lambda asked: encoded({"digests": digests(*self.chosen(asked)[:2], self._key)}),
            "/api/complete": lambda asked: self._json(self._complete(asked)),
        }

    def chosen(self, asked: QueryParams) -> WhatIfSource:
        """The session that is asked of, as it is or as it would have been."""
        name = self.named(asked)
        self._store.session(name).info()  # which follows the log
        self._look()
        return self._whatifs.chosen(name, asked.text("policy"), asked.number("budget", 1))

    def named(self, asked: QueryParams) -> str:
        """The session that is asked of, by its name in the store; the only one where none is named."""
        name = asked.text("session")
        if name is not None:
            return self._real(name)
        names = [info.session for info in self._store.sessions()]
        if len(names) == 1:
            return names[0]
        if not names:
            raise UnknownError("the store holds no session yet; record or import one")
        raise InputError(f"the store holds {len(names)} sessions; name one: session={names[0]}")

    def shown(self, value: Any) -> Any:
        """A value as it is handed out; where it is masked each session is called the same in all of them."""
        return value if self._redact is None else self._redact([self._hidden(), to_builtins(value)])[1]

    def _real(self, name: str) -> str:
        """A session's name, by what stands for it where names are masked."""
        hidden = self._hidden()
        return name if self._redact is None else dict(zip(self._redact(hidden), hidden, strict=True)).get(name, name)

    def _hidden(self) -> list[str]:
        """The names of sessions that are not handed out as they are, the oldest first, which keeps their numbers."""
        if self._redact is None:
            return []
        ordinal = self._store.admin.log.ordinal
        if ordinal != self._private[0]:
            with self._store._ns.asking():
                names = [name for (name,) in self._store._ns.views.execute(_NAMES)]
            masked = zip(names, self._redact(names), strict=True)
            self._private = ordinal, [name for name, shown in masked if name != shown]
        return self._private[1]

    def _json(self, value: Any) -> bytes:
        return encoded(self.shown(value))

    def _film(self, asked: QueryParams) -> bytes:
        """The film as it is sent, kept for as long as the session stands where it did."""
        name = self.named(asked)
        stands = self._store.session(name).info().position
        self._look()
        key = name, stands, asked.text("policy"), asked.number("budget", 1)
        with self._lock:
            if key in self._films:
                self._films.move_to_end(key)
                return self._films[key]
        made = self._json(film(*self.chosen(asked)))
        with self._lock:
            self._films[key] = made
            if len(self._films) > FILMS_MAX:
                self._films.popitem(last=False)
        return made

    def _look(self) -> None:
        """Forgets films and what-ifs that were made before something was erased."""
        erased = self._store._ns.erased
        if erased != self._erased:
            with self._lock:
                self._films.clear()
            self._whatifs.forget()
            self._erased = erased

    def _texts(self, asked: QueryParams) -> Any:
        store, session, _ = self.chosen(asked)
        positions = asked.numbers("at", 1)
        if not positions:
            raise InputError("at is missing; name the positions of contents, as stays.content has them: at=4,17")
        whole = asked.flag("whole")
        found = texts(store, session, positions, whole=whole or self._redact is not None)
        if self._redact is None:
            return {"texts": found}
        for entry in found.values():
            entry.line = entry.asked = None
        shown = self.shown(found)
        for entry in shown.values():
            if line := line_of_masked(entry["text"]):
                entry["line"] = line
        for entry in () if whole else shown.values():  # cut once it is masked: half a secret would not be known for one
            if len(entry["text"]) > CUT_BYTES:
                entry |= {"text": entry["text"][:CUT_BYTES], "cut": True}
        return {"texts": shown}

    def _request(self, asked: QueryParams) -> Any:
        asked.needed("call", "3")
        _, session, _ = self.chosen(asked)
        return request(session, asked.number("call") or 0, render=asked.flag("render"))

    def _search(self, asked: QueryParams) -> Any:
        words, everyone = asked.needed("q", "postgres decision"), asked.flag("all")
        store, session, _ = self.chosen(asked)
        call, whole = asked.number("call"), self._redact is not None
        hits = search_hits(store, session, words, call=call, everyone=everyone, whole=whole)
        return masked(hits, self.shown(hits.texts), words) if whole else hits.answer

    def _vmql(self, asked: QueryParams) -> Any:
        text = asked.needed("q", "PAGES LIMIT 5")
        only_asks(text, masked=self._redact is not None)
        store, session, _ = self.chosen(asked) if self._asks_one(asked) else (self._store, None, None)
        with asked.stopped_by(partial(store.admin.interrupt, threading.get_ident())):
            named = None if session is None else session.name
            seconds = min(asked.number("timeout", 1) or QUERY_S, QUERY_S)
            memory = min(asked.number("bytes", 1) or QUERY_BYTES, QUERY_BYTES)
            found = store.query(text, session=named, params=asked.values, timeout_s=seconds, memory=memory)
            return self._taken(asked, found)

    def _taken(self, asked: QueryParams, found: Result) -> Any:
        """The rows of an answer, as many as are asked for."""
        most = asked.number("limit") or ROWS_MAX
        names = [column.name for column in found.columns]
        rows = []
        for row in islice(found, most):
            asked.check()
            rows.append(dict(zip(names, row, strict=True)))
        more = len(rows) == most and next(found, None) is not None
        taken = {
            "basis": found.basis,
            "columns": [column._asdict() for column in found.columns],
            "rows": rows,
            "elapsed_ms": round(found.elapsed_ms, 3),
            "kind": found.kind,
        }
        if more:
            found.cancel()
            return {**taken, "limited": most}
        return taken if found.next is None else {**taken, "next": found.next}

    def _until(self, asked: QueryParams) -> Any:
        """The first moment after a position at which a predicate holds."""
        predicate = asked.needed("q", "p17 LEAVES L0")
        store, session, _ = self.chosen(asked)
        found = until(store, session, predicate, asked.number("after"))
        return found or {"none": f"{predicate} does not hold at any moment after that"}

    def export(self, asked: QueryParams) -> File:
        """A session as one file to be saved, masked for every caller; its name too, where the server is not local."""
        store, session, _ = self.chosen(asked)
        return replace(exported(store, session, place=asked.text("place") or ""), session=self.shown(session.name))

    def _asks_one(self, asked: QueryParams) -> bool:
        """Whether a session or a what-if is named; a store of many is asked without one."""
        return any(asked.text(name) is not None for name in ("session", "policy", "budget"))

    def _sweep(self, asked: QueryParams) -> Any:
        policies, budgets = asked.texts("policies"), asked.numbers("budgets", 1)
        if not policies and not budgets:
            raise InputError("nothing to compare; ask with policies=lru,default or budgets=8000,32000, or both")
        if (count := max(len(policies), 1) * max(len(budgets), 1)) > SWEEP_MAX:
            raise InputError(
                f"{count:,} what-ifs are more than the {SWEEP_MAX} of one question; ask in parts, or sweep with "
                "`vmstore replay`"
            )
        return self._whatifs.sweep(self.named(asked), policies, budgets, asked.check)

    def _complete(self, asked: QueryParams) -> Any:
        """What the text up to the cursor could go on with; nothing where nobody knows."""
        text = asked.text("q") or ""
        at = asked.number("at")
        session = None if asked.text("session") is None else self.named(asked)
        candidates = Candidates(lambda statement, begins: self._store.query(statement, session=session, begins=begins))
        try:
            found = candidates.of(text if at is None else text[:at])
        except (QueryError, InputError, UnknownError):
            found = []
        return {"candidates": [to_builtins(candidate._asdict()) for candidate in found]}


_NAMES = "SELECT name FROM sessions WHERE name IS NOT NULL ORDER BY session"


def only_asks(text: str, *, masked: bool = False) -> None:
    """Raises QueryError where a statement would write, never end, or tell words of texts that are `masked`."""
    statement = parse(text)
    inner = statement.statement if isinstance(statement, Explain) else statement
    refused = None
    if isinstance(inner, Fork):
        refused = "the debugger writes nothing, and FORK makes a session", "fork it with `vmstore fork`"
    elif isinstance(inner, Watch):
        refused = "WATCH never ends", "ask for MUTATIONS, or listen at /api/live"
    elif masked and isinstance(inner, LineageQuery) and any("evidence" in str(kind).lower() for kind in inner.kinds):
        refused = "texts are masked here, and evidence tells single words of them", "ask for SOURCES without it"
    elif masked and isinstance(inner, SearchQuery) and (inner is not statement or "words" in names_of(inner)):
        refused = "texts are masked here, and this tells single words of them", "ask for page and score"
    if refused is not None:
        raise QueryError(refused[0], code="not-here", text=text, span=statement.span, hint=refused[1])
