"""Processes beside this one: fresh Pythons that are sent their work and then unit after unit.

They run nothing of the program that wants them, so it needs no guard around what it does, and share
none of its open files. They are ended when the last answer is there: what they do can be done again.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from vmstore.errors import StoreError
from vmstore.workers.executor import Answer, Task, UnitOutcome, Worker, WorkerEnded, WorkUnit, done


class WorkerProcess:
    """One process, and the units it was given and did not answer yet, in order."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.line, theirs = Pipe()
        begin = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({theirs.fileno()})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", begin], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self.units: deque[WorkUnit[Any]] = deque()
        self._send(work)

    def give(self, unit: WorkUnit[Any]) -> None:
        """Gives it a unit, to be done when those before are."""
        self.units.append(unit)
        self._send(unit)

    def _send(self, message: object) -> None:
        try:
            self.line.send(message)
        except OSError as error:
            raise self._gone() from error

    def answer(self) -> UnitOutcome[Any, Any]:
        """The outcome of the unit it was given first."""
        try:
            answer, failed = self.line.recv()
        except (EOFError, OSError) as error:
            raise self._gone() from error
        return UnitOutcome(self.units.popleft(), answer, failed)

    def _gone(self) -> WorkerEnded:
        return WorkerEnded(f"a process that helped ended with {self.process.wait()}")

    def end(self) -> None:
        """Ends it, whatever it does."""
        self.line.close()
        self.process.kill()
        self.process.wait()


class LocalPool:
    """So many processes on this machine."""

    ahead = 2

    def __init__(self, count: int) -> None:
        self.count = count if sys.executable else 1

    def begin(self, work: Callable[[Task], Answer]) -> WorkerProcess:
        """Begins one more process."""
        return WorkerProcess(work)

    def ready(self, busy: Sequence[Worker[Task, Answer]]) -> Sequence[Worker[Task, Answer]]:
        """Waits until any has answered, or ended."""
        lines = {worker.line: worker for worker in busy if isinstance(worker, WorkerProcess)}
        return [lines[line] for line in wait(list(lines)) if isinstance(line, Connection)]

    def close(self) -> None:
        """Does nothing: processes share nothing."""


def serve(line: int) -> None:
    """The main loop of a worker: the work it reads from an open file, unit after unit, until the file ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, and ends us
    connection: Connection = Connection(line)
    try:
        work = _received(connection)
        while True:
            outcome = done(work, connection.recv())
            connection.send((outcome.answer, sendable(outcome.error)))
    except (EOFError, OSError):
        pass


def _received(connection: Connection) -> Callable[[Any], Any]:
    """The work that was sent; of what cannot be read here, work that says so of every unit."""
    try:
        work: Callable[[Any], Any] = connection.recv()
        return work
    except (EOFError, OSError):
        raise
    except Exception as error:
        unread = StoreError(f"the work cannot be read by another process ({error})", code="unit-failed")

        def refuse(task: object) -> None:
            raise unread

        return refuse


def sendable(error: Exception | None) -> Exception | None:
    """An error as another process can be told it."""
    if error is None:
        return None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return StoreError(f"{type(error).__name__}: {error}", code="unit-failed")
    return error
