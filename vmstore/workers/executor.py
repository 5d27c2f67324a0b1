"""Units of work and who does them: one interface over this process, others beside it, and a Ray cluster.

A unit is idempotent: done twice it gives the same answer. So one whose worker was killed is given to
another, and one that is in a file of results is not done again. Answers come as they are there, and
what one unit raises keeps nothing of the others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from vmstore.errors import StoreError, VmstoreError

TRIES = 2  # of a unit whose worker ended before it answered
NAMED_MAX = 3  # failed units that a message names
UNIT_ROWS = 10_000  # mutations of a unit: half a second, so that no worker is left with much at the end

Task = TypeVar("Task")
Answer = TypeVar("Answer")
Progress = Callable[[int, int], None]


class WorkUnit(NamedTuple, Generic[Task]):
    """A unit of work: its name in messages, what is to be done, how many rows that reads, its number among all."""

    name: str
    task: Task
    rows: int = 1
    number: int = 0


class UnitOutcome(NamedTuple, Generic[Task, Answer]):
    """A unit that was done: its answer, or what doing it raised."""

    unit: WorkUnit[Task]
    answer: Answer | None = None
    error: Exception | None = None


class Worker(Protocol[Task, Answer]):
    """One who does units in the order they are given; `units` are those not answered yet."""

    units: deque[WorkUnit[Task]]

    def give(self, unit: WorkUnit[Task]) -> None:
        """Gives it a unit, to be done when those before are; WorkerEnded where it is gone."""
        ...

    def answer(self) -> UnitOutcome[Task, Answer]:
        """The outcome of the unit it was given first; WorkerEnded where it ended before it answered."""
        ...

    def end(self) -> None:
        """Ends it, whatever it does."""
        ...


class Workers(Protocol):
    """A kind of workers, and how many may work at once."""

    @property
    def count(self) -> int:
        """How many work at once; one is the caller itself, in its own process."""
        ...

    @property
    def ahead(self) -> int:
        """How many units each has at a time; with two it does the next one while nobody hears its answer."""
        ...

    def begin(self, work: Callable[[Task], Answer]) -> Worker[Task, Answer]:
        """Begins one more worker, who does `work`."""
        ...

    def ready(self, busy: Sequence[Worker[Task, Answer]]) -> Sequence[Worker[Task, Answer]]:
        """Waits until any of some workers has answered, or ended; those who have."""
        ...

    def close(self) -> None:
        """Lets go of what the workers share."""
        ...


class WorkerEnded(Exception):  # noqa: N818  it says what happened to whom
    """A worker that is there no more; its message says how it ended."""


def failure(failed: Sequence[tuple[str, Exception]], total: int, kept: str | None) -> Exception:
    """The error of some units that failed, which names them: of their own class where all are of one code."""
    named = "; ".join(f"{name}: {error}" for name, error in failed[:NAMED_MAX])
    more = f"; and {len(failed) - NAMED_MAX} more" if len(failed) > NAMED_MAX else ""
    remedy = f"the others are kept in {kept}: run it again to do these alone" if kept else "the others were done"
    message = f"{len(failed)} of {total} units of work failed: {named}{more}; {remedy}"
    first = failed[0][1]
    kinds = {(type(error), getattr(error, "code", None)) for _, error in failed}
    if len(kinds) > 1 or not isinstance(first, VmstoreError):
        found = StoreError(message, code="units-failed")
        found.__cause__ = first
        return found
    if total > 1:
        first.args = (message,)
    return first


def outcomes(
    workers: Workers | None, work: Callable[[Task], Answer], units: Iterable[WorkUnit[Task]]
) -> Iterator[UnitOutcome[Task, Answer]]:
    """The outcome of each unit, as it is there; a caller that takes no more of them cancels the rest.

    Units with the most rows are begun first. Without workers this process does them, in their order.
    """
    listed = list(units)
    if workers is None or workers.count < 2 or len(listed) < 2:
        for unit in listed:
            yield done(work, unit)
        return
    yield from _Crew(workers, work, listed).outcomes()


def done(work: Callable[[Task], Answer], unit: WorkUnit[Task]) -> UnitOutcome[Task, Answer]:
    """Does a unit here."""
    try:
        return UnitOutcome(unit, work(unit.task))
    except Exception as error:
        return UnitOutcome(unit, error=error)


class _Crew(Generic[Task, Answer]):
    """Workers of one kind at work on some units."""

    def __init__(self, workers: Workers, work: Callable[[Task], Answer], units: Sequence[WorkUnit[Task]]) -> None:
        self._workers, self._work = workers, work
        self._waiting = deque(sorted(units, key=lambda unit: -unit.rows))
        self._tries: Counter[str] = Counter()
        self._crew: list[Worker[Task, Answer]] = []

    def outcomes(self) -> Iterator[UnitOutcome[Task, Answer]]:
        """The outcome of each."""
        try:
            for _ in range(min(self._workers.count, len(self._waiting))):
                self._crew.append(self._workers.begin(self._work))
            while self._waiting or any(worker.units for worker in self._crew):
                yield from self._given()
                for worker in self._workers.ready([worker for worker in self._crew if worker.units]):
                    try:
                        yield worker.answer()
                    except WorkerEnded as ended:
                        yield from self._replaced(worker, ended)
        finally:
            for worker in self._crew:
                worker.end()

    def _given(self) -> Iterator[UnitOutcome[Task, Answer]]:
        """Gives units to who has few, the first to all before the second to any."""
        for few in range(self._workers.ahead):
            for worker in list(self._crew):
                if not self._waiting:
                    return
                if len(worker.units) <= few:
                    unit = self._waiting.popleft()
                    try:
                        worker.give(unit)
                    except WorkerEnded as ended:
                        yield from self._replaced(worker, ended)

    def _replaced(self, worker: Worker[Task, Answer], ended: WorkerEnded) -> Iterator[UnitOutcome[Task, Answer]]:
        """Begins another in the place of one that ended; the unit it had in hand is tried once more."""
        worker.end()
        self._crew.remove(worker)
        left = list(worker.units)
        if left:
            first = left[0]
            self._tries[first.name] += 1
            if self._tries[first.name] >= TRIES:
                left.pop(0)
                yield UnitOutcome(first, error=_worker_ended(first, ended))
        self._waiting.extendleft(reversed(left))
        if self._waiting:
            self._crew.append(self._workers.begin(self._work))


def _worker_ended(unit: WorkUnit[Task], ended: WorkerEnded) -> StoreError:
    return StoreError(
        f"{ended} before it answered, {TRIES} times; free some memory, or let one process do {unit.name}",
        code="worker-ended",
    )


def answers(
    workers: Workers | None,
    work: Callable[[Task], Answer],
    units: Sequence[WorkUnit[Task]],
    *,
    keep: Callable[[WorkUnit[Task], Answer], None] = lambda unit, answer: None,
    kept: str | None = None,
) -> list[Answer]:
    """The answers of all units, in their order; where some failed, raises what `failure` says once all are done.

    `keep` is called with each answer as it is there, `kept` is where it keeps them.
    """
    found: dict[int, Answer] = {}
    failed: dict[int, Exception] = {}
    for outcome in outcomes(workers, work, [unit._replace(number=nth) for nth, unit in enumerate(units)]):
        if outcome.error is not None:
            failed[outcome.unit.number] = outcome.error
            continue
        answer: Answer = outcome.answer  # type: ignore[assignment]
        found[outcome.unit.number] = answer
        keep(outcome.unit, answer)
    if failed:
        raise failure([(units[nth].name, failed[nth]) for nth in sorted(failed)], len(units), kept)
    return [found[nth] for nth in range(len(units))]


def grouped(items: Iterable[Task], rows: Callable[[Task], int], most: int = UNIT_ROWS) -> list[list[Task]]:
    """Items one after the other in groups of so many rows at most, or of one that has more."""
    groups: list[list[Task]] = []
    room = 0
    for item in items:
        size = rows(item)
        if not groups or size > room:
            groups.append([])
            room = most
        groups[-1].append(item)
        room -= size
    return groups
