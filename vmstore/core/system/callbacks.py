"""Asks a function that somebody handed in, and waits for it no longer than it is given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

ANSWERED, RAISED, HUNG = "answered", "raised", "hung"


def answer_within(callback: Callable[[], Any], timeout_s: float) -> tuple[str, Any]:
    """Runs a callback in a thread of its own, for a limited time; gives its result, or how it failed."""
    answers: list[tuple[str, Any]] = []

    def run() -> None:
        try:
            answers.append((ANSWERED, callback()))
        except BaseException as error:  # a callback that calls exit() fails as any other does
            answers.append((RAISED, f"{type(error).__name__}: {_words(error)}"))

    thread = threading.Thread(target=run, name="vmstore-callback", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return answers[0] if answers else (HUNG, f"nothing came back in {timeout_s:g} s")


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "an error that cannot be printed"
