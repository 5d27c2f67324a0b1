"""Values of a text as the views keep them: read, checked, and refused with their place in the text."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from vmstore.core.page import WordEnum
from vmstore.vmql.column_types import REAL, ColumnType
from vmstore.vmql.planner.scope import Params, Scope, given
from vmstore.vmql.planner.times import instant
from vmstore.vmql.syntax.errors import QueryError, fault, unknown
from vmstore.vmql.syntax.nodes import Param, SourceSpan, Subquery, Value, Word

LISTS = (list, tuple, set, frozenset)
"""What can be handed in where a list is wanted."""


SHARE = REAL._replace(name="share")
"""A number from 0 to 1, as quantile takes."""


class Beside(NamedTuple):
    """A column of the pages, or messages, that a column names: the values by the name of a session and the number."""

    relation: str
    column: str


class ValueSlot(NamedTuple):
    """Where a value goes: the literal, parameter or statement it comes from and the form it must have.

    Where there may be `many`, they go there as a JSON list.
    """

    name: str
    node: Value | Param | Word | Subquery | Beside
    form: ColumnType
    what: str
    many: bool = False


def check(value: Any, form: ColumnType, what: str, span: SourceSpan) -> None:
    """Refuses a value that a column of a form can never have."""
    if value is None or form.type == "json":
        return
    if form.words is not None:
        _number(value, form.words, what, span)
        return
    fits = {
        "integer": isinstance(value, int | float) and not isinstance(value, bool),
        "real": isinstance(value, int | float) and not isinstance(value, bool),
        "text": isinstance(value, str),
        "boolean": isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)),
        "time": isinstance(value, str | int) and not isinstance(value, bool),
        "list": True,
    }
    if form.name and isinstance(value, int):
        return
    if not fits[form.type] and not hasattr(value, "isoformat"):
        hint = f"write {what} = '{value}'" if form.type == "text" else None
        raise fault(f"{what} is {a_type(form.type)}, and {value!r} is not", "wrong-type", span, hint, (form.type,))


def kept(place: ValueSlot, params: Params, scope: Scope) -> Any:
    """A value as the views keep it."""
    assert not isinstance(place.node, Subquery | Beside), "its values are handed in"
    return held(place, given(place.node, params), scope)


def held(place: ValueSlot, value: Any, scope: Scope) -> Any:
    """A value that is had, as the views keep it; a list of them as JSON."""
    if place.many:
        values = value if isinstance(value, LISTS) else [value]
        return json.dumps([_kept(place, each, scope) for each in values])
    return _kept(place, value, scope)


def _kept(place: ValueSlot, value: Any, scope: Scope) -> Any:
    assert not isinstance(place.node, Beside), "its values are as they are kept"
    form, span = place.form, place.node.span
    if value is None:
        return None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise fault(f"{value} is larger than anything a store can hold", "wrong-type", span)
    check(value, form, place.what, span)
    if form is SHARE and (isinstance(value, bool) or not 0 <= value <= 1):
        raise no_share(span)
    if form.words is not None:
        number = _number(value, form.words, place.what, span)
        return form.words(number).word if form.text is None and form.type == "text" else number
    if form.name == "page":
        return value if isinstance(value, int) else scope.position_of(value, span)
    if form.name == "message":
        return value if isinstance(value, int) else _message(value, span)
    if form.type == "time":
        return instant(value, scope.world.now(), span)
    if isinstance(value, dict | list | tuple):
        raise fault(f"{value!r} is no single value", "wrong-type", span)
    return value


def _message(value: str, span: SourceSpan) -> int:
    if value[:1] == "m" and value[1:].isdecimal():
        return int(value[1:])
    raise fault(f"{value!r} names no message", "unknown-message", span, hint="messages are named like m12")


def _number(value: Any, words: type[WordEnum], what: str, span: SourceSpan) -> int:
    """The number of a word of an enumeration, by its word or its number."""
    found = word_of(value, words)
    if found is None:
        raise no_word(value, words, what, span)
    return int(found)


def word_of(value: Any, words: type[WordEnum]) -> WordEnum | None:
    """The word of an enumeration that a word or a number says; None where it says none."""
    if isinstance(value, bool):
        return None
    return words.of(value) if isinstance(value, str) else next((member for member in words if member == value), None)


def no_word(value: Any, words: type[WordEnum], what: str, span: SourceSpan) -> QueryError:
    known = tuple(member.word for member in words)
    return unknown(f"{what} is never {value!r}", "unknown-word", span, value, known, f"there are {', '.join(known)}")


def no_share(span: SourceSpan) -> QueryError:
    """What to say of a quantile that is none."""
    return fault("quantile takes a number from 0 to 1", "wrong-type", span, "write quantile(tokens, 0.5)")


def a_type(type_: str) -> str:
    return f"an {type_}" if type_[0] in "aeiou" else f"a {type_}"
