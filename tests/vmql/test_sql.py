"""SQL over the relations: what it answers, and that it can do nothing else."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.lanes import tries
from tests.refusals import refused
from vmstore.errors import InputError, UnknownError
from vmstore.shares.regions import revoke, share
from vmstore.store.store import Store
from vmstore.vmql.execution.sql_functions import glob, instr, like
from vmstore.vmql.execution.sql_tables import SERVED
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.syntax.errors import QueryError

NAME = "planning-220"
EVER = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"
JOINED = "SELECT count(*) FROM pages a, pages b, pages c, pages d"


def rows(store: Store, text: str, **options: Any) -> list[Any]:
    """The rows of an answer."""
    return list(store.sql(text, **{"session": NAME, **options}))


def refusal(store: Store, text: str, **options: Any) -> QueryError:
    """What a text is refused with."""
    with pytest.raises(QueryError) as caught:
        store.sql(text, **{"session": NAME, **options})
    return caught.value


@pytest.mark.parametrize("name", sorted(RELATIONS))
def test_a_table_holds_what_vmql_answers(store: Store, name: str) -> None:
    """Every relation is a table with the rows and the columns that VMQL shows of it, as of any turn."""
    for turn in (220, 42):
        answer = store.query(f"{name} IN SESSION '{NAME}' AS OF TURN {turn}")
        table = store.sql(f"SELECT * FROM {name.lower()}", session=NAME, turn=turn)
        assert [column.name for column in table.columns] == [column.name for column in answer.columns]
        lists = [at for at, column in enumerate(answer.columns) if column.type in ("list", "json")]
        for first, other in zip(table, answer, strict=True):
            assert all(first[at] == other[at] for at in range(len(other)) if at not in lists)


def test_a_column_that_is_dear_is_given_where_it_is_named(store: Store) -> None:
    """A star leaves out texts, and a statement that names one has it."""
    assert "text" not in [column.name for column in store.sql("SELECT * FROM pages", session=NAME).columns]
    fields = dict(store.query("PAGES page, text", session=NAME))
    assert dict(rows(store, "SELECT page, text FROM pages")) == fields


def test_two_moments_join(store: Store) -> None:
    """A table at another moment joins with that of the question's own."""
    then = {page for (page,) in store.query("PAGES page WHERE tier = L0 AS OF TURN 10", session=NAME)}
    now = {page for (page,) in store.query("PAGES page WHERE tier = L0 AS OF TURN 40", session=NAME)}
    left = """SELECT a.page FROM pages_at('turn', 10) a LEFT JOIN pages b ON b.page = a.page AND b.tier = 0
      WHERE a.tier = 0 AND b.page IS NULL"""
    assert {page for (page,) in rows(store, left, turn=40)} == then - now


def test_a_series_of_moments_is_one_statement(store: Store) -> None:
    """The moment of a table may come from another table: a context a call."""
    text = (
        "SELECT c.call, count(*), sum(x.tokens) FROM calls c, context_at('call', c.call) x WHERE c.call < 6 GROUP BY 1"
    )
    other_rows = []
    for call in range(1, 6):
        tokens = [tokens for (tokens,) in store.query(f"CONTEXT tokens AT CALL {call}", session=NAME)]
        other_rows.append((call, len(tokens), sum(tokens)))
    assert rows(store, text) == other_rows


def test_sessions_are_compared_at_one_turn(store: Store) -> None:
    """A third argument names another session, and without one all sessions are asked, each row once."""
    text = """SELECT count(*) FROM (SELECT page FROM pages_at('turn', 42, 'planning-220')
      EXCEPT SELECT page FROM pages_at('turn', 42, 'try-b'))"""
    assert rows(store, text) == [(0,)]
    counted = store.sql("SELECT session, count(*) FROM pages GROUP BY 1")
    assert list(counted) == list(store.query("PAGES session, count(*) BY session ACROSS SESSIONS"))
    assert counted.basis["sessions"] == 2
    assert "position" in store.sql("SELECT 1 FROM pages", session=NAME).basis


def test_an_answer_says_its_moment(store: Store) -> None:
    """The basis is the session and the position, the same as VMQL's."""
    for moment in ({"turn": 7}, {"call": 9}, {"position": 100}, {}):
        clause = "".join(f" AS OF {unit} {number}" for unit, number in moment.items())
        asked = store.query(f"PAGES count(*){clause}", session=NAME)
        assert store.sql("SELECT 1", session=NAME, **moment).basis == asked.basis


HOSTILE = {
    "ATTACH '/tmp/x' AS y": "refused",
    "ATTACH ':memory:' AS y": "refused",
    "DETACH main": "refused",
    "PRAGMA table_info(pages)": "refused",
    "SELECT * FROM pragma_database_list": "refused",
    "SELECT name FROM sqlite_master": "refused",
    "SELECT count(*) FROM sqlite_schema": "refused",
    "SELECT * FROM dbstat": "refused",
    "SELECT count(*) FROM pragma_module_list": "refused",
    "SELECT load_extension('x')": "refused",
    "INSERT INTO pages(page) VALUES (1)": "refused",
    "DELETE FROM pages": "refused",
    "UPDATE pages SET page = 1": "refused",
    "CREATE TABLE x(a)": "refused",
    "CREATE TEMP VIEW x AS SELECT 1": "refused",
    "DROP TABLE pages": "refused",
    "VACUUM INTO '/tmp/x'": "refused",
    "BEGIN": "refused",
    "REINDEX": "empty",
    "": "empty",
    "-- nothing": "empty",
    "SELECT 1; SELECT 2": "not-one",
    "SELECT 1; DROP TABLE pages": "refused",
    "SELECT * FROM pagess": "unknown-relation",
    "SELECT tokns FROM pages": "unknown-column",
    "SELECT * FORM pages": "not-sql",
    "SELECT 1e999": "not-finite",
    "SELECT -1e999 AS x": "not-finite",
    "SELECT :nobody": "unknown-parameter",
    "SELECT * FROM pages_at('turn', 4000)": "no-such-moment",
    "SELECT * FROM pages_at('tern', 4)": "no-such-moment",
    "SELECT * FROM pages_at('turn', 'x')": "no-such-moment",
    "SELECT * FROM pages_at('turn', 4, 'other')": "unknown-session",
    "SELECT 1 WHERE 'x' REGEXP '(('": "not-sql",
    "SELECT zeroblob(100000000)": "too-large",
    "SELECT printf('%.*c', 100000000, 'x')": "too-large",
    f"SELECT {'(' * 3000}1{')' * 3000}": "not-sql",
    f"SELECT {'1,' * 3000}1": "too-large",
    f"SELECT '{'x' * 300_000}'": "too-large",
    "WITH a(x) AS (SELECT x FROM a) SELECT * FROM a": "not-sql",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:40])
def test_what_is_no_reading_of_relations_is_refused(store: Store, text: str) -> None:
    """Writing, attaching, loading, reading of anything else and what is no SQL ends in a QueryError that points."""
    before = store.admin.log.ordinal
    error = refusal(store, text)
    assert error.code == HOSTILE[text]
    assert (error.pointed() != "") == (text != "")
    assert store.admin.log.ordinal == before


@pytest.mark.parametrize("text", [EVER, JOINED])
def test_a_statement_for_ever_ends_at_its_time(store: Store, text: str) -> None:
    """What takes too long is stopped where its time is over."""
    assert refusal(store, text, timeout_s=0.05).code == "timeout"


def test_a_statement_that_needs_room_ends_at_its_memory(store: Store) -> None:
    """What keeps too much, in SQLite or in what is read, is stopped."""
    text = EVER.replace("count(*)", "x") + " ORDER BY -x"
    assert refusal(store, text, memory=8 << 20).code == "too-large"
    assert refusal(store, "SELECT sum(length(text)) FROM pages", memory=100_000).code == "too-large"


def test_an_answer_of_too_many_rows_is_refused(store: Store) -> None:
    """More rows than were asked for are no answer: nothing is cut off in silence."""
    assert len(rows(store, "SELECT page FROM pages LIMIT 10", rows=10)) == 10
    assert refusal(store, "SELECT page FROM pages", rows=10).code == "too-large"


@pytest.mark.parametrize("limit", [{"rows": 0}, {"timeout_s": -1}, {"memory": float("nan")}, {"rows": True}])
def test_a_limit_that_is_none_is_refused(store: Store, limit: dict[str, Any]) -> None:
    """A limit is a number above zero."""
    with refused("not-a-limit", InputError):
        store.sql("SELECT 1", **limit)


def test_a_statement_is_cancelled_from_another_thread(store: Store) -> None:
    """Interrupting the store's questions ends SQL as well."""
    timer = threading.Timer(0.05, store.admin.interrupt)
    timer.start()
    assert refusal(store, EVER, timeout_s=60.0).code == "cancelled"
    timer.join()


def test_parameters_may_have_any_name(store: Store) -> None:
    """Parameters called text, session and rows are handed in; what no store can hold is refused."""
    fields = {"text": "a", "session": 2, "rows": None, "many": ["p4", "p5"]}
    text = "SELECT :text, $session, @rows, (SELECT count(*) FROM json_each(:many))"
    assert rows(store, text, params=fields) == [("a", 2, None, 2)]
    for value in (float("inf"), float("nan"), 1 << 80, object()):
        error = refusal(store, "SELECT :x", params={"x": value})
        assert error.code == "wrong-type" and error.span == (7, 9)


def test_columns_of_one_name_are_told_apart(store: Store) -> None:
    """Columns of one name are numbered, and none is lost."""
    answer = store.sql("SELECT 1 AS a, 2 AS a, 3 AS a_2, x'00ff' AS b")
    assert answer.to_dicts() == [{"a": 1, "a_3": 2, "a_2": 3, "b": "00ff"}]


def test_erased_stays_erased() -> None:
    """What was erased is not to be had, at any moment."""
    with vmstore.memory_store() as store:
        store.record("s", {"messages": [{"role": "user", "content": "my word is xyzzy"}]})
        text = "SELECT page FROM pages_at('turn', 1) WHERE text LIKE '%xyzzy%'"
        ((page,),) = rows(store, text, session="s")
        store.trust.erase(page=page, in_session="s")
        assert rows(store, text, session="s") == []
        ((value,),) = rows(store, "SELECT text FROM versions WHERE page = :p", session="s", params={"p": page})
        assert "erased" in value


def test_a_grant_ends_what_sql_may_read(tmp_path: Path) -> None:
    """A region of others is read as long as its grant lasts, and no longer."""
    with vmstore.open(tmp_path / "s", namespace="team") as keeper, vmstore.open(tmp_path / "s") as own:
        keeper.record("plan", {"messages": [{"role": "user", "content": "Where to?"}]})
        share(keeper, "default", "read")
        region = own.sharing.region("team")
        assert list(region.sql("SELECT session FROM sessions")) == [("plan",)]
        revoke(keeper, "default")
        with pytest.raises(UnknownError):
            region.sql("SELECT session FROM sessions")
        region.close()


def test_a_store_that_is_closed_or_another_namespace_is_not_read(tmp_path: Path) -> None:
    """A statement sees the sessions of its own namespace, and nothing once the store is closed."""
    first, other = (vmstore.open(tmp_path / "s", namespace=name) for name in ("one", "other"))
    first.record("mine", {"messages": [{"role": "user", "content": "hello"}]})
    other.record("yours", {"messages": [{"role": "user", "content": "hello"}]})
    assert [name for (name,) in first.sql("SELECT session FROM sessions")] == ["mine"]
    with pytest.raises(QueryError):
        first.sql("SELECT * FROM pages_at('turn', 1, 'yours')")
    first.close()
    other.close()
    with pytest.raises(InputError):
        first.sql("SELECT 1")


# ---- random statements beside plain tables


@pytest.fixture(scope="module")
def copied(store: Store) -> Iterator[sqlite3.Connection]:
    """The same rows in tables of SQLite's own."""
    db = sqlite3.connect(":memory:")
    for name in ("pages", "calls", "links", "residencies"):
        answer = store.sql(f"SELECT * FROM {name}", session=NAME)
        names = [f'"{column.name}"' for column in answer.columns]
        db.execute(f"CREATE TABLE {name} ({', '.join(names)})")
        db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(names))})", answer)
    yield db
    db.close()


def statement(chance: random.Random) -> str:
    """A random join with conditions, sums and an order that leaves no tie."""
    tables = chance.sample(["pages p", "calls c", "links l", "residencies r"], chance.randint(1, 3))
    columns = {
        "p": ["page", "type", "tokens", "created_call", "position", "pinned"],
        "c": ["call", "turn", "tokens", "status", "cost"],
        "l": ["source", "target", "kind", "position"],
        "r": ["page", "from_call", "to_call", "tokens", "level"],
    }
    text, before = "", list[str]()
    for at, table in enumerate(tables):
        alias = table[-1]
        if at:
            other = chance.choice(before)
            pairs = [(a, b) for a in columns[alias] for b in columns[other] if kind(a) == kind(b)]
            if not pairs:
                break
            a, b = chance.choice(pairs)
            text += f" {chance.choice(['JOIN', 'LEFT JOIN'])} {table} ON {alias}.{a} = {other}.{b}"
            text += f" AND {alias}.{condition(chance, columns[alias])}"
        else:
            text += f" FROM {table}"
        before.append(alias)
    shown = [f"{alias}.{chance.choice(columns[alias])}" for alias in before]
    where = f" WHERE {before[0]}.{condition(chance, columns[before[0]])}"
    return f"SELECT {', '.join(shown)}, count(*){text}{where} GROUP BY {', '.join(shown)}"


def kind(column: str) -> str:
    """Which columns can be equal."""
    return "page" if column in ("page", "source", "target") else "call" if "call" in column else column


def condition(chance: random.Random, columns: list[str]) -> str:
    """A random condition on a column, values of the wrong kind included."""
    column = chance.choice(columns)
    value = chance.choice(["'p40'", "'artifact'", "'derives'", "12", "12.0", "'12'", "NULL", "0", "'ok'", "1"])
    return f"{column} {chance.choice(['=', '=', '<>', '<', '>=', 'IS', 'IS NOT'])} {value}"


def test_random_statements_answer_as_over_plain_tables(store: Store, copied: sqlite3.Connection) -> None:
    """Joins, conditions and sums over the relations give what they give over tables that hold the same rows."""
    chance = random.Random(19)
    for _ in range(tries(60)):
        text = statement(chance)
        reprs = sorted(map(repr, copied.execute(text)))
        assert sorted(map(repr, rows(store, text))) == reprs, text


def test_like_glob_and_instr_are_those_of_sqlite() -> None:
    """Patterns match as SQLite's own do, whatever they hold."""
    db, chance = sqlite3.connect(":memory:"), random.Random(20)
    for _ in range(tries(2_000)):
        text = "".join(chance.choice("aAbé[]^-%_*?\\\n") for _ in range(chance.randint(0, 8)))
        pattern = "".join(chance.choice("aAbé%%_") for _ in range(chance.randint(0, 6)))
        assert like(pattern, text) == db.execute("SELECT ? LIKE ?", (text, pattern)).fetchone()[0], (text, pattern)
        globbed = "".join(chance.choice(["a", "A", "é", "*", "?", "[ab]", "[^a]", "[a-b]"]) for _ in range(4))
        assert glob(globbed, text) == db.execute("SELECT ? GLOB ?", (text, globbed)).fetchone()[0], (text, globbed)
        assert instr(text, pattern) == db.execute("SELECT instr(?, ?)", (text, pattern)).fetchone()[0]
    db.close()


def test_facts_that_hold_no_more_have_a_table() -> None:
    """`facts` are those that hold, `facts_ever` also those that were replaced, as FACTS and FACTS ALL are."""
    with vmstore.memory_store() as made:
        made.record("s", {"model": "m", "messages": [{"role": "user", "content": "I live in Kyoto."}]}, None)
        for place in ("Kyoto", "Nara"):
            made.session("s").memory.facts.state("user", "lives in", place, attribute="home", one=True)
        for table, asked in (("facts", "FACTS what"), ("facts_ever", "FACTS what ALL")):
            assert list(made.sql(f"SELECT what FROM {table}")) == list(made.query(asked))
        assert list(made.sql("SELECT what, was FROM facts_ever")) == [("Kyoto", None), ("Nara", "Kyoto")]
        assert list(made.sql("SELECT what FROM facts_ever_at('position', 2)")) == []


def test_names_of_tables_are_those_of_the_catalog() -> None:
    """What SQL can read is the catalog, the context of a call, and facts that hold no more, each by its name."""
    assert set(SERVED) == {name.lower() for name in RELATIONS} | {"context", "facts_ever"}
