"""A tool call as the JSON of any provider says it: the tool, its arguments, the file they name."""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

from vmstore.core.text.json_text import loads, plain

WRAPS = ("function", "functionCall", "function_call", "custom")  # where providers put name and arguments
KINDS = ("tool_use", "server_tool_use", "function_call", "custom_tool_call")  # or what they call it
NAMED = "toolCall"  # or what pi calls it
BARE = ({"name", "args"}, {"name", "arguments"})  # or nothing at all
ARGUMENTS = ("arguments", "input", "args")
ACTION = "action"  # of a shell or a search that the provider names by the kind of its item alone
PATHS = ("path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "relative_path")
"""The arguments that name a file, the first that is there."""
NAME_CHARS_MAX, PATH_CHARS_MAX = 256, 1_024

assert len({*PATHS}) == len(PATHS), "the first of them that is there names the file"
assert NAMED not in KINDS and ACTION not in ARGUMENTS, "a word is looked for in one place"


class CalledTool(NamedTuple):
    """A tool that was called: its name, and its arguments as JSON text; None where the call has none."""

    tool: str
    arguments: str | None
    call_id: str | None = None


def call_in(value: Any, *, known: bool = False) -> CalledTool | None:
    """The call that a JSON value is; None where it is none. `known` ones may say it in a form of their own."""
    found = _parts(value, known)
    return None if found is None else CalledTool(found[0], arguments_text(found[1]), found[2])


def asked_in(value: Any) -> tuple[str, Any] | None:
    """The tool that a JSON value calls and the value of its arguments; None where it is no call."""
    found = _parts(value, False)
    return None if found is None else (found[0], _value(found[1]))


def _parts(value: Any, known: bool) -> tuple[str, Any, str | None] | None:
    """A call's tool, its arguments as the provider writes them, and its id."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    kind = kind if isinstance(kind, str) else ""
    inner = next((value[key] for key in WRAPS if isinstance(value.get(key), dict)), None)
    if inner is None:
        item = kind.endswith(("tool_use", "_call"))
        if not (known or item or kind in (*KINDS, NAMED) or set(value) - {"id"} in BARE):
            return None
        inner = value
    tool = plain(inner.get("name")) or kind.removesuffix("_call")
    if not tool:
        return None
    given = next((inner[key] for key in (*ARGUMENTS, ACTION) if key in inner), None)
    call_id = plain(value.get("call_id")) or plain(value.get("id")) or plain(inner.get("id"))
    return tool[:NAME_CHARS_MAX], given, call_id


def arguments_text(given: Any) -> str | None:
    """Arguments as JSON on one line, however the provider writes them: a text that is no JSON is a JSON text."""
    if given is None:
        return None
    given = _value(given)
    try:
        return plain(json.dumps(given, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    except (ValueError, RecursionError):  # numbers that JSON cannot say
        return json.dumps(str(given))


def _value(given: Any) -> Any:
    """Arguments as a value: a text that is JSON is what that says."""
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            return loads(given)
    return given


def path_in(arguments: str | None) -> str | None:
    """The file that arguments name, by the words of PATHS; None where none of them is a text."""
    try:
        value = None if arguments is None else loads(arguments)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    found = next((value[key] for key in PATHS if isinstance(value.get(key), str) and value[key]), None)
    return None if found is None or len(found) > PATH_CHARS_MAX else plain(found)
