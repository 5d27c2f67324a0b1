"""The texts in force at a moment, as scores see them: rows, and the postings of their terms.

Rows are dense, 0 to count - 1, lane after lane in the order the texts were written, so the neighbours of row r are
r - 1 and r + 1 as long as they are of one session. Count, words and frequencies are those of the moment: what is
written later, or elsewhere, changes no score.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vmstore.relevance.words import Analyzer

    Numbers = NDArray[np.int32]
    Longs = NDArray[np.int64]
    Floats = NDArray[np.float64]


class TextColumns(NamedTuple):
    """What is known of some rows beside their words, one array a column."""

    length: Numbers
    """Terms, without stop words and wholes."""
    chars: Numbers
    session: Longs
    page: Longs
    version: Numbers
    position: Longs
    at_us: Longs
    speaker: Numbers
    """A number of `names("speaker")`; 0 where nobody is named."""
    role: Numbers
    tool: Numbers
    """A number of `names("tool")`; 0 where it is no tool's."""
    traits: Numbers
    """The bits of `Trait`."""


COLUMNS = frozenset(TextColumns._fields)


class Texts(Protocol):
    """The texts in force at a moment."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        ...

    @property
    def words(self) -> int:
        """How many terms all rows have together."""
        ...

    @property
    def analyzer(self) -> Analyzer:
        """The rules by which their terms were made; what is asked of them is taken apart by the same."""
        ...

    def postings(self, term: str) -> tuple[Numbers, Numbers]:
        """The rows that have the term, ascending, and how often each has it."""
        ...

    def terms_from(self, prefix: str, limit: int) -> list[str]:
        """The terms of these rows that begin so, those of the most rows first."""
        ...

    def terms_like(self, word: str, limit: int) -> list[str]:
        """The terms of these rows within a typo of a word, or that share most of its runs of four characters."""
        ...

    def columns(self, rows: Numbers | Longs, wanted: Container[str] = COLUMNS) -> TextColumns:
        """What is known of the rows beside their words; a column that is not wanted may be of zeros."""
        ...

    def places(self, rows: Numbers | Longs) -> Floats:
        """How far on each row stands in its lane, from 0 for the first to 1 for the last."""
        ...

    def lanes(self, rows: Numbers | Longs) -> Longs:
        """Which of the lanes each row stands in, by number."""
        ...

    def lane_rows(self, lanes: Sequence[int] | Longs) -> tuple[Longs, Longs]:
        """The first row of each lane, and the one after its last."""
        ...

    def names(self, kind: str) -> list[str]:
        """What the numbers of the columns `speaker` and `tool` stand for."""
        ...

    def texts(self, rows: Sequence[int] | Numbers) -> list[str]:
        """The texts themselves, read from the log."""
        ...
