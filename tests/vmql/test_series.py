"""PER TURN and PER CALL give a row for every turn or call, whatever happened in it, as a naive count has them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.against_model import model_of
from tests.engine.author import Deed
from tests.vmql.asked import _aggregates, conditions
from tests.vmql.facts import Naive, Row
from tests.vmql.naive import aggregate, holds
from tests.vmql.test_differential import STORIES, same, scoped, written
from vmstore.shell.demo.demo import SHIPPED
from vmstore.vmql.planner.times import instant
from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.printer import show

MOMENTS = {
    **dict.fromkeys(("MUTATIONS", "CALLS", "FAULTS", "MOVES", "MESSAGES"), "{}"),
    "PAGES": "created_{}",
}


def zero(apply: s.Apply, value: Any) -> Any:
    """What an aggregate is in a row of a series: a count or a sum of nothing is 0."""
    return 0 if value is None and apply.name == "sum" else value


def naive_series(
    rows: list[Row], begun: list[tuple[str, int]], key: str, across: bool, applied: list[s.Apply], tail: s.Tail
) -> list[tuple[Any, ...]]:
    """The rows of a series, and of its first sum the running total: every moment counted by itself."""
    kept = [row for row in rows if tail.where is None or holds(tail.where, row) is True]
    moments = {*(moment if across else moment[1:] for moment in begun)}
    moments |= {(row["session"], row[key]) if across else (row[key],) for row in kept}
    actual_rows, so_far = [], dict[Any, int]()
    for moment in sorted(moments):
        own = [row for row in kept if ((row["session"], row[key]) if across else (row[key],)) == moment]
        session = moment[0] if across else None
        so_far[session] = so_far.get(session, 0) + len(own)
        actual_rows.append((*moment, *(zero(apply, aggregate(apply, own)) for apply in applied), so_far[session]))
    return actual_rows


@given(STORIES, st.data())
def test_a_series_is_what_counting_each_moment_gives(story: list[Deed], data: st.DataObject) -> None:
    """Over any story each turn or call has a row, with its sums, and the running total of all before it."""
    store = written(story)
    model = model_of(store)
    naive = Naive(model)
    for _ in range(3):
        relation = data.draw(st.sampled_from(sorted(MOMENTS)), "relation")
        per = data.draw(st.sampled_from(["turn", "call"]), "per")
        where = data.draw(st.none() | conditions(relation), "where")
        applied = data.draw(st.lists(_aggregates(relation), min_size=1, max_size=3, unique_by=repr), "applied")
        tail, rows = scoped(data, model, naive, relation, s.Tail(where=where, per=per))  # type: ignore[arg-type]
        begun = [(row["session"], row[per]) for row in begins(naive, model, tail, per)]
        across = "across" if not isinstance(tail.scope, s.InSession) or "%" in str(tail.scope.name) else ""
        total = s.Apply(name="running", args=(s.Apply(name="count", star=True),))
        columns = tuple(s.SelectItem(expr=expr) for expr in (*applied, total))
        text = show(s.RelationQuery(name=relation, columns=columns, tail=tail))
        wanted = naive_series(rows, begun, MOMENTS[relation].format(per), bool(across), applied, tail)
        assert same(results := list(store.query(text)), wanted), (text, results, wanted)


def begins(naive: Naive, model: Any, tail: s.Tail, per: str) -> list[Row]:
    """The turns, or the calls, that begin in what a tail leaves."""
    relation, scope = f"{per.upper()}S", tail.scope
    value = isinstance(scope, s.InSession) and "%" not in str(scope.name)
    names = [scope.name.value] if value else sorted(model.names.values())  # type: ignore[union-attr]
    if isinstance(scope, s.InSession) and not value:
        names = [name for name in names if "1" in name]
    actual_rows = []
    for name in names:
        end = model.last(name)[0]
        if tail.as_of is not None and tail.as_of.unit == "time":
            at = tail.as_of.value.value  # type: ignore[union-attr]
            past = model.at_time(name, instant(at, 0, s.NOWHERE))
            if past is None or past < model.own(name)[0].position:
                continue
            end = past
        elif tail.as_of is not None and tail.as_of.unit == "position":
            end = tail.as_of.value.value  # type: ignore[union-attr]
        elif tail.as_of is not None:
            end = model.calls(name)[tail.as_of.value.value].position  # type: ignore[union-attr]
        rows = naive.rows(relation, name, end)
        rows = [{**row, "session": name} for row in rows if value or row["session"] == name]
        if tail.since is not None and tail.until is not None:
            low, high = tail.since.value.value, tail.until.value.value  # type: ignore[union-attr]
            rows = [row for row in rows if low < row["position"] <= high]
        actual_rows += rows
    return actual_rows


@pytest.fixture(scope="module")
def demo() -> vmstore.Store:
    """The session that ships, in memory."""
    store = vmstore.memory_store()
    store.import_file(SHIPPED)
    return store


def test_the_context_of_each_call_is_that_of_the_call(demo: vmstore.Store) -> None:
    """CONTEXT PER CALL sums up what CONTEXT AT each call shows, PER TURN what the last call of each turn does."""
    some = "SINCE CALL 20 UNTIL CALL 30"
    for call, pages, tokens in demo.query(f"CONTEXT count(*), sum(tokens) PER CALL {some}"):
        assert list(demo.query("CONTEXT count(*), sum(tokens) AT CALL $call", call=call)) == [(pages, tokens)]
    last = dict(demo.query(f"CALLS turn, call {some}"))
    for turn, kind, pages in demo.query(f"CONTEXT count(*) BY type PER TURN {some}"):
        counted = list(demo.query("CONTEXT count(*) AT CALL $call WHERE type = $kind", call=last[turn], kind=kind))
        assert counted == [(pages,)]


def test_groups_of_a_series_each_have_every_moment(demo: vmstore.Store) -> None:
    """With BY every group has a row for every turn, and running totals of its own."""
    rows = list(demo.query("PAGES count(*), running(count(*)) AS so_far BY type PER TURN"))
    kinds = {row[1] for row in rows}
    turns = {row[0] for row in rows}
    assert len(rows) == len(kinds) * len(turns)
    for kind in kinds:
        of_kind = [row for row in rows if row[1] == kind]
        assert [row[3] for row in of_kind] == [sum(row[2] for row in of_kind[: at + 1]) for at in range(len(of_kind))]
        assert list(demo.query("PAGES count(*) WHERE type = $kind", kind=kind)) == [(of_kind[-1][3],)]


def test_rows_of_a_series_are_chosen_ordered_and_continued_by_what_is_shown(demo: vmstore.Store) -> None:
    """HAVING, ORDER BY, LIMIT and AFTER take what a series shows, the running total too."""
    asked = "CALLS sum(cost) AS cost, running(sum(cost)) AS so_far PER TURN"
    rows = list(demo.query(asked))
    half = rows[len(rows) // 2][2]
    assert list(demo.query(f"{asked} HAVING so_far > $half", half=half)) == [row for row in rows if row[2] > half]
    dearest = sorted(rows, key=lambda row: (-row[1], row[0]))
    first = demo.query(f"{asked} ORDER BY cost DESC LIMIT 7")
    assert list(first) == dearest[:7]
    then = demo.query(f"{asked} ORDER BY cost DESC LIMIT 7 AFTER $cursor", cursor=first.next)
    assert list(then) == dearest[7:14]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("LINKS count(*) PER TURN", "clause-unused"),
        ("PAGES page PER TURN", "not-grouped"),
        ("CALLS running(tokens) PER TURN", "not-grouped"),
        ("CALLS running(sum(tokens))", "not-grouped"),
        ("CALLS running(running(sum(tokens))) PER TURN", "not-a-value"),
        ("CALLS running(sum(tokens)) / 2 PER TURN", "not-a-value"),
        ("CALLS running(max(model)) PER TURN", "wrong-type"),
        ("CALLS sum(tokens) PER TURN HAVING count(*) > 1", "not-grouped"),
        ("CALLS sum(tokens) PER TURN ORDER BY count(*)", "not-grouped"),
        ("CONTEXT count(*) AT CALL 3 PER CALL", "clause-unused"),
        ("CONTEXT RENDER PER CALL", "clause-unused"),
        ("CALLS sum(tokens) PER TURN PER CALL", "clause-twice"),
        ("CALLS sum(tokens) PER DAY", "unexpected"),
    ],
)
def test_what_is_no_series_is_refused(demo: vmstore.Store, text: str, code: str) -> None:
    """A series over what has no turn, or of what is no sum, is refused with its place."""
    with pytest.raises(QueryError) as refused:
        list(demo.query(text))
    assert refused.value.code == code and refused.value.pointed()


def test_a_statement_says_a_moment(demo: vmstore.Store) -> None:
    """AT, AS OF, SINCE, UNTIL, BETWEEN and DIFF take the moment that a statement in parentheses gives."""
    ((dearest,),) = demo.query("CALLS call ORDER BY cost DESC LIMIT 1")
    within = "(CALLS call ORDER BY cost DESC LIMIT 1)"
    for text in (
        "CONTEXT page AT CALL {}",
        "PAGES count(*) AS OF CALL {} WHERE tokens > (PAGES avg(tokens))",
        "MUTATIONS count(*) SINCE CALL {}",
        "MUTATIONS count(*) BETWEEN CALL 1 AND CALL {}",
        "DIFF CONTEXT CALL 1 TO CALL {}",
        "CALLS sum(cost) PER TURN UNTIL CALL {}",
    ):
        assert list(demo.query(text.format(within))) == list(demo.query(text.format(dearest)))


@pytest.mark.parametrize(
    ("within", "code"),
    [
        ("(CALLS call WHERE call < 0)", "no-such-moment"),
        ("(CALLS max(call) + 1)", "no-such-moment"),
        ("(CALLS call)", "not-single"),
        ("(CALLS max(model))", "no-such-moment"),
    ],
)
def test_what_says_no_moment_is_refused(demo: vmstore.Store, within: str, code: str) -> None:
    """A statement that gives no moment, several, or one that there is not, is refused with its place."""
    with pytest.raises(QueryError) as refused:
        demo.query(f"CONTEXT AT CALL {within}")
    assert refused.value.code == code and "^" in refused.value.pointed()
