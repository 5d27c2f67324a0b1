"""How a statement is answered: which way to the rows, what an index finds, what is looked at row by row.

It is read from the plan itself and from SQLite's own query plan. With ANALYZE the statement is
answered, and the rows and milliseconds of its steps are those it took.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from vmstore.core.text.explanation import AskedWord, MatchedWord
from vmstore.views.branch import Branch, BranchRange
from vmstore.vmql.execution import duckdb_executor
from vmstore.vmql.execution.query import PlannedStatement, Query, Row, names_in
from vmstore.vmql.execution.result import Result
from vmstore.vmql.planner.plan import Plan, tables_in
from vmstore.vmql.planner.scope import OneSession, Scope, given
from vmstore.vmql.relations import python_rows
from vmstore.vmql.relations.relation import ACROSS, CHAIN, Relation
from vmstore.vmql.syntax.errors import fault
from vmstore.vmql.syntax.nodes import (
    AcrossSessions,
    Between,
    Compare,
    Explain,
    Expr,
    Fork,
    In,
    SearchQuery,
    Statement,
    Tail,
    Value,
    Verify,
    Word,
    columns_named,
    parts_of,
)
from vmstore.vmql.syntax.printer import show

WAYS = {
    "scan": "every row of the sessions asked",
    "typed": "only the pages of the type, by its index",
    "prompt": "only the pages in the prompt: few, found in the interval table",
    "page": "only the rows of the page, by its index",
    "found": "only the pages that hold the words",
    "made": "rows are made as they are taken",
}
HITS = 10  # of a search that are explained where it states no limit, or a greater one
WHY_FOUND = frozenset({"features", "words"})
COUNTS = {
    "PAGES": "pages",
    "CALLS": "calls",
    "MUTATIONS": "mutations",
    "MESSAGES": "messages",
    "TURNS": "turns",
    "SESSIONS": "1",
}
PUSHED = {"kind": "while decoding", "position": "by the commits that are read", "page": "by the commits that name it"}
"""What conditions on mutations leave, by their column, before a row is made."""


def explain(query: Query, statement: Explain, answer: Callable[[Query, Statement], Result]) -> Result:
    """The steps of a statement as a tree; `answer` answers one."""
    from vmstore.vmql.execution.query import rows_of

    inner = statement.statement
    if isinstance(inner, Fork | Explain | Verify):  # VERIFY waits for writers, which nobody may who asks
        message = "a statement that writes or checks the whole store is not explained, nor is EXPLAIN itself"
        raise fault(message, "not-explained", statement.span, "explain a question")
    probe = query.beside(inner)
    probe.noted, probe.dry = [], not statement.analyze
    if isinstance(inner, SearchQuery):  # its embedder is not waited for while the views are held
        query.world.ask(str(given(inner.query, query.params)))
    with query.asking():
        began = query.world.ticks()
        result = answer(probe, inner)
        count = sum(1 for _ in result) if statement.analyze else None
        took = (query.world.ticks() - began) / 1000 if statement.analyze else None
        noted = probe.noted[0] if probe.noted else None
        rows: list[Row] = [(0, "answer", show(inner), None, count, took)]
        rows += list(_search(query, inner, answer)) if isinstance(inner, SearchQuery) else []
        rows += list(_steps(query, noted, statement.analyze)) if noted is not None else []
        scope = query.scope(Tail(), wide=True)
        return query.select(
            python_rows.PLAN, (), Tail(), scope, make=rows_of(rows), kind="explain", basis=result.basis or scope.basis
        )


def _search(query: Query, inner: SearchQuery, answer: Callable[[Query, Statement], Result]) -> Iterator[Row]:
    """What a search looked for, among how many texts; and of its best pages why each is one."""
    from vmstore.search.explanation import in_words

    tail = inner.tail
    limit = Value(value=HITS) if tail.limit is None or tail.by else tail.limit
    tail = replace(tail, by=(), order=() if tail.by else tail.order, limit=limit)
    columns = columns_named("session", "page", "score", "features", "words")
    asked = replace(inner, columns=columns, tail=tail)
    probe = query.beside(asked)
    rows = list(islice(answer(probe, asked), HITS))
    about = probe.searched
    assert about is not None, "its features were asked for"
    texts = f"{about.texts:,} texts" if about.texts != 1 else "one text"
    yield 1, "score", f"{about.score} over {texts} of {about.mean_length:.1f} terms on average", about.texts, None, None
    for word in about.words:
        yield 2, "word", _word(word), word.texts, None, None
    yield from (
        (2, "speaker", f"{name}: who is named counts more, and is not looked for", *_NONE) for name in about.speakers
    )
    yield from ((2, "required", text, *_NONE) for text in about.required)
    yield from ((2, "excluded", text, *_NONE) for text in about.excluded)
    if about.vectors is not None:
        yield 1, "vectors", about.vectors, *_NONE
    many = isinstance(tail.scope, AcrossSessions)
    for session, page, score, features, words in rows:
        name = f"{session}/{page}" if many else page
        yield 1, "hit", f"{name}: {'stands beside a hit' if score is None else f'{score:.3f}'}", *_NONE
        yield from ((2, "word", in_words(convert(word, MatchedWord)), *_NONE) for word in words or ())
        yield from ((2, "feature", _feature(name, share), *_NONE) for name, share in (features or {}).items())


def _word(word: AskedWord) -> str:
    terms = "" if word.terms == [word.word.casefold()] else f" {', '.join(word.terms)}"
    like = f"; spelled like {', '.join(word.alike)}" if word.alike else ""
    return f"{word.word}: {word.how}{terms}, weighs {word.weight:.3f}{like}"


def _feature(name: str, share: Mapping[str, float]) -> str:
    return f"{name} {share['value']:.3f} x {share['weight']:.3f} = {share['adds']:.3f}"


_NONE = (None, None, None)


def _steps(query: Query, noted: PlannedStatement, analyze: bool) -> Iterator[Row]:
    found, scope, tail = noted
    yield 1, "whose", _whose(scope), None, None, None
    way = WAYS[found.path.name]
    expected = _expected(query, found, scope)
    if found.relation.made and duckdb_executor.suits(found, scope) and query.world.columns() is not None:
        yield 1, "rows", f"{found.relation.name}: from the column segments, summed by DuckDB", expected, None, None
        for part in parts_of(tail.where):
            yield 2, "filter", f"{show(part)}: in columns", None, None, None
        return
    if found.relation.made:
        how = "and handed on as they are" if found.plain is not None else "then chosen, summed and ordered by SQLite"
        yield 1, "rows", f"{found.relation.name}: {way}, {how}", expected, None, None
        yield from _pushed(found.relation, tail.where, 2)
        return
    sql = found.sql(scope.lane_sql)
    values = query.values(found, scope, sql)
    details = _details(query, sql, values)
    rows = ms = None
    if analyze:
        began = query.world.ticks()
        rows = _rows_of_way(query, found, scope, values)
        ms = (query.world.ticks() - began) / 1000
    yield 1, "rows", f"{found.relation.name}: {way}", expected, rows, ms
    for join in found.joins:
        yield 2, "join", found.relation.joins[join][found.shape].partition(" ON ")[0], None, None, None
    for part in parts_of(tail.where):
        yield 2, "filter", f"{show(part)}: {_by(found, part, details)}", None, None, None
    if tail.by:
        yield 2, "group", "by " + ", ".join(map(show, tail.by)), None, None, None
    if tail.per is not None:
        yield 2, "series", f"every {tail.per}, also where no row is of it", None, None, None
    if tail.having is not None:
        yield 2, "having", show(tail.having), None, None, None
    sorts = any("TEMP B-TREE FOR ORDER BY" in detail for _, detail in details)
    yield 2, "order", "sorted" if sorts else "as the rows come", None, None, None
    yield 1, "sqlite", "what SQLite does", None, None, None
    for depth, detail in details:
        yield 2 + depth, "", detail, None, None, None


def _whose(scope: Scope) -> str:
    if isinstance(scope, OneSession):
        past = "with the past it shares" if scope.shape == CHAIN else "its own rows"
        return f"session {scope.name} at position {scope.at.position}, {past}"
    return f"{scope.basis.get('sessions', 1)} sessions, each with the rows it wrote itself"


def _expected(query: Query, found: Plan, scope: Scope) -> int | None:
    """The rows of the way at most, from the counts the sessions view keeps."""
    if found.path.name == "prompt":
        if not isinstance(scope, OneSession):
            return None
        sql = "SELECT leaves FROM calls WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
        leaves: int | None = query.world.views.execute(sql, (scope.need("knower"), scope.need("known"))).get
        return leaves
    counted = COUNTS.get(found.relation.name)
    if counted is None or found.path.name == "found":
        return None
    keys = {stretch.session for own in scope.lanes() for stretch in _stretches(own.lane, scope)}
    marks = ",".join("?" * len(keys))
    total: int | None = query.world.views.execute(
        f"SELECT sum({counted}) FROM sessions WHERE session IN ({marks})", tuple(keys)
    ).get
    return total


def _stretches(lane: Branch, scope: Scope) -> list[BranchRange]:
    return lane.stretches[:1] if scope.shape == ACROSS else lane.stretches


def _rows_of_way(query: Query, found: Plan, scope: Scope, values: dict[str, Any]) -> int:
    """How many rows the way gives before any filter."""
    body = f"SELECT count(*) {found.path.start[found.shape]}"
    sql = found._replace(body=body, tables=tables_in(body)).sql(scope.lane_sql)
    bound = {name: values[name] if name in values else scope.need(name) for name in names_in(sql)}
    return int(query.runner.viewed(sql, bound, query.watch)[0][0])


def _details(query: Query, sql: str, values: dict[str, Any]) -> list[tuple[int, str]]:
    """What SQLite says it does: how deep, and what."""
    depth = {0: -1}
    found: list[tuple[int, str]] = []
    for number, parent, _, detail in query.runner.viewed(f"EXPLAIN QUERY PLAN {sql}", values, query.watch):
        depth[number] = depth.get(parent, -1) + 1
        found.append((depth[number], str(detail)))
    return found


def _by(found: Plan, part: Expr, details: list[tuple[int, str]]) -> str:
    """Whether an index finds what a condition asks for."""
    column = _column(part)
    if column is None or column not in found.relation.fields:
        return "row by row"
    if found.path.name == "prompt" and column in ("tier", "level", "since_position"):
        return "by the way to the rows"
    if found.path.name == "typed" and column == "type":
        return "by the way to the rows"
    sql = found.relation.fields[column].sql
    alias, _, name = sql.partition(".")
    if not re.fullmatch(r"\w+\.\w+", sql):
        return "row by row"
    searched = [detail for _, detail in details if detail.startswith(f"SEARCH {alias} ")]
    if any(re.search(rf"\b{name}=\?", detail) for detail in searched):
        return "by index"
    return "row by row"


def _column(part: Expr) -> str | None:
    match part:
        case Compare(left=Word(path=(name,))) | In(operand=Word(path=(name,))) | Between(operand=Word(path=(name,))):
            return name
    return None


def _pushed(relation: Relation, where: Expr | None, depth: int) -> Iterator[Row]:
    for part in parts_of(where):
        apart = getattr(part, "negated", False) or getattr(part, "op", "") == "!="
        how = None if apart or relation.name != "MUTATIONS" else PUSHED.get(_column(part) or "")
        yield depth, "filter", f"{show(part)}: {how or 'row by row'}", None, None, None
