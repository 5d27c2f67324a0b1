"""S3-FIFO: three queues, a short one for what came first, a long one for what was used again, one for who left."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import ClassVar, NamedTuple

from vmstore.vm.policies.min_residency import classes
from vmstore.vm.policies.policy import PolicyMoment, ScoredPage
from vmstore.vm.policies.resident import Resident

HITS_MAX = 3
GHOSTS_MIN = 10


class QueueStep(NamedTuple):
    """One step of the queues: the next page is evicted, or moves to the long queue with `hits`."""

    page: int
    hits: int
    goes: bool


class Queues:
    """The queues of one class of pages; each in the order of coming, oldest first."""

    def __init__(self, short_tokens_max: int) -> None:
        self._short_tokens_max = short_tokens_max
        self._short_tokens = 0
        self._short: dict[int, None] = {}
        self._long: dict[int, None] = {}
        self._left: dict[int, None] = {}
        self._tokens: dict[int, int] = {}
        self._hits: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def enter(self, page: int, tokens: int) -> None:
        """A page comes: to the long queue if it left lately, else to the short one."""
        back = page in self._left
        self._left.pop(page, None)
        (self._long if back else self._short)[page] = None
        self._short_tokens += 0 if back else tokens
        self._tokens[page], self._hits[page] = tokens, 0

    def use(self, page: int) -> None:
        """A page is used; more than three times before it comes up count as three."""
        self._hits[page] = min(HITS_MAX, self._hits[page] + 1)

    def resize(self, page: int, tokens: int) -> None:
        """A page takes other tokens than before."""
        if page in self._short:
            self._short_tokens += tokens - self._tokens[page]
        self._tokens[page] = tokens

    def evict(self, page: int) -> None:
        """A page goes by choice: what came up before it was moved on, what could not go stands where it stood."""
        moved = []
        for step in self.steps():
            if step.page == page and step.goes:
                break
            if not step.goes:
                moved.append(step)
        for step in moved:
            self._promote(step.page, step.hits)
        if page in self._short:
            self._left[page] = None
        self.remove(page)
        while len(self._left) > max(GHOSTS_MIN, len(self._long)):
            del self._left[next(iter(self._left))]

    def _promote(self, page: int, hits: int) -> None:
        if page in self._short:
            del self._short[page]
            self._short_tokens -= self._tokens[page]
        self._long.pop(page, None)
        self._long[page] = None
        self._hits[page] = hits

    def remove(self, page: int) -> None:
        """A page is no longer there."""
        tokens = self._tokens.pop(page)
        del self._hits[page]
        if page in self._short:
            del self._short[page]
            self._short_tokens -= tokens
        else:
            del self._long[page]

    def steps(self) -> Iterator[QueueStep]:
        """The next steps, assuming that every evictable page is evicted; changes nothing."""
        short, tokens, shorts = iter(self._short), self._short_tokens, len(self._short)
        again: deque[int] = deque()
        long, longs = chain(self._long, _emptied(again)), len(self._long)
        hits: dict[int, int] = {}  # of those who come up again
        while shorts or longs:
            if shorts and (tokens > self._short_tokens_max or not longs):
                page = next(short)
                shorts, longs = shorts - 1, longs + 1
                tokens -= self._tokens[page]
                left = 0 if self._hits[page] else -1
            else:
                page = next(long)
                left = hits.get(page, self._hits[page]) - 1
            if left < 0:
                longs -= 1
            else:
                again.append(page)
                hits[page] = left
            yield QueueStep(page, max(left, 0), left < 0)


def _emptied(queue: deque[int]) -> Iterator[int]:
    """The pages of a queue, including those that join it meanwhile."""
    while queue:
        yield queue.popleft()


class S3FIFO1:
    """A page's score is how many pages come up before it goes.

    New pages wait in a short queue of `short` thousandths of the budget. Who comes up there goes, if it
    was not used since; otherwise it moves to the long queue, whose pages come up as often as they were used.
    """

    NAME: ClassVar[str] = "s3fifo"
    VERSION: ClassVar[int] = 1
    NUMBER: ClassVar[int] = 6
    PARAMETERS: ClassVar[Mapping[str, int]] = {"short": 100}
    LOWEST: ClassVar[Mapping[str, int]] = {}  # of the parameters that may not be 0

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        self._parameters = {**self.PARAMETERS, **parameters}
        self._short_tokens_max = budget * self._parameters["short"] // 1000
        self._classes = classes(parameters)
        self._queues = {kept: Queues(self._short_tokens_max) for kept in sorted(set(self._classes))}
        self._uses: dict[int, int] = {}

    def enter(self, resident: Resident, now: PolicyMoment) -> None:
        """A page comes into the prompt."""
        self._uses[resident.page] = resident.uses
        self._queue(resident).enter(resident.page, resident.tokens)

    def touch(self, resident: Resident, now: PolicyMoment) -> None:
        """A page in the prompt is used, or one of its numbers changed."""
        queue = self._queue(resident)
        queue.resize(resident.page, resident.tokens)
        if resident.uses != self._uses[resident.page]:
            self._uses[resident.page] = resident.uses
            queue.use(resident.page)

    def leave(self, resident: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        """A page leaves the prompt."""
        del self._uses[resident.page]
        if evicted:
            self._queue(resident).evict(resident.page)
        else:
            self._queue(resident).remove(resident.page)

    def victims(self, now: PolicyMoment) -> Iterator[ScoredPage]:
        """Every resident, the first to go first; good until something happens to one."""
        for kept, queues in self._queues.items():
            for at, step in enumerate(queues.steps()):
                if step.goes:
                    yield ScoredPage(kept + at, step.page)

    def _queue(self, resident: Resident) -> Queues:
        return self._queues[self._classes[resident.type]]
