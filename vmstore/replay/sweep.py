"""Many what-ifs at once: sessions times settings over many workers, gone on with where it stopped.

Each answer is one line of the results file. A task is known by its session, where that stood, and its
settings. Tasks are sent in units of so many mutations, those of a session together where they fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from vmstore.replay.redecide import Shorten
from vmstore.replay.stimuli import Stimuli
from vmstore.replay.whatif import Run, as_recorded, what_if
from vmstore.workers.choice import Choice, chosen
from vmstore.workers.executor import Progress, WorkUnit, answers, grouped
from vmstore.workers.results import ResultsFile


class SessionSource(Protocol):
    """The source of sessions. It is pickled for other processes, without its open handles."""

    def read(self, session: str) -> tuple[Stimuli, Shorten]:
        """The stimuli of a session, and what makes a form nobody recorded."""
        ...


class Task(NamedTuple):
    """A session as it stood at a position, and the settings that are changed; None for the recorded run."""

    session: str
    position: int
    changed: dict[str, Any] | None

    @property
    def key(self) -> bytes:
        """The key of the task."""
        changes = None if self.changed is None else dict(sorted(self.changed.items()))
        return msgspec.json.encode((self.session, self.position, changes))


class ResultLine(msgspec.Struct, frozen=True):
    """One line of the results file."""

    session: str
    position: int
    changed: dict[str, Any] | None
    run: Run


def _key(line: ResultLine) -> bytes:
    return Task(line.session, line.position, line.changed).key


def sweep(
    source: SessionSource,
    tasks: Sequence[Task],
    *,
    workers: Choice = 1,
    results: Path | None = None,
    price: int | None = None,
    progress: Progress | None = None,
) -> list[Run]:
    """The runs of tasks, in their order, by the workers chosen; see `vmstore.workers.choice`.

    With a `results` file what is in it already is not computed again.
    """
    done = ResultsFile(results, ResultLine, _key)
    missing = list({task.key: task for task in tasks if done.find(task.key) is None}.values())
    total = len({task.key for task in tasks})
    counted = total - len(missing)

    def keep(unit: WorkUnit[list[Task]], runs: list[Run]) -> None:
        nonlocal counted
        for task, run in zip(unit.task, runs, strict=True):
            done.add(ResultLine(*task, run))
            counted += 1
            if progress is not None:
                progress(counted, total)

    with chosen(workers) as crew:
        groups = [[task] for task in missing] if crew is None else grouped(missing, lambda task: task.position)
        answers(
            crew, SweepWorker(source, price).runs, [work_unit(group) for group in groups], keep=keep, kept=done.name
        )
    return [line.run for line in (done.find(task.key) for task in tasks) if line is not None]


def work_unit(tasks: list[Task]) -> WorkUnit[list[Task]]:
    """Tasks as a unit of work, named by their sessions."""
    names = list(dict.fromkeys(task.session for task in tasks))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    changed = tasks[0].changed if len(tasks) == 1 else None
    settings = "" if changed is None else " with " + ", ".join(f"{name}={value}" for name, value in changed.items())
    return WorkUnit(f"session {names[0]}{more}{settings}", tasks, sum(task.position for task in tasks))


class SweepWorker:
    """Runs tasks; keeps the session it read last, which the next task is likely to want."""

    def __init__(self, source: SessionSource, price: int | None) -> None:
        self._source = source
        self._price = price
        self._name = ""
        self._read: tuple[Stimuli, Shorten] | None = None

    def runs(self, tasks: Sequence[Task]) -> list[Run]:
        """The runs of tasks, in their order."""
        return [self.run(task) for task in tasks]

    def run(self, task: Task) -> Run:
        """The run of one task."""
        if self._read is None or self._name != task.session:
            self._read, self._name = self._source.read(task.session), task.session
        stimuli, shorten = self._read
        if task.changed is None:
            return as_recorded(stimuli, shorten, price=self._price)
        return what_if(stimuli, shorten, task.changed, price=self._price)
