"""A call of a tool as the rules of this room see it."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

LONG_CHARS = 400
LONG = "long:"
_NUMBERS = re.compile(r"[\d.,:%-]*\d[\d.,:%-]*|--:--:--|\s+")


class PastCall(NamedTuple):
    """A call: its session and page, the turn, the tool, its arguments as JSON, and how it ended.

    `failed` is None where nobody said how. `reason` is what a failed one answered, `answer` what any
    answered, as `answer_of` has it, where it is known. `read` are the names of the pages it read,
    `at_us` is when it was called.
    """

    session: str
    page: int
    turn: int
    tool: str
    arguments: Any = None
    failed: bool | None = None
    reason: str = ""
    tokens: int = 0
    answer: str | None = None
    read: tuple[str, ...] = ()
    at_us: int = 0

    @property
    def asked(self) -> str:
        """Its arguments in one order."""
        return json.dumps(self.arguments, sort_keys=True, ensure_ascii=False, default=str)


def answer_of(text: str) -> str:
    """An answer as it is compared: a digest of it, of a long one without its numbers and blanks."""
    is_long = len(text) >= LONG_CHARS
    compared = _NUMBERS.sub("", text) if is_long else text
    digest = hashlib.sha256(compared.encode("utf-8", "replace")).hexdigest()[:16]
    return LONG + digest if is_long else digest
