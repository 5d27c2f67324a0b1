"""Functions of the host as tools a model can call: their schemas, read from signature and docstring."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from vmstore.errors import InputError


def schema_of(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function for a model: its name, the first line of its docstring, its parameters.

    Types come from the annotations; a parameter without one may be anything. Raises InputError for what
    cannot be called by keyword.
    """
    if not callable(function):
        raise InputError(f"tool {name!r} is {function!r:.40}, which cannot be called; give a function")
    properties: dict[str, Any] = {}
    required = []
    try:
        declared = inspect.signature(function).parameters
        hints = typing.get_type_hints(function)
    except (ValueError, TypeError, NameError):  # written in C, or typed by names that are not there
        declared, hints = inspect.Signature().parameters, {}
    context = getattr(function, "context_parameter", None)  # what the host hands in, and no model does
    for parameter in declared.values():
        if parameter.name == context:
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise InputError(f"tool {name!r} takes {parameter.name!r} by position; models give arguments by name")
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        properties[parameter.name] = _type(hints.get(parameter.name, Any))
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    about = (inspect.getdoc(function) or "").strip().split("\n")[0]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": about, "parameters": parameters}


def offered(definition: dict[str, Any], shape: str) -> dict[str, Any]:
    """A definition as a provider's shape takes it."""
    if shape == "anthropic":
        return {
            "name": definition["name"],
            "description": definition["description"],
            "input_schema": definition["parameters"],
        }
    if shape == "gemini":
        return {"functionDeclarations": [definition]}
    if shape == "responses":
        return {"type": "function", **definition}
    return {"type": "function", "function": definition}


def names_in(content: bytes) -> list[str]:
    """The names of the tools whose schemas a text holds, in any provider's shape."""
    try:
        value = json.loads(content)
    except ValueError:
        return []
    found: list[str] = []
    for schema in value if isinstance(value, list) else [value]:
        if isinstance(schema, dict):
            inner = schema.get("functionDeclarations", [schema.get("function", schema)])
            found += [one["name"] for one in inner if isinstance(one, dict) and isinstance(one.get("name"), str)]
    return found


def _type(annotation: Any) -> dict[str, Any]:
    if annotation is Any:
        return {}
    try:
        found = msgspec.json.schema(annotation)
    except TypeError:
        return {}
    return {} if "$ref" in found or "$defs" in found else found
