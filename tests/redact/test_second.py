"""What is found in a set by an author who had not seen the detectors, nor the lines that they were made with.

It has 757 texts, 341 of them look-alikes that hold nothing. Half of it, `tune`, was read when the detectors were
mended; of the other half, `test`, nobody of those who mended them saw a text or a miss, and its figures are the honest
ones.
"""

from __future__ import annotations

import pytest

from tests.redact.labelled import Pair, score, second
from vmstore.redact.find import spans

HALVES = {"tune": (0.99, 0.99), "test": (0.93, 0.96)}
"""The floor of recall and of precision: what was measured, rounded down."""


def ours(text: str) -> list[Pair]:
    """Where we find something."""
    return [(span.start, span.end) for span in spans(text)]


@pytest.mark.parametrize("half", HALVES)
def test_recall_and_precision_on_a_set_of_another(half: str) -> None:
    """As many secrets of another's set are found whole, and as many finds are secrets, as were when it was measured."""
    found = score(ours, second(half))
    recall, precision = HALVES[half]
    assert found.recall >= recall, f"{found.found} of {found.secrets}"
    assert found.precision >= precision, f"{found.right} of {found.finds}"


def test_the_second_set_is_another() -> None:
    """Both halves hold as many look-alikes as texts with secrets, within a quarter, and share no text."""
    for half in HALVES:
        told = second(half)
        hidden = sum(bool(one.secrets) for one in told)
        assert len(told) >= 370
        assert 0.75 < (len(told) - hidden) / hidden < 1.25
    assert not {one.text for one in second("tune")} & {one.text for one in second("test")}


def test_a_leak_counts_as_a_miss() -> None:
    """A finder that leaves the second half of each value has no recall on the set."""
    halved = score(lambda text: [(start, (start + end) // 2) for start, end in ours(text)], second("tune"))
    assert halved.recall < 0.05 < 0.99 < halved.precision
