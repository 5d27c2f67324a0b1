"""What was said of pages up to a position, read from the facts one by one."""

from __future__ import annotations

import json
from typing import Any

from specs.model import Model
from vmstore.core import mutation as m
from vmstore.core.page import Level, Standing
from vmstore.core.redaction import TAG as REDACTED
from vmstore.core.redaction import Redact

Row = dict[str, Any]


def notes(model: Model, session: str, position: int, *, own: bool = False) -> dict[int, Row]:
    """What was said of each page: numbers as they were told last, tags as they were gained and lost.

    Of `own` notes those alone that the session made itself, also of pages that it inherits.
    """
    fields: dict[int, Row] = {}
    for fact in model.seen(session, position):
        if own and fact.session != session:
            if isinstance(fact.mutation, m.Create):
                fields[fact.position] = {"importance": fact.mutation.importance, "tags": set()}
            continue
        match fact.mutation:
            case Redact(page=page, policy=None) if page:
                fields[page]["tags"] = fields[page]["tags"] | {REDACTED}
            case m.Delete(page=page):
                fields[page]["status"] = Standing.SUPERSEDED
            case m.Create() as born:
                labels = json.loads(_cell(model, session, fact.position, born.labels) or "{}")
                fields[fact.position] = {"importance": born.importance, "tags": set(labels.get("tags", []))}
            case m.Annotate() as annotation:
                note = fields[annotation.page]
                for name in ("importance", "status", "valid_from", "valid_to"):
                    if getattr(annotation, name) is not None:
                        note[name] = getattr(annotation, name)
                gained, lost = (
                    _cell(model, session, fact.position, ref) for ref in (annotation.tags, annotation.untags)
                )
                note["tags"] = (note["tags"] | set(json.loads(gained or "[]"))) - set(json.loads(lost or "[]"))
            case m.Tag(page=page, tag=ref, held=tagged):
                tag = (_cell(model, session, fact.position, ref) or b"").decode()
                fields[page]["tags"] = fields[page]["tags"] | {tag} if tagged else fields[page]["tags"] - {tag}
    return fields


def tag_rows(model: Model, session: str, position: int) -> list[Row]:
    """The rows of TAGS: every name that a page has or that somebody gave a meaning to, in order."""
    on = {page: row["tags"] for page, row in notes(model, session, position).items()}
    turns = {page.page: page.turn for page in model.pages(session, position)}
    full = {
        page: [content.told.tokens for content in listed if content.level == Level.FULL][-1]
        for page, listed in model.versions(session, position).items()
    }
    deep, aliases = model.depths(session, position), model.aliases(session, position)
    on = {page: {tag for tag in tags if not tag.startswith("topic:")} for page, tags in on.items()}
    names = {tag for tags in on.values() for tag in tags} | aliases.keys() | {*aliases.values()} | deep.keys()
    last = max(model.last(session, position)[1], 1)
    records = []
    for name in sorted(names):
        meant = {name} | {alias for alias, end in aliases.items() if end == name}
        pages = {page for page, tags in on.items() if tags & meant}
        when = {turns[page] for page in pages}
        records.append(
            {
                "tag": name,
                "session": session,
                "canonical": aliases.get(name, name),
                "aliases": sorted(meant - {name}),
                "pages": len(pages),
                "turns": len(when),
                "first_turn": min(when, default=None),
                "last_turn": max(when, default=None),
                "tokens": sum(full[page] for page in pages),
                "share": min(len(when) / last, 1.0),
                "depth": deep.get(name, "summary"),
            }
        )
    return records


def _cell(model: Model, session: str, position: int, ref: Any) -> bytes | None:
    return None if ref is None else model.cell(session, position, ref)
