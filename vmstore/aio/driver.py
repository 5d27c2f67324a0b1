"""Drives the rounds of a run with tasks: requests, streams and functions are awaited, the log is written in its thread.

What is no coroutine function is called in a thread of its own, and what it gives is awaited where it can be.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from vmstore.aio.session import Session
from vmstore.aio.worker import Worker
from vmstore.errors import InputError
from vmstore.store.live.driver import (
    ANSWERING,
    FailedCall,
    HostResults,
    Model,
    RunEnd,
    RunningCalls,
    RunText,
    StreamParts,
    Tools,
    advance,
    arguments,
    ended,
    is_stream,
)
from vmstore.vm.protocol.citation_filter import unmarked
from vmstore.vm.protocol.dialects.dialect import ToolCall
from vmstore.vm.protocol.loop import Answer, Ask, HostCalls, Rounds, RunResult


class Streamed:
    """The words of a run as they come, without citations: `async for`; `ran` says how it ended once all are taken.

    Closed before its end, as an `async with` does, it logs the call under way as aborted, with what came of it.
    """

    def __init__(self, worker: Worker, begin: Callable[[], Rounds], model_call: Model, own: Tools, *, parallel: bool):
        self._ended: list[RunResult | None] = []
        self._texts = _texts(worker, begin, model_call, own, self._ended, parallel=parallel)

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        return await anext(self._texts)

    async def __aenter__(self) -> Streamed:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the run where it is; twice does nothing."""
        await self._texts.aclose()

    @property
    def ran(self) -> RunResult:
        """The result of the run."""
        return ended(self._ended[0] if self._ended else None)


async def _texts(
    worker: Worker,
    begin: Callable[[], Rounds],
    model_call: Model,
    own: Tools,
    over: list[RunResult | None],
    *,
    parallel: bool,
) -> AsyncGenerator[str, None]:
    """Does what the rounds ask for, and gives the words as they come; how it ended is put in `over`."""
    run_text = RunText()
    going = await worker.do(begin)
    try:
        step = await worker.do(advance, going, None)
        while not isinstance(step, RunEnd):
            reply: Any = None
            if isinstance(step, Ask):
                hearing = _Hearing()
                try:
                    async for text in hearing.of(model_call, step.request):
                        for piece in run_text.more(text):
                            yield piece
                except BaseException as error:
                    _begin(worker, partial(advance, going, hearing.broken(error)))
                    raise
                reply = hearing.answer
            elif isinstance(step, HostCalls):
                calling = _Calling(own, step.calls)
                try:
                    await calling.wait(parallel=parallel)
                except BaseException as error:
                    _begin(worker, partial(advance, going, calling.broken(error)))
                    raise
                reply = HostResults(calling.values)
            else:
                for piece in run_text.more(unmarked(step.text)):
                    yield piece
            run_text.ended = True
            step = await worker.do(advance, going, reply)
        over.append(step.ran)
    finally:
        _begin(worker, going.close)


def _begin(worker: Worker, work: Callable[[], object]) -> None:
    """Asks for work that nobody waits for: a task that is cancelled waits no more. A store that is closed has none."""
    with suppress(InputError):
        worker.begin(work)


class _Hearing:
    """One model call under way."""

    def __init__(self) -> None:
        self._parts = StreamParts()
        self.answer = Answer(None)

    async def of(self, model_call: Model, request: dict[str, Any]) -> AsyncIterator[str]:
        """Calls the model and gives the words of a stream as they come."""
        response = await awaited(model_call, request)
        if not hasattr(response, "__aiter__") and not is_stream(response):
            self.answer = Answer(response)
            return
        try:
            async for part in _each(response):
                if text := self._parts.more(part):
                    yield text
        finally:
            await _close(response)
        if text := self._parts.end():
            yield text
        self.answer = Answer(self._parts.list, streamed=True)

    def broken(self, error: BaseException) -> Answer:
        """The answer so far of a call that raised."""
        return Answer(self._parts.list, streamed=True, error=error)


END = object()


async def _each(response: Any) -> AsyncIterator[Any]:
    """The parts of a stream; one that cannot be awaited is read in a thread."""
    if hasattr(response, "__aiter__"):
        async for part in response:
            yield part
        return
    parts = iter(response)
    while (part := await asyncio.to_thread(next, parts, END)) is not END:
        yield part


async def _close(response: Any) -> None:
    """Closes a stream's connection."""
    close = getattr(response, "aclose", None) or getattr(response, "close", None)
    if callable(close) and inspect.isawaitable(closed := close()):
        await closed


class _Calling(RunningCalls):
    """The same calls as tasks."""

    async def wait(self, *, parallel: bool) -> None:
        """Makes the calls, all at once or one after another."""
        if parallel:
            await asyncio.gather(*map(self._call, range(len(self._calls))))
            return
        for nth in range(len(self._calls)):
            await asyncio.create_task(self._call(nth))

    async def _call(self, nth: int) -> None:
        self.values[nth] = await _call(self._own, self._calls[nth])


async def _call(own: Tools, call: ToolCall) -> Any:
    ANSWERING.set(call.id)  # of this task alone
    try:
        given = await awaited(partial(own[call.tool], **arguments(call)))
        return given._session if isinstance(given, Session) else given
    except Exception as error:  # a tool that fails answers so, and the run continues
        return FailedCall(error)


async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function, called here where it does not block other tasks."""
    of = function.func if isinstance(function, partial) else function
    by = of if inspect.isroutine(of) else type(of).__call__
    if inspect.iscoroutinefunction(by) or inspect.isasyncgenfunction(by):
        found = function(*arguments)
    else:
        found = await asyncio.to_thread(function, *arguments)
    return await found if isinstance(found, Awaitable) else found
