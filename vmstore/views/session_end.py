"""The end of a session as of a moment: how its source or the one who closed it said that it went."""

from __future__ import annotations

from typing import Any

from vmstore.core.page import Standing
from vmstore.views.branch import Branch


def ended_as(lane: Branch, position: int) -> str | None:
    """The outcome that a source had stated by a position, else completed or abandoned; None while it went on."""
    outcome: Any = lane.db.execute(_OUTCOME, (lane.session, position)).get
    if outcome:
        return str(outcome)
    status: Any = lane.db.execute(_STATUS, (lane.session, position)).get
    return None if status in (None, Standing.ACTIVE) else Standing(status).word


_OUTCOME = "SELECT outcome FROM outcomes WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
_STATUS = "SELECT status FROM closings WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
