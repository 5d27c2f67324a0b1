"""Which texts are scored for a question."""

from __future__ import annotations

import random

import numpy as np
import pytest

from vmstore.relevance import candidates as best
from vmstore.relevance import naive
from vmstore.relevance.candidates import Found
from vmstore.relevance.measures import LIKE
from vmstore.relevance.question import Needle


@pytest.mark.parametrize("sentence", [True, False])
@pytest.mark.parametrize("most", [None, 7, 40])
@pytest.mark.parametrize("sparse", [0, 64, 1 << 30])
def test_candidates_are_the_same_some_rows_at_a_time(
    monkeypatch: pytest.MonkeyPatch, sentence: bool, most: int | None, sparse: int
) -> None:
    """However few rows are looked at at once, and with those around asked words alone, the same ones are the best."""
    monkeypatch.setattr(best, "ROWS_MIN", 8)
    monkeypatch.setattr(best, "ROWS_MAX", 32)
    monkeypatch.setattr(best, "SPARSE", sparse)
    chance = random.Random(f"{sentence}{most}{sparse}")
    for _ in range(40):
        count = chance.choice((1, 5, 9, 40, 200, 500))
        items, plain = [], []
        for word in range(chance.randrange(1, 6)):
            rows = sorted(chance.sample(range(count), chance.randrange(0, min(count, 60) + 1)))
            often = {row: float(chance.choice((1, 1, 1, 2, 5))) for row in rows}
            weight = chance.choice((0.3, 1.5, 1.5, 4.0))
            others = [
                (sorted(chance.sample(range(count), chance.randrange(0, min(count, 8) + 1))), chance.random())
                for _ in range(chance.randrange(3))
            ]
            sums: dict[int, float] = {}
            for row, alike in ((row, alike) for some, alike in others for row in some):
                sums[row] = sums.get(row, 0.0) + LIKE * alike * weight
            needle = Needle(str(word), (str(word),))
            likes = tuple((np.array(some, np.int64), alike) for some, alike in others)
            items.append(Found(needle, np.array(rows, np.int64), np.array([*often.values()]), weight, likes))
            plain.append(naive.FoundNeedle(needle, often, weight, {}, sums))
        rows, total = best.candidates(count, items, sentence, most)
        assert (rows.tolist(), total) == naive._candidates(count, plain, sentence, most)
