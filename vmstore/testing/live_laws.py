"""The laws of a live session: each looks at a life that was played and raises where it is broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Holder, Use
from vmstore.core.mutation import AnyMutation, CellRef, decode
from vmstore.core.text.token_estimate import estimate
from vmstore.live import runtime
from vmstore.live.runtime import Runtime
from vmstore.live.session_log import SessionLog
from vmstore.live.transcript import Transcript
from vmstore.log.commit import Commit
from vmstore.replay.stimuli import ASKED
from vmstore.store.live.live_session import Live
from vmstore.testing.simulate_live import LiveRun, Step
from vmstore.vm.kernel.state import State


class RefoldedSession:
    """A session's state and words folded from the log alone, commit by commit."""

    def __init__(self, session: Live) -> None:
        session.look(lambda runtime: None)
        session._ns.follow()
        self._facts = SessionLog(session._ns.log, session._lane())
        self.state, self.spoken = State(self._read), Transcript(self._read)
        self.cells: dict[tuple[int, CellRef], bytes] = {}

    def _read(self, position: int, ref: CellRef) -> bytes:
        return self._facts.cell(position, ref)

    def commits(self) -> Any:
        """Each commit, folded."""
        for commit in self._facts.after(0):
            for position, mutation in commit.mutations:
                self.state.apply(position, mutation)
                self.spoken.apply(position, mutation)
            yield commit


def mutations(session: Live) -> list[tuple[int, AnyMutation]]:
    """The mutations of a session."""
    return [mutation for commit in RefoldedSession(session).commits() for mutation in commit.mutations]


def plain(thing: Any) -> Any:
    """All a state or what was spoken holds, in plain values."""
    values = {name: value for name, value in vars(thing).items() if name not in ("_read", "policy")}
    if isinstance(thing, State) and thing.policy is not None:
        values["order"] = [tuple(victim) for victim in thing.policy.victims(thing.now)]
    return msgspec.to_builtins(values, str_keys=True, builtin_types=(bytes,), enc_hook=repr)


# ---- 6: the budget and the pins


def within_budget(life: LiveRun) -> None:
    """At the end of every commit the prompt is within the budget in force, and at every pack what was packed is."""
    for session in life.live:
        folded = RefoldedSession(session)
        for commit in folded.commits():
            state = folded.state
            assert state.used == sum(resident.tokens for resident in state.here.values())
            assert state.settings is None or state.used <= state.budget, (
                f"{state.used} of {state.budget} at {state.position}"
            )
            for position, mutation in commit.mutations:
                if isinstance(mutation, m.Pack):
                    assert mutation.tokens <= state.window <= state.budget, f"the pack at {position} is too large"


def pins_hold(life: LiveRun) -> None:
    """A page that is pinned, by hand or by its type, never leaves the prompt."""
    for session in life.live:
        holders: dict[int, set[int]] = {}
        for position, mutation in mutations(session):
            match mutation:
                case m.Pin():
                    holders.setdefault(mutation.page, set()).add(mutation.holder)
                case m.Unpin() if mutation.holder != Holder.TURNS:
                    holders.setdefault(mutation.page, set()).discard(mutation.holder)
                case m.Evict() if mutation.cause not in (Cause.ASKED,) or mutation.level is None:
                    assert not holders.get(mutation.page), f"p{mutation.page} is pinned and gave way at {position}"


# ---- 5: full stays full


def full_stays_full(life: LiveRun) -> None:
    """Every byte that was handed in comes back, from the store and through a fault at level 0."""
    for session in life.live:
        for (owner, page), exact in life.exact.items():
            if owner == session.name:
                assert session.content(page) == exact
    for (owner, page), exact in list(life.exact.items()):
        if owner == life.session.name:
            state, number = life.runtime.state, int(page[1:])
            own = state.here[number].tokens if number in state.here and state.pages[number].pinned else 0
            staying = (
                state.pinned - own + sum(state.here[other].tokens for other in state.yielding() if other != number)
            )
            fits = state.budget - staying
            if state.pages[number].pinned:  # what never yields leaves the reserves alone
                fits = min(fits, state.room - state.pinned + own)
            found = life.session.page_fault(page, 0)
            if found.level == 0:
                assert found.content == exact, f"{page} came back as something else"
            else:
                assert estimate(exact, state.pages[number].modality) > fits, f"{page} fits"
                assert found.granted or found.denied_because == "no_room", found.denied_because


# ---- 1: live equals replayed, 2: another process sees the same


def live_is_replayed(life: LiveRun) -> None:
    """A state and words folded again from the log equal those that lived, field by field."""
    for session in life.live:
        session.look(lambda runtime: None)
        lived: Runtime = session.runtime()
        folded = RefoldedSession(session)
        assert list(folded.commits())
        assert plain(folded.state) == plain(lived.state)
        assert plain(folded.spoken) == plain(lived.spoken)


def repeated_run(steps: list[Step], path: Path | None = None) -> None:
    """The same acts write the same mutation bodies: in one process, and in ones that die after every act.

    Of these one reads the log, and where there is a path to lie at one a snapshot.
    """
    lives = [LiveRun(calm=True), LiveRun(calm=True), *([LiveRun(path, calm=True)] if path is not None else [])]
    first, *others = lives
    ordinal = 0
    with snapshots_at_once():
        for number, step in enumerate(steps):
            for life in lives:
                life.play(step)
            for life in others:
                life.store._ns._keep()
                forgotten(life)
            added = [[mutations_of(commit) for commit in life.store.admin.log.tail(ordinal, 1 << 30)] for life in lives]
            assert all(other == added[0] for other in added), f"step {number}, {step}, wrote otherwise after a death"
            ordinal = first.store.admin.log.ordinal
    for life in lives:
        life.close()


def mutations_of(commit: Commit) -> tuple[int, list[Any]]:
    """The mutations of a commit, without voided tokens, which only the sender of the call before knows."""
    mutations = decode(commit.body)
    return commit.session, [
        msgspec.structs.replace(mutation, voided=None) if isinstance(mutation, m.Pack) else mutation
        for mutation in mutations
    ]


def forgotten(life: LiveRun) -> None:
    """The process dies: what it had in memory of any session is gone."""
    life.store._ns.live.clear()
    life.store._ns.elsewhere.clear()


@contextmanager
def snapshots_at_once() -> Iterator[None]:
    """A snapshot is written whenever one may be, however little was folded since the last."""
    known = vars(runtime)
    before, known["EVERY"] = known["EVERY"], 0
    try:
        yield
    finally:
        known["EVERY"] = before


def bodies(life: LiveRun) -> list[tuple[int, bytes]]:
    """The bodies of all commits, each with its session."""
    return [(commit.session, commit.body) for commit in life.store.admin.log.tail(0, 1 << 30)]


# ---- 4: reasons


def reasons_are_given(life: LiveRun) -> None:
    """Every decision carries its reasons or points at them, and they say what the state was."""
    for session in life.live:
        folded = RefoldedSession(session)
        used = 0
        known: dict[int, Any] = {}
        references: dict[int, m.Reference] = {}
        for position, mutation in each(folded):
            state = folded.state
            match mutation:
                case m.Reference():
                    references[position] = mutation
                case m.FaultIn() | m.Prefetch() | m.FaultDenied():
                    asked = references[mutation.reference]
                    assert (asked.use == Use.SIGNAL) == isinstance(mutation, m.Prefetch)
                    assert asked.page == mutation.page or mutation.page == 0
                    reason_is_given(mutation.why, state, known, used)
                case m.Evict() if mutation.cause not in ASKED:
                    if mutation.why is None:
                        assert mutation.first in known, f"nobody says why p{mutation.page} gave way at {position}"
                    else:
                        known[position] = mutation.why
                        reason_is_given(mutation.why, state, {}, used)
            used = state.used


def each(folded: RefoldedSession) -> Any:
    """Mutations one by one, each folded when it is given."""
    for commit in folded._facts.after(0):
        for position, mutation in commit.mutations:
            folded.state.apply(position, mutation)
            folded.spoken.apply(position, mutation)
            yield position, mutation


def reason_is_given(why: Any, state: State, contests: dict[int, Any], used: int) -> None:
    """The numbers of a decision's reasons that the state tells."""
    assert state.policy is not None
    assert why.policy == state.policy.NUMBER and why.budget == state.budget
    assert why.used == used or any(contest.used == why.used for contest in contests.values()), "it used what it used"


# ---- what the model saw


def contexts_verify(life: LiveRun) -> None:
    """The log verifies, and each pack's context is the prompt the kernel had, page by page, in its order."""
    verdict = life.store.verify()
    assert verdict.ok, verdict
    for name, call, here in life.packs:
        context = life.store.session(name).context(call=call)
        shown = {page.page: page.level for page in context.pages}
        assert shown == {page: level for page, (level, _) in here.items()}
        assert [page.page for page in context.pages] == sorted(here, key=lambda page: here[page][1])
