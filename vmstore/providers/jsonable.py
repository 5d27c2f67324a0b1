"""Turns what agents hold in their hands (SDK objects, tuples, mappings) into plain JSON values.

Values that are plain already come back as they are, uncopied: the common case costs one look.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from vmstore.errors import InputError

LEVELS_MAX = 200  # deeper values could be written but not read back from a deep call stack
ABSENT = frozenset({"NotGiven", "Omit"})  # what SDKs put where an argument was not given: never sent


def plain(value: Any, where: str = "") -> Any:
    """`value` as plain JSON; refuses what is not JSON, naming its path inside `where`."""
    return value if _is_plain(value, LEVELS_MAX) else _convert(value, where, LEVELS_MAX)


def absent(value: Any) -> bool:
    """Whether a value is an SDK's word for "this argument was not given"."""
    return type(value).__name__ in ABSENT


def _is_plain(value: Any, levels: int) -> bool:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return math.isfinite(value)
    if not levels:
        return False
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or (type(item) is not str and not _is_plain(item, levels - 1)):
                return False
        return True
    return kind is list and all(_is_plain(item, levels - 1) for item in value)


def _convert(value: Any, where: str, levels: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # an enumeration's text, not its name
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _finite(float(value), where)
    if not levels:
        raise InputError(f"{_place(where)} is nested over {LEVELS_MAX} levels deep; flatten it", code="too-deep")
    if isinstance(value, Mapping):
        return _mapping(value, where, levels - 1)
    if isinstance(value, (list, tuple)):
        return [_convert(item, f"{where}[{n}]", levels - 1) for n, item in enumerate(value)]
    return _convert(_unwrapped(value, where), where, levels - 1)


def _mapping(value: Mapping[Any, Any], where: str, levels: int) -> dict[str, Any]:
    taken = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InputError(
                f"{_place(where)} has the key {key!r} of type {type(key).__name__}; JSON keys are strings",
                code="not-json",
            )
        if not absent(item):
            taken[str.__str__(key)] = _convert(item, f"{where}.{key}" if where else key, levels)
    return taken


def _finite(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise InputError(
            f"{_place(where)} is {value}, which JSON cannot say; use null or a finite number", code="not-json"
        )
    return value


def _unwrapped(value: Any, where: str) -> Any:
    """An SDK object, dataclass or struct opened into a mapping."""
    if not isinstance(value, type):
        try:
            if isinstance(value, msgspec.Struct):
                return msgspec.to_builtins(value)
            if dataclasses.is_dataclass(value):
                return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            opened = _dumped(value)
        except Exception as error:  # foreign code: whatever it raises, the value cannot be taken
            raise InputError(
                f"{_place(where)}, a {type(value).__name__}, cannot be turned into JSON: {error}; "
                "pass plain dicts and lists",
                code="not-json",
            ) from error
        if isinstance(opened, Mapping):
            return opened
    raise InputError(
        f"{_place(where)} is {_kind(value)}, which is not JSON; pass dicts, lists, strings, numbers, booleans or null",
        code="not-json",
    )


def _dumped(value: Any) -> Any:
    if callable(dump := getattr(value, "model_dump", None)):
        try:
            return dump(mode="json", exclude_unset=True, warnings=False)
        except TypeError:  # another library's model_dump takes no such options
            return dump()
    for name in ("to_dict", "dict"):
        if callable(dump := getattr(value, name, None)):
            return dump()
    return None


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a value of type {type(value).__name__}"


def _place(where: str) -> str:
    return where or "the value"
