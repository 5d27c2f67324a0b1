"""What a VMQL text says: frozen nodes, each with the span of text it came from.

Two nodes are equal where they say the same, wherever they stood: the printer and the parser are
held against each other by that. Names are as written; what they stand for is settled by `bind`.
"""

from __future__ import annotations

from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

import msgspec

from vmstore.vmql.syntax.rule import AND, ANYTHING, NOT, OR, PRODUCT, SUM, TEST, clause, rule


class SourceSpan(NamedTuple):
    """A stretch of the text: from character `start` up to, not including, `end`."""

    start: int
    end: int


NOWHERE = SourceSpan(0, 0)


class Node(msgspec.Struct, frozen=True, eq=False, kw_only=True, gc=False):
    """A part of a statement; `span` is not part of what it says."""

    span: SourceSpan = NOWHERE

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._said() == other._said()

    def __ne__(self, other: object) -> bool:  # a struct would compare by identity
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self), self._said()))

    def _said(self) -> tuple[object, ...]:
        return tuple(getattr(self, field) for field in self.__struct_fields__ if field != "span")


# ---- values


class Value(Node, frozen=True):
    """A literal: a number, a text in quotes, TRUE, FALSE or NULL."""

    value: int | float | str | bool | None

    def _said(self) -> tuple[object, ...]:
        return (type(self.value), self.value)


class Param(Node, frozen=True):
    """`$name`: a value handed in beside the text."""

    name: str


class Word(Node, frozen=True):
    """A bare word: a column, a word of an enumeration, a page or a session; with dots a path into metadata."""

    path: tuple[str, ...]


@rule("apply", "{name!l}({args:, })", within=ANYTHING)
@rule("apply_distinct", "{name!l}(DISTINCT {args:, })", distinct=True)
@rule("apply_star", "{name!l}(*)", star=True)
class Apply(Node, frozen=True):
    """A function: `count(*)`, `sum(tokens)`, `avg(role = tool)`; `star` for `(*)`, `distinct` for `(DISTINCT x)`."""

    name: str
    args: tuple[Expr, ...] = ()
    star: bool = False
    distinct: bool = False


@rule("plus", "{left!s} + {right}", SUM, op="+")
@rule("minus", "{left!s} - {right}", SUM, op="-")
@rule("times", "{left!s} * {right}", PRODUCT, op="*")
@rule("over", "{left!s} / {right}", PRODUCT, op="/")
class Arithmetic(Node, frozen=True):
    """`left op right` of numbers; of two times their difference in seconds."""

    op: OneOf["+", "-", "*", "/"]
    left: Expr
    right: Expr


@rule("subquery", "({statement})")
class Subquery(Node, frozen=True):
    """A statement in parentheses, for its one column: a value, or with IN a list of values."""

    statement: RelationQuery | SearchQuery | ContextAt


@rule("negated", "NOT {operand}", NOT)
class Not(Node, frozen=True):
    """NOT of a condition."""

    operand: Expr


@rule("all_of", "{parts: AND }", AND)
class And(Node, frozen=True):
    """Conditions joined by AND, two or more."""

    parts: tuple[Expr, ...]


@rule("any_of", "{parts: OR }", OR)
class Or(Node, frozen=True):
    """Conditions joined by OR, two or more."""

    parts: tuple[Expr, ...]


Comparison: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">=", "LIKE", "MATCHES"]


@rule("compare", "{left} {op} {right}", TEST)
@rule("like", "{left} LIKE {right}", TEST, op="LIKE")
@rule("matches", "{left} MATCHES {right}", TEST, op="MATCHES")
class Compare(Node, frozen=True):
    """`left op right`. LIKE takes `%` and `_`; MATCHES finds the words of a text, in any order."""

    op: Comparison
    left: Expr
    right: Expr


@rule("within", "{operand} IN {items!p:, }", TEST)
@rule("not_within", "{operand} NOT IN {items!p:, }", TEST, negated=True)
class In(Node, frozen=True):
    """`operand [NOT] IN (a, b, …)`."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@rule("has", "{item} IN {among}", TEST)
@rule("has_not", "{item} NOT IN {among}", TEST, negated=True)
class Has(Node, frozen=True):
    """`item [NOT] IN column`: a member of a list, as tags are."""

    item: Expr
    among: Word
    negated: bool = False


@rule("between", "{operand} BETWEEN {low} AND {high}", TEST)
@rule("not_between", "{operand} NOT BETWEEN {low} AND {high}", TEST, negated=True)
class Between(Node, frozen=True):
    """`operand [NOT] BETWEEN low AND high`, both included."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@rule("is_null", "{operand} IS NULL", TEST)
@rule("is_not_null", "{operand} IS NOT NULL", TEST, negated=True)
class IsNull(Node, frozen=True):
    """`operand IS [NOT] NULL`."""

    operand: Expr
    negated: bool = False


@rule("context_matches", "CONTEXT MATCHES {pattern}", TEST)
class ContextMatches(Node, frozen=True):
    """`CONTEXT MATCHES 'words'`: of a call, whether one page of its context holds them."""

    pattern: Expr


Test: TypeAlias = Compare | In | Has | Between | IsNull | ContextMatches
Expr: TypeAlias = Value | Param | Word | Apply | Arithmetic | Subquery | Not | And | Or | Test
Name: TypeAlias = Value | Param | Word
"""What names a page, a session or a user."""

# ---- moments and scopes

Unit: TypeAlias = OneOf["turn", "call", "position", "time", "logged_time", "head"]


@rule("turn", "TURN {value}", unit="turn")
@rule("call", "CALL {value}", unit="call")
@rule("position", "POSITION {value}", unit="position")
@rule("time", "TIME {value}", unit="time")
@rule("logged_time", "LOGGED TIME {value}", unit="logged_time")
@rule("head", "HEAD", unit="head")
class MomentNode(Node, frozen=True):
    """A turn, call, position or time, which a statement within may say; HEAD has no value."""

    unit: Unit
    value: Value | Param | Subquery | None = None


# ---- clauses, in the order in which a statement is written

clause("every", "*", every=True)
clause("fork_from replay_from", "SESSION {session}")
clause("at", "AT {moment}")
clause("depth", "DEPTH {depth}")
clause("via", "VIA {kinds:, }")
clause("room", "WITHIN {within} TOKENS")
clause("render", "RENDER", form="render")
clause("messages", "MESSAGES", form="messages")
clause("replay_with", "WITH {given:, }")


@rule("in_session", "IN SESSION {name}", fills="scope")
class InSession(Node, frozen=True):
    """IN SESSION: one by name, or those a LIKE pattern with `%` or `_` names."""

    name: Name


@rule("across_sessions", "ACROSS SESSIONS[ OF USER {user}]", fills="scope")
class AcrossSessions(Node, frozen=True):
    """ACROSS SESSIONS, of one user where it says so: every session, each page by the one that wrote it."""

    user: Name | None = None


Scope: TypeAlias = InSession | AcrossSessions


@rule("column", "{expr}[ AS {name!a}]")
class SelectItem(Node, frozen=True):
    """What is shown in one column, and the name it gets."""

    expr: Expr
    name: str | None = None


@rule("ascending", "{expr}")
@rule("descending", "{expr} DESC", descending=True)
class Order(Node, frozen=True):
    """One key to order by."""

    expr: Expr
    descending: bool = False


clause("as_of", "AS OF {as_of}")
clause("between_moments", "BETWEEN {since} AND {until}", between=True)
clause("since", "SINCE {since}")
clause("until", "UNTIL {until}")
clause("valid_at", "VALID AT {valid_at}")
clause("ever", "ALL", ever=True)
clause("where", "WHERE {where}", within=ANYTHING)
clause("by", "BY {by:, }")
clause("per_turn", "PER TURN", per="turn")
clause("per_call", "PER CALL", per="call")
clause("having", "HAVING {having}", within=ANYTHING)
clause("order_by", "ORDER BY {order:, }")
clause("limit", "LIMIT {limit}[ AFTER {after}]")
clause("watch_from", "FROM {cursor}")


class Tail(Node, frozen=True):
    """What every relation can end in. `since` is exclusive, `until` and `as_of` are inclusive.

    `valid_at` is a time in the world; `ever` shows what holds at no such time or was replaced, too.
    BETWEEN a AND b is `since` a and `until` b with `between` set: both inclusive.
    """

    scope: Scope | None = None
    as_of: MomentNode | None = None
    since: MomentNode | None = None
    until: MomentNode | None = None
    between: bool = False
    valid_at: Value | Param | None = None
    ever: bool = False
    where: Expr | None = None
    by: tuple[Expr, ...] = ()
    per: OneOf["turn", "call"] | None = None
    having: Expr | None = None
    order: tuple[Order, ...] = ()
    limit: Value | Param | None = None
    after: Value | Param | None = None

    def including(self, *keys: Expr) -> Tail:
        """The same with further groups, the first of all."""
        return msgspec.structs.replace(self, by=(*keys, *self.by))


# ---- statements


@rule("relation", "{name!u}[ {columns:, }]…")
class RelationQuery(Node, frozen=True):
    """PAGES, MUTATIONS and the others; no columns means all of them, and `every` that a reader asked for all."""

    name: str
    columns: tuple[SelectItem, ...] = ()
    tail: Tail = Tail()
    every: bool = False


@rule("context", "CONTEXT[ {columns:, }]…")
class ContextAt(Node, frozen=True):
    """CONTEXT [AT moment] [RENDER | MESSAGES]; without columns all of them, `tail` filters and orders pages."""

    moment: MomentNode | None = None
    form: OneOf["pages", "render", "messages"] = "pages"
    columns: tuple[SelectItem, ...] = ()
    tail: Tail = Tail()


@rule("diff_context", "DIFF CONTEXT {before} TO {after}…")
class DiffContext(Node, frozen=True):
    """DIFF CONTEXT a TO b."""

    before: MomentNode
    after: MomentNode
    tail: Tail = Tail()


@rule("diff_session", "DIFF SESSION {before} TO {after}…")
class DiffSession(Node, frozen=True):
    """DIFF SESSION a TO b [AT moment]: two sessions' contexts at one moment, or at their heads."""

    before: Name
    after: Name
    moment: MomentNode | None = None
    tail: Tail = Tail()


@rule("history", "HISTORY OF {page}…", what="history")
@rule("residencies", "RESIDENCIES OF {page}…", what="residencies")
@rule("versions", "VERSIONS OF {page}…", what="versions")
class OfPage(Node, frozen=True):
    """HISTORY OF, RESIDENCIES OF, VERSIONS OF a page; the tail bounds and filters it."""

    what: OneOf["history", "residencies", "versions"]
    page: Name
    tail: Tail = Tail()


@rule("sources", "SOURCES OF {page}…", up=True)
@rule("derived", "DERIVED FROM {page}…", up=False)
class LineageQuery(Node, frozen=True):
    """SOURCES OF and DERIVED FROM a page: a walk over links, of some kinds, so many steps deep."""

    up: bool
    page: Name
    depth: Value | Param | None = None
    kinds: tuple[Word | Value, ...] = ()
    tail: Tail = Tail()


@rule("path", "PATH FROM {source} TO {target}…")
class PathQuery(Node, frozen=True):
    """PATH FROM a page TO another: the shortest walk over links, either way along each."""

    source: Name
    target: Name
    depth: Value | Param | None = None
    kinds: tuple[Word | Value, ...] = ()
    tail: Tail = Tail()


@rule("why", "WHY {page} IN CONTEXT…")
@rule("why_not", "WHY NOT {page} IN CONTEXT…", negated=True)
class WhyQuery(Node, frozen=True):
    """WHY [NOT] page IN CONTEXT [AT moment]."""

    page: Name
    negated: bool = False
    moment: MomentNode | None = None
    scope: Scope | None = None


@rule("search", "SEARCH {query}[ {columns:, }]…")
class SearchQuery(Node, frozen=True):
    """SEARCH 'words': pages by BM25, best first; `within` so many tokens with what was said beside each."""

    query: Value | Param
    columns: tuple[SelectItem, ...] = ()
    within: Value | Param | None = None
    tail: Tail = Tail()
    every: bool = False


@rule("explain", "EXPLAIN {statement}")
@rule("explain_analyze", "EXPLAIN ANALYZE {statement}", analyze=True)
class Explain(Node, frozen=True):
    """EXPLAIN [ANALYZE]: how a statement is answered; with ANALYZE it is, and says how long each step took."""

    statement: Statement
    analyze: bool = False


@rule("verify", "VERIFY[ SESSION {session}]")
class Verify(Node, frozen=True):
    """VERIFY [SESSION s]."""

    session: Name | None = None


@rule("fork", "FORK… AS {name}")
class Fork(Node, frozen=True):
    """FORK SESSION s [AT moment] AS name: the one statement that writes."""

    name: Name
    session: Name | None = None
    moment: MomentNode | None = None


@rule("given", "{name!l} = {value}")
class ReplaySetting(Node, frozen=True):
    """`name = value` of a REPLAY."""

    name: str
    value: Name


@rule("replay", "REPLAY…")
class Replay(Node, frozen=True):
    """REPLAY [SESSION s] [WITH policy = lru, budget = 8000]: a session decided again, beside what was decided."""

    session: Name | None = None
    given: tuple[ReplaySetting, ...] = ()


@rule("watch", "WATCH MUTATIONS[ {columns:, }]…")
class Watch(Node, frozen=True):
    """WATCH MUTATIONS [WHERE …] [FROM cursor]: those there are and those to come, in the order of the log."""

    columns: tuple[SelectItem, ...] = ()
    tail: Tail = Tail()
    cursor: Value | Param | None = None


@rule("set", "SET {name!l} = {value}")
class Set(Node, frozen=True):
    """SET name = value: session, limit, as_of …; NULL takes it back."""

    name: str
    value: Name | MomentNode


@rule("show", "SHOW {what!l}")
class Show(Node, frozen=True):
    """SHOW RELATIONS, FUNCTIONS, SETTINGS, or one setting."""

    what: str


@rule("describe", "DESCRIBE {relation!u}")
class Describe(Node, frozen=True):
    """DESCRIBE a relation: its columns with types and what they mean."""

    relation: str


Lookup: TypeAlias = RelationQuery | ContextAt | OfPage | LineageQuery | PathQuery | WhyQuery | SearchQuery
Statement: TypeAlias = (
    Lookup | DiffContext | DiffSession | Explain | Verify | Fork | Replay | Watch | Set | Show | Describe
)


def columns_named(*names: str) -> tuple[SelectItem, ...]:
    """Columns by their names alone."""
    return tuple(SelectItem(expr=Word(path=(name,))) for name in names)


def parts_of(where: Expr | None) -> tuple[Expr, ...]:
    """The conditions that all hold where one does."""
    return where.parts if isinstance(where, And) else () if where is None else (where,)


def names_of(node: Node) -> set[str]:
    """Every bare word in a part of a statement, in lower case, without what its path leads into."""
    found, waiting = set[str](), [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Word):
            found.add(one.path[0].lower())
        for field in one.__struct_fields__:
            value = getattr(one, field)
            waiting += [part for part in (value if type(value) is tuple else (value,)) if isinstance(part, Node)]
    return found
