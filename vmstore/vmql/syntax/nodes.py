"""What a VMQL text says: frozen nodes, each with the span of text it came from.

Two nodes are equal where they say the same, wherever they stood: the printer and the parser are
held against each other by that. Names are as written; what they stand for is settled by `bind`.
"""

from __future__ import annotations

from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

import msgspec


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


class Value(Node, frozen=True, eq=False, gc=False):
    """A literal: a number, a text in quotes, TRUE, FALSE or NULL."""

    value: int | float | str | bool | None

    def _said(self) -> tuple[object, ...]:
        return (type(self.value), self.value)


class Param(Node, frozen=True, eq=False, gc=False):
    """`$name`: a value handed in beside the text."""

    name: str


class Word(Node, frozen=True, eq=False, gc=False):
    """A bare word: a column, a word of an enumeration, a page or a session; with dots a path into metadata."""

    path: tuple[str, ...]


class Apply(Node, frozen=True, eq=False, gc=False):
    """A function: `count(*)`, `sum(tokens)`, `length(text)`; `star` for `(*)`, `distinct` for `(DISTINCT x)`."""

    name: str
    args: tuple[Expr, ...] = ()
    star: bool = False
    distinct: bool = False


class Arithmetic(Node, frozen=True, eq=False, gc=False):
    """`left op right` of numbers; of two times their difference in seconds."""

    op: OneOf["+", "-", "*", "/"]
    left: Expr
    right: Expr


class Subquery(Node, frozen=True, eq=False, gc=False):
    """A statement in parentheses, for its one column: a value, or with IN a list of values."""

    statement: RelationQuery | SearchQuery


class Not(Node, frozen=True, eq=False, gc=False):
    """NOT of a condition."""

    operand: Expr


class And(Node, frozen=True, eq=False, gc=False):
    """Conditions joined by AND, two or more."""

    parts: tuple[Expr, ...]


class Or(Node, frozen=True, eq=False, gc=False):
    """Conditions joined by OR, two or more."""

    parts: tuple[Expr, ...]


Comparison: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">=", "LIKE", "MATCHES"]


class Compare(Node, frozen=True, eq=False, gc=False):
    """`left op right`. LIKE takes `%` and `_`; MATCHES finds the words of a text, in any order."""

    op: Comparison
    left: Expr
    right: Expr


class In(Node, frozen=True, eq=False, gc=False):
    """`operand [NOT] IN (a, b, …)`."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


class Has(Node, frozen=True, eq=False, gc=False):
    """`item [NOT] IN column`: a member of a list, as tags are."""

    item: Expr
    among: Word
    negated: bool = False


class Between(Node, frozen=True, eq=False, gc=False):
    """`operand [NOT] BETWEEN low AND high`, both included."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


class IsNull(Node, frozen=True, eq=False, gc=False):
    """`operand IS [NOT] NULL`."""

    operand: Expr
    negated: bool = False


class ContextMatches(Node, frozen=True, eq=False, gc=False):
    """`CONTEXT MATCHES 'words'`: of a call, whether one page of its context holds them."""

    pattern: Expr


Expr: TypeAlias = (
    Value
    | Param
    | Word
    | Apply
    | Arithmetic
    | Subquery
    | Not
    | And
    | Or
    | Compare
    | In
    | Has
    | Between
    | IsNull
    | ContextMatches
)

# ---- moments and scopes

Unit: TypeAlias = OneOf["turn", "call", "position", "time", "logged_time", "head"]


class MomentNode(Node, frozen=True, eq=False, gc=False):
    """A turn, call, position or time, which a statement within may say; HEAD has no value."""

    unit: Unit
    value: Value | Param | Subquery | None = None


class InSession(Node, frozen=True, eq=False, gc=False):
    """IN SESSION: one by name, or those a LIKE pattern with `%` or `_` names."""

    name: Value | Param | Word


class AcrossSessions(Node, frozen=True, eq=False, gc=False):
    """ACROSS SESSIONS, of one user where it says so: every session, each page by the one that wrote it."""

    user: Value | Param | Word | None = None


Scope: TypeAlias = InSession | AcrossSessions


class SelectItem(Node, frozen=True, eq=False, gc=False):
    """What is shown in one column, and the name it gets."""

    expr: Expr
    name: str | None = None


class Order(Node, frozen=True, eq=False, gc=False):
    """One key to order by."""

    expr: Expr
    descending: bool = False


class Tail(Node, frozen=True, eq=False, gc=False):
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


class RelationQuery(Node, frozen=True, eq=False, gc=False):
    """PAGES, MUTATIONS and the others; no columns means all of them, and `every` that a reader asked for all."""

    name: str
    columns: tuple[SelectItem, ...] = ()
    tail: Tail = Tail()
    every: bool = False


class ContextAt(Node, frozen=True, eq=False, gc=False):
    """CONTEXT [AT moment] [RENDER | MESSAGES]; without columns all of them, `tail` filters and orders pages."""

    moment: MomentNode | None = None
    form: OneOf["pages", "render", "messages"] = "pages"
    columns: tuple[SelectItem, ...] = ()
    tail: Tail = Tail()


class DiffContext(Node, frozen=True, eq=False, gc=False):
    """DIFF CONTEXT a TO b."""

    before: MomentNode
    after: MomentNode
    tail: Tail = Tail()


class DiffSession(Node, frozen=True, eq=False, gc=False):
    """DIFF SESSION a TO b [AT moment]: two sessions' contexts at one moment, or at their heads."""

    before: Value | Param | Word
    after: Value | Param | Word
    moment: MomentNode | None = None
    tail: Tail = Tail()


PageName: TypeAlias = Value | Param | Word


class OfPage(Node, frozen=True, eq=False, gc=False):
    """HISTORY OF, RESIDENCIES OF, VERSIONS OF a page; the tail bounds and filters it."""

    what: OneOf["history", "residencies", "versions"]
    page: PageName
    tail: Tail = Tail()


class LineageQuery(Node, frozen=True, eq=False, gc=False):
    """SOURCES OF and DERIVED FROM a page: a walk over links, of some kinds, so many steps deep."""

    up: bool
    page: PageName
    depth: Value | Param | None = None
    kinds: tuple[Word | Value, ...] = ()
    tail: Tail = Tail()


class PathQuery(Node, frozen=True, eq=False, gc=False):
    """PATH FROM a page TO another: the shortest walk over links, either way along each."""

    source: PageName
    target: PageName
    depth: Value | Param | None = None
    kinds: tuple[Word | Value, ...] = ()
    tail: Tail = Tail()


class WhyQuery(Node, frozen=True, eq=False, gc=False):
    """WHY [NOT] page IN CONTEXT [AT moment]."""

    page: PageName
    negated: bool = False
    moment: MomentNode | None = None
    scope: Scope | None = None


class SearchQuery(Node, frozen=True, eq=False, gc=False):
    """SEARCH 'words': pages by BM25, best first; `within` so many tokens with what was said beside each."""

    query: Value | Param
    columns: tuple[SelectItem, ...] = ()
    within: Value | Param | None = None
    tail: Tail = Tail()
    every: bool = False


class Explain(Node, frozen=True, eq=False, gc=False):
    """EXPLAIN [ANALYZE]: how a statement is answered; with ANALYZE it is, and says how long each step took."""

    statement: Statement
    analyze: bool = False


class Verify(Node, frozen=True, eq=False, gc=False):
    """VERIFY [SESSION s]."""

    session: Value | Param | Word | None = None


class Fork(Node, frozen=True, eq=False, gc=False):
    """FORK SESSION s [AT moment] AS name: the one statement that writes."""

    session: Value | Param | Word | None
    moment: MomentNode | None
    name: Value | Param | Word


class ReplaySetting(Node, frozen=True, eq=False, gc=False):
    """`name = value` of a REPLAY."""

    name: str
    value: Value | Param | Word


class Replay(Node, frozen=True, eq=False, gc=False):
    """REPLAY [SESSION s] [WITH policy = lru, budget = 8000]: a session decided again, beside what was decided."""

    session: Value | Param | Word | None
    given: tuple[ReplaySetting, ...] = ()


class Watch(Node, frozen=True, eq=False, gc=False):
    """WATCH MUTATIONS [WHERE …] [FROM cursor]: those there are and those to come, in the order of the log."""

    columns: tuple[SelectItem, ...] = ()
    tail: Tail = Tail()
    cursor: Value | Param | None = None


class Set(Node, frozen=True, eq=False, gc=False):
    """SET name = value: session, limit, as_of …; NULL takes it back."""

    name: str
    value: Value | Param | Word | MomentNode


class Show(Node, frozen=True, eq=False, gc=False):
    """SHOW RELATIONS, FUNCTIONS, SETTINGS, or one setting."""

    what: str


class Describe(Node, frozen=True, eq=False, gc=False):
    """DESCRIBE a relation: its columns with types and what they mean."""

    relation: str


Statement: TypeAlias = (
    RelationQuery
    | ContextAt
    | DiffContext
    | DiffSession
    | OfPage
    | LineageQuery
    | PathQuery
    | WhyQuery
    | SearchQuery
    | Explain
    | Verify
    | Fork
    | Replay
    | Watch
    | Set
    | Show
    | Describe
)


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
