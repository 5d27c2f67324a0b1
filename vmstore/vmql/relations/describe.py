"""What can be asked for, as an answer: relations, their columns, functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vmstore.vmql.column_types import ColumnType
from vmstore.vmql.relations.catalog import DESCRIBED, RELATIONS
from vmstore.vmql.relations.relation import Field, Relation
from vmstore.vmql.scalars import FUNCTIONS
from vmstore.vmql.syntax.errors import QueryError, fault, near, unknown
from vmstore.vmql.syntax.nodes import SourceSpan

Row = tuple[Any, ...]
SHOWN = ("relations", "functions")


def refused(what: str, span: SourceSpan) -> QueryError:
    """Why SHOW of this tells nothing here."""
    relation = near(what, DESCRIBED)
    message = (
        f"SHOW tells of a store its relations and its functions, and of the shell its settings; {what!r} is neither"
    )
    hint = f"DESCRIBE {relation} lists its columns" if relation else "write SHOW RELATIONS"
    return fault(message, "no-settings", span, hint, expected=tuple(word.upper() for word in SHOWN))


def named(name: str, known: Mapping[str, Relation], span: SourceSpan) -> Relation:
    """A relation by its name; a QueryError with the nearest where there is none."""
    found = known.get(name.upper())
    if found is None:
        message = f"there is no relation {name!r}"
        raise unknown(message, "unknown-relation", span, name, known, "SHOW RELATIONS lists them")
    return found


def relations() -> list[Row]:
    """Each relation, how many columns it has and what its rows are."""
    return [(relation.name, len(relation.fields), relation.meaning) for relation in RELATIONS.values()]


def functions() -> list[Row]:
    """Each function, what it gives and what it says."""
    return [(function.written, function.type, function.meaning) for function in FUNCTIONS.values()]


def columns(relation: str, span: SourceSpan) -> list[Row]:
    """The columns of a relation."""
    found = named(relation, DESCRIBED, span)
    return [(field.name, field.form.type, _meaning(field), _words(field.form)) for field in found.fields.values()]


def _meaning(field: Field) -> str:
    return f"{field.meaning} (only where it is named)" if field.asked else field.meaning


def _words(form: ColumnType) -> str | None:
    return None if form.words is None else ", ".join(word.word for word in form.words)
