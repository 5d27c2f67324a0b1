"""Measures of the loop: what failed again after a warning of it, and which sequences became skills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vmstore.core.address import page_position
from vmstore.store.work.results import GuardInfo, WorkMeasures
from vmstore.work.failure import same_failures
from vmstore.work.past_call import PastCall
from vmstore.work.skill import skills


def measured(calls: Mapping[str, Sequence[PastCall]], guards: Sequence[GuardInfo], promoted: int) -> WorkMeasures:
    """The measures of some sessions' calls."""
    every = [call for some in calls.values() for call in some]
    warned = [guard for guard in guards if guard.type == "failure" and guard.warning is not None]
    repeats = [_repeated(calls.get(guard.session, ()), guard) for guard in warned]
    tried = len(skills(every, rate=0.0))
    return WorkMeasures(
        calls=len(every),
        failed=sum(bool(call.failed) for call in every),
        warned=len(warned),
        repeated_after_warning=sum(repeats),
        avoided=repeats.count(0) / len(warned) if warned else None,
        sequences=tried,
        skills=promoted,
        promotion_rate=promoted / tried if tried else None,
    )


def _repeated(calls: Sequence[PastCall], guard: GuardInfo) -> int:
    """How often a failure came again after its warning."""
    page = page_position(guard.page) or 0
    at = next((at for at, call in enumerate(calls) if call.page == page), None)
    if at is None:
        return 0
    warned = calls[at]
    return sum(
        warned in same_failures([warned, call]) for call in calls[at + 1 :] if call.failed and call.tool == warned.tool
    )
