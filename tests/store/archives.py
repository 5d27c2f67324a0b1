"""A store with sessions worth archiving, and everything that can be asked of it in one value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vmstore
from tests.engine.stories import answer, chat, tell
from vmstore.log.archive_frame import place_of
from vmstore.log.frame import ARCHIVED
from vmstore.log.rows import READ_FRAMES, frame_of
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.results import to_json

LONG = "a very long story, " * 6_000
TEXTS = ["Where to?", "Twelve miles.", "South it is.", "Quite.", LONG[:40], "Late."]


def told_at(path: Path) -> Path:
    """A store of five sessions, `plan-b` a fork of `plan` and `plan-c` one of that, one with a cell in a file."""
    tell(path)
    with vmstore.open(path) as store:
        store.record("long", chat(LONG, "So it ends."), answer("Indeed."))
    return path


def everything(store: vmstore.Store) -> dict[str, Any]:
    """Every session with its pages, and every context with its bytes."""
    fields: dict[str, Any] = {}
    for info in store.sessions():
        session = store.session(info.session)
        contexts = [session.context(call=call) for call in range(1, info.calls + 1)]
        pages = session.pages()
        fields[info.session] = (
            to_json(info),
            [to_json(page) for page in pages],
            [session.content(page.page) for page in pages],
            [context.messages() for context in contexts],
        )
    return fields


def away(log: SqliteLog) -> dict[bytes, int]:
    """How many cells of each session of a uid lie in its archive, kept ones too."""
    with log.file as db:
        frames = [frame_of(row) for row in db.execute(f"SELECT {READ_FRAMES} FROM frames WHERE form = {ARCHIVED}")]
    counts: dict[bytes, int] = {}
    for frame in frames:
        place = place_of(frame)
        assert place is not None
        counts[place.uid] = counts.get(place.uid, 0) + frame.cells
    return counts
