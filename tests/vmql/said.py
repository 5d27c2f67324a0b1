"""What was said of pages up to a position, read from the facts one by one."""

from __future__ import annotations

import json
from typing import Any

from specs.model import Model
from vmstore.core import mutation as m

Row = dict[str, Any]


def notes(model: Model, session: str, position: int) -> dict[int, Row]:
    """What was said of each page: numbers as they were told last, tags as they were gained and lost."""
    found: dict[int, Row] = {}
    for fact in model.seen(session, position):
        match fact.mutation:
            case m.Create() as born:
                labels = json.loads(_cell(model, session, fact.position, born.labels) or "{}")
                found[fact.position] = {"importance": born.importance, "tags": set(labels.get("tags", []))}
            case m.Annotate() as told:
                note = found[told.page]
                for name in ("importance", "status", "valid_from", "valid_to"):
                    if getattr(told, name) is not None:
                        note[name] = getattr(told, name)
                gained, lost = (_cell(model, session, fact.position, ref) for ref in (told.tags, told.untags))
                note["tags"] = (note["tags"] | set(json.loads(gained or "[]"))) - set(json.loads(lost or "[]"))
    return found


def _cell(model: Model, session: str, position: int, ref: Any) -> bytes | None:
    return None if ref is None else model.cell(session, position, ref)
