"""Uploads the column segments of a store as they lie: integers, and no word that anybody wrote."""

from __future__ import annotations

from pathlib import Path

from vmstore.cold.manifest import PublishedSegment
from vmstore.cold.tier import ColdTier
from vmstore.columns.schema import TABLES
from vmstore.columns.segment import SegmentFolder
from vmstore.columns.segments import Segments
from vmstore.log.port import Progress
from vmstore.namespace.folder import COLUMNS
from vmstore.namespace.namespace import Namespace
from vmstore.publication.publish import Upload


def column_upload(ns: Namespace, progress: Progress | None = None) -> Upload | None:
    """A function that uploads the segments of a namespace, all of it cut; None where it keeps none."""
    if ns.views_folder is None:
        return None
    folder: Path = ns.views_folder / COLUMNS

    def upload(tier: ColdTier, there: list[PublishedSegment]) -> list[PublishedSegment]:
        shelf = Segments(folder, ns.log, ns.projection, readonly=False)
        try:
            with ns.asking() as ordinal:
                found = shelf.fill(ordinal, progress)
        finally:
            shelf.close()
        known = {segment.name: segment for segment in there}
        return [known.get(segment.path.name) or _uploaded(tier, segment) for segment in found]

    return upload


def _uploaded(tier: ColdTier, segment: SegmentFolder) -> PublishedSegment:
    files = {name: tier.put(f"segments/{name}", segment.table(name).read_bytes()) for name in TABLES}
    return PublishedSegment(segment.path.name, files)
