"""Erased pages leave the prompts they are in: what each live session is to log of that."""

from __future__ import annotations

from collections.abc import Callable

from vmstore.core.decision import Cause, Holder
from vmstore.core.mutation import Evict, Unpin
from vmstore.erasure.relations import Owned
from vmstore.live.runtime import Runtime
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import NEVER, Lane
from vmstore.views.projectors.decisions import in_force

HELD = (Holder.HAND, Holder.SYSTEM, Holder.TOOLS, Holder.PLAN)
"""Who holds a page for good; those of the last turns are only spared."""


def vacated(ns: Namespace, gone: Callable[[Owned], bool]) -> dict[int, list[Unpin | Evict]]:
    """Of each session that manages its memory, the pages that leave: a pin yields, as nothing is left to hold."""
    found: dict[int, list[Unpin | Evict]] = {}
    for session in sorted(key for (key,) in ns.views.execute("SELECT DISTINCT session FROM choices")):
        lane = Lane(ns.views, session)
        if in_force(lane, NEVER) is None or gone((session, 0)):
            continue
        state = Runtime(ns.reader, lane).current()
        leaving = [held for held in state.here.values() if gone((lane.owner(held.page), held.page))]
        for held in sorted(leaving, key=lambda held: held.page):
            holders = [holder for holder in HELD if held.holders >> holder & 1]
            found.setdefault(session, []).extend(Unpin(held.page, holder) for holder in holders)
            found[session].append(Evict(held.page, Cause.ERASED, held.tokens))
    return found
