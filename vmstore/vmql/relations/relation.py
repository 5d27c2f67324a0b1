"""What a relation is: fields, each an expression over views, and the tables it needs them joined from.

The catalog is made of these and of nothing else: names, types and meanings are said once, here
DESCRIBE, completion, the reference and the planner read them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from vmstore.vmql.column_types import ColumnType

if TYPE_CHECKING:
    from vmstore.views.branch import Branch

Shape = str
"""How many see each other: "lane", one session's own rows; "chain", with its ancestors'; "across", each its own."""

LANE, CHAIN, ACROSS = "lane", "chain", "across"


class Field(NamedTuple):
    """A column: how its values are kept, what they mean, and the SQL of them; where rows are made it needs none.

    `asked` ones are long or dear, and given only where named.
    """

    name: str
    form: ColumnType
    meaning: str
    sql: str = ""
    asked: bool = False


Join = dict[Shape, str]
"""A table, by shape, that is joined where the SQL of a field, a key or another join reads from it by its name."""


class Path(NamedTuple):
    """A way to the rows: where to start, and what that has joined already."""

    name: str
    start: dict[Shape, str]
    joined: tuple[str, ...] = ()
    sorted: bool = False  # whether rows come in the relation's order


class Relation(NamedTuple):
    """Rows of one kind: its fields, ways to them, joins, and the order of an answer that asks for none.

    The order is by SQL that tells any two rows apart. `moment` is the position of a row in its session, which
    SINCE, UNTIL and AS OF bound.
    """

    name: str
    meaning: str
    fields: dict[str, Field]
    paths: dict[str, Path]
    joins: dict[str, Join]
    order: tuple[str, ...]
    moment: str = ""
    across: tuple[str, ...] = ("w.name",)  # what comes first where many sessions are asked
    wide: bool = False  # asked of all sessions unless one is named in it
    made: bool = False  # rows are made in Python, not kept in a view
    brief: tuple[str, ...] = ()  # the columns that people are shown where none is named; all of `shown` where empty
    now: str = ""  # the condition of the rows that hold at the time `:valid_at`; the others are shown by ALL alone
    filled: str = ""  # what makes rows, for who is shown none; empty where recording alone does

    @property
    def shown(self) -> list[Field]:
        """The fields an answer has where none is named."""
        return [field for field in self.fields.values() if not field.asked]


def asked(name: str, form: ColumnType, meaning: str, sql: str = "") -> Field:
    """A column that is given only where it is named."""
    return Field(name, form, meaning, sql, asked=True)


def fields(*listed: Field) -> dict[str, Field]:
    """Fields by name."""
    return {field.name: field for field in listed}


def joins(*listed: Join) -> dict[str, Join]:
    """Joins by the names that they give their tables."""
    return {join[LANE].partition(" ON ")[0].rpartition(" ")[2]: join for join in listed}


def by(sql: str, **shapes: str) -> dict[Shape, str]:
    """SQL by shape: one for all but those named."""
    return {LANE: sql, CHAIN: sql, ACROSS: sql, **shapes}


def made(name: str, meaning: str, *listed: Field, order: str = "row") -> Relation:
    """A relation whose rows are made in Python, its fields in their order."""
    named = fields(*(field._replace(sql=f'g."{field.name}"') for field in listed))
    start = Path("made", by(f"FROM vm_{name.lower()}(:rows) g"), sorted=True)
    return Relation(name, meaning, named, {"made": start}, {}, (f"g.{order}",), across=(), made=True)


class SessionStream(NamedTuple):
    """What one session wrote and is wanted of it, with the turn and the call in force before."""

    session: int
    name: str
    low: int
    high: int
    turn: int
    call: int


class ScopedSession(NamedTuple):
    """A session as a statement sees it: what it wrote above `low` up to `high`.

    Rows above `since` up to `until` are wanted. `now` is the time of the question, None where it is of a past moment.
    `spent` tells turn and cost of the calls between two positions, `saved` the tokens of calls of
    tools, whole and short.
    """

    lane: Branch
    name: str
    session: int
    low: int
    high: int
    since: int
    until: int
    now: int | None = None
    spent: Callable[[Branch, int, int], list[tuple[int, float | None, float | None]]] | None = None
    saved: Callable[[Branch, str, int, int], tuple[int, int] | None] | None = None

    def writers(self) -> Callable[[int], str]:
        """Tells the name of the session that wrote a position of this one's past, each looked up once."""
        names: dict[int, str] = {self.session: self.name}

        def name(position: int) -> str:
            session = self.lane.owner(position)
            if session not in names:
                sql = "SELECT name FROM sessions WHERE session = ?"
                names[session] = self.lane.db.execute(sql, (session,)).get
            return names[session]

        return name
