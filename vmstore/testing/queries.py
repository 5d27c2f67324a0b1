"""Statements of VMQL for hypothesis: every kind, every clause, names and values of every spelling."""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import strategies as st

from vmstore.vmql.diagnostics.complete import completions
from vmstore.vmql.diagnostics.lookahead import relations
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.printer import show

Strategy = st.SearchStrategy
NULL = s.Value(value=None)

RELATIONS = tuple(sorted(relations()))
# Names that are keywords elsewhere, with signs and digits, of other alphabets.
NAMES = (
    *("page", "tokens", "type", "turn", "call", "position", "session", "model", "status", "text", "kind", "time"),
    *("head", "order", "planning-220", "claim_db", "msg_042", "p17", "7f3a", "größe", "x.y-z"),
)
# Reserved where columns stand, free as the name of a session, a page or a user.
RESERVED = ("render", "messages", "where", "limit", "order", "context", "null", "as", "in")
REFERENCES = ("p17@turn:3", "planning/p17#level=2", "vm://default/s/p17@turn:42#level=2", "a%2Fb@call:7", "text/plain")


def names() -> Strategy[s.Word]:
    """Bare words, some with a path."""
    return st.sampled_from(NAMES).map(lambda name: s.Word(path=tuple(name.split("."))))


def references() -> Strategy[s.Word]:
    """Bare references to pages."""
    return st.sampled_from(REFERENCES).map(lambda text: s.Word(path=(text,)))


def words() -> Strategy[s.Word]:
    """Bare words and references."""
    return st.one_of(names(), references())


def params() -> Strategy[s.Param]:
    """Parameters."""
    return st.sampled_from(("a", "page", "limit", "x_1")).map(lambda name: s.Param(name=name))


def texts() -> Strategy[s.Value]:
    """Texts in quotes, quotes and line ends and comment signs among them."""
    hard = st.sampled_from(("", "'", "''", "a'b", "--", ";", "$a", "\n", '"', "é€😀", "AS OF"))
    plain = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=20)
    return st.one_of(hard, plain).map(lambda text: s.Value(value=text))


def integers(least: int = -(2**63) + 1) -> Strategy[s.Value]:
    """Whole numbers."""
    return st.integers(least, 2**63 - 1).map(lambda number: s.Value(value=number))


def reals() -> Strategy[s.Value]:
    """Numbers with a point or an exponent."""
    return st.floats(allow_nan=False, allow_infinity=False).map(lambda number: s.Value(value=number))


def values() -> Strategy[Any]:
    """Values and parameters."""
    literals = st.sampled_from((True, False, None)).map(lambda value: s.Value(value=value))
    return st.one_of(texts(), integers(), reals(), literals, params())


def applied() -> Strategy[s.Apply]:
    """Aggregates."""
    function = st.sampled_from(("count", "sum", "quantile", "first"))
    condition = st.builds(lambda a, b: s.Not(operand=s.Compare(op="=", left=a, right=b)), words(), integers())
    args = st.lists(st.one_of(words(), values(), condition), min_size=1, max_size=3).map(tuple)
    return st.one_of(
        function.map(lambda name: s.Apply(name=name, star=True)),
        st.builds(lambda name, args: s.Apply(name=name, args=args), function, args),
        words().map(lambda word: s.Apply(name="count", args=(word,), distinct=True)),
    )


def within() -> Strategy[s.Subquery]:
    """A statement in parentheses."""
    column = words().map(lambda word: (s.SelectItem(expr=word),))
    named = st.sampled_from(("PAGES", "CALLS", "TAGS"))
    asked = st.one_of(
        st.builds(lambda name, columns: s.RelationQuery(name=name, columns=columns), named, column),
        st.builds(lambda query, columns: s.SearchQuery(query=query, columns=columns), texts(), column),
        st.builds(lambda columns: s.ContextAt(columns=columns), column),
    )
    return asked.map(lambda statement: s.Subquery(statement=statement))


def operands() -> Strategy[Any]:
    """Operands of conditions."""
    return st.recursive(st.one_of(words(), values(), applied(), within()), _sums, max_leaves=4)


def _sums(inner: Strategy[Any]) -> Strategy[Any]:
    """Operations on what is there."""
    op: Any = st.sampled_from(("+", "-", "*", "/"))
    return st.builds(lambda op, a, b: s.Arithmetic(op=op, left=a, right=b), op, inner, inner)


def shown() -> Strategy[Any]:
    """Expressions of a column: no value, and nothing that begins with one."""
    op: Any = st.sampled_from(("+", "-", "*", "/"))
    first = st.one_of(words(), applied())
    return st.recursive(
        first,
        lambda inner: st.builds(lambda op, a, b: s.Arithmetic(op=op, left=a, right=b), op, inner, operands()),
        max_leaves=3,
    )


def tests() -> Strategy[Any]:
    """Conditions without AND, OR or NOT."""
    flag = st.booleans()
    ops = st.sampled_from(("=", "!=", "<", "<=", ">", ">=", "LIKE", "MATCHES"))
    item = operands()
    # IN SESSION is two words of the language; no list is called so.
    listed = words().filter(lambda word: word.path != ("session",))
    known = item.filter(lambda operand: operand != NULL)
    some = st.lists(item, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        item,
        st.builds(lambda op, a, b: s.Compare(op=op, left=a, right=b), ops, known, known),
        st.builds(lambda a, items, no: s.In(operand=a, items=items, negated=no), item, some, flag),
        st.builds(lambda a, among, no: s.Has(item=a, among=among, negated=no), item, listed, flag),
        st.builds(lambda a, b, c, no: s.Between(operand=a, low=b, high=c, negated=no), item, item, item, flag),
        st.builds(lambda a, no: s.IsNull(operand=a, negated=no), item, flag),
        st.one_of(texts(), params()).map(lambda pattern: s.ContextMatches(pattern=pattern)),
    )


def conditions() -> Strategy[Any]:
    """Conditions, nested."""

    def wider(inner: Strategy[Any]) -> Strategy[Any]:
        parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            inner.map(lambda operand: s.Not(operand=operand)),
            parts.map(lambda parts: s.And(parts=parts)),
            parts.map(lambda parts: s.Or(parts=parts)),
        )

    return st.recursive(tests(), wider, max_leaves=6)


def moments() -> Strategy[s.MomentNode]:
    """Moments of every unit."""
    counted = st.one_of(integers(0), params(), within())
    timed = st.one_of(st.sampled_from(("2026-11-20", "last friday")).map(lambda t: s.Value(value=t)), params())
    return st.one_of(
        st.builds(lambda u, v: s.MomentNode(unit=u, value=v), st.sampled_from(("turn", "call", "position")), counted),
        st.builds(lambda u, v: s.MomentNode(unit=u, value=v), st.sampled_from(("time", "logged_time")), timed),
        st.just(s.MomentNode(unit="head")),
    )


def called() -> Strategy[Any]:
    """Names of sessions and users."""
    reserved = st.sampled_from(RESERVED).map(lambda name: s.Word(path=(name,)))
    return st.one_of(names(), reserved, texts(), params())


def pages() -> Strategy[Any]:
    """Names of pages."""
    return st.one_of(words(), texts(), params(), integers(1))


def scopes() -> Strategy[Any]:
    """IN SESSION and ACROSS SESSIONS."""
    return st.one_of(
        called().map(lambda name: s.InSession(name=name)),
        st.one_of(st.none(), called()).map(lambda user: s.AcrossSessions(user=user)),
    )


def columns() -> Strategy[tuple[s.SelectItem, ...]]:
    """Selected columns, often none in particular."""
    given = st.one_of(st.none(), st.sampled_from(("n", "of", "where", "a b", "it's", "7")))
    item = st.builds(lambda expr, name: s.SelectItem(expr=expr, name=name), shown(), given)
    return st.lists(item, max_size=3).map(tuple)


@functools.cache
def tails() -> Strategy[s.Tail]:
    """Tails of relations, with any clauses."""

    @st.composite
    def drawn(draw: Any) -> s.Tail:
        given: dict[str, Any] = {}
        for field, strategy in PARTS.items():
            if draw(st.integers(0, 2)) == 0:
                given[field] = draw(strategy)
        if "since" in given and "until" in given and at_rest(given["since"]) and at_rest(given["until"]):
            given["between"] = draw(st.booleans())
        if "limit" not in given:
            given.pop("after", None)
        return s.Tail(**given)

    return drawn()


def at_rest(moment: s.MomentNode) -> bool:
    """Whether a moment can begin a BETWEEN: HEAD cannot."""
    return moment.unit != "head"


PARTS: dict[str, Strategy[Any]] = {
    "scope": scopes(),
    "as_of": moments(),
    "since": moments(),
    "until": moments(),
    "valid_at": st.one_of(texts(), params()),
    "ever": st.just(True),
    "where": conditions(),
    "by": st.lists(shown(), min_size=1, max_size=3).map(tuple),
    "per": st.sampled_from(("turn", "call")),
    "having": conditions(),
    "order": st.lists(
        st.builds(lambda e, d: s.Order(expr=e, descending=d), shown(), st.booleans()),
        min_size=1,
        max_size=3,
    ).map(tuple),
    "limit": st.one_of(integers(0), params()),
    "after": st.one_of(integers(), texts(), params()),
}


def questions() -> Strategy[Any]:
    """Every statement but EXPLAIN."""
    maybe = st.one_of(st.none(), moments())
    forms = st.sampled_from(("pages", "render", "messages"))
    depth = st.one_of(st.none(), integers(0), params())
    kinds = st.lists(st.one_of(names(), texts()), max_size=2).map(tuple)
    cursor = st.one_of(st.none(), texts(), params(), integers())
    word = st.sampled_from(("planning-220", "json", "table")).map(lambda name: s.Word(path=(name,)))
    setting = st.one_of(word, values(), moments())
    chosen = st.one_of(word, values())
    given = st.builds(s.ReplaySetting, name=st.sampled_from(("policy", "budget", "compress")), value=chosen)
    plain = st.sampled_from(("limit", "session", "as_of", "settings"))
    return st.one_of(
        st.builds(s.RelationQuery, name=st.sampled_from(RELATIONS), columns=columns(), tail=tails()),
        st.builds(s.RelationQuery, name=st.sampled_from(RELATIONS), tail=tails(), every=st.just(True)),
        st.builds(s.ContextAt, moment=maybe, form=forms, columns=columns(), tail=tails()),
        st.builds(s.DiffContext, before=moments(), after=moments(), tail=tails()),
        st.builds(s.DiffSession, before=called(), after=called(), moment=maybe, tail=tails()),
        st.builds(s.OfPage, what=st.sampled_from(("history", "residencies", "versions")), page=pages(), tail=tails()),
        st.builds(s.LineageQuery, up=st.booleans(), page=pages(), depth=depth, kinds=kinds, tail=tails()),
        st.builds(s.PathQuery, source=pages(), target=pages(), depth=depth, kinds=kinds, tail=tails()),
        st.builds(s.WhyQuery, page=pages(), negated=st.booleans(), moment=maybe, scope=st.one_of(st.none(), scopes())),
        st.builds(s.SearchQuery, query=st.one_of(texts(), params()), columns=columns(), within=depth, tail=tails()),
        st.builds(s.Verify, session=st.one_of(st.none(), called())),
        st.builds(s.Fork, session=st.one_of(st.none(), called()), moment=maybe, name=called()),
        st.builds(s.Replay, session=st.one_of(st.none(), called()), given=st.lists(given, max_size=2).map(tuple)),
        st.builds(s.Watch, columns=columns(), tail=tails(), cursor=cursor),
        st.builds(s.Set, name=plain, value=setting),
        st.builds(s.Show, what=plain),
        st.builds(s.Describe, relation=st.sampled_from(RELATIONS)),
    )


def statements() -> Strategy[Any]:
    """Every statement there is."""
    explained = st.builds(s.Explain, statement=questions(), analyze=st.booleans())
    return st.one_of(questions(), explained).filter(sayable)


def sayable(statement: Any) -> bool:
    """Whether a text says it: a column `order` with nothing behind it but BY reads as ORDER BY."""
    if isinstance(statement, s.Explain):
        return sayable(statement.statement)
    tail = getattr(statement, "tail", s.Tail())
    alone = getattr(statement, "columns", ()) == (s.SelectItem(expr=s.Word(path=("order",))),)
    return not (alone and tail.by and tail == s.Tail(by=tail.by))


def reads_back(statement: s.Statement) -> None:
    """Holds that a statement is what its canonical text says, and that this text is the canonical one."""
    text = show(statement)
    read = parse(text)
    assert read == statement, text
    assert show(read) == text, text


def offers(text: str) -> set[str]:
    """The keywords offered where a text ends."""
    return set(completions(text).keywords)
