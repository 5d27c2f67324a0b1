"""Clauses that would change nothing where they stand: they are refused, because somebody meant something by them."""

from __future__ import annotations

from vmstore.vmql.relations.relation import Relation
from vmstore.vmql.syntax.errors import fault
from vmstore.vmql.syntax.nodes import ContextAt, DiffContext, DiffSession, SourceSpan, Tail

MOMENTS = {"as_of": "AS OF", "since": "SINCE", "until": "UNTIL"}
BOUNDS = {"since": "SINCE", "until": "UNTIL"}
WHOLE = frozenset(("METRICS", "TAGS", "SEGMENTS"))
CHOICES = {"where": "WHERE", "by": "BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}


def check_context(statement: ContextAt) -> None:
    """Refuses a second moment, and clauses that choose from a context that is answered as a whole."""
    tail = statement.tail
    if tail.per is not None:
        whole = statement.form.upper() if statement.form != "pages" else "AT" if statement.moment is not None else None
        if whole is not None:
            message, hint = f"{whole} is of one context, and PER of many", "keep one of them"
            raise fault(message, "clause-unused", statement.span, hint=hint)
        return
    if statement.moment is not None:
        _refuse("CONTEXT AT", tail, MOMENTS, "a context is of one moment; keep AT")
    _refuse("CONTEXT", tail, BOUNDS, "a context is of one moment; write AT")
    if statement.form != "pages":
        form, whole = statement.form.upper(), "it answers with a context as a whole; without it pages can be chosen"
        if statement.columns:
            column = statement.columns[0]
            raise fault(f"{form} takes no columns", "clause-unused", column.span, hint=whole)
        _refuse(form, tail, CHOICES, whole)


def check_diff(statement: DiffContext | DiffSession) -> None:
    """Refuses moments beside those that are compared."""
    at = "both moments stand after DIFF CONTEXT" if isinstance(statement, DiffContext) else "write AT"
    _refuse("DIFF", statement.tail, MOMENTS, at)


def check_valid(relation: Relation, tail: Tail) -> None:
    """Refuses to ask when rows hold in the world of a relation whose rows do not say."""
    if tail.ever and tail.valid_at is not None:
        span = tail.valid_at.span
        raise fault("ALL shows what holds at no time too", "clause-unused", span, hint="keep VALID AT or ALL")
    if not relation.now and (tail.ever or tail.valid_at is not None):
        name = "ALL" if tail.ever else "VALID AT"
        span = SourceSpan(0, 0) if tail.valid_at is None else tail.valid_at.span
        hint = "FACTS can be asked so" if tail.valid_at is not None else f"without ALL {relation.name} shows every row"
        raise fault(f"{relation.name} takes no {name}", "clause-unused", span, hint=hint)


def check_whole(relation: str, tail: Tail) -> None:
    """Refuses to begin later than a session does, where what is counted is of all of it, up to a moment."""
    if relation in WHOLE:
        _refuse(relation, tail, BOUNDS, "they count from a session's beginning; AS OF says up to when")


def _refuse(what: str, tail: Tail, clauses: dict[str, str], hint: str) -> None:
    for field, written in clauses.items():
        clause = getattr(tail, field)
        if clause:
            name = "BETWEEN" if tail.between and field in MOMENTS else written
            span = (clause[0] if isinstance(clause, tuple) else clause).span
            raise fault(f"{what} takes no {name}", "clause-unused", span, hint=hint)
