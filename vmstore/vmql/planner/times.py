"""Times as people write them: ISO 8601, or a phrase, resolved once."""

from __future__ import annotations

from datetime import datetime

from vmstore.core.times import microseconds, moment_of
from vmstore.vmql.syntax.errors import QueryError, fault
from vmstore.vmql.syntax.nodes import SourceSpan
from vmstore.vmql.text_cache import cached


def instant(value: object, now: int, span: SourceSpan) -> int:
    """Microseconds since 1970 of a time as it was written; `now` is what a phrase counts from."""
    if isinstance(value, bool) or not isinstance(value, int | str | datetime):
        raise _none(value, span)
    if isinstance(value, int):
        return value
    moment = value if isinstance(value, datetime) else _parsed(value, now)
    if moment is None:
        raise _none(value, span)
    return microseconds(moment)


def _parsed(text: str, now: int) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _phrase(text, now)


@cached(64)
def _phrase(text: str, now: int) -> datetime | None:
    """A phrase like 'last friday' or '2 hours ago', in UTC."""
    try:
        import dateparser
    except ImportError:
        return None
    base = moment_of(now).replace(tzinfo=None)
    settings = {"RELATIVE_BASE": base, "TIMEZONE": "UTC", "RETURN_AS_TIMEZONE_AWARE": True, "PREFER_DATES_FROM": "past"}
    found: datetime | None = dateparser.parse(text, languages=["en"], settings=settings)
    return found


def _none(value: object, span: SourceSpan) -> QueryError:
    message = f"{value!r} is no time"
    hint = "write it like '2026-11-21T22:55:01Z'; phrases like '2 hours ago' need `pip install vmstore[shell]`"
    return fault(message, "not-a-time", span, hint, expected=("a time",))
