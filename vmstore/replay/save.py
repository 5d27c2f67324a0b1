"""Keeps a what-if: a fork of the session at its first commit's end, with every page and form of its own.

It costs the session's length: what was said is written again beside what is decided of it now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from vmstore.core import mutation as m
from vmstore.core.erasure import ErasedContent
from vmstore.core.page import Origin
from vmstore.core.text.skeleton import dumps, loads
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.engine.head import NewSession
from vmstore.engine.transfer.rewrite import inherit
from vmstore.errors import InputError
from vmstore.replay.redecide import Redecision, Shorten
from vmstore.replay.sink import MemorySink, Place, ReplayForm
from vmstore.replay.stimuli import RecordedCommit, RecordedForm, Stimuli, round_of
from vmstore.replay.whatif import DivergenceWatch, Run, SavedReplay, run_report

Contents = Callable[[int], bytes]
"""The content that was recorded at a position."""


class RunWriter(MemorySink):
    """Writes a run into a batch."""

    def __init__(self, batch: Batch, contents: Contents) -> None:
        super().__init__()
        self.bytes = self.mutations = 0
        self.read: RecordedCommit | None = None  # the recorded commit under way
        self._batch = batch
        self._contents = contents

    def _placed(self, mutation: m.AnyMutation) -> int:
        self.mutations += 1
        return self._batch.add(mutation)

    def sealed(self, position: int, mutation: m.AnyMutation, own: Place) -> m.AnyMutation:
        """The mutation with its cells sealed for this session; settings are sealed elsewhere."""
        if isinstance(mutation, m.Unknown | m.Settings):
            return mutation
        if isinstance(mutation, m.Mark) and mutation.reason == m.Mark.NAMED and mutation.note is not None:
            pages = [(own(page), level) for page, level in loads(self._commit.cell(position, mutation.note))]
            name = None if mutation.name is None else self._cell(self._commit.cell(position, mutation.name))
            return msgspec.structs.replace(mutation, name=name, note=self._cell(dumps(pages)))
        if isinstance(mutation, m.Embed) and self._erased(position, mutation.vectors):
            mutation = msgspec.structs.replace(mutation, vectors=None)
        return m.sealed_again(mutation, lambda ref: self._cell(self._commit.cell(position, ref)))

    def _erased(self, position: int, ref: m.CellRef | None) -> bool:
        return ref is not None and isinstance(self._commit.cell(position, ref), ErasedContent)

    def settings(self, values: bytes) -> m.CellRef:
        """A cell with settings."""
        return self._cell(values)

    def copied(self, form: RecordedForm) -> m.CellRef:
        """A cell with a form that was recorded."""
        return self._cell(self._contents(form.position))

    def made(self, form: ReplayForm) -> m.CellRef:
        """A cell with a form of the run's own."""
        return self._cell(form.content)

    def packed(self, pack: m.Pack) -> m.Pack:
        """The pack with the root the gate foresees; its totals are the kernel's, which the gate checks."""
        return msgspec.structs.replace(pack, root=self._batch.head.foresee(pack.entered, pack.left).root)

    def end(self, at: int) -> None:
        """Ends a commit."""
        super().end(at)
        self._batch.end(at)

    @property
    def _commit(self) -> RecordedCommit:
        assert self.read is not None, "a cell is read as its commit is met"
        return self.read

    def _cell(self, content: bytes) -> m.CellRef:
        self.bytes += len(content)
        return self._batch.cell(content)


class SessionCopy(NamedTuple):
    """A session to be written again: its key, its commits once more, and its contents by position."""

    key: int
    commits: Iterable[RecordedCommit]
    contents: Contents


def written(
    engine: Engine, stimuli: Stimuli, source: SessionCopy, name: str, changed: Mapping[str, Any], shorten: Shorten
) -> Run:
    """Writes a what-if as a session of its own, whole or not at all."""
    first = stimuli.rounds[0]
    if len(stimuli.rounds) < 2:
        raise InputError(
            f"session {stimuli.session!r} is one commit long, and a fork begins after the first; go on with it, then "
            "keep what would have been"
        )
    opening = NewSession(name, origin=Origin.FORK, parent=source.key, parent_position=first.last)
    batch = engine.begin(opening, first.at, redacted=True)
    inherit(engine, batch.head, opening)
    paper = RunWriter(batch, source.contents)
    run = Redecision(paper, stimuli.forms, shorten, changed)
    watch = DivergenceWatch(run)
    at = first.at
    for commit in source.commits:
        paper.read, found = commit, round_of(commit)
        run.take(found)
        watch.look(found, paper.commit)
        at = commit.at
    batch.commit(at, dense=True)
    engine.follow()
    kept = SavedReplay(name, paper.mutations, paper.bytes)
    return msgspec.structs.replace(run_report(run, stimuli, changed, watch.divergence), kept=kept)
