"""What a store holds, as a page needs it to choose a session."""

from __future__ import annotations

from typing import Any

from vmstore import __version__
from vmstore.core.page import Origin
from vmstore.core.text.prometheus import PrometheusFigure, exposition
from vmstore.namespace.backends.port import sizes_of
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import SessionInfo, SessionOverview
from vmstore.namespace.session_rows import overviews
from vmstore.store.reads.pages_across import SessionFilter, sessions_of
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import settings_at


def overview(store: Store) -> dict[str, Any]:
    """The version at work and every session, imports not yet complete among them, as of one moment."""
    ns = store._ns
    with ns.asking():
        shown = {info.session for info in store.sessions()}
        keys = [key for key, _ in sessions_of(ns, SessionFilter(), hidden=True)]
        infos = overviews(ns.views, ns.log, ns.price_list, keys)
        sessions = [
            _session(ns, key, info, hidden=info.session not in shown) for key, info in zip(keys, infos, strict=True)
        ]
        erased = ns.erased
    return {"vmstore": __version__, "live": True, "erased": erased, "sessions": sessions}


def metrics(store: Store) -> str:
    """The figures of a store as Prometheus scrapes them."""
    return exposition([*figures(store), sizes(store)])


def figures(store: Store) -> list[PrometheusFigure]:
    """The figures of a store: counts alone, no name and no text."""
    info = store.info()
    calls, tokens, cost = dict[str, float](), dict[str, float](), 0.0
    parts: dict[str, dict[str, float]] = {name: {} for name, _ in OF_COMPONENTS}
    asked = "CALLS status, component, count(*), sum(tokens_reported), sum(tokens_cached), sum(tokens_out), sum(cost)"
    asked += ", sum(cost_estimated)"
    for row in store.query(f"{asked} BY status, component ACROSS SESSIONS").to_dicts() if info.sessions else ():
        status = f'status="{row["status"]}"'
        calls[status] = calls.get(status, 0) + row["count(*)"]
        component = f'component="{row["component"] or AGENT}"'
        for name, column in OF_COMPONENTS:
            parts[name][component] = parts[name].get(component, 0) + (row[column] or 0)
        for word, column in (("in", "tokens_reported"), ("cached", "tokens_cached"), ("out", "tokens_out")):
            label = f'direction="{word}"'
            tokens[label] = tokens.get(label, 0) + (row[f"sum({column})"] or 0)
        cost += row["sum(cost)"] or 0
    return [
        PrometheusFigure("vmstore_sessions", False, "sessions in the store", {"": info.sessions}),
        PrometheusFigure("vmstore_pages", False, "pages of all sessions", {"": info.pages}),
        PrometheusFigure("vmstore_commits", True, "commits in the log", {"": info.commits}),
        PrometheusFigure("vmstore_mutations", True, "mutations in the log", {"": info.mutations}),
        PrometheusFigure("vmstore_calls", True, "calls to a model, by how they ended", calls),
        PrometheusFigure("vmstore_tokens", True, "tokens as providers reported them", tokens),
        PrometheusFigure("vmstore_cost_dollars", True, "what calls cost, as recorded", {"": cost}),
        *(
            PrometheusFigure(f"vmstore_component_{name}", True, about, parts[name])
            for name, about in COMPONENTS.items()
        ),
    ]


def sizes(store: Store) -> PrometheusFigure:
    """The sizes of a store's parts, which change without a commit too."""
    found = sizes_of(store._ns.place)
    size = {'part="log"': found.log, 'part="views"': found.views, 'part="blobs"': found.blobs}
    return PrometheusFigure("vmstore_bytes", False, "size on disk", size)


AGENT = "agent"  # whose calls no component of a memory made
OF_COMPONENTS = (
    ("calls", "count(*)"),
    ("tokens_in", "sum(tokens_reported)"),
    ("tokens_out", "sum(tokens_out)"),
    ("cost_dollars", "sum(cost)"),
    ("cost_estimated_dollars", "sum(cost_estimated)"),
)
COMPONENTS = {
    "calls": "calls by the part of a memory that made them",
    "tokens_in": "tokens asked, by the part that asked",
    "tokens_out": "tokens answered, by the part that asked",
    "cost_dollars": "what calls cost as recorded, by the part that asked",
    "cost_estimated_dollars": "what calls cost by the price list where nobody recorded it, by the part that asked",
}


def _session(ns: Namespace, key: int, info: SessionOverview, *, hidden: bool) -> dict[str, Any]:
    lane = Branch(ns.views, key)
    settings = settings_at(lane, info.position) or {}
    first, last = ns.views.execute("SELECT min(at), max(at) FROM commits WHERE session = ?", (key,)).get
    tokens = ns.views.execute(_SUM, (key,)).get
    return {
        "session": info.session,
        "title": info.title,
        "first": info.first_line,
        "tokens": tokens,
        "outcome": info.outcome,
        "cost": info.cost,
        "cost_estimated": info.cost_estimated,
        "recorded": info.recorded,
        "reward": info.reward,
        "timed": info.last_at is not None,
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
        "model": info.model,
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


_SUM = """SELECT sum(coalesce(tokens_in, sent_tokens, tokens) + coalesce(tokens_out, 0))
  FROM calls WHERE session = ?"""
