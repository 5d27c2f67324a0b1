"""Asking in VMQL against asking the store's own objects, the past against the head, and what a stream holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benches.parts import child, doors, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, ratios, row
from vmstore.core.asof import Call
from vmstore.store.session import Session
from vmstore.store.store import Store

Ask = Callable[[], Any]
KINDS = (
    *("SESSIONS", "TURNS", "CALLS", "PAGES", "FAULTS", "MUTATIONS", "CONTEXT", "RENDER", "DIFF"),
    *("HISTORY", "SOURCES", "SEARCH"),
)
AGAINST = {
    kind: Goal(f"{kind} at 1,000,000 mutations, 0.2 ms left out, against the direct call", 1.5, LOWER) for kind in KINDS
}
FILTERS = ("type = summary", "tier = L0", "level >= 1", "pinned", "importance >= 0.8")
PAST = {
    other_filter: Goal(f"PAGES AS OF any position, {other_filter}: p50 against the head", 3, LOWER)
    for other_filter in FILTERS
}
STREAMED = Goal("streamed MUTATIONS over 1,000,000: MB above idle", 40, LOWER)
GOALS = (*AGAINST.values(), *PAST.values(), STREAMED)

MUTATIONS = (1_000_000, 4_000)
COMMIT = 100
FREE_S = 0.0002
ROUNDS, BUDGET_S = 5, 20.0
POSITIONS = (20, 4)


def measure(bench: Bench) -> Iterator[Row]:
    """All rows, on one session of a million mutations."""
    path = stores.filled_store(bench, bench.size(*MUTATIONS), COMMIT)
    with doors.opened(path) as store:
        session = store.session(stores.SESSION)
        for kind, (asked, direct) in pairs(store, session).items():
            asked(), direct()
            taken = bench.race({"vmstore": asked, "direct": direct}, bench.size(ROUNDS, 2), budget_s=BUDGET_S)
            yield row(AGAINST[kind], ratios([max(0.0, s - FREE_S) for s in taken["vmstore"]], taken["direct"]))
        yield from past(bench, store, session)
    idle, peak = child.run("idle", path)["peak"], child.run("stream", path)["peak"]
    yield row(STREAMED, [peak - idle])


def pairs(store: Store, session: Session) -> dict[str, tuple[Ask, Ask]]:
    """Each kind of statement, and the call that answers the same."""
    call = session.info().calls // 2
    page = session.context(call=call).pages[3].page

    def query(text: str) -> Ask:
        return lambda: list(store.query(text))

    return {
        "SESSIONS": (query("SESSIONS"), store.sessions),
        "TURNS": (query("TURNS turn, position, at, calls"), session.turns),
        "CALLS": (query("CALLS"), session.calls),
        "PAGES": (query("PAGES"), session.pages),
        "FAULTS": (query("FAULTS"), session.debug.faults),
        "MUTATIONS": (query("MUTATIONS"), lambda: list(store.tail())),
        "CONTEXT": (query(f"CONTEXT AT CALL {call}"), lambda: session.context(call=call).pages),
        "RENDER": (query(f"CONTEXT AT CALL {call} RENDER"), lambda: session.context(call=call).text()),
        "DIFF": (
            query(f"DIFF CONTEXT CALL {call} TO CALL {call + 2}"),
            lambda: session.diff(Call(call), Call(call + 2)),
        ),
        "HISTORY": (query(f"HISTORY OF {page}"), lambda: session.lineage.history(page)),
        "SOURCES": (query(f"SOURCES OF {page} DEPTH 3"), lambda: session.lineage.ancestors(page, depth=3)),
        "SEARCH": (query("SEARCH 'error' page, score LIMIT 10"), lambda: session.search("error")),
    }


def past(bench: Bench, store: Store, session: Session) -> Iterator[Row]:
    """Filters over the pages as of positions all along the session, against the head."""
    last, count = session.info().position, bench.size(*POSITIONS)
    positions = [last * (n + 1) // (count + 1) for n in range(count)]
    for other_filter in FILTERS:
        then = f"PAGES page AS OF POSITION $position WHERE {other_filter}"
        now = f"PAGES page WHERE {other_filter}"

        def asked(then: str = then) -> None:
            for position in positions:
                list(store.query(then, position=position))

        def head(now: str = now) -> None:
            for _ in positions:
                list(store.query(now))

        asked(), head()
        taken = bench.race({"vmstore": asked, "head": head}, bench.size(ROUNDS, 2), budget_s=BUDGET_S)
        yield row(PAST[other_filter], ratios(taken["vmstore"], taken["head"]))
