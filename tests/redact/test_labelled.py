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
    return [match.span() for pattern in SEED for match in pattern.finditer(text)]


def test_the_set_is_large_enough() -> None:
    """The set has at least 300 lines, and as many of them hide nothing as hide something."""
    other_lines = lines()
    with_secrets = sum(bool(other_line.secrets) for other_line in other_lines)
    assert len(other_lines) >= 300
    assert min(with_secrets, len(other_lines) - with_secrets) >= 150


def test_recall_and_precision() -> None:
    """At least 95 of 100 secrets are found whole, and at least 90 of 100 finds are secrets."""
    actual_score = score(ours, lines())
    assert actual_score.recall >= 0.95, "\n".join(actual_score.missed)
    assert actual_score.precision >= 0.90, "\n".join(actual_score.alarms)


def test_the_plain_list_of_the_seed_does_worse() -> None:
    """The short list of patterns finds under a third of the secrets, with more false alarms."""
    plain, actual_score = score(seeds, lines()), score(ours, lines())
    assert plain.recall < 1 / 3 < actual_score.recall
    assert plain.precision < actual_score.precision


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
    other_line = line("key \u27e8SECRET|ab\u00a6cd\u27e9 end")
    assert other_line == Line("key abcd end", [(4, 8, "SECRET")])
    actual_score = score(lambda text: pairs, [other_line])
    assert (actual_score.found, actual_score.right, actual_score.finds) == expected
