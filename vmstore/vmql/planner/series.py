"""PER TURN and PER CALL: a row for each turn or call that a statement sees, also for those in which nothing happened.

The groups of the statement become a common table, to which all turns or calls are joined; a running
total is a sum over the rows before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmstore.vmql.planner.bind import Binder, Term
from vmstore.vmql.relations.relation import ACROSS, Relation, Shape
from vmstore.vmql.syntax.errors import fault
from vmstore.vmql.syntax.nodes import Tail, Word

ZEROS = ("count(", "sum(")
"""What is 0 of no rows at all; the least, the mean and others are null."""


class Series(NamedTuple):
    """A series: what is shown of each of its rows, and the SQL these come from."""

    terms: list[Term]
    keys: list[Term]
    source: str


def grouped(relation: Relation, shape: Shape, tail: Tail) -> Tail:
    """A tail whose groups are also those of its turns or calls; each session's own where many are asked."""
    if tail.per is None:
        return tail
    names = (tail.per, f"created_{tail.per}")
    moment = next((name for name in names if name in relation.fields), None)
    if moment is None:
        message = f"the rows of {relation.name} are of no one {tail.per}"
        hint = f"MUTATIONS, PAGES, CALLS and others have a {tail.per}; write BY for other groups"
        raise fault(message, "clause-unused", tail.span, hint=hint)
    keys = ("session", moment) if shape == ACROSS else (moment,)
    return tail.including(*(Word(path=(name,)) for name in keys))


def series(binder: Binder, per: str, terms: Sequence[Term], keys: Sequence[Term], groups: str) -> Series:
    """The rows of a series over the groups that SQL gives: FROM, WHERE and GROUP BY of the statement."""
    moments = 2 if binder.shape == ACROSS else 1
    keyed = [f"{key.sql} AS k{at}" for at, key in enumerate(keys)]
    summed = [f"{term.sql} AS a{at}" for at, term in enumerate(terms)]
    names = [f"{'s' if at < moments else 'd'}.k{at}" for at in range(len(keys))]
    own = [f"k{at}" for at in range(moments)]
    listed = ", ".join(f"value ->> {1 - at if moments == 1 else at} AS k{at}" for at in range(moments))
    by = {key.sql: name for key, name in zip(keys, names, strict=True)}
    window = ", ".join([*names[: moments - 1], *names[moments:]])
    over = f"({f'PARTITION BY {window} ' if window else ''}ORDER BY {names[moments - 1]})"
    shown = []
    for at, term in enumerate(terms):
        value = by.get(term.sql) or f"g.a{at}"
        if term.running or term.name.startswith(ZEROS):
            value = f"coalesce({value}, 0)"
        shown.append(f"{f'sum({value}) OVER {over}' if term.running else value} AS c{at}")
    others = [f"k{at}" for at in range(moments, len(keys))]
    joined = f" CROSS JOIN (SELECT DISTINCT {', '.join(others)} FROM g) d" if others else ""
    same = " AND ".join(f"g.k{at} IS {name}" for at, name in enumerate(names))
    source = f"""FROM (WITH g AS MATERIALIZED (SELECT {", ".join([*keyed, *summed])}
{groups}), s AS (SELECT {listed} FROM json_each(:{per}s) UNION SELECT {", ".join(own)} FROM g)
SELECT {", ".join(shown)} FROM s{joined} LEFT JOIN g ON {same}) r"""
    over_rows = [term._replace(sql=f"r.c{at}", sums=True, single=None) for at, term in enumerate(terms)]
    places = {term.sql: at for at, term in reversed(list(enumerate(terms)))}
    return Series(over_rows, [over_rows[places[key.sql]] for key in keys], source)
