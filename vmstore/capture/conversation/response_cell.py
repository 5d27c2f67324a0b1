"""The cell of a reply: the fields of a response beside its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmstore.core.draft import ReplyDraft
from vmstore.core.text.skeleton import loads
from vmstore.providers.body import CALL, FORM, MESSAGE
from vmstore.providers.message import json_bytes

NAMED_BYTES_MIN = 48  # of a field that is named by the call that had it, and not written again


class ResponseFields:
    """The fields of a session's last response; the next response names those it repeats.

    Providers echo tools and instructions with every call, and what stands around a message is mostly alike.
    """

    def __init__(self) -> None:
        self._fields: dict[str, tuple[int, bytes]] = {}  # by key, the call that wrote a field, and its JSON

    def beside(self, reply: ReplyDraft, call: int) -> bytes | None:
        """The cell of a reply: why it ended, the model, what failed, the body with its holes."""
        fields: dict[str, Any] = {
            "stop": reply.stop,
            "model": reply.model,
            "error": reply.error,
            "component": reply.component,
            "body": self._named(None if reply.body is None else loads(reply.body), call),
            "assembled": reply.assembled or None,
            "response": None if reply.aside is None else loads(reply.aside),
        }
        fields = {key: value for key, value in fields.items() if value is not None}
        return json_bytes(fields) if fields else None

    def _named(self, body: Any, call: int) -> Any:
        """A body whose fields name the call that had them."""
        before, self._fields = self._fields, {}
        if not isinstance(body, dict):
            return body
        named = {}
        for key, value in body.items():
            field = _field(key, value, call)
            if field is not None:
                known = before.get(key)
                self._fields[key] = field = known if known is not None and known[1] == field[1] else field
            named[key] = value if field is None or field[0] == call else {CALL: field[0]}
        return named

    def follow(self, call: int, beside: dict[str, Any], earlier: Callable[[int], dict[str, Any]]) -> None:
        """Takes in a reply that stands in the log; `earlier` gives the cell of another call's."""
        before, self._fields = self._fields, {}
        body = beside.get("body")
        for key, value in body.items() if isinstance(body, dict) else ():
            writer, field = call, value
            if isinstance(value, dict) and CALL in value:
                writer = value[CALL]
                if key in before and before[key][0] == writer:
                    self._fields[key] = before[key]
                    continue
                other = earlier(writer).get("body")
                field = other.get(key) if isinstance(other, dict) else None
            if (known := _field(key, field, writer)) is not None:
                self._fields[key] = known


def _field(key: str, value: Any, call: int) -> tuple[int, bytes] | None:
    """A field of a body that is worth naming."""
    if not isinstance(value, (dict, list, str)) or key in (MESSAGE, FORM):
        return None
    written = json_bytes(value)
    return None if len(written) < NAMED_BYTES_MIN else (call, written)


ECHOES = frozenset(
    (
        *("tools", "instructions", "text", "reasoning", "metadata", "tool_choice", "prompt", "input"),
        *("usage", "usageMetadata", "error", "incomplete_details", "user", "safety_identifier"),
    )
)  # fields of the request that a response repeats, and what says how it went
NAMES = frozenset(
    (
        *("id", "object", "model", "type", "role", "status", "service_tier", "system_fingerprint"),
        *("finish_reason", "stop_reason", "finishReason", "modelVersion", "responseId"),
    )
)  # what stands under these in a response is the provider's own


def wordy(beside: dict[str, Any]) -> bool:
    """Whether what a reply keeps holds words of an answer: further choices, a list of its tokens."""
    fields = [beside[key] for key in ("body", "response") if isinstance(beside.get(key), dict)]
    return any(_worded(value) for record in fields for key, value in record.items() if key not in ECHOES | NAMES)


def _worded(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_worded(item) for key, item in value.items() if key not in NAMES and not key.startswith("\0"))
    return any(map(_worded, value)) if isinstance(value, list) else isinstance(value, str) and value != ""
