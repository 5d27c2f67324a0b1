"""The commits view: the running maxima of both clocks go on where a session stood."""

from __future__ import annotations

import apsw

from vmstore.log.memory import MemoryLog
from vmstore.views.branch import Branch
from vmstore.views.projection import Projection
from vmstore.views.projectors.commits import _before


def test_nothing_is_before_what_no_view_holds() -> None:
    """Of a session that the views do not know there are no maxima, as of a log that begins without an opening."""
    views = Projection(MemoryLog(), apsw.Connection(""))
    assert _before(Branch(views.db, 7), 5) is None
