"""The base of all mutations: number and name of the kind, and references to cells."""

from __future__ import annotations

from typing import ClassVar

import msgspec

CellRef = int | tuple[int, int]
"""A cell of the same commit by index, or (a position in an earlier commit, its cell's index)."""

MUTATION_NAMES: dict[int, str] = {
    1: "open", 2: "turn", 3: "segment", 4: "configure", 5: "mark", 6: "close", 7: "settings",
    10: "create", 11: "update", 12: "annotate", 13: "link", 14: "unlink", 15: "delete", 16: "erase", 17: "redact",
    20: "fault_in", 21: "fault_denied", 22: "defer", 23: "cancel", 24: "prefetch", 25: "evict", 26: "compress",
    27: "pin", 28: "unpin", 29: "flush",
    30: "message", 31: "reference", 32: "cite", 33: "reply", 34: "approve",
    35: "embed",
    40: "pack",
    50: "tool_call", 51: "guard", 52: "promote", 53: "tag", 54: "alias", 55: "fact", 56: "depth",
    60: "search", 61: "recall", 62: "pressure", 63: "share", 64: "revoke",
    65: "namespace_policy",
    70: "conflict", 71: "resolve", 72: "merge", 73: "undo", 74: "redo",
}  # fmt: skip
"""Every reserved kind by its wire number."""

PLANNED = frozenset((22, 23, 70, 71, 72, 73, 74))
"""Reserved numbers that no mutation has yet."""

assert MUTATION_NAMES.keys() >= PLANNED, "a number is reserved under a name"

# What readers compare fields with, and so know without the mutations themselves.
CHARTER = 2  # the namespace's own session is `hidden` so
WHOLE, PARTIAL, LIVE = 1, 2, 3  # renderers of a pack

assert len(set(MUTATION_NAMES.values())) == len(MUTATION_NAMES), "a handler `on_<kind>` takes one kind"
assert max(MUTATION_NAMES) < 0x80, "a number is one byte on the wire, and a search for a kind looks for that byte"


class Mutation(msgspec.Struct, frozen=True, array_like=True, gc=False, tag_field="wire"):
    """A fact about a page or session; its position is its place in the session's log."""

    NUMBER: ClassVar[int] = 0

    @property
    def kind(self) -> str:
        """The kind's name."""
        return MUTATION_NAMES[self.NUMBER]
