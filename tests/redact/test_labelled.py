"""How much is found of what should be, and how much else, counted on the labelled set."""

from __future__ import annotations

import re

import pytest

from tests.redact.labelled import Line, Pair, line, lines, score
from vmstore.redact.find import spans

# A short list as agents often carry one, which the detectors are measured against.
SEED = [
    re.compile(r"API[_-]?KEY[=:]\s*[\w-]+", re.IGNORECASE),
    re.compile(r"SECRET[=:]\s*[\w-]+", re.IGNORECASE),
    re.compile(r"PASSWORD[=:]\s*[\w-]+", re.IGNORECASE),
    re.compile(r"Bearer\s+[\w-]+", re.IGNORECASE),
    re.compile(r"[A-Za-z0-9]{32,}"),
    re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Z|a-z]{2,}\b"),
]


def ours(text: str) -> list[Pair]:
    """Where we find something."""
    return [(span.start, span.end) for span in spans(text)]


def seeds(text: str) -> list[Pair]:
    """Where the short list does."""
    return [found.span() for pattern in SEED for found in pattern.finditer(text)]


def test_the_set_is_large_enough() -> None:
    """The set has at least 300 lines, and as many of them hide nothing as hide something."""
    told = lines()
    with_secrets = sum(bool(one.secrets) for one in told)
    assert len(told) >= 300
    assert min(with_secrets, len(told) - with_secrets) >= 150


def test_recall_and_precision() -> None:
    """At least 95 of 100 secrets are found whole, and at least 90 of 100 finds are secrets."""
    found = score(ours, lines())
    assert found.recall >= 0.95, "\n".join(found.missed)
    assert found.precision >= 0.90, "\n".join(found.alarms)


def test_the_plain_list_of_the_seed_does_worse() -> None:
    """The short list of patterns finds under a third of the secrets, with more false alarms."""
    plain, found = score(seeds, lines()), score(ours, lines())
    assert plain.recall < 1 / 3 < found.recall
    assert plain.precision < found.precision


def test_kinds_are_right() -> None:
    """What is found is called what it is marked as, in at least 95 of 100 cases."""
    right = total = 0
    for text, marked in lines():
        kinds = {(span.start, span.end): span.kind.name for span in spans(text)}
        for start, end, kind in marked:
            if (start, end) in kinds:
                total += 1
                right += kinds[start, end] == kind
    assert total > 150
    assert right / total >= 0.95


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(4, 8)], (1, 1, 1)),
        ([(4, 7)], (0, 1, 1)),
        ([(0, 3)], (0, 0, 1)),
        ([], (0, 0, 0)),
        ([(4, 6), (6, 8)], (1, 2, 2)),
    ],
)
def test_the_count_counts(pairs: list[Pair], expected: tuple[int, int, int]) -> None:
    """A secret counts as found only where all of it is covered, and a find as right only where it touches one."""
    told = line("key \u27e8SECRET|ab\u00a6cd\u27e9 end")
    assert told == Line("key abcd end", [(4, 8, "SECRET")])
    found = score(lambda text: pairs, [told])
    assert (found.found, found.right, found.finds) == expected
