"""One line of pages by number, in pieces: a change costs what a piece is long, however long the line is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain

PIECE_MAX = 512
_BITS = 63  # of a page: a page and its number make one number, which compares faster than two
_PAGE = (1 << _BITS) - 1


class Line:
    """Pages in the order of their numbers, those of one number in their own."""

    def __init__(self) -> None:
        self._pieces: list[list[int]] = []
        self._starts: list[int] = []  # what each piece begins with

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every number and its page."""
        return ((one >> _BITS, one & _PAGE) for one in chain.from_iterable(self._pieces))

    @property
    def first(self) -> tuple[int, int]:
        """The least number and its page."""
        one = self._starts[0]
        return one >> _BITS, one & _PAGE

    def add(self, number: int, page: int) -> None:
        """A page takes its place."""
        one = number << _BITS | page
        if not self._pieces:
            self._pieces.append([one])
            self._starts.append(one)
            return
        at = max(bisect_right(self._starts, one) - 1, 0)
        piece = self._pieces[at]
        insort(piece, one)
        self._starts[at] = piece[0]
        if len(piece) > PIECE_MAX:
            half = len(piece) // 2
            self._pieces.insert(at + 1, piece[half:])
            self._starts.insert(at + 1, piece[half])
            del piece[half:]

    def remove(self, number: int, page: int) -> None:
        """A page leaves its place."""
        one = number << _BITS | page
        at = bisect_right(self._starts, one) - 1
        piece = self._pieces[at]
        del piece[bisect_left(piece, one)]
        if piece:
            self._starts[at] = piece[0]
        else:
            del self._pieces[at], self._starts[at]
