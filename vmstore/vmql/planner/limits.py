"""What a statement may not be larger than: SQLite's own limits, said with the place in the text that passes them."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from vmstore.errors import InternalError, VmstoreError
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import SelectItem, SourceSpan, Tail

WHERE, COLUMNS, ORDER = "where", "columns", "order"
_PASSED = (
    ("Expression tree is too large", WHERE, "so many conditions cannot be put together", "write column IN $values"),
    ("parser stack overflow", WHERE, "conditions stand too deep in one another", "write the condition flatter"),
    ("too many SQL variables", WHERE, "so many values cannot be written into a statement", "write column IN $values"),
    ("pattern too complex", WHERE, "a pattern of LIKE has 50,000 bytes at most", "write a shorter one, or MATCHES"),
    ("too many terms in ORDER BY", ORDER, "so many columns cannot be ordered by", "order by fewer"),
    ("too many terms in GROUP BY", ORDER, "so many columns cannot be grouped by", "group by fewer"),
    ("too many columns", COLUMNS, "so many columns cannot be shown at once", "ask for fewer"),
    ("too big", WHERE, "a value is longer than any that can be stored", "write a shorter one"),
)
_PATTERN_FAULTS = (
    *("unmatched '", "unclosed '", "unknown \\ escape", "without operand", "n less than m in '{m,n}'"),
    *("unrecognized character", "REGEXP pattern too big"),
)


def refusal(error: apsw.Error, columns: Sequence[SelectItem], tail: Tail, text: str) -> QueryError | None:
    """What to say of a statement that SQLite found too large; None where that is not what was wrong."""
    if any(wrong in str(error) for wrong in _PATTERN_FAULTS):
        message, hint = f"this is no regular expression: {error}", "put a backslash before a sign that is meant itself"
        return QueryError(message, code="wrong-pattern", text=text, span=_place(WHERE, columns, tail), hint=hint)
    for passed, where, message, hint in _PASSED:
        if passed in str(error):
            return QueryError(message, code="too-large", text=text, span=_place(where, columns, tail), hint=hint)
    return None


def misbuilt(error: apsw.Error, text: str) -> VmstoreError:
    """What to say of a statement that was built wrongly: that is vmstore's own fault, and no damage."""
    return InternalError(
        f"vmstore made a statement that SQLite does not understand ({error}) of {text[:200] or 'a query'!r}; nothing "
        "is damaged, and a rebuild does not help: report it, and ask in other words"
    )


def _place(where: str, columns: Sequence[SelectItem], tail: Tail) -> SourceSpan:
    """Where in the text stands what is too large."""
    order = tail.order or tail.by
    if where == ORDER and order:
        return SourceSpan(order[0].span.start, order[-1].span.end)
    if where == COLUMNS and (shown := max(columns, tail.by, key=len)):
        return SourceSpan(shown[0].span.start, shown[-1].span.end)
    if tail.where is not None:
        return tail.where.span
    return SourceSpan(columns[0].span.start, columns[-1].span.end) if columns else tail.span
