"""Values of OTLP as JSON: attributes, times and the spans of a request to export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

DEPTH_MAX = 100
NANOSECONDS_MAX = 253_402_300_800 * 10**9  # the end of the year 9999


def spans_of(export: Any) -> Iterator[tuple[Json, Json]]:
    """Each span of an export, with the attributes of its resource."""
    for part in _dicts(export, "resourceSpans"):
        resource = attributes(part.get("resource"))
        for scope in (*_dicts(part, "scopeSpans"), *_dicts(part, "instrumentationLibrarySpans")):
            for span in _dicts(scope, "spans"):
                yield span, resource


def attributes(owner: Any) -> Json:
    """The attributes of a span, an event or a resource as plain values."""
    return {str(item.get("key")): value(item.get("value")) for item in _dicts(owner, "attributes")}


def value(given: Any, depth: int = DEPTH_MAX) -> Any:
    """One value of OTLP as a plain value; None where it is none."""
    if not isinstance(given, dict) or depth == 0:
        return None
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if key in given:
            return given[key]
    if "intValue" in given:
        return _number(given["intValue"])
    if "arrayValue" in given:
        return [value(item, depth - 1) for item in _dicts(given["arrayValue"], "values")]
    if "kvlistValue" in given:
        listed = _dicts(given["kvlistValue"], "values")
        return {str(item.get("key")): value(item.get("value"), depth - 1) for item in listed}
    return None


def microseconds_of(given: Any) -> int | None:
    """A time in nanoseconds, as text or as a number, in microseconds since 1970; None for one that no clock shows."""
    number = _number(given)
    return number // 1_000 if number is not None and 0 < number < NANOSECONDS_MAX else None


def structured(given: Any) -> Any:
    """An attribute that is a structure, or the JSON text of one."""
    if isinstance(given, str):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return None
    return given


def _number(given: Any) -> int | None:
    if isinstance(given, bool):
        return None
    try:
        return int(given)
    except (TypeError, ValueError, OverflowError):
        return None


def _dicts(owner: Any, key: str) -> list[Json]:
    listed = owner.get(key) if isinstance(owner, dict) else None
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
