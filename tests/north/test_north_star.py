"""The measure of the whole: decisions are found again after hundreds of turns, within a small budget."""

from __future__ import annotations

import pytest

import vmstore
from tests.north.scenario import play


@pytest.mark.parametrize("budget", [8_000, pytest.param(32_000, marks=pytest.mark.nightly)])
def test_what_was_decided_is_found_again(budget: int) -> None:
    """Of 60 decisions, 20 of them reversed, at least 95 % are told right and cited, with few faults and no thrash."""
    with vmstore.memory_store() as store:
        score = play(store, budget)
        assert store.verify().ok
    assert score.asked == 60 and score.turns >= 220 and score.claims >= 2 * budget
    assert score.right >= 0.95 * score.asked and score.cited >= 0.95 * score.asked
    assert score.faults_a_turn <= 2 and score.faults <= 10 and score.thrash < 0.3
    assert score.sent <= budget and score.peak <= budget


def test_who_forgets_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that takes no note of decisions is told few of them right: the score can fail."""
    monkeypatch.setattr("vmstore.live.extraction.notice", lambda act, spoke: [])
    with vmstore.memory_store() as store:
        score = play(store, 8_000)
    assert score.right < 0.5 * score.asked
