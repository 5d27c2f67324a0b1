"""Many what-ifs at once: sessions times settings over all cores, gone on with where it stopped.

Each answer is one line of the results file, written when it is there. A task is known by its
session, where that stood, and its settings; a line that a crash tore is computed again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from vmstore.errors import InputError
from vmstore.replay.redecide import Shorten
from vmstore.replay.stimuli import Stimuli
from vmstore.replay.whatif import Run, as_recorded, what_if
from vmstore.replay.worker_pool import WorkerPool

Progress = Callable[[int, int], None]


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


class Results:
    """The runs there are so far; in a file where one is given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._runs: dict[bytes, Run] = {}
        if path is not None and path.exists():
            self._load(path)

    def _load(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for nth, text in enumerate(content[:whole].splitlines(), 1):
            try:
                line = msgspec.json.decode(text, type=ResultLine)
            except msgspec.DecodeError as error:
                raise InputError(
                    f"{path}, line {nth}, is no result of a sweep ({error}); name another file, or move this one away",
                    code="not-a-result",
                ) from error
            self._runs[Task(line.session, line.position, line.changed).key] = line.run
        if whole < len(content):
            os.truncate(path, whole)

    def find(self, task: Task) -> Run | None:
        """The run of a task that was done."""
        return self._runs.get(task.key)

    def add(self, task: Task, run: Run) -> None:
        """Keeps the run of a task."""
        self._runs[task.key] = run
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(ResultLine(*task, run)) + b"\n")


def sweep(
    source: SessionSource,
    tasks: Sequence[Task],
    *,
    processes: int | None = None,
    results: Path | None = None,
    price: int | None = None,
    progress: Progress | None = None,
) -> list[Run]:
    """The runs of tasks, in their order; `processes` work at once, this one among them, by default one a core.

    With a `results` file what is in it already is not computed again.
    """
    done = Results(results)
    missing = list({task.key: task for task in tasks if done.find(task) is None}.values())
    total = len({task.key for task in tasks})
    count = min(processes or os.cpu_count() or 1, len(missing)) if sys.executable else 1
    runs = _alone(source, missing, price) if count < 2 else _together(source, missing, count, price)
    for counted, (task, run) in enumerate(runs, total - len(missing) + 1):
        done.add(task, run)
        if progress is not None:
            progress(counted, total)
    return [run for run in map(done.find, tasks) if run is not None]


class _Worker:
    """Runs tasks; keeps the session it read last, which the next task is likely to want."""

    def __init__(self, source: SessionSource, price: int | None) -> None:
        self._source = source
        self._price = price
        self._name = ""
        self._read: tuple[Stimuli, Shorten] | None = None

    def run(self, task: Task) -> Run:
        """The run of one task."""
        if self._read is None or self._name != task.session:
            self._read, self._name = self._source.read(task.session), task.session
        stimuli, shorten = self._read
        if task.changed is None:
            return as_recorded(stimuli, shorten, price=self._price)
        return what_if(stimuli, shorten, task.changed, price=self._price)


def _alone(source: SessionSource, tasks: Sequence[Task], price: int | None) -> Iterator[tuple[Task, Run]]:
    worker = _Worker(source, price)
    for task in tasks:
        yield task, worker.run(task)


def _together(
    source: SessionSource, tasks: Sequence[Task], count: int, price: int | None
) -> Iterator[tuple[Task, Run]]:
    """Runs as they are done, by this process and others."""
    worker, waiting = _Worker(source, price), TaskQueue(tasks)
    mine = waiting.next(0)
    with WorkerPool(count - 1, _Worker(source, price).run) as crew:
        while mine is not None or crew.busy:
            crew.give(lambda nth: waiting.next(nth + 1))
            if mine is not None:
                yield mine, worker.run(mine)
            yield from crew.answers(waiting=mine is None)
            mine = waiting.next(0)


class TaskQueue:
    """Tasks nobody works on. A process stays with its session, which it need not read again."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._left: dict[str, list[Task]] = {}
        for task in tasks:
            self._left.setdefault(task.session, []).append(task)
        self._at: dict[int, str] = {}

    def next(self, worker: int) -> Task | None:
        """The next task of a process: of its session, else of one nobody has begun, else of the one with most left."""
        session = self._at.get(worker, "")
        if session not in self._left:
            begun = set(self._at.values())
            fresh = [name for name in self._left if name not in begun]
            session = max(fresh or self._left, key=lambda name: len(self._left[name]), default="")
        if not session:
            return None
        self._at[worker] = session
        task = self._left[session].pop(0)
        if not self._left[session]:
            del self._left[session]
        return task
