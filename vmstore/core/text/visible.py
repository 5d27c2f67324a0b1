"""Characters that could drive a terminal or reorder a line, written so that they are seen and do nothing."""

from __future__ import annotations

import re

# Controls could drive the terminal, bidirectional marks could reorder a line, surrogates crash it.
UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """A text on one line, with every character that could drive a terminal written as an escape."""
    return UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
