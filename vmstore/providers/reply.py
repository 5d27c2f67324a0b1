"""Replies of all shapes: how a call ended, and its usage."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.page import Status
from vmstore.errors import InputError
from vmstore.providers.jsonable import plain
from vmstore.providers.message import json_bytes, name_of

ABORTS = frozenset({"cancelled", "canceled", "aborted", "interrupted", "in_progress", "queued"})
FAILURES = frozenset({"error", "failed"})
COUNT_MAX = 2**53  # more is no price and no time, whatever a provider says
TOKENS_MAX = 10**12  # more is no count of tokens: a factor made of it would not fit the log
ASKING = frozenset({"tool_calls", "tool_use", "function_call", "pause_turn"})  # more is to come


def settled(
    body: dict[str, Any],
    drafts: Sequence[Draft],
    *,
    stop: Any,
    model: Any,
    usage: TokenUsage,
    ended: bool,
) -> ReplyDraft:
    """The reply a response body comes to, once its shape has been read."""
    error = error_text(body.get("error"))
    stop = name_of(stop)
    if error is not None or stop in FAILURES:
        status = Status.FAILED
    else:
        status = Status.OK if ended and stop not in ABORTS else Status.ABORTED
    return ReplyDraft(
        status,
        tuple(drafts),
        stop=stop,
        model=name_of(model),
        usage=usage,
        final=status is Status.OK and stop not in ASKING and not asks(drafts),
        error=error,
    )


def asks(drafts: Sequence[Draft]) -> bool:
    """Whether a tool is asked for that the same answer does not answer (hosted tools do)."""
    parts = [part for draft in drafts for part in draft.parts]
    answered = {part.call_id for part in parts if part.is_result and part.call_id is not None}
    return any(part.is_call and part.call_id not in answered for part in parts)


def failure(error: BaseException) -> ReplyDraft:
    """The reply of a call that raised; being interrupted is not failing."""
    text = error_text(str(error)) or type(error).__name__
    about: dict[str, Any] = {"exception": type(error).__name__}
    if isinstance(code := getattr(error, "status_code", None), int):
        about["status_code"] = code
    if isinstance(body := getattr(error, "body", None), dict):
        with suppress(InputError):  # an exception may carry anything
            about["body"] = plain(body)
    # Cancellation, Ctrl-C and generator exits are the exceptions that are no Exception.
    status = Status.FAILED if isinstance(error, Exception) else Status.ABORTED
    return ReplyDraft(status, aside=json_bytes(about), error=text)


def error_text(error: Any) -> str | None:
    """The text of an error payload, None where there is none."""
    if not error:
        return None
    message = error.get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) and message else json_bytes(error).decode("utf-8", "replace")
    return text.encode("utf-8", "replace").decode()


def pick(value: Any, *keys: str) -> Any:
    """The first of several spellings of a key that says something, None where none does."""
    if isinstance(value, dict):
        for key in keys:
            if value.get(key) is not None:
                return value[key]
    return None


def counted(value: Any) -> int | None:
    """A number of tokens, None where it is no count."""
    return value if type(value) is int and 0 <= value <= TOKENS_MAX else None


def added(*values: Any) -> int | None:
    """The sum of the counts among `values`, None where there is none."""
    counts = [count for value in values if (count := counted(value)) is not None]
    return counted(sum(counts)) if counts else None


def microseconds(milliseconds: Any) -> int | None:
    """A duration in milliseconds as whole microseconds."""
    if type(milliseconds) not in (int, float) or not 0 <= milliseconds <= COUNT_MAX:
        return None
    return counted(round(milliseconds * 1000))


def nanodollars(dollars: Any) -> int | None:
    """A price in dollars as whole nano-dollars."""
    if type(dollars) not in (int, float) or not 0 <= dollars <= COUNT_MAX:
        return None
    price: int = round(dollars * 1_000_000_000)
    return price if price <= COUNT_MAX else None
