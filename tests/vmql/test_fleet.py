"""Many namespaces asked as one answer as one namespace would that holds the sessions of all."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings

import vmstore
from tests.lanes import tries
from tests.refusals import refused
from tests.replay.lives import live
from tests.vmql.asked import asked
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError, StoreError, UnknownError
from vmstore.shell.vmql.main import main
from vmstore.store.completions import Candidates
from vmstore.store.fleet.fleet import Fleet, open_fleet
from vmstore.store.store import Store
from vmstore.vmql.execution import duckdb_executor
from vmstore.vmql.fleet.relation import PLACES
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.printer import show

TEAMS = ("team-a", "team-b", "team-c")
STATEMENTS = tries(40)
AT_US = 1_760_000_000_000_000


class Teams(NamedTuple):
    """Sessions of three namespaces of one store, and a store that holds all of them in one namespace."""

    path: Path
    whole: Store
    fleet: Fleet


@pytest.fixture(scope="module")
def teams(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    """Real sessions, named so that those of the first namespace come first; one namespace more has none."""
    folder = tmp_path_factory.mktemp("fleet")
    few = folder / "few.json"
    few.write_text(json.dumps(json.loads((data / "tau-bench/airline_even_tasks.json").read_text())[:3]))
    files = {
        "team-a": (("a-tau", few),),
        "team-b": (("b-swe", data / "swe-agent/katy.traj"), ("b-letta", data / "letta-af/customer_service.af")),
        "team-c": (("c-claude", data / "claude-code/representative_messages.jsonl"),),
    }
    path = folder / "agents.vms"
    with vmstore.open(folder / "whole.vms", clock=ManualClock(AT_US, 0)) as whole:
        for team in TEAMS:
            with vmstore.open(path, namespace=team, clock=ManualClock(AT_US, 0)) as store:
                for name, file in files[team]:
                    store.import_file(file, session=name)
                    whole.import_file(file, session=name)
                store.sharing.share("sandbox:nobody")  # into a session that no question shows
                for each in (store, whole):
                    live(each, f"{team[-1]}-live", seed=ord(team[-1]), turns=4, user=f"user-{team}")
                    each.session(f"{team[-1]}-live").fork(f"{team[-1]}-live-2", turn=2)
        with vmstore.open(path, namespace="team-d"):
            pass
        with open_fleet(path) as fleet:
            yield Teams(path, whole, fleet)


def asked_of(store: Store | Fleet, text: str, **params: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer."""
    return list(store.query(text, **params))


# ---- the naive merge


@settings(max_examples=STATEMENTS)
@given(asked())
def test_a_fleet_answers_as_one_namespace(teams: Teams, question: tuple[str, Any, s.Tail]) -> None:
    """Whatever is asked of a relation, sums, means, orders and limits included, it is the answer of the whole."""
    _same(teams, question)


@settings(max_examples=STATEMENTS)
@given(question=asked(("MUTATIONS",)))
def test_by_columns_too(teams: Teams, question: tuple[str, Any, s.Tail]) -> None:
    """What sums mutations is answered alike by DuckDB over the column segments of all."""
    pytest.importorskip("duckdb", reason="column segments need duckdb")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duckdb_executor, "MANY", 0)
        _same(teams, question)


def _same(teams: Teams, question: tuple[str, Any, s.Tail]) -> None:
    name, columns, tail = question
    statement = s.RelationQuery(name=name, columns=columns, tail=_across(tail))
    expected: Any
    try:
        expected = list(teams.whole.query(statement))
    except QueryError as error:
        expected = error.code
    try:
        actual: Any = list(teams.fleet.query(statement))
    except QueryError as error:
        actual = error.code
    assert actual == expected, show(statement)


def _across(tail: s.Tail) -> s.Tail:
    from msgspec.structs import replace

    return replace(tail, scope=s.AcrossSessions())


@pytest.mark.parametrize(
    "text",
    [
        "PAGES avg(tokens), count(DISTINCT session), count(DISTINCT type) ACROSS SESSIONS",
        "CALLS session, call, tokens ACROSS SESSIONS ORDER BY tokens DESC, call LIMIT 7",
        "PAGES count(*), avg(tokens) BY type ACROSS SESSIONS HAVING avg(tokens) > 30 ORDER BY avg(tokens)",
        "PAGES count(*) ACROSS SESSIONS WHERE tokens > (PAGES avg(tokens) ACROSS SESSIONS)",
        "TOOLS count(*) BY tool ACROSS SESSIONS WHERE session IN (CALLS session BY session ACROSS SESSIONS)",
        "LINKS count(*) BY kind, source.type, target.role ACROSS SESSIONS",
        "MESSAGES count(*) BY role, hour(at) ACROSS SESSIONS",
        "PAGES session, page, text ACROSS SESSIONS WHERE text MATCHES 'flight' ORDER BY session, page LIMIT 5",
        "CALLS session, call ACROSS SESSIONS WHERE CONTEXT MATCHES 'flight'",
        "PAGES session, page, metadata.model ACROSS SESSIONS WHERE role = assistant LIMIT 9",
        "MUTATIONS count(*), max(position) BY kind ACROSS SESSIONS WHERE page = p4",
        "FAULTS count(*) BY granted ACROSS SESSIONS",
        "METRICS sum(value) BY metric ACROSS SESSIONS",
        "PAGES count(*) ACROSS SESSIONS AS OF TIME '2026-11-20'",
        "TURNS quantile(tokens, 0.5) ACROSS SESSIONS OF USER 'user-team-b'",
        "PAGES count(*) IN SESSION '%live%'",
        "SESSIONS session, turns, calls, pages, tokens, position",
    ],
)
def test_questions_of_a_fleet(teams: Teams, text: str) -> None:
    """Every kind of clause that many sessions can be asked with gives the answer of the whole."""
    expected = list(teams.whole.query(text))
    assert list(teams.fleet.query(text)) == expected and expected != []


def test_an_answer_goes_on_after_its_cursor(teams: Teams) -> None:
    """Parts of an ordered answer, each after the cursor of the one before, are the whole answer."""
    text = "PAGES namespace, session, page, tokens ACROSS SESSIONS ORDER BY tokens"
    taken: list[Any] = []
    cursor = None
    while len(taken) < 10_000:
        result = teams.fleet.query(f"{text} LIMIT 40" + (" AFTER $cursor" if cursor else ""), cursor=cursor)
        taken += list(result)
        if (cursor := result.next) is None:
            break
    assert taken == asked_of(teams.fleet, text) and len(taken) > 80


# ---- whose a row is


def test_whose_a_row_is(teams: Teams) -> None:
    """`namespace` is a column like any other: shown, grouped by, ordered by, chosen by, alone or among other words."""
    answer = asked_of(teams.fleet, "PAGES namespace, count(*) BY namespace ORDER BY namespace DESC")
    assert [name for name, _ in answer] == list(TEAMS[::-1])
    own = {}
    for name in TEAMS:
        with vmstore.open(teams.path, "r", namespace=name) as store:
            own[name] = next(iter(store.query("PAGES count(*) ACROSS SESSIONS")))[0]
    assert dict(answer) == own
    some = asked_of(
        teams.fleet, "PAGES count(*) BY namespace WHERE namespace = 'team-a' OR role = tool AND namespace IN ('team-b')"
    )
    assert (
        [name for name, _ in some] == ["team-a", "team-b"]
        and some[0][1] == own["team-a"]
        and some[1][1] < own["team-b"]
    )
    listed = teams.fleet.query("DESCRIBE pages")
    assert next(iter(listed))[:2] == ("namespace", "text")


def test_the_basis_names_every_namespace(teams: Teams) -> None:
    """An answer says at which position of which log it holds, also of a namespace that has no session."""
    for result in (teams.fleet.query("PAGES count(*)"), teams.fleet.sql("SELECT count(*) FROM pages")):
        listed = result.basis["namespaces"]
        assert [each["namespace"] for each in listed] == [*TEAMS, "team-d"]
        assert [each["sessions"] > 0 for each in listed] == [True, True, True, False]
        assert [each["ordinal"] > 0 for each in listed] == [True, True, True, False]


def test_sql_over_a_fleet(teams: Teams) -> None:
    """SQL sees each relation with the rows of all, joins within a namespace, and gives the whole's answer."""
    text = """SELECT p.type, count(*), avg(p.tokens), count(DISTINCT c.session) FROM pages p
      LEFT JOIN calls c ON c.session = p.session AND c.call = 2 GROUP BY 1 ORDER BY 1"""
    assert list(teams.fleet.sql(text)) == list(teams.whole.sql(text))
    own = list(teams.fleet.sql("SELECT DISTINCT namespace FROM calls WHERE namespace <> 'team-b' ORDER BY 1"))
    assert own == [("team-a",), ("team-c",)]
    assert list(teams.fleet.sql("SELECT count(*) FROM pages WHERE namespace = 'nobody'")) == [(0,)]
    with refused("one-namespace", QueryError):
        list(teams.fleet.sql("SELECT * FROM pages_at('turn', 1, 'a-live')"))


# ---- what is refused, and what is left out


@pytest.mark.parametrize(
    "text",
    [
        "CONTEXT",
        "SEARCH 'flight'",
        "PAGES IN SESSION 'a-live'",
        "VERIFY",
        "WHY p17 IN CONTEXT",
        "CALLS sum(cost) PER TURN",
    ],
)
def test_what_is_of_one_session(teams: Teams, text: str) -> None:
    """What only one session has is refused, never answered of whichever is first."""
    with refused("one-namespace", QueryError):
        teams.fleet.query(text)


def test_names_that_nobody_has(teams: Teams) -> None:
    """A user of one namespace is answer there alone; one of none is refused."""
    assert asked_of(teams.fleet, "SESSIONS namespace BY namespace") == [(name,) for name in TEAMS]
    answer = teams.fleet.query("PAGES namespace BY namespace ACROSS SESSIONS OF USER 'user-team-b'")
    assert list(answer) == [("team-b",)] and len(answer.basis["namespaces"]) == 4
    with refused("unknown-user", QueryError):
        teams.fleet.query("PAGES ACROSS SESSIONS OF USER 'nobody'")
    with refused("unknown-column", QueryError):
        teams.fleet.query("PAGES nothing")


def test_limits_hold_for_the_whole(teams: Teams) -> None:
    """Time, rows and memory are those of the one answer, however many namespaces give to it."""
    each = [row[0] for row in asked_of(teams.fleet, "PAGES count(*) BY namespace HAVING count(*) > 0")]
    assert each
    total = asked_of(teams.fleet, "PAGES count(*)")[0][0]
    assert len(list(teams.fleet.query("PAGES page", rows=total))) == total
    for limits in ({"rows": total - 1}, {"memory": 20_000}):
        with refused("too-large", QueryError):
            list(teams.fleet.query("PAGES page, text", **limits))
    with refused("timeout", QueryError):
        list(teams.fleet.query("MUTATIONS count(*) BY detail", timeout_s=0.000_001))


def test_a_question_can_be_stopped(teams: Teams) -> None:
    """An interrupt from another thread ends what this one asks."""
    stopper = threading.Timer(0.02, teams.fleet.interrupt)
    stopper.start()
    with refused("cancelled", QueryError):
        for _ in range(200):
            list(teams.fleet.query("MUTATIONS count(*) BY detail, kind"))
    stopper.join()


def test_a_namespace_that_cannot_be_opened_is_named(data: Path, tmp_path: Path) -> None:
    """Of all namespaces one that cannot be opened is left out, and every answer says so; a named one is refused."""
    path = tmp_path / "agents.vms"
    for name in ("a", "b"):
        with vmstore.open(path, namespace=name) as store:
            store.record("s", {"messages": [{"role": "user", "content": name}]}, None)
    (path / "b" / "log.sqlite").write_bytes(b"no database, and long enough to be one" * 400)
    with open_fleet(path) as fleet:
        result = fleet.query("PAGES namespace, text WHERE role = user")
        assert list(result) == [("a", "a")]
        (left,) = result.basis["left_out"]
        assert left["namespace"] == "b" and left["reason"] and fleet.left_out[0].namespace == "b"
    with pytest.raises(vmstore.VmstoreError):
        open_fleet(path, ["a", "b"])
    with refused("no-namespace", StoreError, "'c'"):
        open_fleet(path, ["a", "c"])


def test_rights_hold(tmp_path: Path) -> None:
    """A region is read as long as its grant lasts; a grant that was taken back refuses the whole answer by name."""
    path = tmp_path / "agents.vms"
    with vmstore.open(path, namespace="shared") as shared, vmstore.open(path, namespace="own") as own:
        shared.record("s", {"messages": [{"role": "user", "content": "theirs"}]}, None)
        own.record("s", {"messages": [{"role": "user", "content": "ours"}]}, None)
        shared.sharing.share("sandbox:own")
        with own.sharing.region("shared") as region, open_fleet([own, region]) as fleet:
            text = "PAGES namespace, text WHERE role = user"
            assert asked_of(fleet, text) == [("own", "ours"), ("shared", "theirs")]
            shared.sharing.revoke("sandbox:own")
            for ask in (fleet.query, fleet.sql):
                with refused("region_is_shared", UnknownError, "'shared'"):
                    list(ask(text if ask == fleet.query else "SELECT * FROM pages"))
        assert asked_of(own, "PAGES text WHERE role = user") == [("ours",)]


def test_what_was_erased_is_gone(tmp_path: Path) -> None:
    """An erasure in one namespace is seen by the next question, by rows and by columns."""
    path = tmp_path / "agents.vms"
    for name in ("a", "b"):
        with vmstore.open(path, namespace=name) as store:
            store.record("s", {"messages": [{"role": "user", "content": f"the secret of {name}"}]}, None)
    with open_fleet(path) as fleet:
        text = "PAGES namespace, text WHERE text MATCHES 'secret'"
        assert len(asked_of(fleet, text)) == 2
        with vmstore.open(path, namespace="a") as store:
            store.trust.erase(page="s/p4")
        assert asked_of(fleet, text) == [("b", "the secret of b")]
        assert list(fleet.sql("SELECT namespace FROM pages WHERE text LIKE '%secret%'")) == [("b",)]


def test_a_forked_process_asks_by_itself(teams: Teams, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is forked after a question by columns has the same answer, and ends as it should."""
    pytest.importorskip("duckdb", reason="column segments need duckdb")
    monkeypatch.setattr(duckdb_executor, "MANY", 0)
    text = "MUTATIONS count(*) BY kind, namespace"
    expected = asked_of(teams.fleet, text)
    child = os.fork()
    if not child:
        os._exit(0 if asked_of(teams.fleet, text) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert asked_of(teams.fleet, text) == expected


# ---- several stores


def test_several_stores(teams: Teams, tmp_path: Path) -> None:
    """Namespaces of several stores are told apart by a column more, and none is counted twice."""
    other = tmp_path / "other.vms"
    with vmstore.open(other, namespace="team-a") as store:
        store.record("s", {"messages": [{"role": "user", "content": "elsewhere"}]}, None)
    with open_fleet([teams.path, other]) as fleet:
        answer = asked_of(fleet, "SESSIONS count(*) BY store, namespace WHERE namespace = 'team-a'")
        assert answer == [(str(teams.path), "team-a", 5), (str(other), "team-a", 1)]
        assert {each["store"] for each in fleet.query("SESSIONS count(*)").basis["namespaces"]} == {
            str(teams.path),
            str(other),
        }
    with refused("named-twice", InputError):
        open_fleet([other, other])


def test_no_namespace_at_all() -> None:
    """There is nothing to ask without one."""
    with refused("no-namespaces", InputError):
        open_fleet([])


# ---- how it is explained


def test_a_fleets_question_is_explained(teams: Teams) -> None:
    """EXPLAIN names what is asked of each namespace and of all, reads nothing, and its statements read back."""
    text = "PAGES count(*) BY type WHERE namespace != 'team-a' ORDER BY type"
    rows = list(teams.fleet.query(f"EXPLAIN {text}"))
    assert [row[1] for row in rows] == [
        "answer",
        "of all rows",
        *(f"namespace '{name}'" for name in (*TEAMS, "team-d")),
    ]
    assert all(row[4] is None for row in rows)
    for row in rows:
        assert show(parse(row[2])) == row[2]
    analysed = list(teams.fleet.query(f"EXPLAIN ANALYZE {text.replace('count(*)', 'count(DISTINCT session)')}"))
    assert (
        sum(row[4] for row in analysed[2:]) == asked_of(teams.fleet, "PAGES count(*) WHERE namespace != 'team-a'")[0][0]
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duckdb_executor, "MANY", 0)
        steps = [row[1] for row in teams.fleet.query("EXPLAIN MUTATIONS count(*) BY kind")]
    assert steps == ["answer", "of all rows", "columns"]


# ---- the shell


def test_the_shell_asks_namespaces(teams: Teams, capsys: pytest.CaptureFixture[str]) -> None:
    """`vmql` asks the namespaces that are named, by VMQL and by SQL, and shows whose each row is."""
    path = str(teams.path)
    assert main([path, "--namespaces", "team-a,team-b", "-c", "SESSIONS LIMIT 1", "--csv"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("namespace,session") and shown[1].startswith("team-a,a-live")
    assert main([path, "--namespaces", "*", "--sql", "--json", "-c", "SELECT DISTINCT namespace FROM calls"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sorted(row["namespace"] for row in answer["rows"]) == list(TEAMS)
    assert [each["namespace"] for each in answer["basis"]["namespaces"]] == [*TEAMS, "team-d"]


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--namespaces", "*", "--session", "a-live", "-c", "CONTEXT"], 2, "--session"),
        (["--namespaces", "*", "-c", "CONTEXT"], 1, "one namespace"),
        (["--namespaces", "team-a,team-z", "-c", "PAGES"], 1, "team-z"),
    ],
)
def test_what_the_shell_refuses_of_many(
    teams: Teams, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, word: str
) -> None:
    """What is of one session or one namespace is refused with its name, and nothing is answered."""
    assert main([str(teams.path), *arguments]) == code
    printed = capsys.readouterr()
    assert word in printed.err and printed.out == ""


def test_namespaces_are_completed(teams: Teams) -> None:
    """The column is offered where a column may stand, and its values are the names there are."""
    before = [PLACES[name] for name in teams.fleet.columns]
    candidates = Candidates(lambda text, begins: teams.fleet.query(text, begins=begins), before=before)
    assert "namespace" in [each.text for each in candidates.of("PAGES WHERE nam")]
    assert [each.text for each in candidates.of("PAGES WHERE namespace = ")][:3] == list(TEAMS)
