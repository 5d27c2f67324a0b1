"""Processes that do tasks beside this one: fresh Pythons that are sent their work and then task after task.

They run nothing of the program that wants them, so it needs no guard around what it does, and share
none of its open files. They are ended when the last answer is there: what they do only reads.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import Generic, TypeVar

from vmstore.errors import StoreError

AHEAD = 2  # tasks a process has at a time: it does the next one while nobody hears its answer

Task = TypeVar("Task")
Answer = TypeVar("Answer")


class WorkerProcess(Generic[Task, Answer]):
    """One process, and the tasks it was given and did not answer yet, in order."""

    def __init__(self, work: Callable[[Task], Answer]) -> None:
        self.line, theirs = Pipe()
        begin = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({theirs.fileno()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", begin], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self.tasks: deque[Task] = deque()
        self._send(work)

    def give(self, task: Task) -> None:
        """Gives it a task, to be done when those before are."""
        self.tasks.append(task)
        self._send(task)

    def _send(self, message: object) -> None:
        try:
            self.line.send(message)
        except OSError as error:
            raise self._gone() from error

    def answer(self) -> tuple[Task, Answer]:
        """The task it was given first and its answer; raises what doing it raised."""
        try:
            found = self.line.recv()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        if isinstance(found, BaseException):
            raise found
        return self.tasks.popleft(), found

    def _gone(self) -> StoreError:
        code = self._process.wait()
        return StoreError(
            f"a process that helped ended with {code} before it answered; free some memory, or let one process do it",
            code="worker-ended",
        )

    def end(self) -> None:
        """Ends it, whatever it does."""
        self.line.close()
        self._process.kill()
        self._process.wait()


class WorkerPool(Generic[Task, Answer]):
    """So many processes that do the same work; they end with the `with`."""

    def __init__(self, count: int, work: Callable[[Task], Answer]) -> None:
        self._count = count
        self._work = work
        self._mates: list[WorkerProcess[Task, Answer]] = []

    def __enter__(self) -> WorkerPool[Task, Answer]:
        try:
            for _ in range(self._count):
                self._mates.append(WorkerProcess(self._work))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for mate in self._mates:
            mate.end()

    def give(self, next_of: Callable[[int], Task | None]) -> None:
        """Gives tasks to who has few, the first to all before the second to any; `next_of` a process by number."""
        for few in range(AHEAD):
            for nth, mate in enumerate(self._mates):
                if len(mate.tasks) <= few and (task := next_of(nth)) is not None:
                    mate.give(task)

    def answers(self, *, waiting: bool) -> Iterator[tuple[Task, Answer]]:
        """The answers that are there; with `waiting` at least one, where a task is not answered."""
        at_work = {mate.line: mate for mate in self._mates if mate.tasks}
        for line in wait(list(at_work), None if waiting else 0) if at_work else ():
            assert isinstance(line, Connection)
            yield at_work[line].answer()

    @property
    def busy(self) -> bool:
        """Whether a task is not answered."""
        return any(mate.tasks for mate in self._mates)


def serve(line: int) -> None:
    """The main loop of a worker: the work it reads from an open file, task after task, until the file ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, and ends us
    connection: Connection = Connection(line)
    try:
        work = connection.recv()
        while True:
            task = connection.recv()
            connection.send(_done(work, task))
    except (EOFError, OSError):
        pass


def _done(work: Callable[[Task], Answer], task: Task) -> Answer | Exception:
    try:
        return work(task)
    except Exception as error:
        return error
