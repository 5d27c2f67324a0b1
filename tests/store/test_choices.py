"""Choices that indexes answer, orders that go on after a page, and the pages of many sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import apsw
import pytest

import vmstore
from tests.refusals import refused
from tests.store.kept import tell
from tests.views.pen import Pen
from tests.views.test_alphabet import store_over
from vmstore.core.asof import Call, Position, Time
from vmstore.core.clock import ManualClock
from vmstore.core.mutation import Annotate, Create
from vmstore.errors import InputError, UnknownError
from vmstore.store.store import Store

PAGES = 300


@pytest.fixture(scope="module")
def many() -> Store:
    """Two sessions of 300 pages each, of which a few are claims, weighed, tagged or in the context."""
    pen = Pen()
    session = pen.session
    for user in ("ada", "bob"):
        pen.session = _session(pen, user)
        batch = pen.engine.batch(pen.session)
        pages = [
            batch.add(Create(3 * (n % 50 == 7), 0, n % 4, 0, 0, batch.cell(b"p"), n, n, importance=500_000))
            for n in range(PAGES)
        ]
        for page in pages[::60]:
            batch.add(Annotate(page, importance=900_000, tags=batch.cell(b'["kept"]')))
        batch.commit(0)
        pen.pack(*pages[:5])
        pen.pack(*pages[3:8])
    assert session
    return store_over(pen.engine)


def _session(pen: Pen, user: str) -> int:
    store = store_over(pen.engine)
    return int(store.session(user[0], create=True, user=user, agent="planner")._key)


SCANS = re.compile(
    r"SCAN (p|pages|changes|notes|tags|spans|residents)\b|(p|pages) USING PRIMARY KEY \(session=\?( AND page[<>].*)?\)"
)
Ask = Callable[[Store], list[Any]]
ASKED: dict[str, Ask] = {
    "type": lambda store: store.session("a").pages(type="claim"),
    "tag": lambda store: store.session("a").pages(tag="kept"),
    "importance": lambda store: store.session("a").pages(importance_min=0.8),
    "tier": lambda store: store.session("a").pages(tier="L0"),
    "entered": lambda store: store.session("a").pages(entered_since=Call(1)),
    "user, type": lambda store: store.pages(user="ada", type="claim"),
    "user, tag": lambda store: store.pages(user="ada", tag="kept"),
    "any user, tag": lambda store: store.pages(tag="kept"),
    "any user, type": lambda store: store.pages(type="claim"),
    "ordered": lambda store: store.session("a").pages(type="claim", order_by="importance"),
    "after": lambda store: store.session("a").pages(tag="kept", order_by="tokens", after=3, limit=2),
}


def plans(store: Store, ask: Ask) -> list[str]:
    """How SQLite goes about every query of a question."""
    queries: list[tuple[str, Any]] = []

    def note(cursor: Any, sql: str, bindings: Any) -> bool:
        queries.append((sql, bindings))
        return True

    store.admin.views.exec_trace = note
    try:
        assert ask(store)
    finally:
        store.admin.views.exec_trace = None
    explained = [sql for sql in queries if sql[0].lstrip().startswith(("SELECT", "WITH"))]
    return [
        str(row[3])
        for sql, bindings in explained
        for row in store.admin.views.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)
    ]


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_a_choice_does_not_look_at_every_page(many: Store, ask: Ask) -> None:
    """A choice by type, tag, importance, tier, entry or user goes by index: no query of it goes through all pages."""
    assert [plan for plan in plans(many, ask) if SCANS.search(plan)] == []


def test_sessions_are_found_by_user(many: Store) -> None:
    """The sessions of a user come by the index of users, and the pages of no other are looked at."""
    other_plans = plans(many, lambda store: store.pages(user="ada", type="claim"))
    assert any("sessions_user (user=?)" in plan for plan in other_plans)
    assert not any("SCAN sessions" in plan for plan in other_plans)


def test_a_scan_would_be_noticed(many: Store) -> None:
    """The test above can fail: a choice by role goes through the pages, and its plan says so."""
    assert any(SCANS.search(plan) for plan in plans(many, lambda store: store.session("a").pages(role="user")))


def steps(store: Store, ask: Ask) -> int:
    """How many steps SQLite takes to answer a question: work that no clock and no other program changes."""
    taken: list[int] = []
    store.admin.views.trace_v2(
        apsw.SQLITE_TRACE_PROFILE, lambda event: taken.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])
    )
    try:
        ask(store)
    finally:
        store.admin.views.trace_v2(0, None)
    return sum(taken)


ASKED_OF: dict[str, dict[str, Any]] = {
    "type": {"type": "claim"},
    "tag": {"tag": "kept"},
    "importance": {"importance_min": 0.8},
    "tier": {"tier": "L0"},
    "level": {"level": 0, "limit": 5},
    "first": {"limit": 5},
}


@pytest.mark.parametrize("fields", ASKED_OF.values(), ids=ASKED_OF.keys())
def test_the_past_costs_what_the_head_does(fields: dict[str, Any]) -> None:
    """Of a session whose pages are annotated and packed again and again, any moment is answered by at most three
    times the steps the head takes.
    """
    pen = Pen()
    pages: list[int] = []
    for round_ in range(40):
        batch = pen.engine.batch(pen.session)
        pages += [batch.add(Create(3 * (n == 7), 0, 1, 0, 0, batch.cell(b"p"), n, n)) for n in range(20)]
        for page in pages[round_ % 7 :: 61]:
            batch.add(Annotate(page, importance=900_000 - 1_000 * round_, tags=batch.cell(b'["kept"]')))
        batch.commit(0)
        pen.pack(*pages[-12:])
    store = store_over(pen.engine)
    session = store.session("s")
    end = session.info().position
    head = steps(store, lambda _: session.pages(**fields))
    assert head > 50
    for position in range(end // 10, end, end // 10):
        assert steps(store, lambda _, at=position: session.pages(position=at, **fields)) <= 3 * head


def test_only_what_is_answered_is_described(many: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit only so many pages are made into answers, however many were chosen."""
    from vmstore.namespace import page_rows as room

    seen: list[int] = []
    right = room.described

    def described(lane: Any, position: int, pages: Any) -> Any:
        seen.append(len(pages))
        return right(lane, position, pages)

    monkeypatch.setattr(room, "described", described)
    assert len(many.session("a").pages(order_by="tokens", limit=4)) == 4
    assert len(many.session("a").pages(limit=3)) == 3
    assert seen == [4, 3]


def test_a_level_is_what_the_prompt_shows() -> None:
    """A choice by level gives what is shown at it; what is out of the prompt is whole."""
    with vmstore.memory_store(clock=ManualClock(5_000_000)) as store:
        tell(store)
        session = store.session("s")
        shown = [page for page in session.pages(call=3) if page.level]
        assert shown
        assert session.pages(call=3, level=shown[0].level) == [p for p in shown if p.level == shown[0].level]
        assert session.pages(call=3, level=0) == [page for page in session.pages(call=3) if not page.level]
        with refused("no-level", UnknownError):
            session.pages(level=4)


def test_since_is_after() -> None:
    """Pages created or entered since a moment are those after it, up to the moment that is asked of."""
    pen = Pen()
    a = pen.page("a")
    b = pen.page("b")
    pen.pack(a)
    c = pen.page("c")
    second = pen.pack(a, b)
    pen.pack(a, b, c)
    session = store_over(pen.engine).session("s")

    def positions_of(**fields: Any) -> list[int]:
        return [page.position for page in session.pages(**fields)]

    assert positions_of(created_since=Position(a)) == [b, c]
    assert positions_of(created_since=Call(1)) == [c]
    assert positions_of(entered_since=Call(1)) == [b, c]
    assert positions_of(entered_since=Call(1), call=2) == [b]
    assert positions_of(entered_since=Position(second)) == [c]
    assert positions_of(created_since=Time(0)) == []
    with pytest.raises(UnknownError):
        session.pages(created_since=Call(9))


@pytest.mark.parametrize("order_by", ["position", "importance", "tokens", "recency"])
def test_pages_come_in_pieces(many: Store, order_by: str) -> None:
    """Asked piece by piece, each after the last page of the one before, all pages come once and in order."""
    for ask, name in ((many.session("a").pages, "page"), (many.pages, "reference")):
        whole = ask(order_by=order_by)
        some: list[Any] = []
        while more := ask(order_by=order_by, limit=97, after=_name(some[-1], name) if some else None):
            some += more
        assert some == whole and len({(page.session, page.page) for page in some}) == len(some) > 97


def _name(page: Any, how: str) -> str:
    return page.page if how == "page" else f"{page.session}/{page.page}"


def test_a_cursor_that_is_none_is_named(many: Store) -> None:
    """A page to go on after that is not there, or not of a session, is an error, and so is a limit that is none."""
    with pytest.raises(UnknownError):
        many.session("a").pages(after="p99999")
    with refused("not-an-address", InputError):
        many.pages(after="p7")
    with refused("no-session", UnknownError, "'x'"):
        many.pages(after="x/p7")
    with refused("no-page", UnknownError, "p1"):
        many.pages(after="a/p1", order_by="tokens")
    with refused("not-a-limit", InputError):
        many.session("a").pages(limit=-1)
    assert many.session("a").pages(limit=0) == []


# ---- many sessions


def test_each_page_is_told_once() -> None:
    """Across sessions a page is told by the session that made it, as it has it; a fork tells its own alone."""
    with vmstore.memory_store(clock=ManualClock(5_000_000)) as store:
        tell(store)
        fork = store.session("s").fork("f", call=2)
        tell_more = {"model": "m", "messages": [{"role": "user", "content": "only here"}]}
        fork.record(tell_more, None, at_us=9_000_000)
        fork.annotate("p4", tags=["of the fork"])
        store.session("s").annotate("p4", tags=["of the parent"])
        pages = store.pages()
        assert len(pages) == store.info().pages
        assert [page.session for page in pages] == sorted(page.session for page in pages)
        own = [page for page in fork.pages() if page.session == "f"]
        assert [page for page in pages if page.session == "f"] == own and own
        assert [page for page in pages if page.session == "s"] == store.session("s").pages()
        assert store.pages(tag="of the fork") == []
        assert [page.page for page in store.pages(tag="of the parent")] == ["p4"]


def test_a_user_sees_theirs(many: Store) -> None:
    """Pages and sessions of a user or an agent are theirs alone; nobody's are nobody's."""
    assert {page.session for page in many.pages(user="ada")} == {"a"}
    assert {page.session for page in many.pages(agent="planner")} == {"a", "b"}
    assert many.pages(user="eve") == many.pages(user="ada", agent="coder") == []
    assert [info.session for info in many.sessions(user="bob")] == ["b"]
    assert [info.session for info in many.sessions(agent="planner")] == ["a", "b"]
    assert len(many.pages(user="ada", type="claim")) == len(many.session("a").pages(type="claim")) == 6


def test_only_a_time_is_common_to_sessions() -> None:
    """Across sessions a time can be asked of, each as it stood then; a call of no session in particular cannot."""
    with vmstore.memory_store(clock=ManualClock(5_000_000)) as store:
        tell(store, "one", calls=2)
        store.record("two", {"model": "m", "messages": [{"role": "user", "content": "late"}]}, None, at_us=50_000_000)
        assert {page.session for page in store.pages(time=3_000_000)} == {"one"}
        assert {page.session for page in store.pages(time=50_000_000)} == {"one", "two"}
        assert store.pages(order_by="recency", limit=1)[0].session == "two"
        assert {page.session for page in store.pages(created_since=Time(3_000_000))} == {"two"}
        with refused("moment-of-one-session", InputError):
            store.pages(call=1)


# ---- what a page's accesses are


def test_an_access_is_a_call_that_saw_it() -> None:
    """A page's accesses are the calls whose context held it up to the moment, and the last of them has a turn."""
    pen = Pen()
    pen.turn()
    a, b = pen.page("a"), pen.page("b")
    pen.pack(a, b)
    pen.pack(b)
    pen.turn()
    pen.pack(a, b)
    pen.pack(b)
    session = store_over(pen.engine).session("s")
    values = {page.position: (page.access_count, page.last_access_turn) for page in session.pages()}
    assert values == {a: (2, 2), b: (4, 2)}
    assert [(page.access_count, page.last_access_turn) for page in session.pages(call=2)] == [(1, 1), (2, 1)]
    assert [(page.access_count, page.last_access_turn) for page in session.pages(position=b)] == [(0, None)] * 2
