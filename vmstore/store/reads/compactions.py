"""The compactions of a session as answers, with the beginning of each summary."""

from __future__ import annotations

from vmstore.core.address import page_name
from vmstore.log.port import Log
from vmstore.namespace.results import Compaction
from vmstore.views.branch import Branch
from vmstore.views.compactions import compactions_at
from vmstore.views.reads.page_lines import page_lines


def compactions_of(lane: Branch, log: Log, position: int) -> list[Compaction]:
    """Every compaction up to a position, in order, with what came back since."""
    found = compactions_at(lane, position)
    texts = page_lines(lane, log, {made.summary for made in found})
    packed = dict(lane.rows(_PACKED, {made.position for made in found}))
    names = {
        session: lane.db.execute("SELECT name FROM sessions WHERE session = ?", (session,)).get
        for session in {lane.owner(made.position) for made in found}
    }
    return [
        Compaction(
            session=names[lane.owner(made.position)],
            call=made.call,
            turn=made.turn,
            position=made.position,
            at=packed[made.position],
            pages=len(made.left),
            tokens=made.tokens,
            summary=page_name(made.summary),
            summary_tokens=made.summary_tokens,
            left=[page_name(page) for page in made.left],
            returned=[page_name(page) for page, _ in made.returned],
            text=texts.get(made.summary, ""),
        )
        for made in found
    ]


_PACKED = "SELECT position, at FROM calls WHERE session = ? AND position IN (SELECT value FROM json_each(?))"
