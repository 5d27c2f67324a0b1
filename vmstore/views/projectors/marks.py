"""The marks view: moments somebody named, and how far importers got."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Mark


class MarksProjector(Projector):
    """One row a mark, at the position it stands on."""

    name = "marks"
    schema: ClassVar = {
        "marks": """session INTEGER, position INTEGER, reason INTEGER, records INTEGER, digest BLOB, name TEXT,
            note INTEGER, PRIMARY KEY(session, position)"""
    }

    def on_mark(self, placed: PlacedMutation, m: Mark) -> None:
        """Adds the mark."""
        row = (m.reason, m.records, m.digest, placed.text(m.name), placed.number(m.note))
        self.rows["marks"].append((placed.session, placed.position, *row))
