"""Embedders and the one way to ask them: the result is vectors of the right form or an EmbedderError.

An embedder is handed in, as a clock is. vmstore asks it about texts that are masked already, takes its answer into
the log, and never asks it about the same content twice; a replay and a rebuild ask nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from vmstore.core.system.callbacks import ANSWERED, HUNG, answer_within
from vmstore.core.vectors import DIMENSION_MAX
from vmstore.errors import EmbedderError, InputError

NAME_CHARS_MAX = 200
WORDS_CHARS_MAX = 300  # of what an embedder says of its failure
QUERY_TIMEOUT_S = 5.0
TEXTS_TIMEOUT_S = 120.0
Vector = Sequence[float]


class Embedder(Protocol):
    """Gives texts vectors. `name` says which model it is, for good: another model has another name.

    `dimension` is how many numbers a vector has; None where only an answer tells.
    """

    @property
    def name(self) -> str:
        """The name of the model."""
        ...

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: list[str]) -> Sequence[Vector]:
        """One vector a text, in order."""
        ...


class FunctionEmbedder(msgspec.Struct, frozen=True):
    """An embedder made of a function."""

    name: str
    function: Callable[[list[str]], Sequence[Vector]]
    dimension: int | None = None

    def embed(self, texts: list[str]) -> Sequence[Vector]:
        """The vectors the function returns."""
        return self.function(texts)


def embedder_of(given: object) -> Embedder:
    """The embedder handed in: an object with `name`, `dimension` and `embed`, or a function with the first two.

    Raises InputError where it is none.
    """
    name, dimension = getattr(given, "name", None), getattr(given, "dimension", None)
    wrong = None
    if not isinstance(name, str) or not name.strip() or len(name) > NAME_CHARS_MAX or not name.isprintable():
        wrong = f"its name {name!r:.40} is no text of 1 to {NAME_CHARS_MAX} characters that says which model it is"
    elif dimension is not None and (type(dimension) is not int or not 0 < dimension <= DIMENSION_MAX):
        wrong = f"its dimension {dimension!r:.40} is no number from 1 to {DIMENSION_MAX:,}, nor None"
    elif not callable(getattr(given, "embed", None)) and not callable(given):
        wrong = "it has no function `embed(texts)`"
    if wrong is not None:
        raise InputError(
            f"a {type(given).__name__} is no embedder: {wrong}; see specs/embeddings.md", code="not-an-embedder"
        )
    if callable(getattr(given, "embed", None)):
        return given  # type: ignore[return-value]
    return FunctionEmbedder(name, given, dimension)  # type: ignore[arg-type]


class EmbedderTimeoutError(EmbedderError):
    """An embedder did not answer within the time it was given; its thread may still wait for it."""

    code = "embedder-timeout"


def vectors_of(embedder: Embedder, texts: Sequence[str], timeout_s: float) -> list[list[float]]:
    """One vector of finite numbers a text, all of one dimension, each of length 1 or all zeros.

    Raises EmbedderError, which says what was wrong with the answer.
    """
    outcome, said = answer_within(lambda: _answer(embedder, texts), timeout_s)
    if outcome == HUNG:
        raise EmbedderTimeoutError(f"the embedder {embedder.name!r} hung: {said}", code="embedder-hung")
    if outcome != ANSWERED:
        raise EmbedderError(f"the embedder {embedder.name!r} failed: {said:.{WORDS_CHARS_MAX}}", code="embedder-failed")
    assert isinstance(said, str | list), "an answer is vectors, or says what is wrong with it"
    if isinstance(said, str):
        raise EmbedderError(f"the embedder {embedder.name!r} answered {said}", code="wrong-count")
    return said


def _answer(embedder: Embedder, texts: Sequence[str]) -> list[list[float]] | str:
    """The vectors of an answer, or what is wrong with it."""
    answer = embedder.embed(list(texts))
    if not hasattr(answer, "__len__") or not hasattr(answer, "__iter__") or isinstance(answer, str | bytes | dict):
        return f"with a {type(answer).__name__}, which is no list of vectors"
    if len(answer) != len(texts):
        return f"with {len(answer):,} vectors for {len(texts):,} texts"
    found: list[list[float]] = []
    wanted = embedder.dimension
    for vector in answer:
        try:
            numbers = [float(number) for number in vector]
        except (TypeError, ValueError) as error:
            return f"with what is no vector of numbers ({error})"
        wanted = wanted or len(numbers)
        if len(numbers) != wanted or not 0 < wanted <= DIMENSION_MAX:
            return f"with a vector of {len(numbers):,} numbers where {wanted:,} were to come"
        norm = math.hypot(*numbers)
        if not math.isfinite(norm):
            return "with a number that is not finite"
        found.append([number / norm for number in numbers] if norm else numbers)
    return found
