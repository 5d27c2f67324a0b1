"""Decisions in talks whose author had not seen the finder: how many are heard, and how much else."""

from __future__ import annotations

import pytest

from tests.vm.scored import score, talks, total

FLOORS = {"tune": (0.66, 0.84), "test": (0.41, 0.75)}  # measured: see specs/compression.md


@pytest.mark.parametrize("half", FLOORS)
def test_decisions_are_heard_in_other_peoples_words(half: str) -> None:
    """Recall and precision stay above what was measured, on the half the finder was made with and on the other."""
    found = total(list(talks(half)))
    recall, precision = FLOORS[half]
    assert found.held > 140
    assert found.recall >= recall and found.precision >= precision


def test_the_grammar_alone_hears_almost_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what is kept in its own words fewer than a twentieth are heard: the floors can fail."""
    monkeypatch.setattr("vmstore.vm.claims.quotes.answered", lambda *told, **named: None)
    monkeypatch.setattr("vmstore.vm.claims.quotes.stated", lambda text: [])
    monkeypatch.setattr("vmstore.vm.claims.quotes.changed", lambda *told: None)
    monkeypatch.setattr("vmstore.vm.claims.quotes.acknowledged", lambda *told: None)
    assert total(list(talks("tune"))).recall < 0.05


def test_a_claim_that_names_nothing_is_none_of_what_is_held() -> None:
    """A claim counts only with its value and its subject."""
    row = {
        "kind": "decision",
        "talk": [{"role": "user", "text": "We decided to use Redis for the cache."}],
        "held": [{"at": 0, "subject": "cache", "value": "Redis", "not": []}],
    }
    assert score(row).found == 1
    assert score({**row, "held": [{"at": 0, "subject": "queue", "value": "Redis", "not": []}]}).found == 0
    assert score({**row, "held": []}).wrong == 1
