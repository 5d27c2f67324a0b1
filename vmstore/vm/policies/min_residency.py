"""How long each type of page is kept, whatever its score: shared by all policies.

A page of a lower class goes before every page of a higher one. Claims and indexes go last,
procedures and summaries late. A policy's parameters may name a type with another class:
`claim=0` treats claims like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping

from vmstore.core.page import PageType

CLASS_STEP = 1 << 50
"""What a class adds to a score; scores within a class lie between its half and minus its half."""

CLASS_MAX = 9

CLASSES: dict[PageType, int] = {
    PageType.TRANSCRIPT: 0,
    PageType.ARTIFACT: 0,
    PageType.RAW: 0,
    PageType.VALUE: 0,
    PageType.SUMMARY: 1,
    PageType.PROCEDURE: 1,
    PageType.CLAIM: 2,
    PageType.INDEX: 2,
}


def classes(parameters: Mapping[str, int]) -> list[int]:
    """The score that each page type adds, by its number; parameters override it by the type's word."""
    return [CLASS_STEP * parameters.get(type_.word, CLASSES[type_]) for type_ in PageType]
