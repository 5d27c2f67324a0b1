"""The one thread that does a store's work for tasks that await it, in the order it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from vmstore.core.system import after_fork
from vmstore.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")


class Worker:
    """The one thread that does a store's work."""

    def __init__(self) -> None:
        self._ended = False
        self.forked()
        after_fork.inherits(self)

    def forked(self) -> None:
        """Starts over in a forked process, where the thread of its parent is not."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vmstore-aio")

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Does some work after what was asked before it."""
        return await asyncio.wrap_future(self.begin(work, *args, **kwargs))

    def begin(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Asks for some work."""
        if self._ended:
            raise InputError("the store is closed; open it again", code="closed")
        return self._thread.submit(partial(work, *args, **kwargs))

    async def end(self, last: Callable[[], None]) -> None:
        """Does the last work, even if nobody waits for it any more, and ends the thread; twice does nothing."""
        if not self._ended:
            done = self.begin(last)
            self._ended = True
            self._thread.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(done))
