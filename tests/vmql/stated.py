"""FACTS as the facts say them: which value held when, worked out one at a time."""

from __future__ import annotations

from typing import Any

from tests.vmql.said import notes
from tests.vmql.worked import texts_of, told_in
from vmstore.core import mutation as m
from vmstore.core.facts import FactType, Precision
from vmstore.core.page import LinkKind, Standing
from vmstore.core.times import iso

Row = dict[str, Any]
OVER = (Standing.COMPLETED, Standing.ABANDONED)


def facts(naive: Any, session: str, position: int, *, own: bool = False) -> list[Row]:
    """Every fact as it was stated last, with what came before and after it; of `own` ones only what it wrote itself."""
    model = naive.model
    seen = [(fact, turn) for fact, turn, _ in model.moments(session, position) if not own or fact.session == session]
    last = {fact.mutation.page: (fact, turn) for fact, turn in seen if isinstance(fact.mutation, m.Fact)}
    remarks, texts = notes(model, session, position, own=own), texts_of(naive, session, position)
    rows = {page: _stated(naive, session, fact, turn, remarks[page]) for page, (fact, turn) in last.items()}
    links = sorted((edge for edge in model.links(session, position) if _wrote(model, session, edge, own)), key=_order)
    for row in rows.values():
        address = sorted((other for other in rows.values() if _address(other) == _address(row)), key=_begins)
        before, after = _neighbours(address, row)
        row["was"] = None if before is None or before["what"].lower() == row["what"].lower() else before["what"]
        ends = [row["until"], None if after is None else after["since"]]
        row["superseded_by"] = None
        if after is not None:
            same = after["session"] == row["session"]
            row["superseded_by"] = after["page"] if same else f"{after['session']}/{after['page']}"
        replaced = [e.source for e in links if e.kind == LinkKind.SUPERSEDES and f"p{e.target}" == row["page"]]
        if replaced:
            row["superseded_by"] = f"p{replaced[0]}"
            ends.append(rows[replaced[0]]["since"] if replaced[0] in rows else row["since"])
        row["ends"] = min((end for end in ends if end is not None), default=None)
        sources = {e.target for e in links if e.kind == LinkKind.DERIVES and f"p{e.source}" == row["page"]}
        row["sources"] = [f"p{page}" for page in sorted(sources)]
        row["text"] = texts[int(row["page"][1:])]
        row["valid_from"], row["valid_to"] = iso(row["since"]), None if row["ends"] is None else iso(row["ends"])
    return sorted(rows.values(), key=lambda row: row["position"])


def holds_at(row: Row, at: int) -> bool:
    """Whether a fact held in the world at a time, and was replaced by none."""
    if row["retired"] or (row["status"] != "planned" and row["since"] > at):
        return False
    done = row["status"] == "completed" and row["superseded_by"] is None
    return done or row["ends"] is None or row["ends"] > at


def _stated(naive: Any, session: str, fact: Any, turn: int, note: Row) -> Row:
    mutation = fact.mutation
    stated_by = fact.at if mutation.valid_to is None else min(fact.at, mutation.valid_to)
    begins = stated_by if mutation.valid_from is None else mutation.valid_from
    status, annotated = Standing(note.get("status", mutation.status)), note.get("status")
    abandoned = annotated == Standing.ABANDONED and mutation.status != Standing.ABANDONED
    attribute = told_in(naive, session, fact, mutation.attribute)
    return {
        "page": f"p{mutation.page}",
        "session": fact.session,
        "subject": told_in(naive, session, fact, mutation.subject),
        "verb": told_in(naive, session, fact, mutation.verb),
        "what": told_in(naive, session, fact, mutation.what),
        "attribute": attribute,
        "type": FactType(mutation.type).word,
        "status": status.word,
        "tags": sorted(note["tags"]),
        "precision": Precision(mutation.precision).word,
        "confidence": mutation.confidence / 1e6,
        "strength": mutation.strength / 1e6,
        "method": told_in(naive, session, fact, mutation.method),
        "one": bool(mutation.one and attribute is not None),
        "turn": turn,
        "position": fact.position,
        "at": iso(fact.at),
        "since": note.get("valid_from", begins),
        "until": note.get("valid_to", mutation.valid_to),
        "retired": annotated == Standing.SUPERSEDED or abandoned,
        "told_at": fact.at,
    }


def _address(row: Row) -> Any:
    """What has one value at a time; plans have one of their own. None of a fact that no other ends."""
    if not row["one"] or row["retired"] or row["status"] in [word.word for word in OVER]:
        return row["page"]
    return row["subject"].lower(), row["attribute"].lower(), row["status"] == "planned"


def _begins(row: Row) -> Any:
    return row["since"], row["told_at"], row["position"]


def _neighbours(address: list[Row], row: Row) -> tuple[Row | None, Row | None]:
    """The value before one at its address, and the next that is another."""
    at = address.index(row)
    after = next((later for later in address[at + 1 :] if later["what"].lower() != row["what"].lower()), None)
    return address[at - 1] if at else None, after


def _order(edge: Any) -> Any:
    return edge.position, edge.source


def _wrote(model: Any, session: str, edge: Any, own: bool) -> bool:
    """Whether a link counts: of own ones those that the session remarks itself."""
    return not own or any(fact.position == edge.position for fact in model.own(session))
