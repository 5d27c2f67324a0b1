"""Logarithms and powers in whole numbers, the same to the last digit on every machine."""

from __future__ import annotations

from math import isqrt

OCTAVE = 1 << 24
"""What doubling a number adds to its logarithm."""

STEPS = 64
"""In how many steps a power of two doubles."""
_BITS = 60
_TABLE_BITS = 8


def log2(number: int) -> int:
    """The logarithm of a number from 1 on, in parts of an OCTAVE; greater numbers never have a smaller one.

    Between the 256 parts of an octave it runs straight, at most 1 in 350,000 of an octave off.
    """
    exponent = number.bit_length() - 1
    fraction = (number << _BITS >> exponent) - (1 << _BITS)
    at = fraction >> _BITS - _TABLE_BITS
    low, high = _LOG[at], _LOG[at + 1]
    return exponent * OCTAVE + low + ((high - low) * (fraction & _REST) >> _BITS - _TABLE_BITS)


def exp2(steps: int) -> int:
    """Two to the power of a 64th part of `steps`, times 2**60, rounded down."""
    octaves, step = divmod(steps, STEPS)
    power = _POWERS[step]
    return power << octaves if octaves >= 0 else power >> -octaves


def falling(rate_ppm: int, end: int) -> list[int]:
    """e to the power of -rate x n for n = 0, 1, ... in parts of `end`, down to the first that is 0."""
    scale = 10**40
    term = factor = scale
    for n in range(1, 60):
        term = term * -rate_ppm // (n * 1_000_000)
        factor += term
    values, value = [], scale
    while value * end >= scale:
        values.append(value * end // scale)
        value = value * factor // scale
    return [*values, 0]


def _logarithm(number: int) -> int:
    """The logarithm of a number of 60 binary places between 1 and 2, digit by digit."""
    found = 0
    for _ in range(OCTAVE.bit_length() - 1):
        number = number * number >> _BITS
        found <<= 1
        if number >> _BITS + 1:
            found |= 1
            number >>= 1
    return found


def _powers() -> list[int]:
    """Two to the power of every 64th from 0 to 1: each half from the root of one twice as far."""
    precise = 2 * _BITS
    root = 2 << precise
    for _ in range(STEPS.bit_length() - 1):
        root = isqrt(root << precise)
    value, found = 1 << precise, []
    for _ in range(STEPS):
        found.append(value >> precise - _BITS)
        value = value * root >> precise
    return found


_REST = (1 << _BITS - _TABLE_BITS) - 1
_LOG = [*(_logarithm((1 << _BITS) + (n << _BITS - _TABLE_BITS)) for n in range(1 << _TABLE_BITS)), OCTAVE]
_POWERS = _powers()
