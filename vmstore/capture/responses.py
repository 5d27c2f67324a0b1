"""What a reply's cell keeps of the response beside its messages."""

from __future__ import annotations

from typing import Any

from vmstore.capture.shapes.body import CALL, FORM, MESSAGE
from vmstore.capture.shapes.message import json_bytes
from vmstore.capture.skeleton import loads
from vmstore.core.draft import Reply

NAMED_BYTES_MIN = 48  # of a field that is named by the call that had it, and not written again


class Responses:
    """The responses of one session; what they repeat is written once.

    Providers echo tools and instructions with every call, and what stands around a message is mostly alike.
    """

    def __init__(self) -> None:
        self._written: dict[str, tuple[int, bytes]] = {}  # by key, the call that wrote a field, and its JSON

    def beside(self, reply: Reply, call: int) -> bytes | None:
        """The cell of a reply: why it ended, the model, what failed, the body with its holes."""
        told: dict[str, Any] = {
            "stop": reply.stop,
            "model": reply.model,
            "error": reply.error,
            "body": None if reply.body is None else self._named(loads(reply.body), call),
            "assembled": reply.assembled or None,
            "response": None if reply.aside is None else loads(reply.aside),
        }
        told = {key: value for key, value in told.items() if value is not None}
        return json_bytes(told) if told else None

    def _named(self, body: Any, call: int) -> Any:
        """A body whose large fields name the call that had them."""
        return {key: self._field(key, value, call) for key, value in body.items()} if isinstance(body, dict) else body

    def _field(self, key: str, value: Any, call: int) -> Any:
        if not isinstance(value, (dict, list, str)) or key in (MESSAGE, FORM):
            return value
        written = json_bytes(value)
        if len(written) < NAMED_BYTES_MIN:
            return value
        before, same = self._written.get(key, (0, b""))
        if same == written:
            return {CALL: before}
        self._written[key] = call, written
        return value


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
    return any(_worded(value) for told in fields for key, value in told.items() if key not in ECHOES | NAMES)


def _worded(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_worded(item) for key, item in value.items() if key not in NAMES and not key.startswith("\0"))
    return any(map(_worded, value)) if isinstance(value, list) else isinstance(value, str) and value != ""
