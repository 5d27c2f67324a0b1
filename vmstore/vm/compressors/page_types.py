"""How far pages of each type may be compressed."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.page import Level, PageType


class CompressionRule(NamedTuple):
    """The highest level a page may be shown at, and whether only where nothing else makes room."""

    level_max: Level
    rarely: bool = False


COMPRESSION: dict[PageType, CompressionRule] = {
    PageType.TRANSCRIPT: CompressionRule(Level.REFERENCE),
    PageType.SUMMARY: CompressionRule(Level.FULL),  # compressed already; it can be made again
    PageType.ARTIFACT: CompressionRule(Level.REFERENCE),
    PageType.CLAIM: CompressionRule(Level.ABSTRACT, rarely=True),  # by its topics alone nobody knows what was decided
    PageType.PROCEDURE: CompressionRule(Level.ABSTRACT, rarely=True),
    PageType.INDEX: CompressionRule(Level.FULL),
    PageType.RAW: CompressionRule(Level.REFERENCE),
    PageType.VALUE: CompressionRule(Level.FULL),  # never shown
}
"""The rule of every type of page."""
