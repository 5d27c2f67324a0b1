"""Draws statements that mean something: columns of a relation, conditions of their types, moments that are there."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from vmstore.core.page import Level, Tier
from vmstore.vmql.relations.catalog import DESCRIBED
from vmstore.vmql.relations.relation import Field
from vmstore.vmql.syntax import nodes as s

TEXTS = (
    *("s0", "s1", "%", "s_", "_%1", "pressure", "hand", "fault_in: %", "no_%", "t0", "f1", "c1", "tool1", "skill%"),
    *("text %", "Error%", "editor 1", "user", "m5", "words", "reason 1", "demand%", "over %", "fault%", "Ann"),
)
UNTOLD: dict[str, tuple[str, ...]] = {
    "PAGES": ("actor", "anchors", "metadata", "line"),
    "MESSAGES": ("line",),
    "MUTATIONS": ("actor", "actor_id", "logged_at", "request_id", "cursor", "detail"),
    "SESSIONS": (
        *("user", "agent", "title", "first_line", "cost_estimated", "tool_names", "began_at", "outcome", "reward"),
        *("policy", "source", "total_tokens", "memory_tier", "tokens_saved", "compression_ratio"),
    ),
    "TURNS": ("cost_estimated", "total_tokens", "memory_tier", "is_identity_critical"),
    "CALLS": ("user", "cost_estimated", "stop", "error", "component", "metadata", "response"),
    "VERSIONS": ("actor",),
    "VECTORS": ("quantisation",),
    "FACTS": ("user",),
    "TAGS": ("related", "methods", "turn_numbers"),
    "TOOLS": ("arguments", "user"),
    "GUARDS": ("user",),
    "RECALLS": ("score",),
    "SKILLS": ("user", "tools", "arguments", "prerequisites"),
    "CONTEXT": ("pinned", "tool", "tool_call", "outcome", "text"),
}
"""The columns that the naive reading does not know yet; it knows every other."""
RELATIONS = [name for name in DESCRIBED if name != "SEARCH"]
COLUMNS: dict[str, tuple[str, ...]] = {
    name: tuple(column for column in DESCRIBED[name].fields if column not in UNTOLD.get(name, ()))
    for name in RELATIONS[: RELATIONS.index("CONTEXT") + 1]
}
MORE = ("PAGES", "PAGES", *COLUMNS)  # most can be asked of pages


def field(relation: str, column: str) -> Field:
    """What the catalog says of a column: which values can be asked for."""
    return DESCRIBED[relation].fields[column]


def listed(relation: str, column: str) -> bool:
    """Whether a column holds lists or objects, which are shown and not compared."""
    return field(relation, column).form.type in ("list", "json")


def is_number(relation: str, column: str) -> bool:
    """Whether a column can be summed up."""
    form = field(relation, column).form
    return form.type in ("integer", "real") and form.words is None


def conditions(relation: str) -> st.SearchStrategy[Any]:
    """Conditions over the columns of a relation, up to three deep."""
    plain = st.sampled_from([name for name in COLUMNS[relation] if field(relation, name).form.type != "time"])
    simple = plain.flatmap(lambda name: _simple(relation, name))
    if relation == "PAGES":
        tag = st.sampled_from(["t0", "t1", "t2", "t3", "none"]).map(lambda tag: s.Value(value=tag))
        among = s.Word(path=("tags",))
        has = st.builds(lambda item, negated: s.Has(item=item, among=among, negated=negated), tag, st.booleans())
        simple = st.one_of(simple, simple, simple, has)
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: s.And(parts=tuple(parts))),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: s.Or(parts=tuple(parts))),
            inner.map(lambda operand: s.Not(operand=operand)),
        ),
        max_leaves=4,
    )


def _simple(relation: str, name: str) -> st.SearchStrategy[Any]:
    column, form = s.Word(path=(name,)), field(relation, name).form
    words = form.words
    null = st.booleans().map(lambda negated: s.IsNull(operand=column, negated=negated))
    if words is not None:
        strategy: st.SearchStrategy[Any] = st.sampled_from(list(words)).map(lambda word: s.Word(path=(_word(word),)))
        quoted = st.sampled_from(list(words)).map(lambda word: s.Value(value=_word(word)))
        value = st.one_of(strategy, quoted)
        kinds = [_equal(column, value), _in(column, value)]
        if words in (Tier, Level):
            kinds += [_compare(column, st.sampled_from([int(word) for word in words]).map(lambda n: s.Value(value=n)))]
        return st.one_of(*kinds)
    if form.type == "real":
        return st.one_of(_compare(column, st.sampled_from([0.2, 0.5, 0.8, 3.0]).map(lambda n: s.Value(value=n))), null)
    if form.type == "integer":
        number = st.integers(-1, 70).map(lambda n: s.Value(value=n))
        between = st.tuples(number, number, st.booleans()).map(
            lambda row: s.Between(operand=column, low=row[0], high=row[1], negated=row[2])
        )
        return st.one_of(_compare(column, number), _in(column, number), between, null)
    if form.type == "boolean":
        return st.one_of(st.just(column), _equal(column, st.booleans().map(lambda flag: s.Value(value=flag))))
    if form.type == "text" and form.name not in ("page", "message"):
        text = st.sampled_from(TEXTS).map(lambda t: s.Value(value=t))
        return st.one_of(
            text.map(lambda value: s.Compare(op="LIKE", left=column, right=value)), _equal(column, text), null
        )
    return null


def _word(word: Any) -> str:
    return str(word.word)


def _compare(column: s.Word, value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    ops = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    return st.builds(lambda op, right: s.Compare(op=op, left=column, right=right), ops, value)


def _equal(column: s.Word, value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    ops = st.sampled_from(["=", "!="])
    return st.builds(lambda op, right: s.Compare(op=op, left=column, right=right), ops, value)


def _in(column: s.Word, value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    listed = st.tuples(st.lists(value, min_size=1, max_size=3), st.booleans())
    return listed.map(lambda row: s.In(operand=column, items=tuple(row[0]), negated=row[1]))


@st.composite
def asked(draw: st.DrawFn, relations: tuple[str, ...] = MORE) -> tuple[str, tuple[s.SelectItem, ...], s.Tail]:
    """One of some relations, its columns and its tail, scope and moment left out."""
    relation = draw(st.sampled_from(relations))
    shown_names = COLUMNS[relation]
    names = [name for name in shown_names if not listed(relation, name)]
    where = draw(st.none() | conditions(relation))
    limit = draw(st.none() | st.integers(0, 6).map(lambda n: s.Value(value=n)))
    if draw(st.booleans()):
        by = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        applied = draw(st.lists(_aggregates(relation), min_size=1, max_size=3, unique_by=repr))
        ordered = draw(st.lists(st.sampled_from([*applied, *(s.Word(path=(name,)) for name in by)]), max_size=2))
        columns = tuple(s.SelectItem(expr=apply) for apply in applied)
        words = tuple(s.Word(path=(name,)) for name in by)
        order = tuple(s.Order(expr=expr, descending=draw(st.booleans())) for expr in ordered)
        return relation, columns, s.Tail(where=where, by=words, order=order, limit=limit)
    shown = draw(st.lists(st.sampled_from(shown_names), min_size=1, max_size=5, unique=True))
    columns = tuple(s.SelectItem(expr=s.Word(path=(name,))) for name in shown)
    keys = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    order = tuple(s.Order(expr=s.Word(path=(name,)), descending=draw(st.booleans())) for name in keys)
    return relation, columns, s.Tail(where=where, order=order, limit=limit)


def _aggregates(relation: str) -> st.SearchStrategy[s.Apply]:
    names = [name for name in COLUMNS[relation] if not listed(relation, name)]
    numbers = [name for name in names if is_number(relation, name)]
    any_of = st.sampled_from(names).map(lambda name: (s.Word(path=(name,)),))
    number = st.sampled_from(numbers).map(lambda name: (s.Word(path=(name,)),))
    share = st.sampled_from([0.0, 0.25, 0.5, 1.0]).map(lambda q: s.Value(value=q))
    return st.one_of(
        st.just(s.Apply(name="count", star=True)),
        st.tuples(st.sampled_from(["count", "first", "last", "min", "max"]), any_of).map(_applied),
        st.tuples(st.sampled_from(["sum", "avg"]), number).map(_applied),
        st.tuples(st.sampled_from(["sum", "avg"]), conditions(relation).map(lambda expr: (expr,))).map(_applied),
        st.tuples(number, share).map(lambda row: s.Apply(name="quantile", args=(*row[0], row[1]))),
    )


def _applied(row: tuple[str, tuple[s.Expr, ...]]) -> s.Apply:
    return s.Apply(name=row[0], args=row[1])
