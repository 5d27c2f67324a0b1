"""What an address asks for: its parameters, checked; an error names one, what is wrong with it and what would do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vmstore.debug.http_errors import HttpError
from vmstore.errors import InputError

NUMBER_DIGITS_MAX = 18
POSITIONS_MAX = 5_000  # of one question
SHOWN_MAX = 60  # characters of a value that an error repeats


class QueryParams:
    """The parameters of one question; `values` are those of a statement's `$names`."""

    def __init__(self, parameters: Mapping[str, str], values: Mapping[str, Any] | None = None) -> None:
        self._parameters = parameters
        self.values = values or {}
        self._left = False
        self._stop: Callable[[], object] | None = None
        self._lock = threading.Lock()

    @property
    def slow(self) -> bool:
        """Whether the answer may take long: something is decided again, or a statement is run."""
        return any(name in self._parameters for name in ("policy", "budget", "policies", "budgets", "q"))

    def leave(self) -> None:
        """Says, from any thread, that nobody waits for the answer any more."""
        with self._lock:
            self._left = True
            if self._stop is not None:
                self._stop()

    @contextmanager
    def stopped_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """Within it `stop` is called where nobody waits for the answer any more, from another thread."""
        self.check()
        with self._lock:
            self._stop = stop
        try:
            yield
        finally:
            with self._lock:
                self._stop = None

    def check(self) -> None:
        """Raises TurnedAwayError where nobody waits for the answer any more."""
        if self._left:
            raise HttpError(503, "who asked has left", "ask again")

    def text(self, name: str) -> str | None:
        """A text; None where it is left out or empty."""
        return self._parameters.get(name) or None

    def needed(self, name: str, like: str) -> str:
        """A text that there must be; `like` is an example."""
        found = self.text(name)
        if found is None:
            raise InputError(f"{name} is missing; ask with {name}={like}")
        return found

    def number(self, name: str, least: int = 0) -> int | None:
        """A whole number from `least` up; None where it is left out."""
        found = self.text(name)
        return None if found is None else number(found, name, least)

    def numbers(self, name: str, least: int = 0) -> list[int]:
        """Whole numbers with commas between; none where it is left out."""
        return [number(text, name, least) for text in self.texts(name)]

    def texts(self, name: str) -> list[str]:
        """Texts with commas between; none where it is left out."""
        found = (self.text(name) or "").split(",")
        if len(found) > POSITIONS_MAX:
            raise InputError(
                f"{name} lists {len(found):,} things, and one question has {POSITIONS_MAX:,}; ask in parts"
            )
        return [text.strip() for text in found if text.strip()]

    def flag(self, name: str) -> bool:
        """Whether something is wanted: 1 or true, 0 or false."""
        found = self.text(name)
        if found not in (None, "1", "true", "0", "false"):
            raise InputError(f"{name}={found[:SHOWN_MAX]!r} is neither 1 nor 0; write {name}=1, or leave it out")
        return found in ("1", "true")


def number(text: str, name: str, least: int) -> int:
    """A whole number from `least` up."""
    digits = text.replace("_", "").strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= NUMBER_DIGITS_MAX and int(digits) >= least):
        raise InputError(f"{name}={text[:SHOWN_MAX]!r} is no whole number from {least} up; write one like {name}=17")
    return int(digits)
