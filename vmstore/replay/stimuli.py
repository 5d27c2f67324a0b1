"""The stimuli of a recorded session, apart from what was decided of them.

A commit of a live session holds what happened, then what the kernel decided, and so again where
what came of it mattered for the next; a call's ends with its pack. A `compress` is the answer to a
decision that needed a shorter form, or to an eviction somebody asked for; where nothing else stands
in its commit, somebody asked for the form, and words about a picture, sound or film were handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeGuard

import msgspec

from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Holder
from vmstore.core.erasure import ErasedContent
from vmstore.core.page import Method
from vmstore.errors import ErasedError, InputError
from vmstore.vm.recall.topics import tagged

ASKED = frozenset((Cause.ASKED, Cause.RESTORE, Cause.SEGMENT, Cause.THOUGHT, Cause.ERASED))
HANDED_IN = frozenset((Method.CAPTION, Method.TRANSCRIPT))
_DECIDED = (m.FaultIn, m.FaultDenied, m.Prefetch, m.Pressure)
_PAST = (
    *(m.Annotate, m.Delete, m.Flush, m.Embed, m.Link, m.Unlink, m.Close, m.Open, m.Redact, m.Approve, m.Erase),
    *(m.Fact, m.Tag, m.Alias, m.Depth, m.ToolRun, m.GuardTrip, m.Promote),
)
"""What no act of a live session writes with decisions that it brings about by itself."""

At = tuple[int, m.AnyMutation]
"""A mutation and its position."""


class RecordedForm(NamedTuple):
    """A form that was recorded: its position and what it says."""

    position: int
    made: m.Compress


class StimulusCommit(msgspec.Struct, frozen=True):
    """One commit as it was recorded: its mutations in order, when it happened in microseconds since 1970.

    `settings` holds the bytes of each `settings` in it, by position, `topics` what its pages are about.
    """

    at: int
    mutations: tuple[At, ...]
    settings: dict[int, bytes] = {}
    topics: dict[int, bytes] = {}

    @property
    def last(self) -> int:
        """The position it ends at."""
        return self.mutations[-1][0]

    @property
    def end(self) -> At | None:
        """The pack or the mark it ends with."""
        return self.mutations[-1] if isinstance(self.mutations[-1][1], m.Pack | m.Mark) else None

    @property
    def past_the_kernel(self) -> bool:
        """Whether `annotate`, `batch`, `fork` or `erase` wrote it: the kernel decides on that at the next act."""
        past = (*_PAST, m.Evict, m.Unpin) if any(map(leaves_erased, self.mutations)) else _PAST
        return all(isinstance(mutation, past) for _, mutation in self.mutations)

    @property
    def decisions(self) -> list[At]:
        """The kernel's decisions."""
        return [(position, mutation) for position, mutation in self.mutations if is_decision(mutation)]

    @property
    def answers(self) -> list[RecordedForm]:
        """The forms that were made because a decision or an eviction needed them."""
        if self._forms_alone:
            return []
        return [RecordedForm(position, mutation) for position, mutation in self.mutations if _is_answer(mutation)]

    @property
    def runs(self) -> list[list[At]]:
        """Events in order, grouped as the kernel decided on them at once, without the end of the commit."""
        runs: list[list[At]] = [[]]
        alone, decided = self._forms_alone, False
        for position, mutation in self.mutations:
            if isinstance(mutation, m.Pack) or (isinstance(mutation, m.Mark) and position == self.last):
                continue
            if is_decision(mutation):
                decided = True
            elif alone or not _is_answer(mutation):
                if decided:
                    runs.append([])
                    decided = False
                runs[-1].append((position, mutation))
        return runs

    @property
    def _forms_alone(self) -> bool:
        kinds = {type(mutation) for _, mutation in self.mutations}
        return m.Compress in kinds and kinds <= {m.Compress, m.Mark, m.Pressure, m.Redact}


class Stimuli(msgspec.Struct):
    """A live session as it was recorded. `forms` are the shorter forms it has, by page and version, by level."""

    session: str
    rounds: list[StimulusCommit]
    forms: dict[tuple[int, int], dict[int, RecordedForm]]

    @property
    def position(self) -> int:
        """The last position."""
        return self.rounds[-1].last

    @property
    def mutations(self) -> int:
        """How many mutations there are."""
        return sum(len(found.mutations) for found in self.rounds)


def leaves_erased(entry: At) -> bool:
    """Whether a page leaves the prompt because it was erased."""
    return isinstance(entry[1], m.Evict) and entry[1].cause == Cause.ERASED


def is_decision(mutation: m.AnyMutation) -> bool:
    """Whether the kernel decided this; what a pack says of membership it decided too."""
    if isinstance(mutation, m.Evict):
        return mutation.cause not in ASKED
    if isinstance(mutation, m.Unpin):
        return mutation.holder == Holder.TURNS
    return isinstance(mutation, _DECIDED)


def _is_answer(mutation: m.AnyMutation) -> TypeGuard[m.Compress]:
    """Whether a form was made because it was needed, where its commit holds more than forms."""
    return isinstance(mutation, m.Compress) and mutation.method not in HANDED_IN


class RecordedCommit(NamedTuple):
    """A commit as the log tells it: when it was, its mutations by position, and what reads a cell one of them names."""

    at: int
    mutations: list[At]
    cell: Callable[[int, m.CellRef], bytes]


def round_of(commit: RecordedCommit) -> StimulusCommit:
    """A commit with the settings in it, and what its pages are about."""
    settings_by_position = {
        position: commit.cell(position, mutation.told)
        for position, mutation in commit.mutations
        if isinstance(mutation, m.Settings)
    }
    if any(isinstance(settings, ErasedContent) for settings in settings_by_position.values()):
        raise ErasedError(
            "the settings of this session were erased, so nothing of it can be decided again", code="settings-erased"
        )
    labels = ((position, mutation.labels) for position, mutation in commit.mutations if isinstance(mutation, m.Create))
    about = ((position, tagged(commit.cell(position, ref))) for position, ref in labels if ref is not None)
    return StimulusCommit(
        commit.at,
        tuple(commit.mutations),
        settings_by_position,
        {position: topic for position, topic in about if topic},
    )


def stimuli(session: str, commits: Iterable[RecordedCommit]) -> Stimuli:
    """The stimuli of a session; InputError where it was never live."""
    rounds = [round_of(commit) for commit in commits]
    if not any(found.settings for found in rounds):
        raise InputError(
            f"session {session!r} was recorded as it was and never had a budget, so there is nothing to decide again; "
            "import it with --vm budget=TOKENS",
            code="no-budget",
        )
    forms: dict[tuple[int, int], dict[int, RecordedForm]] = {}
    for found in rounds:
        for position, mutation in found.mutations:
            if isinstance(mutation, m.Compress):
                forms.setdefault((mutation.page, mutation.version), {}).setdefault(
                    mutation.level, RecordedForm(position, mutation)
                )
    return Stimuli(session, rounds, forms)
