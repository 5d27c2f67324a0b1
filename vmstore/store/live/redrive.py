"""Re-drives a recorded session into a new one that manages its memory, in one write: all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from vmstore.engine.head import NewSession
from vmstore.errors import InputError
from vmstore.live.redrive import NeededPages, Redrive, RedriveStep
from vmstore.live.runtime import Runtime
from vmstore.live.session_log import SessionLog
from vmstore.live.settings import configure
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projection import Progress
from vmstore.vm.kernel.settings import KernelSettings, changed


def redrive(ns: Namespace, source: Branch, name: str, settings: dict[str, Any], progress: Progress | None) -> int:
    """Says everything of a session again to a new one; its key in the log."""
    if "l0_tokens_max" not in settings:
        raise InputError("a memory that manages itself needs a budget; give l0_tokens_max")
    changed(KernelSettings(), settings)
    ns.follow()
    total = _commits(source)
    steps = Redrive(SessionLog(ns.log, source), NeededPages(SessionLog(ns.log, source))).steps()

    def begun() -> Iterator[RedriveStep]:
        first = next(steps)
        yield RedriveStep(first.at, lambda act: configure(act, settings))
        yield from chain((first,), steps)

    runtime = Runtime(ns.engine, Branch(ns.views, 0))
    batch = ns.begin(NewSession(name), ns.clock.now())
    at = runtime.play(batch, begun(), lambda done: progress(done, total + 1) if progress else None)
    return batch.commit(at, dense=True)[-1].session


def _commits(lane: Branch) -> int:
    sql = "SELECT count(*) FROM commits WHERE session = ? AND last > ? AND first <= ?"
    return sum(lane.db.execute(sql, (s.session, s.low, s.high)).get for s in lane.upto(NEVER))
