"""What is refused, as JSON: the reason and the remedy in the words of the commands, and the status it is sent with."""

from __future__ import annotations

from typing import Any

import apsw

from vmstore.errors import (
    CorruptError,
    InputError,
    InternalError,
    LockedError,
    ReadOnlyError,
    RefusedError,
    StoreError,
    UnknownError,
    VmstoreError,
)
from vmstore.vmql.syntax.errors import QueryError

STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (UnknownError, 404),
    (InputError, 400),
    (RefusedError, 409),
    (ReadOnlyError, 403),
    (CorruptError, 500),
    (InternalError, 500),
    (LockedError, 503),
    (StoreError, 500),
    (VmstoreError, 400),
)


AWAY = "unreachable"  # the code where a database does not answer


class HttpError(Exception):
    """Something of the web's own that is refused: a status, a reason, a remedy."""

    def __init__(self, status: int, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.status = status
        self.reason = reason
        self.remedy = remedy


def refused(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and body for an error."""
    if isinstance(error, HttpError):
        return error.status, body(error.reason, error.remedy)
    if isinstance(error, QueryError):
        content = body(error.message, error.hint or "")
        content["error"] |= {
            "kind": "QueryError",
            "code": error.code,
            "start": error.span.start,
            "end": error.span.end,
            "expected": list(error.expected),
            "hint": error.hint,
            "pointed": error.pointed(),
        }
        return 400, content
    if isinstance(error, VmstoreError):
        status = next(status for kind, status in STATUSES if isinstance(error, kind))
        status = 503 if error.code == AWAY else status
        reason, _, remedy = str(error).partition("; ")
        content = body(reason, remedy)
        content["error"] |= {"kind": type(error).__name__, "code": error.code}
        return status, content
    if isinstance(error, OSError | apsw.Error):
        return 500, body(f"the store could not be read ({error})", "`vmstore verify` names what is damaged")
    return 500, body(f"a fault of vmstore's own ({type(error).__name__})", "report it with what the server printed")


def body(reason: str, remedy: str) -> dict[str, Any]:
    """The body of a refusal."""
    return {"error": {"reason": reason, "remedy": remedy}}
