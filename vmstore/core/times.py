"""Moments as microseconds since 1970, and as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from vmstore.errors import InputError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970 of a moment; one without a zone is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // MICROSECOND


def moment_of(at: int) -> datetime:
    """The moment of so many microseconds since 1970; OverflowError beyond the year 9999."""
    return EPOCH + at * MICROSECOND


def iso(at: int) -> str:
    """Microseconds since 1970 in ISO 8601, in UTC."""
    return moment_of(at).isoformat().replace("+00:00", "Z")


def zone_of(name: str) -> tzinfo:
    """A time zone by its name, like Europe/Berlin; InputError where there is none of it."""
    from zoneinfo import ZoneInfo

    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, TypeError, ValueError, KeyError) as error:  # KeyError: ZoneInfoNotFoundError
        message = f"{name!r:.60} is no time zone; name one like 'Europe/Berlin', or 'UTC'"
        raise InputError(f"{message} (on Windows the zones are in `pip install tzdata`)") from error
