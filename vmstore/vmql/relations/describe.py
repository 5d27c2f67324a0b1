"""What can be asked for, as an answer: relations, their columns, functions."""

from __future__ import annotations

from typing import Any

from vmstore.vmql.column_types import ColumnType
from vmstore.vmql.functions import AGGREGATES
from vmstore.vmql.relations.catalog import DESCRIBED, RELATIONS
from vmstore.vmql.relations.relation import Field
from vmstore.vmql.scalars import SCALARS
from vmstore.vmql.syntax.errors import QueryError, near
from vmstore.vmql.syntax.nodes import SourceSpan

Row = tuple[Any, ...]
SHOWN = ("relations", "functions")


def refused(what: str, span: SourceSpan) -> QueryError:
    """Why SHOW of this tells nothing here."""
    relation = near(what, DESCRIBED)
    return QueryError(
        f"SHOW tells of a store its relations and its functions, and of the shell its settings; {what!r} is neither",
        code="no-settings",
        span=span,
        expected=tuple(word.upper() for word in SHOWN),
        hint=f"DESCRIBE {relation} lists its columns" if relation else "write SHOW RELATIONS",
    )


def relations() -> list[Row]:
    """Each relation, how many columns it has and what its rows are."""
    return [(relation.name, len(relation.fields), relation.meaning) for relation in RELATIONS.values()]


def functions() -> list[Row]:
    """Each function, what it gives and what it says."""
    found = [(one.written, one.type, one.meaning) for one in AGGREGATES.values()]
    return found + [(one.written, one.type, one.meaning) for one in SCALARS.values()]


def columns(relation: str, span: SourceSpan) -> list[Row]:
    """The columns of a relation."""
    found = DESCRIBED.get(relation.upper())
    if found is None:
        meant = near(relation, DESCRIBED)
        raise QueryError(
            f"there is no relation {relation!r}",
            code="unknown-relation",
            span=span,
            expected=tuple(DESCRIBED),
            hint=f"did you mean {meant}?" if meant else "SHOW RELATIONS lists them",
        )
    return [(field.name, field.form.type, _meaning(field), _words(field.form)) for field in found.fields.values()]


def _meaning(field: Field) -> str:
    return f"{field.meaning} (only where it is named)" if field.asked else field.meaning


def words_of_column(relation: str, column: str) -> tuple[str, ...]:
    """The words a column can hold, where they are few: for completion."""
    found = DESCRIBED.get(relation.upper())
    field = None if found is None else found.fields.get(column)
    if field is None or field.form.words is None:
        return ()
    return tuple(word.word for word in field.form.words)


def _words(form: ColumnType) -> str | None:
    return None if form.words is None else ", ".join(word.word for word in form.words)
