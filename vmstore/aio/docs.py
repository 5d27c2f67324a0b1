"""Gives the methods of a twin the words of what they are twins of, so that `help` says all of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)
_SEE = re.compile(r"See `vmstore\.(?:\w+\.)?(\w+)`(?:; (.*))?\.?\Z", re.DOTALL)


def described_by(original: type) -> Callable[[C], C]:
    """Replaces each docstring that only names the original's by that one's, with what differs after it."""

    def decorate(twin: C) -> C:
        for method in (twin, *vars(twin).values()):
            see = _SEE.match((getattr(method, "__doc__", None) or "").strip())
            if see is not None:
                source = original if method is twin else getattr(original, see[1])
                method.__doc__ = _joined(source.__doc__ or "", see[2])
        return twin

    return decorate


def _joined(doc: str, own: str | None) -> str:
    """The original's words, and what the twin does otherwise as a paragraph of its own."""
    if not own:
        return doc
    indent = re.search(r"\n( +)\S", doc)
    space = indent[1] if indent else " " * 8
    return f"{doc.rstrip()}\n\n{space}Awaited: {own.rstrip('.')}.\n{space}"
