"""Reciprocal rank fusion of tags, words and an embedder, by its numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.relevance import rrf

RANKING = st.lists(st.integers(0, 20), unique=True, max_size=12)


def test_the_numbers_are_those_that_were_asked_for() -> None:
    """K is 60, and tags weigh .50, words .30, the embedding .20; what only the embedding found is halved."""
    assert (rrf.K, rrf.TAGS, rrf.WORDS, rrf.EMBEDDING, rrf.GRAVITY) == (60, 0.50, 0.30, 0.20, 0.5)
    first, *others = rrf.fused(["a", "b"], ["b", "a"], ["b", "c"])
    assert first.key == "b" and math.isclose(first.score, 0.50 / 62 + 0.30 / 61 + 0.20 / 61)
    assert [other.key for other in others] == ["a", "c"]
    assert math.isclose(others[0].score, 0.50 / 61 + 0.30 / 62)
    assert math.isclose(others[1].score, 0.20 / 62 / 2) and others[1].filters == ("gravity",)


@given(RANKING, RANKING, RANKING)
def test_a_sum_written_out_gives_the_same(tags: list[int], words: list[int], close: list[int]) -> None:
    """Every candidate of a ranking is in the answer once, with the sum of what it gained, best first."""

    def gain(key: int) -> float:
        total = sum(
            weight / (60 + ranking.index(key) + 1)
            for ranking, weight in ((tags, 0.5), (words, 0.3), (close, 0.2))
            if key in ranking
        )
        return total if key in tags or key in words else total / 2

    ranks = rrf.fused(tags, words, close)
    assert sorted(each_ranks.key for each_ranks in ranks) == sorted({*tags, *words, *close})
    assert all(math.isclose(each_ranks.score, gain(each_ranks.key)) for each_ranks in ranks)
    assert ranks == sorted(ranks, key=lambda each_ranks: (-each_ranks.score, each_ranks.key))


def test_a_hub_is_held_back() -> None:
    """A candidate whose rarest shared tag is frequent counts less, unless it has a word of the question too."""
    plain, ranks = rrf.fused(["hub", "rare"], [], [], hubs={"hub": 0.6, "rare": 0.01})
    assert (plain.key, ranks.key, ranks.filters) == ("rare", "hub", ("hub",))
    assert math.isclose(ranks.score, 0.5 / 61 * (1 - 0.45 / 0.85 * 0.5))
    (all_have,) = rrf.fused(["hub"], [], [], hubs={"hub": 1.0})
    assert math.isclose(all_have.score, 0.5 / 61 * rrf.HUB_LEAST)
    with_word = rrf.fused(["hub"], ["hub"], [], hubs={"hub": 1.0})
    assert with_word[0].filters == ()


def test_what_has_facts_is_lifted() -> None:
    """A candidate with a tag that has facts counts a quarter more."""
    first, second = rrf.fused(["a", "b"], [], [], resolved={"b"})
    assert (first.key, first.filters) == ("b", ("resolution",))
    assert math.isclose(first.score, 1.25 * 0.5 / 62) and math.isclose(second.score, 0.5 / 61)


def test_rare_tags_outweigh_frequent_ones() -> None:
    """Candidates are ranked by what they share with the question, and one rare tag outweighs two frequent ones."""
    tagged = {"x": ["database", "backend"], "y": ["postgres"], "z": ["garden"]}
    ranking = rrf.tag_overlap(["database", "backend", "postgres"], tagged, {"database": 80, "backend": 90}, 100)
    assert ranking == ["y", "x"]


@pytest.mark.parametrize("empty", [((), (), ()), ([], [], [])])
def test_nothing_is_fused_of_nothing(empty: tuple[list[int], list[int], list[int]]) -> None:
    """Three empty rankings give an empty answer."""
    assert rrf.fused(*empty) == []
