"""What-if runs: a session decided again under another policy or budget, beside the recording."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from vmstore.core import mutation as m
from vmstore.core.address import page_name
from vmstore.core.decision import Cause, Denial, Use, Why
from vmstore.replay.position_map import PositionMap
from vmstore.replay.redecide import Redecision, Shorten
from vmstore.replay.sink import MemorySink
from vmstore.replay.stimuli import At, Stimuli, StimulusCommit, is_decision
from vmstore.vm.metrics.belady import PageReference, belady
from vmstore.vm.metrics.report import Measures


class Optimum(msgspec.Struct, frozen=True):
    """Belady's choice on the same references, each page whole: its faults and their tokens.

    `above` is by how many faults a run had more; less than none where it held more pages by showing
    them shorter.
    """

    faults: int
    fault_tokens: int
    above: int


def optimum(stimuli: Stimuli, room: int, pinned: Collection[int], faults: int) -> Optimum | None:
    """The yardstick of a run with so many faults; None where pins leave no room.

    `room` is in tokens, without what is `pinned` in the end, which is no part of the trace. That a
    page arrives is no fault.
    """
    if room <= 0:
        return None
    uses = list(_uses(stimuli, pinned))
    arrived = [asked for asked, first in uses if first]
    cost = belady([asked for asked, _ in uses], room)
    least = cost.faults - len(arrived)
    return Optimum(least, cost.tokens - sum(asked.tokens for asked in arrived), faults - least)


def _uses(stimuli: Stimuli, pinned: Collection[int]) -> Iterator[tuple[PageReference, bool]]:
    """Every page that is not pinned as it arrives, and each use of one; whether it is the first."""
    tokens: dict[int, int] = {}
    for found in stimuli.rounds:
        for position, mutation in found.mutations:
            if isinstance(mutation, m.Create):
                if position not in pinned:
                    tokens[position] = mutation.tokens
                    yield PageReference(position, mutation.tokens), True
            elif isinstance(mutation, m.Update):
                if mutation.page in tokens:
                    tokens[mutation.page] = mutation.tokens
            elif isinstance(mutation, m.Reference) and mutation.use != Use.SIGNAL and mutation.page in tokens:
                yield PageReference(mutation.page, tokens[mutation.page]), False


Said = tuple[str, str]
"""A decision, in words, and its reason."""


class Divergence(msgspec.Struct, frozen=True):
    """The first decision that is another than the recorded one; either is None where nothing was decided."""

    position: int
    turn: int
    call: int
    recorded: str | None
    found: str | None
    reason: str


class SavedReplay(msgspec.Struct, frozen=True):
    """A what-if that is a session now: its name, and how many mutations and bytes of contents were written for it."""

    session: str
    mutations: int
    bytes: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run over a session: its settings, its numbers, and where it went another way than the recorded one.

    `settings` are those that were changed, `optimum` is Belady's choice on the same references,
    `fallbacks` the forms nobody had recorded, `refused` the pins that did not fit or had no page to
    hold. All is given the same references: what the model would have asked otherwise, no replay can
    know.
    """

    policy: str
    budget: int
    settings: dict[str, Any]
    measures: Measures
    optimum: Optimum | None = None
    divergence: Divergence | None = None
    fallbacks: int = 0
    refused: int = 0
    recorded: bool = False
    kept: SavedReplay | None = None


def as_recorded(
    stimuli: Stimuli, shorten: Shorten, *, price: int | None = None, check: Callable[[], object] = bool
) -> Run:
    """The numbers of a session as it was; `check` raises where nobody waits any more."""
    run = Redecision(MemorySink(), stimuli.forms, shorten, price=price)
    for found in stimuli.rounds:
        check()
        run.adopt(found)
    return run_report(run, stimuli, {}, None, recorded=True)


def what_if(
    stimuli: Stimuli,
    shorten: Shorten,
    changed: Mapping[str, Any],
    *,
    price: int | None = None,
    check: Callable[[], object] = bool,
) -> Run:
    """A session under changed settings, which are named as `settings` of a session are.

    `check` raises where nobody waits for the answer any more.
    """
    paper = MemorySink()
    run = Redecision(paper, stimuli.forms, shorten, changed, price=price)
    watch = DivergenceWatch(run)
    for found in stimuli.rounds:
        check()
        run.take(found)
        watch.look(found, paper.commit)
    return run_report(run, stimuli, changed, watch.divergence)


def run_report(
    run: Redecision,
    stimuli: Stimuli,
    changed: Mapping[str, Any],
    divergence: Divergence | None,
    *,
    recorded: bool = False,
) -> Run:
    """The report of a run that is over."""
    state = run.state
    assert state.settings is not None and state.policy is not None, "a session that is decided again has a budget"
    measures = run.metrics.measures(state)
    pinned = {run.places.recorded(resident.page): None for resident in state.here.values() if resident.pinned}
    return Run(
        policy=f"{state.policy.NAME}@{state.policy.VERSION}",
        budget=state.settings.l0_tokens_max,
        settings=dict(changed),
        measures=measures,
        optimum=optimum(stimuli, state.room - state.pinned, pinned, measures.faults),
        divergence=divergence,
        fallbacks=run.fallbacks,
        refused=run.refused,
        recorded=recorded,
    )


class DivergenceWatch:
    """Looks for the first decision that is another than the recorded one."""

    def __init__(self, run: Redecision) -> None:
        self._run = run
        self._nth = 0
        self.divergence: Divergence | None = None

    def look(self, recorded: StimulusCommit, made: list[At]) -> None:
        """Compares the decisions of a commit that both took."""
        self._nth += 1
        if self.divergence is not None:
            return
        state, places = self._run.state, self._run.places
        # The first commit is as it was recorded: what is made then is what the change of settings led to.
        expected = list(_decisions(recorded.decisions, None)) if self._nth > 1 else []
        found = list(_decisions(made, places))
        for nth in range(max(len(expected), len(found))):
            then, now = (decisions[nth] if nth < len(decisions) else None for decisions in (expected, found))
            if then is None or now is None or then[0] != now[0]:
                self.divergence = Divergence(
                    recorded.last,
                    state.turn,
                    state.call,
                    None if then is None else then[0],
                    None if now is None else now[0],
                    _reason(then, now),
                )
                return


def _decisions(mutations: list[At], places: PositionMap | None) -> Iterator[Said]:
    """Decisions, each page by its recorded name; pressure is left out, since it follows from the rest."""
    why: dict[int, Why] = {}
    for position, mutation in mutations:
        if not is_decision(mutation) or isinstance(mutation, m.Pressure):
            continue
        page = getattr(mutation, "page", 0)
        name = page_name(places.recorded(page) if places is not None else page) if page else "no page"
        reason = getattr(mutation, "why", None) or why.get(getattr(mutation, "first", 0))
        if reason is not None:
            why[position] = reason
        yield f"{mutation.kind} {name}{_how(mutation)}", "" if reason is None else _contest(mutation, reason, places)


def _how(decision: m.AnyMutation) -> str:
    if isinstance(decision, m.Evict):
        to = "" if decision.level is None else f" to level {decision.level}"
        return f"{to} for {Cause(decision.cause).word}"
    if isinstance(decision, m.FaultIn | m.Prefetch):
        return f" at level {decision.level}"
    return f" because {Denial(decision.because).word}" if isinstance(decision, m.FaultDenied) else ""


def _contest(decision: m.AnyMutation, why: Why, places: PositionMap | None) -> str:
    """The reason of a decision in words."""
    fields = [f"used {why.used:,} of {why.budget:,}", f"needed {why.need:,}"]
    if isinstance(decision, m.Evict):
        fields.append(f"score {decision.score}, {why.candidates} could go")
    if why.losers:
        score, page = why.losers[0]
        name = page_name(places.recorded(page) if places is not None else page)
        fields.append(f"next to go {name} with score {score}")
    return ", ".join(fields)


def _reason(then: Said | None, now: Said | None) -> str:
    parts = [
        f"{who}: {reason[1]}" for who, reason in (("recorded", then), ("now", now)) if reason is not None and reason[1]
    ]
    return "; ".join(parts)
