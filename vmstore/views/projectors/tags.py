"""The tags view: which tag counts as which, how much of a tag the prompt shows, and where segments end.

Which pages have a tag, the pages view says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vmstore.core.text.json_text import plain
from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Alias, Depth, Segment


class TagsProjector(Projector):
    """Tags: the last row of a tag at or before a position holds there; rows never change."""

    name = "aliases"
    schema: ClassVar = {
        "aliases": """session INTEGER, alias TEXT, position INTEGER, canonical TEXT,
            PRIMARY KEY(session, alias, position)""",
        "depths": "session INTEGER, tag TEXT, position INTEGER, depth INTEGER, PRIMARY KEY(session, tag, position)",
        "segments": """session INTEGER, position INTEGER, number INTEGER, summary INTEGER, title TEXT,
            PRIMARY KEY(session, position)""",
    }

    def on_alias(self, placed: PlacedMutation, m: Alias) -> None:
        """Adds what a name counts as; nothing where one of the two was erased."""
        alias = plain(placed.text(m.alias))
        canonical = None if m.canonical is None else plain(placed.text(m.canonical))
        if alias is not None and (canonical is not None or m.canonical is None):
            self.rows["aliases"].append((placed.session, alias, placed.position, canonical))

    def on_depth(self, placed: PlacedMutation, m: Depth) -> None:
        """Adds a row; none where the tag was erased."""
        tag = plain(placed.text(m.tag))
        if tag is not None:
            self.rows["depths"].append((placed.session, tag, placed.position, m.depth))

    def on_segment(self, placed: PlacedMutation, m: Segment) -> None:
        """Adds where a segment ends, or which page sums one up."""
        title = plain(placed.text(m.title))
        self.rows["segments"].append((placed.session, placed.position, m.number, m.summary, title))
