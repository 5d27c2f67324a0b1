"""The numbers of a live session at a moment, folded from its log up to there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vmstore.core.mutation import Create
from vmstore.live.session_log import SessionLog
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import in_force
from vmstore.vm.kernel.state import State
from vmstore.vm.metrics.metrics import Metrics
from vmstore.vm.metrics.report import Measures
from vmstore.vm.recall.topics import tagged


class SessionMetrics(NamedTuple):
    """The policy and the budget in force, and the numbers."""

    policy: str
    budget: int
    measures: Measures


def measured(log: Log, lane: Branch, position: int, check: Callable[[], object] = bool) -> SessionMetrics | None:
    """Metrics of a session's memory up to a position; None where it has no budget by then.

    It costs the session's length; `check` raises where nobody waits any more.
    """
    if in_force(lane, position) is None:
        return None
    facts = SessionLog(log, lane)

    def about(position: int, made: Create) -> bytes:
        return b"" if made.labels is None else tagged(facts.cell(position, made.labels))

    state, metrics = State(facts.cell), Metrics(about)
    for commit in facts.after(0, position):
        check()
        metrics.begin(commit.at)
        for at, mutation in commit.mutations:
            state.apply(at, mutation)
            metrics.note(state, at, mutation)
    assert state.settings is not None and state.policy is not None, "settings are in force"
    policy = f"{state.policy.NAME}@{state.policy.VERSION}"
    return SessionMetrics(policy, state.settings.l0_tokens_max, metrics.measures(state))
