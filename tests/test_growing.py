"""The yardstick of the tests that hold work to a text's length."""

from __future__ import annotations

import re
from collections.abc import Callable

import apsw
import pytest

from tests.growing import grows_at_most, lasts_at_most, steps


def work(size: int, times: int = 1) -> Callable[[], object]:
    """Work in proportion to a size, done so many times over."""

    def done() -> None:
        for _ in range(times):
            for n in range(size):
                abs(n)

    return done


def test_what_grows_with_the_square_is_seen_every_time() -> None:
    """Work in proportion passes, and the same work done once for each part of a text is refused."""
    assert grows_at_most(work(1_000), work(4_000), 10)
    assert not grows_at_most(work(100, 10), work(400, 40), 10)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_lines_and_calls_are_counted_and_nothing_else(size: int) -> None:
    """A loop is two lines and a call each time round, whatever the machine does meanwhile."""
    assert steps(work(size)) - steps(work(0)) == 3 * size


def test_a_database_counts_its_own_steps() -> None:
    """Rows that SQLite goes through without handing them out are counted too."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE t (a)")
    db.execute("INSERT INTO t VALUES (1)")
    for _ in range(9):
        db.execute("INSERT INTO t SELECT a FROM t")

    def asked() -> None:
        db.execute("SELECT count(*) FROM t WHERE a = 2").fetchall()

    assert steps(asked, db) > steps(asked) + 512


@pytest.mark.nightly
def test_what_grows_inside_one_call_is_seen_by_its_time() -> None:
    """A pattern that backtracks is one step, and its time is refused."""

    def searched(size: int) -> Callable[[], object]:
        return lambda: re.search(r"(a|b)*c", "ab" * size)

    assert grows_at_most(work(1_000), work(4_000), 10)
    assert lasts_at_most(work(100_000), work(400_000), 10)
    assert not lasts_at_most(searched(100), searched(400), 10)
