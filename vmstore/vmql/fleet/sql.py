"""SQL over the relations of many namespaces: each table has the rows of all, and a column that says whose they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from vmstore.core.asof import AsOf
from vmstore.vmql.execution.query_limits import LimitedQuery, QueryLimits
from vmstore.vmql.execution.result import Result
from vmstore.vmql.execution.sql import MomentReader, SqlDoor
from vmstore.vmql.execution.sql_tables import TABLES, Filters, Moment, Row
from vmstore.vmql.fleet.member import FleetMember
from vmstore.vmql.fleet.relation import PLACES
from vmstore.vmql.relations.relation import Relation
from vmstore.vmql.syntax.errors import fault

Basis = Callable[[Sequence[tuple[FleetMember, Mapping[str, Any]]]], dict[str, Any]]


class FleetReader:
    """Reads relations of many namespaces for one statement, each as it stood when the statement was asked."""

    def __init__(self, members: Sequence[FleetMember], basis: Basis, text: str, at: AsOf, watch: LimitedQuery) -> None:
        self._members = [
            (member, MomentReader(member.engine.runner, at, None, text, watch, many=True)) for member in members
        ]
        self.basis = basis([(member, reader.basis) for member, reader in self._members])

    def read(self, relation: Relation, columns: tuple[str, ...], moment: Moment, filters: Filters) -> list[Row]:
        """Columns of the rows of every namespace, of those alone that a filter lets."""
        if moment[2] is not None:
            hint = "write WHERE session = 'name' AND namespace = 'name'"
            raise fault("a session is of one namespace", "one-namespace", hint=hint)
        chosen = {name: value for name, value in filters if name in PLACES}
        own = tuple((name, value) for name, value in filters if name not in PLACES)
        wanted = tuple(name for name in columns if name not in PLACES)
        asked = wanted or (next(iter(_own(relation.name).fields)),)
        found: list[Row] = []
        for member, reader in self._members:
            if any(member.place[name] != value for name, value in chosen.items()):
                continue
            places = [asked.index(name) if name in asked else -1 for name in columns]
            constant = [member.place.get(name) for name in columns]
            found += [
                tuple(constant[nth] if at < 0 else row[at] for nth, at in enumerate(places))
                for row in reader.read(_own(relation.name), asked, moment, own)
            ]
        return found


@cache
def _own(name: str) -> Relation:
    """The relation of one namespace that a merged one is made of."""
    return next(relation for relation in TABLES.values() if relation.name == name)


@cache
def _tables(places: tuple[str, ...]) -> dict[str, Relation]:
    """The tables of one namespace with the columns that say whose a row is."""
    before = {name: PLACES[name] for name in places}
    return {name: relation._replace(fields={**before, **relation.fields}) for name, relation in TABLES.items()}


def answer(
    members: Sequence[FleetMember],
    places: tuple[str, ...],
    basis: Basis,
    text: str,
    at: AsOf,
    params: Mapping[str, Any],
    limits: QueryLimits,
    watch: LimitedQuery,
) -> Result:
    """The rows of the one statement of a text over all namespaces."""
    ticks = members[0].engine.runner.world.ticks
    began = ticks()
    reader = FleetReader(members, basis, text, at, watch)
    return SqlDoor(ticks, _tables(places)).answer(text, reader, params, limits, watch, began)
