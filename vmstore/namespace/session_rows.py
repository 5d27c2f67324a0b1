"""Sessions as answers: their counts and times, and, for who looks over many, what was said first and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw
import msgspec

from vmstore.core.page import Fidelity, Origin, Standing
from vmstore.core.redaction import Redaction
from vmstore.log.port import Log
from vmstore.namespace.costs import session_costs
from vmstore.namespace.results import SessionInfo, SessionOverview
from vmstore.prices.price_list import PriceList
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.sessions import SessionFidelity
from vmstore.views.reads.page_lines import page_lines


def session_infos(views: apsw.Connection, keys: Iterable[int]) -> list[SessionInfo]:
    """Sessions by their keys, in the order given."""
    return [_info(views, key) for key in keys]


def _info(views: apsw.Connection, key: int) -> SessionInfo:
    cursor = views.execute(_ROW, (key,))
    names = [column[0] for column in cursor.get_description()]
    s: dict[str, Any] = dict(zip(names, cursor.get, strict=True))
    timed = bool(s["timed"])
    outcome, reward = views.execute(_VERDICT, (key,)).fetchone() or (None, None)
    return SessionInfo(
        session=s["name"],
        origin=Origin(s["origin"]).word,
        parent=s["parent_name"],
        fork_position=s["fork_position"] if s["parent"] else None,
        title=s["title"],
        user=s["user"],
        agent=s["agent"],
        fidelity=fidelity_of(s["derived"], s["recorded"]).word,
        turns=s["turns"],
        calls=s["calls"],
        messages=s["messages"],
        pages=s["pages"],
        raw=s["raw"],
        mutations=s["mutations"],
        tokens=s["tokens"],
        position=s["position"],
        opened_at=s["opened_at"],
        source=s["source"],
        redaction=Redaction(s["redaction"]).word,
        redactions=s["redactions"],
        status=Standing(s["status"]).word,
        outcome=outcome,
        reward=reward,
        recorded=s["recorded"],
        began_at=s["opened_at"] if timed else None,
        last_at=s["last_at"] if timed else None,
    )


def fidelity_of(derived: int, recorded: int) -> SessionFidelity:
    """The word for a session by how many of its calls were rebuilt and how many recorded."""
    if not derived:
        return SessionFidelity.RECORDED
    return SessionFidelity.PARTLY if recorded else SessionFidelity.DERIVED


def overviews(views: apsw.Connection, log: Log, prices: PriceList, keys: Sequence[int]) -> list[SessionOverview]:
    """Sessions as a list of many shows them."""
    costs = session_costs(views, log, prices, set(keys))
    first = _first_lines(views, log, keys)
    return [
        SessionOverview(
            **msgspec.structs.asdict(info),
            first_line=first.get(key),
            model=views.execute(_MODEL, (key,)).get,
            cost=costs[key][0],
            cost_estimated=costs[key][1],
        )
        for key, info in zip(keys, session_infos(views, keys), strict=True)
    ]


def _first_lines(views: apsw.Connection, log: Log, keys: Iterable[int]) -> Mapping[int, str]:
    """How the first thing begins that a person said in each session, or in what it was forked from."""
    found: dict[int, str] = {}
    for key in keys:
        lane = Branch(views, key)
        for stretch in reversed(lane.upto(NEVER)):
            page = views.execute(_FIRST, (stretch.session, stretch.high)).get
            if page is not None:
                found[key] = page_lines(lane, log, [int(page)]).get(int(page), "")
                break
    return found


_ROW = f"""SELECT p.name AS parent_name, s.*,
  (SELECT count(*) FROM calls c WHERE c.session = s.session AND c.fidelity = {int(Fidelity.RECORDED)}) AS recorded,
  (SELECT c.at_max FROM commits c WHERE c.session = s.session ORDER BY c.last DESC LIMIT 1) AS last_at
  FROM sessions s LEFT JOIN sessions p ON p.session = s.parent WHERE s.session = ?"""
_VERDICT = "SELECT outcome, reward FROM outcomes WHERE session = ? ORDER BY position DESC LIMIT 1"
_MODEL = "SELECT model FROM calls WHERE session = ? AND model IS NOT NULL ORDER BY call DESC LIMIT 1"
_FIRST = """SELECT p.page FROM messages m CROSS JOIN pages p ON p.session = m.session AND p.message = m.message
   AND p.page > m.message WHERE m.session = ? AND m.message <= ? AND m.human ORDER BY m.message, p.part LIMIT 1"""
