"""The turns view: when each turn began."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Turn


class TurnsProjector(Projector):
    """One row a turn, at the position that opened it."""

    name = "turns"
    schema: ClassVar = {
        "turns": "session INTEGER, turn INTEGER, position INTEGER, at INTEGER, PRIMARY KEY(session, turn)"
    }
    indexes = ("CREATE INDEX turns_position ON turns(session, position)",)

    def on_turn(self, placed: PlacedMutation, m: Turn) -> None:
        """Opens the turn."""
        self.rows["turns"].append((placed.session, m.number, placed.position, placed.at))
