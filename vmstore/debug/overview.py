"""What a store holds, as a page needs it to choose a session."""

from __future__ import annotations

from typing import Any

from vmstore import __version__
from vmstore.core.page import Origin, Role
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import SessionInfo
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import settings_at
from vmstore.views.reads.page_lines import page_lines

NANO = 1e9  # of a dollar: costs are whole numbers of it


def overview(store: Store) -> dict[str, Any]:
    """The version at work and every session, imports not yet complete among them, as of one moment."""
    ns = store._ns
    with ns.asking():
        shown = {info.session for info in store.sessions()}
        sessions = [_session(ns, info, hidden=info.session not in shown) for info in store.sessions(hidden=True)]
        erased = ns.erased
    return {"vmstore": __version__, "live": True, "erased": erased, "sessions": sessions}


def _session(ns: Namespace, info: SessionInfo, *, hidden: bool) -> dict[str, Any]:
    key = int(ns.views.execute("SELECT session FROM sessions WHERE name = ?", (info.session,)).get)
    lane = Branch(ns.views, key)
    settings = settings_at(lane, info.position) or {}
    first, last = ns.views.execute("SELECT min(at), max(at) FROM commits WHERE session = ?", (key,)).get
    model = ns.views.execute(_MODEL, (key,)).get
    tokens, cost = ns.views.execute(_SUMS, (key,)).get
    asked = ns.views.execute(_ASKED, (key,)).get
    return {
        "session": info.session,
        "title": info.title,
        "first": None if asked is None else page_lines(lane, ns.log, [asked]).get(asked),
        "tokens": tokens,
        "outcome": info.outcome,
        "cost": None if cost is None else cost / NANO,
        "fidelity": info.fidelity,
        "turns": info.turns,
        "calls": info.calls,
        "pages": info.pages,
        "mutations": info.mutations,
        "position": info.position,
        "first_at": first,
        "last_at": last,
        "budget": settings.get("l0_tokens_max"),
        "policy": settings.get("policy"),
        "model": model,
        "origin": info.origin,
        "parent": parent_of(lane, info),
        "hidden": hidden,
    }


def parent_of(lane: Branch, info: SessionInfo) -> dict[str, Any] | None:
    """Where a session came from; of a fork the position and call it begins after."""
    if info.parent is None:
        return None
    forked = info.origin == Origin.FORK.word
    call = lane.stretches[0].call if forked else None
    return {"session": info.parent, "position": info.fork_position, "call": call}


_SUMS = """SELECT sum(coalesce(tokens_in, sent_tokens, tokens) + coalesce(tokens_out, 0)), sum(cost)
  FROM calls WHERE session = ?"""
_ASKED = f"SELECT min(page) FROM pages WHERE session = ? AND role = {int(Role.USER)}"
_MODEL = "SELECT model FROM calls WHERE session = ? AND model IS NOT NULL ORDER BY call DESC LIMIT 1"
