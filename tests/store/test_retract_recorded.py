"""Retractions in a session that somebody recorded."""

from __future__ import annotations

from pathlib import Path

import vmstore
from tests.store.webs import superseded


def test_a_tool_of_a_recorded_session(data: Path) -> None:
    """In a session of pi a tool's results and what the log links to them fall, and every earlier answer stays."""
    store = vmstore.memory_store()
    name = store.import_file(data / "pi" / "before-compaction.jsonl").sessions[0].session
    session = store.session(name)
    before, position = session.context().messages(), session.info().position
    retraction = vmstore.retract(store, tool="bash", reason="the machine was broken")
    roots = {page.page for page in retraction.sessions[0].pages if page.because == "itself"}
    assert roots and all(session.page(page).role == "tool" for page in roots)
    marked = superseded(store, name)
    for page in session.pages():
        if page.position not in marked:
            grounds = session.lineage.ancestors(
                page.page, depth=1, kinds=["derives", "represents", "caused_by", "part_of"]
            )
            assert not {int(edge.target[1:]) for edge in grounds} & marked
    assert session.context().messages() == before and session.info().position == position + len(marked)
    assert retraction.sessions[0].calls > 0 and store.verify().ok
