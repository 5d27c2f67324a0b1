"""Tags in the log: tags of pages, aliases of tags, and the depth a tag is shown at."""

from __future__ import annotations

from typing import ClassVar

from vmstore.core.mutation_kind import CellRef, Mutation
from vmstore.core.page import WordEnum

TOPIC = "topic:"
"""Before a word that a page is about, as pages are born with some: what finds it, and no tag of the session."""


class TagMethod(WordEnum):
    """Methods of tagging. A tagger that changes gets a new number."""

    HAND = 0  # somebody said so
    KEYWORD = 1  # words of the text, by the rule keyword@1
    CLOSEST = 2  # the closest of the tags there are, by an embedder
    MODEL = 3  # a model was asked
    INHERITED = 4  # the text says too little: it goes on with what came before
    SPLIT = 5  # a tag that had grown too broad was divided


class TagDepth(WordEnum):
    """How much of a tag the prompt shows."""

    NONE = 0
    SUMMARY = 1
    SEGMENTS = 2
    FULL = 3


class Tag(Mutation, frozen=True, array_like=True, tag=53):
    """A page gains a tag, or loses it where `held` is 0; `tag` is a cell of text, `method` says how it was found."""

    NUMBER: ClassVar[int] = 53
    page: int
    tag: CellRef
    method: int = 0
    held: int = 1


class Alias(Mutation, frozen=True, array_like=True, tag=54):
    """A tag counts as another from here on: both are cells of text; without `canonical` it counts as itself again."""

    NUMBER: ClassVar[int] = 54
    alias: CellRef
    canonical: CellRef | None = None


class Depth(Mutation, frozen=True, array_like=True, tag=56):
    """How much of a tag, a cell of text, the prompt shows from here on."""

    NUMBER: ClassVar[int] = 56
    tag: CellRef
    depth: int
