"""What is taken down of a client's call: its request as sent, its answer as it came.

Before and during a call only what could change is copied; turning objects into JSON waits for
the recorder's thread.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from vmstore.capture.shapes.plain import absent, plain
from vmstore.errors import InputError

# No part of the body: options of the transport, and headers, which may carry credentials.
NOT_SENT = frozenset({"extra_headers", "extra_query", "extra_body", "timeout", "betas"})
RAW = ("message_", "content_block_", "response.", "error")  # types of events as they came

# What SDKs add to an answer on this side: their reading of its JSON, the text so far.
OUTPUT = {"output": {"__all__": {"parsed_arguments": True, "content": {"__all__": {"parsed": True}}}}}
MESSAGE = {"parsed": True, "tool_calls": {"__all__": {"function": {"parsed_arguments": True}}}}
ADDED: dict[str, Any] = {
    **OUTPUT,
    "choices": {"__all__": {"message": MESSAGE}},
    "response": OUTPUT,
    "snapshot": True,
}


def request_of(args: tuple[Any, ...], kwargs: Mapping[str, Any], verb: str) -> dict[str, Any]:
    """The body of a request, its dicts and lists copied: the agent may change them after the call.

    A class given as an output format stands as its JSON schema under its name; the SDK sends a
    stricter one.
    """
    if args:
        raise InputError("a call with positional arguments cannot be recorded; name them, as the SDKs require")
    body = {
        key: _schema(value) if isinstance(value, type) else _copied(value)
        for key, value in kwargs.items()
        if key not in NOT_SENT and not absent(value)
    }
    if isinstance(extra := kwargs.get("extra_body"), Mapping):
        body.update(_copied(dict(extra)))
    if verb == "stream":
        body["stream"] = True
    return body


def answer_of(value: Any) -> Any:
    """An answer as plain JSON, without what the SDK added to it."""
    if isinstance(value, BaseException):
        return value
    if isinstance(value, list):
        return [answer_of(item) for item in value]
    if not callable(dump := getattr(value, "model_dump", None)):
        return plain(value, "response")
    try:
        value = dump(mode="json", by_alias=True, exclude_unset=True, exclude=ADDED, warnings=False)
    except TypeError:  # another library's model_dump takes no such options
        value = dump()
    return plain(value, "response")


def raw_of(event: Any) -> Any:
    """The chunk behind an event of an SDK's stream helper, None where the helper made it up."""
    kind = getattr(event, "type", None)
    if kind == "chunk":
        return event.chunk
    return event if isinstance(kind, str) and kind.startswith(RAW) else None


def twin_of(error: BaseException) -> BaseException:
    """An exception that says what `error` says and holds none of the agent's frames.

    The real one would keep them alive while it waits, and end them on the recorder's thread.
    """
    base = Exception if isinstance(error, Exception) else BaseException
    about = {"status_code": getattr(error, "status_code", None)}
    twin: BaseException = type(type(error).__name__, (base,), about)(str(error))
    return twin


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value
    if isinstance(value, dict):
        return {key: item if type(item) is str else _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(item) for item in value]
    if not hasattr(kind, "model_dump"):
        return value
    if excluded := getattr(value, "__api_exclude__", None):  # what the SDK read into it and does not send
        return value.model_dump(mode="json", exclude_unset=True, exclude=excluded, warnings=False)
    return copy.copy(value)


@lru_cache(maxsize=64)
def _schema(kind: type) -> dict[str, Any]:
    schema = getattr(kind, "model_json_schema", None)
    if schema is None:
        raise InputError(f"the class {kind.__name__} has no JSON schema to record; pass the schema itself")
    return {"type": "json_schema", "name": kind.__name__, "schema": schema()}
