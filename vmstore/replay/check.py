"""Decides a session again under its own settings and compares every decision with the recorded one."""

from __future__ import annotations

import msgspec

from vmstore.core import mutation as m
from vmstore.replay.redecide import Redecision, Shorten
from vmstore.replay.sink import MemorySink
from vmstore.replay.stimuli import At, Stimuli, StimulusCommit, is_decision
from vmstore.vm.kernel.state import State

NOTHING = "nothing"


class Difference(msgspec.Struct, frozen=True):
    """The first place where a run decides otherwise: `expected` was recorded, `found` is decided now."""

    session: str
    position: int
    turn: int
    call: int
    expected: str
    found: str

    def __str__(self) -> str:
        where = f"session {self.session!r}, position {self.position} (turn {self.turn}, after call {self.call})"
        return f"{where}: expected {self.expected}, found {self.found}"


class ReplayCheck(msgspec.Struct, frozen=True):
    """Result of a comparison, with the first difference where there is one."""

    session: str
    commits: int
    decisions: int
    difference: Difference | None

    @property
    def ok(self) -> bool:
        """Whether everything is decided as it was."""
        return self.difference is None


def check(stimuli: Stimuli, shorten: Shorten) -> ReplayCheck:
    """Compares every decision, and the membership and order of every pack, byte by byte."""
    paper = MemorySink()
    run = Redecision(paper, stimuli.forms, shorten, exact=True)
    decisions = 0
    for commits, recorded in enumerate(stimuli.rounds, 1):
        run.take(recorded)
        expected, found = _decided(recorded.mutations), _decided(paper.commit)
        for nth in range(max(len(expected), len(found))):
            was_decided, made = (side[nth] if nth < len(side) else None for side in (expected, found))
            if (
                was_decided is None
                or made is None
                or was_decided[0] != made[0]
                or _bytes(was_decided[1]) != _bytes(made[1])
            ):
                difference = _difference(stimuli.session, run.state, recorded, was_decided, made)
                return ReplayCheck(stimuli.session, commits, decisions, difference)
            decisions += 1
    return ReplayCheck(stimuli.session, len(stimuli.rounds), decisions, None)


def _decided(mutations: list[At] | tuple[At, ...]) -> list[At]:
    """The compared parts of a commit: decisions, forms made for them, and a pack's membership."""
    return [entry for entry in mutations if is_decision(entry[1]) or isinstance(entry[1], m.Compress | m.Pack)]


def _bytes(mutation: m.AnyMutation) -> bytes:
    return m.wire(_plain(mutation))


def _plain(mutation: m.AnyMutation) -> m.AnyMutation:
    """A mutation without what is a hash of contents."""
    return msgspec.structs.replace(mutation, root=b"") if isinstance(mutation, m.Pack) else mutation


def _difference(
    session: str, state: State, recorded: StimulusCommit, recorded_at: At | None, made: At | None
) -> Difference:
    position = recorded_at[0] if recorded_at is not None else made[0] if made is not None else recorded.last
    expected, found = (NOTHING if entry is None else _words(entry) for entry in (recorded_at, made))
    if recorded_at is not None and made is not None and recorded_at[0] != made[0]:
        expected, found = f"{expected} at position {recorded_at[0]}", f"{found} at position {made[0]}"
    return Difference(session, position, state.turn, state.call, expected, found)


def _words(entry: At) -> str:
    """A decision in words: its kind, and its fields as they stand in the log."""
    mutation = _plain(entry[1])
    if isinstance(mutation, m.Unknown):
        return mutation.kind
    fields = msgspec.structs.asdict(mutation)
    listed = ", ".join(f"{name} {_value(value)}" for name, value in fields.items() if value not in (None, b"", ()))
    return f"{mutation.kind} ({listed})"


def _value(value: object) -> str:
    return str(tuple(value)) if isinstance(value, tuple) else str(value)
