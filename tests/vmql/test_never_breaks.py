"""Whatever is asked, what comes is an answer or an error of vmstore's own."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.vmql.asked import asked
from vmstore.errors import CorruptError, VmstoreError
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.store import Store
from vmstore.testing import queries
from vmstore.vmql.relations.catalog import RELATIONS
from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.printer import show

NAME = "planning-220"
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["p8", "claim", "L0", "planning-220", "2 hours ago", "2026-03-03", "%", "m3", "msg_002"]),
    st.lists(st.integers() | st.text(max_size=3), max_size=3),
)


@pytest.fixture(scope="module")
def store() -> Store:
    """The session that ships, and a fork of it."""
    made = vmstore.memory_store()
    made.import_file(SHIPPED)
    made.session(NAME).fork("try-b", turn=3)
    return made


class Params(dict[str, Any]):
    """Has a value for every name."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Any:
        return self.value


def answered(store: Store, statement: s.Statement, value: Any, session: str | None = NAME) -> None:
    """Asks, and takes some rows; JSON can carry them."""
    if isinstance(statement, s.Fork):
        return
    store.query("SHOW RELATIONS")  # has the asker made
    asker = store._asker
    assert asker is not None
    try:
        result = asker.answer(statement, session=session, params=Params(value), text=show(statement))
        taken = [row for row, _ in zip(result, range(5), strict=False)]
    except CorruptError:
        raise
    except VmstoreError:
        return
    assert all(len(row) == len(result.columns) for row in taken)
    json.dumps(taken)


@given(queries.statements(), ANYTHING)
def test_any_statement_is_answered_or_refused(store: Store, statement: s.Statement, value: Any) -> None:
    """A statement drawn from the grammar, with any value for its parameters, ends in rows or in an error of ours."""
    answered(store, statement, value)


def values(value: Any) -> Any:
    """A node for a value: itself where a text can say it, else a parameter."""
    return s.Param(name="value") if isinstance(value, list) else s.Value(value=value)


@given(st.sampled_from(list(RELATIONS)), st.data(), ANYTHING)
def test_any_column_meets_any_value(store: Store, relation: str, data: st.DataObject, value: Any) -> None:
    """Each column compared in each way with a value of any type ends in rows or in an error of ours."""
    column = s.Word(path=(data.draw(st.sampled_from(list(RELATIONS[relation].fields))),))
    other = s.Word(path=(data.draw(st.sampled_from(list(RELATIONS[relation].fields))),))
    node = data.draw(st.sampled_from([values(value), other, s.Param(name="value")]))
    ops = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "LIKE", "MATCHES"])
    where = data.draw(
        st.one_of(
            ops.map(lambda op: s.Compare(op=op, left=column, right=node)),
            st.just(s.In(operand=column, items=(node,))),
            st.just(s.Between(operand=column, low=node, high=node)),
            st.just(s.Has(item=node, among=column)),
            st.just(column),
            st.just(s.IsNull(operand=column)),
        )
    )
    applied = st.sampled_from(["count", "sum", "min", "max", "avg", "first", "last"])
    apply = s.Apply(name=data.draw(applied), args=(column,))
    columns = data.draw(st.sampled_from([(), (s.SelectItem(expr=column),), (s.SelectItem(expr=apply),)]))
    order = data.draw(st.sampled_from([(), (s.Order(expr=column),), (s.Order(expr=other, descending=True),)]))
    answered(store, s.RelationQuery(name=relation, columns=columns, tail=s.Tail(where=where, order=order)), value)


@given(asked(), queries.moments(), queries.moments(), ANYTHING, st.booleans())
def test_any_moment_bounds_any_relation(
    store: Store,
    statement: tuple[str, Any, s.Tail],
    moment: s.MomentNode,
    other: s.MomentNode,
    value: Any,
    across: bool,
) -> None:
    """A relation bounded by any moments, of one session or of all, ends in rows or in an error of ours."""
    relation, columns, tail = statement
    scope = s.AcrossSessions() if across else s.InSession(name=s.Value(value="try-b"))
    for bounds in ({"as_of": moment}, {"since": moment}, {"since": moment, "until": other, "between": True}):
        tail = msgspec.structs.replace(tail, scope=scope, **bounds)  # type: ignore[arg-type]
        answered(store, s.RelationQuery(name=relation, columns=columns, tail=tail), value)
