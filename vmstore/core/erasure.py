"""Erasing: which cells were destroyed, and why; nothing anybody wrote stands in it."""

from __future__ import annotations

import re
from typing import ClassVar

from vmstore.core.mutation_kind import Mutation
from vmstore.core.page import WordEnum


class ErasureReason(WordEnum):
    """Reasons to destroy contents."""

    ASKED = 0  # their author, or their subject, asked
    RETENTION = 1  # a rule says for how long they are kept
    MISTAKE = 2  # they should never have been recorded
    SECRET = 3  # they held a secret
    LAW = 4  # an authority ordered it
    RESTORED = 5  # a backup brought back what was erased before


class ErasedContent(bytes):
    """The placeholder for an erased content, with the position that records the erasure."""


def gone(position: int) -> ErasedContent:
    """The placeholder for a content that was erased at a position."""
    return ErasedContent(b"[erased at position %d]" % position)


def is_gone(text: str) -> bool:
    """Whether a text is what stands for an erased content, and nothing else."""
    return _GONE.fullmatch(text) is not None


_GONE = re.compile(r"\[erased at position \d+\]")
assert is_gone(gone(1).decode()), "what is written for an erased content is known again"


class Erase(Mutation, frozen=True, array_like=True, tag=16):
    """Cells that this session brought are destroyed: those of `cells`, as (position, index) of the commit that
    brought them, and, where `upto` is not 0, every cell of the commits up to that position.
    """

    NUMBER: ClassVar[int] = 16
    reason: int
    cells: tuple[tuple[int, int], ...] = ()
    upto: int = 0
