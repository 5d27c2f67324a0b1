"""Maps the outcome of a command to an exit code, and an error to one line on stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, cast

from vmstore.errors import CorruptError, VmstoreError

INTERRUPTED = 130
PIPE_CLOSED = 141  # what a shell reports for a program that SIGPIPE ended


def leaving(run: Callable[[], int], usage: int) -> int:
    """Runs a command to its end; the exit code. `usage` stands for a code that is no number."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a lone surrogate must not end the answer
    try:
        code = run()
        sys.stdout.flush()
        return code
    except SystemExit as left:  # argparse leaves this way
        return left.code if isinstance(left.code, int) else usage
    except BrokenPipeError:
        _forget_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED


def refusal(error: Exception, store: str | None) -> str | None:
    """Returns the message for an error that vmstore raises, or that damaged or unreachable files cause.

    None for an error of our own making, whose traceback is wanted.
    """
    if isinstance(error, VmstoreError):
        return str(error)
    kinds: tuple[type[BaseException], ...] = (OSError,)
    for name, kind in (("apsw", "Error"), ("msgspec", "MsgspecError")):
        if name in sys.modules:
            kinds += (cast(Any, getattr(sys.modules[name], kind)),)
    if isinstance(error, BrokenPipeError) or not isinstance(error, kinds):
        return None
    if isinstance(error, OSError) or store is None:
        return f"{error}; check the path and its permissions"
    return str(CorruptError(f"{store} could not be read ({error}); `vmstore verify {store}` names what is damaged"))


def _forget_stdout() -> None:
    """Points stdout at nothing, so that the interpreter does not complain of the closed pipe at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
