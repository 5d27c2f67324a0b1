"""What the log takes beside the contents themselves: mutations, and what seals each cell."""

from __future__ import annotations

from functools import cache

from vmstore.core.mutation import AnyMutation, Create, Unknown, Update, wire

SEAL_BYTES = 64  # a salt and a commitment


class Overhead:
    """Bytes of contents as they were accepted, and bytes of what is said of them."""

    def __init__(self) -> None:
        self.contents = self.said = 0

    def note(self, mutation: AnyMutation) -> None:
        """Weighs a mutation."""
        self.said += len(wire(mutation))
        if isinstance(mutation, Unknown):
            return
        self.said += SEAL_BYTES * sum(getattr(mutation, name) is not None for name in _cells(type(mutation)))
        if isinstance(mutation, Create | Update):
            self.contents += mutation.size


@cache
def _cells(kind: type) -> tuple[str, ...]:
    """The fields of a kind that name a cell."""
    return tuple(name for name, form in kind.__annotations__.items() if form.startswith("CellRef"))
