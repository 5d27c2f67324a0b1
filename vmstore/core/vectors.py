"""Vectors of texts as the log keeps them: what an embedder said of a content, in cells that can be destroyed."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import ClassVar

from vmstore.core.mutation_kind import CellRef, Mutation
from vmstore.core.page import WordEnum

DIMENSION_MAX = 1 << 16
SCALE_BYTES = 4  # of a vector in INT8, before its numbers
INT8_MAX = 127
NOTHING = 1e-30  # a vector with no greater number is one of zeros


class Quantisation(WordEnum):
    """The number format of a vector."""

    FLOAT16 = 1  # two bytes each
    INT8 = 2  # one byte each, times a scale before them: a float32 for the whole vector


class Embed(Mutation, frozen=True, array_like=True, tag=35):
    """An embedder was asked about a content of a page, and answered with a vector for each of its chunks.

    `content` is the position of that content, at level 0. `model` is a cell with the embedder's name. `chunks` are
    where each piece of the text that was embedded begins and ends, in characters. `vectors` is a cell with one vector
    a chunk, of length 1 or all zeros, one after the other; None where they were left out of an export.
    """

    NUMBER: ClassVar[int] = 35
    page: int
    content: int
    model: CellRef
    dimension: int
    quantisation: int
    chunks: tuple[tuple[int, int], ...]
    vectors: CellRef | None = None


def vector_bytes(quantisation: int, dimension: int) -> int:
    """How many bytes one vector takes."""
    return 2 * dimension if quantisation == Quantisation.FLOAT16 else SCALE_BYTES + dimension


def packed_vector(numbers: Sequence[float], quantisation: int) -> bytes:
    """A vector of finite numbers within -1 and 1 as it is kept."""
    if quantisation == Quantisation.FLOAT16:
        return struct.pack(f"<{len(numbers)}e", *numbers)
    most = max(map(abs, numbers), default=0.0)
    (scale,) = struct.unpack("<f", struct.pack("<f", most / INT8_MAX if most > NOTHING else 0.0))
    steps = [round(number / scale) for number in numbers] if scale else [0] * len(numbers)
    return struct.pack(f"<f{len(numbers)}b", scale, *steps)


def unlike_vectors(content: bytes, quantisation: int, dimension: int, count: int) -> str | None:
    """Explains why bytes are not that many vectors of a form; None where they are."""
    one = vector_bytes(quantisation, dimension)
    if len(content) != one * count:
        return f"it has {len(content)} bytes, and {count} of {dimension} numbers take {one * count}"
    for at in range(0, len(content), one):
        numbers = f"<{dimension}e" if quantisation == Quantisation.FLOAT16 else "<f"
        if not math.isfinite(sum(struct.unpack_from(numbers, content, at))):
            return "one of its numbers is not finite"
    return None
