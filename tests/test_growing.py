"""The yardstick of the tests that hold work to a text's length."""

from __future__ import annotations

from collections.abc import Callable

from tests.growing import grows_at_most


def test_what_grows_with_the_square_is_seen_every_time() -> None:
    """Work in proportion passes, and the same work done once for each part of a text is refused however often tried."""

    def work(size: int, times: int = 1) -> Callable[[], object]:
        return lambda: [sum(range(size)) for _ in range(times)]

    assert grows_at_most(work(100_000), work(400_000), 10)
    assert not grows_at_most(work(10_000, 10), work(40_000, 40), 10)
