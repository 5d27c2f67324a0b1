"""What a text is like beside its words."""

from __future__ import annotations

import random
import re

import pytest

from vmstore.relevance.traits import Trait, run_traits, text_traits, traits

PLAIN = {
    Trait.NAME: re.compile(r"[^\W\d_a-z](?<=[^\W\d_A-Z] .|[,;:] .)[^\W\d_A-Z]"),
    Trait.CODE: re.compile(r"\w\(\)|[{};]\n|=>|->|==|::|\w_\w"),
    Trait.TITLE: re.compile('["“][^"”\n]{2,60}["”]'),
    Trait.ASKS: re.compile("[?？؟]"),
}
PIECES = (
    *("Ann", "went", ",", ";", ": Bob", " Éva", "7", "foo_bar", "_", "x()", "()", "=> ", "->", "{\n", ";\n", "::", "?"),
    *("؟", '"a title"', "“q”", '"', " ", " ", " ", "\n", "北京", "Ünder", "ñ Ö", "two", "dozen", "٣"),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is Ann?", Trait.QUESTION | Trait.ASKS | Trait.NAME),
        ("Who? Me.", Trait.ASKS | Trait.SELF),
        ("I’m late since Monday", Trait.SELF | Trait.TIME | Trait.NAME),
        ("ValueError", Trait.ERROR),
        ("the Error", Trait.NAME | Trait.ERROR),
        ("it failed twice", Trait.ERROR | Trait.NUMBER),
        ("Is it so?\n[a picture]", Trait.QUESTION | Trait.ASKS),
        ("plain words", Trait(0)),
    ],
)
def test_traits_are_read_from_a_text(text: str, expected: Trait) -> None:
    """A text has the traits that its words and signs say."""
    assert Trait(traits(text)) == expected


def test_what_is_passed_over_is_not_there() -> None:
    """Signs that are quickly seen not to be in a text are found wherever they are."""
    chance = random.Random(4)
    for _ in range(3_000):
        text = "".join(chance.choices(PIECES, k=chance.randrange(12)))
        actual_trait = Trait(traits(text))
        for trait, pattern in PLAIN.items():
            assert (trait in actual_trait) == bool(pattern.search(text)), (text, trait)


def test_runs_have_their_traits_wherever_they_stand() -> None:
    """A text has the traits of its runs without white space, and those it has as a whole."""
    chance = random.Random(9)
    words = (*PIECES, "ValueError", "I'm", "failed.", "error:", "Monday", "don't")
    for _ in range(300):
        text = "".join(chance.choice(words) for _ in range(chance.randrange(12)))
        of_runs = 0
        for run in text.split():
            of_runs |= run_traits(run)
        assert traits(text) == text_traits(text) | of_runs, text
