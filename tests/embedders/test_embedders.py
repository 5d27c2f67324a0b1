"""Embedders: what is handed in, how it is asked, and whatever is wrong with what it answers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from vmstore.core.vectors import Quantisation, packed_vector, unlike_vectors
from vmstore.embedders.chunks import CHARS, CHARS_SHARED, CHUNKS_MAX, chunks
from vmstore.embedders.embedder import EmbedderTimeoutError, FunctionEmbedder, embedder_of, vectors_of
from vmstore.embedders.hash_grams import HashGrams
from vmstore.errors import EmbedderError, InputError

TEXTS = st.text(st.sampled_from("ab \n"), max_size=5_000)


def asked(answer: Callable[[list[str]], Any], dimension: int | None = 2) -> list[list[float]]:
    """What comes of asking a function about two texts."""
    return vectors_of(FunctionEmbedder("f", answer, dimension), ["one", "two"], 5.0)


@given(TEXTS)
def test_chunks_cover_a_text(text: str) -> None:
    """Chunks begin and end in order, overlap by what they share, none is too long, and only blanks are in none."""
    actual_chunks = chunks(text)
    covered = set[int]()
    for begins, ends in actual_chunks:
        assert 0 <= begins < ends <= len(text) and ends - begins <= CHARS
        covered.update(range(begins, ends))
    assert all(text[at].isspace() for at in range(len(text)) if at not in covered)
    for (_, ends), (begins, _) in pairwise(actual_chunks):
        assert begins <= ends - CHARS_SHARED or text[ends - CHARS_SHARED : begins].isspace()


def test_a_chunk_ends_where_a_line_does() -> None:
    """A chunk ends at a line's end rather than at a word's, and in the middle of a word only where it must."""
    text = "word " * 150 + "\n" + "word " * 150
    assert text[: chunks(text)[0][1]].endswith("\n")
    assert chunks("x" * 2 * CHARS)[0] == (0, CHARS)
    assert len(chunks("x" * 10_000_000)) == CHUNKS_MAX


def test_hashed_grams_are_near_where_spelling_is() -> None:
    """The weight-free embedder is the same everywhere, finds forms of a word close and other words far."""
    first, form, other, none = HashGrams().embed(["deploying the database", "deployed databases", "red cars", "!?"])
    assert sum(a * b for a, b in zip(first, form, strict=True)) > 0.3
    assert abs(sum(a * b for a, b in zip(first, other, strict=True))) < 0.2
    assert math.isclose(math.hypot(*first), 1.0) and not any(none)
    assert [round(number, 6) for number in HashGrams(4).embed(["abcdef"])[0]] == [0.5547, -0.83205, 0.0, 0.0]


@pytest.mark.parametrize("form", Quantisation)
@given(numbers=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40))
def test_a_vector_is_kept_within_its_steps(form: Quantisation, numbers: list[float]) -> None:
    """What is kept of a vector is as long as it says, and no number is off by more than a step."""
    import numpy as np

    packed = packed_vector(numbers, form)
    assert unlike_vectors(packed, form, len(numbers), 1) is None
    assert unlike_vectors(packed + b"\0", form, len(numbers), 1) is not None
    if form is Quantisation.INT8:
        scale = np.frombuffer(packed, "<f4", 1)[0]
        back, step = np.frombuffer(packed, "i1", offset=4) * scale, max(map(abs, numbers)) / 127
        assert np.abs(back - numbers).max() <= 0.51 * step + 1e-6
    else:
        assert np.abs(np.frombuffer(packed, "<f2") - np.array(numbers)).max() <= 2**-11


def test_what_is_not_finite_is_no_vector() -> None:
    """Cells with an infinite scale or a NaN among their numbers are refused by what they hold."""
    assert "finite" in (unlike_vectors(b"\0\0\xc0\x7f\1", Quantisation.INT8, 1, 1) or "")
    assert "finite" in (unlike_vectors(b"\0\x7e", Quantisation.FLOAT16, 1, 1) or "")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda texts: [[1.0, 0.0]], "1 vectors for 2 texts"),
        (lambda texts: [[1.0, 0.0], [1.0]], "1 numbers where 2"),
        (lambda texts: [[1.0, 0.0], [math.nan, 1.0]], "not finite"),
        (lambda texts: [[1.0, 0.0], [math.inf, 1.0]], "not finite"),
        (lambda texts: [[1.0, 0.0], ["x", 1.0]], "no vector of numbers"),
        (lambda texts: [[1.0, 0.0], None], "no vector of numbers"),
        (lambda texts: None, "a NoneType"),
        (lambda texts: "ab", "a str"),
        (lambda texts: [[], []], "0 numbers where 2"),
        (lambda texts: 1 / 0, "ZeroDivisionError"),
        (lambda texts: exit(3), "SystemExit"),
    ],
)
def test_a_wrong_answer_is_named(answer: Callable[[list[str]], Any], text: str) -> None:
    """Whatever an embedder answers that is no vectors, the error says what."""
    with pytest.raises(EmbedderError, match=text):
        asked(answer)


def test_vectors_come_back_of_length_one() -> None:
    """Vectors come back of length 1, or as the zeros they were, and a dimension nobody said is the first's."""
    assert asked(lambda texts: [(3, 4), (0, 0)], None) == [[0.6, 0.8], [0.0, 0.0]]
    with refused("wrong-count", EmbedderError):
        asked(lambda texts: [[1, 2], [1, 2, 3]], None)


def test_who_hangs_is_not_waited_for() -> None:
    """An embedder that does not answer is given up after its time."""
    gate = threading.Event()
    with refused("embedder-hung", EmbedderTimeoutError):
        vectors_of(FunctionEmbedder("slow", lambda texts: gate.wait(60) or [], 2), ["x"], 0.05)
    gate.set()


def test_what_is_no_embedder_is_refused() -> None:
    """A thing without a name, with a wrong dimension or without a function is refused with what it lacks."""

    def function(texts: list[str]) -> list[list[float]]:
        """An embedder by its attributes."""
        return [[1.0]] * len(texts)

    for arguments, expected in ((object(), "name"), (HashGrams(0), "dimension"), (function, "name")):
        with pytest.raises(InputError, match=expected):
            embedder_of(arguments)
    function.name, function.dimension = "mine", 1  # type: ignore[attr-defined]
    assert embedder_of(function).embed(["a"]) == [[1.0]]
