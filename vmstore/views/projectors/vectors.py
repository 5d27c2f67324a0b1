"""The vectors view: which contents an embedder was asked about, and where their vectors lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Embed


class VectorsProjector(Projector):
    """One row a chunk that has a vector; the vectors themselves stay in the log's cells.

    `content` is the position of the content that was embedded, `begins` and `ends` the chunk's place in its text, in
    characters. A fold that meets an erasure starts over, and holds no row of vectors that are erased.
    """

    name = "vectors"
    schema: ClassVar = {
        "vectors": """session INTEGER, position INTEGER, chunk INTEGER, page INTEGER, content INTEGER, model TEXT,
            dimension INTEGER, quantisation INTEGER, begins INTEGER, ends INTEGER, chunks INTEGER, at INTEGER,
            cell INTEGER, commitment BLOB, PRIMARY KEY(session, position, chunk)"""
    }
    indexes = ("CREATE INDEX vectors_content ON vectors(session, content)",)

    def on_embed(self, placed: PlacedMutation, m: Embed) -> None:
        """Adds a row for each chunk; none where the vectors were left out or erased."""
        if m.vectors is None or placed.erased(m.vectors):
            return
        model, sealed, chunks = placed.text(m.model), placed.sealed(m.vectors), len(m.chunks)
        for chunk, (begins, ends) in enumerate(m.chunks, 1):
            place = (placed.session, placed.position, chunk, m.page, m.content, model, m.dimension, m.quantisation)
            self.rows["vectors"].append((*place, begins, ends, chunks, placed.at, *sealed))
