"""Draws statements that mean something: columns of a relation, conditions of their types, moments that are there."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from vmstore.core.page import (
    Fidelity,
    Level,
    LinkKind,
    Method,
    Modality,
    Origin,
    PageType,
    Role,
    Slot,
    Standing,
    Status,
    Tier,
)
from vmstore.vmql.relations.python_rows import Kind
from vmstore.vmql.syntax import nodes as s

WORDS: dict[str, Any] = {
    "type": PageType,
    "role": Role,
    "modality": Modality,
    "tier": Tier,
    "level": Level,
    "level_asked": Level,
    "level_served": Level,
    "level_before": Level,
    "level_after": Level,
    "from_tier": Tier,
    "tier_before": Tier,
    "tier_after": Tier,
    "status": Status,
    "fidelity": Fidelity,
    "slot": Slot,
    "origin": Origin,
    "method": Method,
}
NUMBERS = (
    *("tokens", "bytes", "version", "created_turn", "created_call", "position", "call", "turn", "pages"),
    *("tokens_reported", "tokens_out", "calls", "user_tokens", "reply_tokens", "faults", "evictions", "parent"),
    *("from_position", "to_position", "from_call", "to_call", "since_position", "turns", "messages", "mutations"),
    *("fork_position", "tools", "tier", "level", "order", "since_turn", "since_call", "out_since"),
    *("budget", "invalidated", "cause"),
)
TEXTS = ("session", "reason", "denied_because")
PAGES = ("page", "source", "target")
FLAGS = ("pinned", "dirty", "granted")
COLUMNS: dict[str, tuple[str, ...]] = {
    "PAGES": (
        *("page", "session", "message", "type", "role", "modality", "tier", "level", "tokens", "bytes", "importance"),
        *(
            "version",
            "pinned",
            "dirty",
            "created_turn",
            "created_call",
            "created_at",
            "position",
            "since_position",
            "status",
        ),
    ),
    "CALLS": (
        *("session", "call", "turn", "position", "at", "status", "fidelity", "tokens", "pages"),
        *("tokens_reported", "tokens_out", "budget", "invalidated", "compacted"),
    ),
    "TURNS": (
        *("session", "turn", "position", "at", "calls", "tokens", "user_tokens", "reply_tokens"),
        *("faults", "evictions"),
    ),
    "MUTATIONS": (
        *("position", "session", "turn", "call", "kind", "page", "cause", "at", "tier_before", "tier_after", "level"),
        *("reason", "tokens"),
    ),
    "FAULTS": (
        *("position", "session", "turn", "call", "page", "reason", "level_asked", "level_served", "from_tier"),
        *("out_since", "tokens", "granted", "denied_because"),
    ),
    "MOVES": (
        *("position", "session", "turn", "call", "page", "tier_before", "tier_after", "level_before", "level_after"),
        *("tokens", "cause", "reason"),
    ),
    "COMPACTIONS": (
        *("session", "call", "turn", "position", "pages", "tokens", "summary", "summary_tokens", "returned"),
    ),
    "VERSIONS": ("page", "session", "version", "parent", "position", "level", "bytes", "tokens", "method"),
    "VECTORS": ("page", "session", "model", "chunk", "dimension", "content", "begins", "ends", "position", "at"),
    "TAGS": (
        *("tag", "session", "canonical", "pages", "turns", "first_turn", "last_turn", "tokens", "share"),
        *("aliases", "depth"),
    ),
    "LINKS": ("session", "source", "target", "kind", "position"),
    "MESSAGES": ("message", "session", "turn", "call", "position", "at", "role", "slot", "status", "tokens", "pages"),
    "RESIDENCIES": (
        *("page", "session", "level", "from_position", "to_position", "from_call", "to_call"),
        *("since_position", "tokens", "pinned", "reason"),
    ),
    "CONTEXT": ("order", "page", "message", "role", "type", "level", "tokens", "since_turn", "since_call"),
    "SESSIONS": (
        *("session", "origin", "fork_position", "turns", "calls", "pages", "messages", "mutations"),
        *("tokens", "tools", "position"),
    ),
}
MORE = ("PAGES", "PAGES", *COLUMNS)  # most can be asked of pages


def words_of(relation: str, column: str) -> Any:
    """The enumeration of a column, where it has one."""
    if column == "status" and relation == "PAGES":
        return Standing
    if column == "kind":
        return LinkKind if relation == "LINKS" else Kind
    if column == "parent" and relation == "SESSIONS":
        return None
    return WORDS.get(column)


def conditions(relation: str) -> st.SearchStrategy[Any]:
    """Conditions over the columns of a relation, up to three deep."""
    plain = st.sampled_from([name for name in COLUMNS[relation] if name != "at" and name != "created_at"])
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
    column = s.Word(path=(name,))
    words = words_of(relation, name)
    null = st.booleans().map(lambda negated: s.IsNull(operand=column, negated=negated))
    if words is not None:
        strategy: st.SearchStrategy[Any] = st.sampled_from(list(words)).map(lambda word: s.Word(path=(_word(word),)))
        quoted = st.sampled_from(list(words)).map(lambda word: s.Value(value=_word(word)))
        value = st.one_of(strategy, quoted)
        kinds = [_equal(column, value), _in(column, value)]
        if words in (Tier, Level):
            kinds += [_compare(column, st.sampled_from([int(word) for word in words]).map(lambda n: s.Value(value=n)))]
        return st.one_of(*kinds)
    if name in NUMBERS:
        number = st.integers(-1, 70).map(lambda n: s.Value(value=n))
        between = st.tuples(number, number, st.booleans()).map(
            lambda row: s.Between(operand=column, low=row[0], high=row[1], negated=row[2])
        )
        return st.one_of(_compare(column, number), _in(column, number), between, null)
    if name == "importance":
        return _compare(column, st.sampled_from([0.2, 0.5, 0.8]).map(lambda n: s.Value(value=n)))
    if name in FLAGS:
        return st.one_of(st.just(column), _equal(column, st.booleans().map(lambda flag: s.Value(value=flag))))
    if name in TEXTS:
        text = st.sampled_from(["s0", "s1", "%", "s_", "_%1", "pressure", "hand", "fault_in: %", "no_%"]).map(
            lambda t: s.Value(value=t)
        )
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
    names = COLUMNS[relation]
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
    shown = draw(st.lists(st.sampled_from(names), min_size=1, max_size=5, unique=True))
    columns = tuple(s.SelectItem(expr=s.Word(path=(name,))) for name in shown)
    keys = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    order = tuple(s.Order(expr=s.Word(path=(name,)), descending=draw(st.booleans())) for name in keys)
    return relation, columns, s.Tail(where=where, order=order, limit=limit)


def _aggregates(relation: str) -> st.SearchStrategy[s.Apply]:
    names = COLUMNS[relation]
    numbers = [name for name in names if name in NUMBERS and words_of(relation, name) is None]
    any_of = st.sampled_from(names).map(lambda name: (s.Word(path=(name,)),))
    number = st.sampled_from(numbers).map(lambda name: (s.Word(path=(name,)),))
    share = st.sampled_from([0.0, 0.25, 0.5, 1.0]).map(lambda q: s.Value(value=q))
    return st.one_of(
        st.just(s.Apply(name="count", star=True)),
        st.tuples(st.sampled_from(["count", "first", "last", "min", "max"]), any_of).map(_applied),
        st.tuples(st.sampled_from(["sum", "avg"]), number).map(_applied),
        st.tuples(number, share).map(lambda row: s.Apply(name="quantile", args=(*row[0], row[1]))),
    )


def _applied(row: tuple[str, tuple[s.Word, ...]]) -> s.Apply:
    return s.Apply(name=row[0], args=row[1])
