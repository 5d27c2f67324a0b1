"""The marks view: moments somebody named, and how far importers got."""

from __future__ import annotations

from typing import ClassVar

from vmstore.core.mutation import Mark
from vmstore.views.projector import PlacedMutation, Projector


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
