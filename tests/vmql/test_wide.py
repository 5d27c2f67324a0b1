"""Sums over many mutations: the same from the column segments as from the log, or left to the log."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.decided import Live
from tests.refusals import refused
from tests.store.kept import tell
from vmstore.core.clock import SystemClock
from vmstore.store.store import Store
from vmstore.vmql.execution import duckdb_executor
from vmstore.vmql.execution.query_limits import LimitedQuery, QueryLimits
from vmstore.vmql.syntax.errors import QueryError

ALIKE = [
    "MUTATIONS count(*) ACROSS SESSIONS",
    "MUTATIONS count(*), sum(tokens), avg(tokens) AS mean BY kind ACROSS SESSIONS",
    "MUTATIONS min(position), max(position), max(tokens) BY session, kind ACROSS SESSIONS WHERE kind != message",
    "MUTATIONS count(*) BY turn, call ACROSS SESSIONS WHERE kind IN (create, pack) AND NOT tokens > 7",
    "MUTATIONS count(*), max(version_after), max(version_before) BY page ACROSS SESSIONS WHERE page IS NOT NULL",
    "MUTATIONS count(*) BY level, tier_after ACROSS SESSIONS ORDER BY count(*) DESC LIMIT 2",
    "MUTATIONS count(*), sum(tokens) BY kind, tier_before, tier_after, level ACROSS SESSIONS",
    "MUTATIONS count(*), max(cause) BY kind, page ACROSS SESSIONS WHERE cause IS NOT NULL",
    "MUTATIONS sum(tokens) ACROSS SESSIONS UNTIL TIME '2026-11-22' WHERE kind = reply OR kind = pack",
    "MUTATIONS count(*) BY session ACROSS SESSIONS WHERE session = s AND at > 5",
    "MUTATIONS count(*) BY session IN SESSION 's%'",
    "MUTATIONS count(*), max(position) BY kind IN SESSION s",
    "MUTATIONS count(*), sum(tokens) BY session, kind IN SESSION 's.child'",
    "MUTATIONS count(*) BY turn IN SESSION 's.child' AS OF CALL 1 WHERE kind != reply",
    "MUTATIONS count(*) ACROSS SESSIONS WHERE tokens > 1000000",
]
LEFT = [
    "MUTATIONS position, kind ACROSS SESSIONS",  # no sum
    "MUTATIONS count(*) BY kind ACROSS SESSIONS WHERE session LIKE 'S%'",  # which tells cases apart there
    "MUTATIONS quantile(tokens, 0.5) ACROSS SESSIONS",
    "MUTATIONS first(tokens), last(tokens) ACROSS SESSIONS",
    "MUTATIONS count(*) BY reason ACROSS SESSIONS",  # nor what a reference says of what it asks for
    "MUTATIONS count(request_id) ACROSS SESSIONS",  # a text, which no column holds
    "MUTATIONS count(*) ACROSS SESSIONS WHERE detail.link = 0",
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Sessions with tools, updates, annotations and forks, and one in which a kernel is at work."""
    store = vmstore.open(tmp_path / "a.vms")
    tell(store)
    store.session("s").annotate("p4", tags=["x"])
    Live(store).wished()
    fork = store.session("s").fork("s.child", call=2)
    fork.record({"model": "m", "messages": [{"role": "user", "content": "elsewhere"}]}, None, at_us=9_000_000)
    return store


def asked_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of DuckDB from here on."""
    texts: list[str] = []
    right = duckdb_executor.answer

    def answer(db: object, actual: object, *more: object) -> object:
        texts.append(actual.body)  # type: ignore[attr-defined]
        return right(db, actual, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(duckdb_executor, "answer", answer)
    return texts


@pytest.mark.parametrize("text", ALIKE)
def test_columns_sum_as_the_log_does(store: Store, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A sum has the same rows from the columns, in the same order and of the same types, of many sessions or one."""
    texts = asked_of(monkeypatch)
    right = store.query(text)
    rows = list(right)
    assert not texts and (rows or "1000000" in text)
    monkeypatch.setattr(duckdb_executor, "MANY", 0)
    result = store.query(text)
    assert list(result) == rows and texts
    assert (result.columns, result.basis) == (right.columns, right.basis)
    assert [list(map(type, row)) for row in store.query(text)] == [list(map(type, row)) for row in rows]


@pytest.mark.parametrize("text", LEFT)
def test_what_columns_say_otherwise_is_left_to_the_log(
    store: Store, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """What the columns do not hold, and what DuckDB means otherwise, is answered from the log."""
    texts = asked_of(monkeypatch)
    monkeypatch.setattr(duckdb_executor, "MANY", 0)
    assert list(store.query(text)) and not texts


def test_explain_says_which_way_is_taken(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """EXPLAIN names the column segments where they are asked, and the log where it is."""
    text = "EXPLAIN MUTATIONS count(*) BY kind ACROSS SESSIONS WHERE turn > 1"
    assert "column segments" not in str(list(store.query(text)))
    monkeypatch.setattr(duckdb_executor, "MANY", 0)
    other_text = str(list(store.query(text)))
    assert "from the column segments, summed by DuckDB" in other_text and "turn > 1: in columns" in other_text


def test_what_was_just_written_is_summed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum counts what was written after the one before it."""
    monkeypatch.setattr(duckdb_executor, "MANY", 0)
    text = "MUTATIONS count(*) ACROSS SESSIONS"
    ((before,),) = store.query(text)
    store.session("s").annotate("p4", tags=["y"])
    assert list(store.query(text)) == [(before + 1,)]


def test_a_planted_fault_is_seen(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the columns were asked of one session too few, the comparison would tell."""
    text = "MUTATIONS count(*) BY session ACROSS SESSIONS"
    rows = list(store.query(text))
    monkeypatch.setattr(duckdb_executor, "MANY", 0)
    monkeypatch.setattr(duckdb_executor, "_bounds", lambda scope: " WHERE m.session = 1")
    assert list(store.query(text)) != rows


def test_a_sum_over_columns_can_be_stopped() -> None:
    """DuckDB, which asks nobody while it runs, is interrupted where a statement took longer than it may."""
    duckdb = pytest.importorskip("duckdb", reason="column segments need duckdb")
    ticks = SystemClock().ticks
    watch = LimitedQuery(QueryLimits(timeout_s=0.1), ticks, "MUTATIONS count(*)")
    db = duckdb.connect()
    began = ticks()
    with refused("timeout", QueryError), duckdb_executor.stopped_by(watch, db):
        db.execute("SELECT count(*) FROM range(1000000000000) a WHERE a.range % 7 = 3").fetchall()
    assert watch.passed == "time" and ticks() > began
    with duckdb_executor.stopped_by(LimitedQuery(QueryLimits(), ticks, ""), db):
        assert db.execute("SELECT 1").fetchall() == [(1,)]
