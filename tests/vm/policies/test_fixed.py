"""Logarithms and powers of whole numbers, against the machine's own."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.vm.policies.fixed_point import OCTAVE, exp2, falling, log2


@given(st.integers(1, 1 << 200))
def test_a_logarithm_is_near_the_true_one(number: int) -> None:
    """It is off by less than three millionths of an octave, whatever the number."""
    assert abs(log2(number) / OCTAVE - math.log2(number)) < 3e-6


@given(st.integers(1, 1 << 20))
def test_a_logarithm_rises(number: int) -> None:
    """Of two numbers one apart the greater has the greater logarithm, so that ages never tie."""
    assert log2(number) < log2(number + 1)


@given(st.integers(-500, 20_000))
def test_a_power_is_rounded_down(steps: int) -> None:
    """Every 64th step doubles, and the steps between are exact but for rounding."""
    assert exp2(steps + 64) // 2 == exp2(steps)
    assert exp2(steps) == pytest.approx(math.ldexp(2 ** (steps % 64 / 64), 60 + steps // 64), rel=1e-9, abs=1)


@pytest.mark.parametrize("rate", [1_000, 50_000, 100_000, 1_000_000])
def test_what_falls_is_the_exponential_rounded_down(rate: int) -> None:
    """Every entry is the whole part of the true value, and the last is the first that is nothing."""
    table = falling(rate, 500_000)
    for n, entry in enumerate(table[:3_000]):
        assert entry == int(500_000 * (Decimal(-rate) * n / 1_000_000).exp())
    assert table[-1] == 0 < table[-2]
