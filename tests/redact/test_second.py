"""What is found in sets by authors who had not seen the detectors, nor the lines that they were made with.

By the second set the detectors were mended: half of it was read in a first round, all of it in a second one. Of the
third nobody who mended them saw a text or a miss, only the totals: its figures are the honest ones.
"""

from __future__ import annotations

import pytest

from tests.redact.labelled import Line, Pair, score, second, third
from vmstore.redact.find import spans

SETS = {
    "second, read in the first round": (second("tune"), 0.99, 0.99),
    "second, read in the second round": (second("test"), 0.99, 0.99),
    "third, never read": (third(), 0.96, 0.99),
}
"""Each set, and the floor of recall and of precision: what was measured, rounded down."""


def ours(text: str) -> list[Pair]:
    """Where we find something."""
    return [(span.start, span.end) for span in spans(text)]


@pytest.mark.parametrize("name", SETS)
def test_recall_and_precision_on_a_set_of_another(name: str) -> None:
    """As many secrets of another's set are found whole, and as many finds are secrets, as were when it was measured."""
    value, recall, precision = SETS[name]
    actual, secrets, right, finds, *_ = score(ours, value)  # totals alone, so that a failure shows no text
    assert actual >= recall * secrets
    assert right >= precision * finds


def balanced(lines: list[Line]) -> bool:
    """Whether a set has enough texts with secrets, and enough without."""
    hidden = sum(bool(line.secrets) for line in lines)
    return min(hidden, len(lines) - hidden) > 0.35 * len(lines)


def test_the_sets_are_others() -> None:
    """Each set holds look-alikes beside texts with secrets, and no text of one is in another."""
    texts = [{entry.text for entry in item} for item, *_ in SETS.values()]
    assert all(balanced(item) and len(item) >= 370 for item, *_ in SETS.values())
    assert sum(map(len, texts)) == len(set().union(*texts))


def test_a_leak_counts_as_a_miss() -> None:
    """A finder that leaves the second half of each value has no recall on the set."""
    halved = score(lambda text: [(start, (start + end) // 2) for start, end in ours(text)], second("tune"))
    assert halved.recall < 0.05 < 0.99 < halved.precision
