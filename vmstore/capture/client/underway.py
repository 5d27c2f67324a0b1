"""Calls under way: taken down when they begin, handed to the recorder when they end.

A stream goes through item by item, and ends when it is read to its end, breaks, is closed or
is forgotten; one that ended early is recorded without its last chunk, which says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

from vmstore.capture.client.recorder import Exchange, Missed, Recorder
from vmstore.capture.client.sdk import answer_of, raw_of, request_of, twin_of


class Call:
    """One call to a model; whatever ends it first ends it for good."""

    __slots__ = ("_at", "_ended", "_recorder", "_request", "_started", "helped", "streams")

    def __init__(self, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any], verb: str) -> None:
        self._recorder = recorder
        self._ended = False
        self.helped = verb == "stream"
        self.streams = self.helped or kwargs.get("stream") is True
        self._request: dict[str, Any] | Missed
        try:
            self._request = request_of(args, kwargs, verb)
        except Exception as error:  # the call goes on; what it was stays unknown
            self._request = Missed(recorder.trouble(error))
        self.start()

    def start(self) -> None:
        """Starts the clock: the request goes out now."""
        try:
            self._at = self._recorder.clock.now()
            self._started = self._recorder.clock.ticks()
        except Exception as error:
            self._request = Missed(self._recorder.trouble(error))

    def lose(self, problem: object) -> None:
        """Ends the call as one that could not be recorded."""
        self._request = Missed(self._recorder.trouble(problem))
        self.end(None)

    def end(self, answer: Any, error: BaseException | None = None) -> None:
        """Hands the call to the recorder: its answer, or the chunks of it and what broke it."""
        if self._ended:
            return
        self._ended = True
        job: Exchange | Missed
        try:
            job = self._ending(answer, error)
        except Exception as problem:
            job = Missed(self._recorder.trouble(problem))
        self._recorder.submit(job)

    def _ending(self, answer: Any, error: BaseException | None) -> Exchange | Missed:
        if isinstance(self._request, Missed):
            return self._request
        latency = self._recorder.clock.ticks() - self._started
        if not isinstance(answer, list):
            # Now, because the agent may change it; chunks nobody changes, they wait.
            answer = answer_of(answer) if error is None else twin_of(error)
        elif self.helped:
            answer = [raw for item in answer if (raw := raw_of(item)) is not None]
        if isinstance(answer, list) and error is not None:
            answer = [*answer, twin_of(error)]
        return Exchange(self._request, answer, self._at, latency)


def passed(result: Any, call: Call) -> Any:
    """What the caller gets: the result itself, its chunks taken down as they pass where it streams."""
    try:
        if call.streams and hasattr(result, "__aiter__"):
            return AsyncStream(result, call)
        if call.streams and hasattr(result, "__iter__"):
            return Stream(result, call)
    except Exception as error:
        call.lose(error)
    call.end(result)
    return result


async def awaited(pending: Awaitable[Any], call: Call) -> Any:
    """What the caller of an async client gets once the answer is there."""
    call.start()
    try:
        result = await pending
    except BaseException as error:
        call.end(None, error)
        raise
    return passed(result, call)


class Passing(ABC):
    """What both kinds of streams share: the real one behind, the chunks that came."""

    def __init__(self, real: Any, call: Call) -> None:
        self._vm_call = call
        self._vm_items: list[Any] = []
        self._vm_real = real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_vm_"):
            raise AttributeError(name)
        value = getattr(self._vm_real, name)
        if self._vm_call.helped:
            # These read the real stream themselves: the chunks would pass us by.
            if name == "text_stream":
                return self._vm_texts()
            if name == "until_done" or name.startswith("get_final_"):
                return self._vm_drained(value)
        return value

    def __del__(self) -> None:
        with suppress(Exception):
            self._vm_end()

    def _vm_end(self, error: BaseException | None = None) -> None:
        self._vm_call.end(self._vm_items, error)

    @abstractmethod
    def _vm_texts(self) -> Any:
        """The texts of the chunks still to come."""

    @abstractmethod
    def _vm_drained(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method of the real stream, called once all chunks came through here."""


class Stream(Passing):
    """A stream of chunks, passed through."""

    def __init__(self, real: Any, call: Call) -> None:
        super().__init__(real, call)
        self._vm_iterator = real if hasattr(real, "__next__") else iter(real)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            item = next(self._vm_iterator)
        except StopIteration:
            self._vm_end()
            raise
        except BaseException as error:
            self._vm_end(error)
            raise
        self._vm_items.append(item)
        return item

    def __enter__(self) -> Any:
        entered = self._vm_real.__enter__()
        return self if entered is self._vm_real else entered

    def __exit__(self, *raised: Any) -> Any:
        try:
            return self._vm_real.__exit__(*raised)
        finally:
            self._vm_end()

    def close(self) -> Any:
        """Closes the real stream."""
        try:
            return self._vm_real.close()
        finally:
            self._vm_end()

    def _vm_texts(self) -> Iterator[str]:
        for event in self:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                yield event.delta.text

    def _vm_drained(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def drained(*args: Any, **kwargs: Any) -> Any:
            for _ in self:
                pass
            return method(*args, **kwargs)

        return drained


class AsyncStream(Passing):
    """An async stream of chunks, passed through."""

    def __init__(self, real: Any, call: Call) -> None:
        super().__init__(real, call)
        self._vm_iterator = real if hasattr(real, "__anext__") else aiter(real)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await anext(self._vm_iterator)
        except StopAsyncIteration:
            self._vm_end()
            raise
        except BaseException as error:
            self._vm_end(error)
            raise
        self._vm_items.append(item)
        return item

    async def __aenter__(self) -> Any:
        entered = await self._vm_real.__aenter__()
        return self if entered is self._vm_real else entered

    async def __aexit__(self, *raised: Any) -> Any:
        try:
            return await self._vm_real.__aexit__(*raised)
        finally:
            self._vm_end()

    async def close(self) -> Any:
        """Closes the real stream."""
        try:
            return await self._vm_real.close()
        finally:
            self._vm_end()

    async def aclose(self) -> Any:
        """Closes the real stream."""
        try:
            return await self._vm_real.aclose()
        finally:
            self._vm_end()

    async def _vm_texts(self) -> AsyncIterator[str]:
        async for event in self:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                yield event.delta.text

    def _vm_drained(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def drained(*args: Any, **kwargs: Any) -> Any:
            async for _ in self:
                pass
            return await method(*args, **kwargs)

        return drained


class Entrance:
    """What an SDK's `stream()` gives back, sync or async: entering it sends the request."""

    def __init__(self, real: Any, call: Call) -> None:
        self._vm_call = call
        self._vm_real = real
        self._vm_stream: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_vm_"):
            raise AttributeError(name)
        return getattr(self._vm_real, name)

    def __enter__(self) -> Any:
        self._vm_call.start()
        try:
            entered = self._vm_real.__enter__()
        except BaseException as error:
            self._vm_call.end(None, error)
            raise
        self._vm_stream = passed(entered, self._vm_call)
        return self._vm_stream

    def __exit__(self, *raised: Any) -> Any:
        try:
            return self._vm_real.__exit__(*raised)
        finally:
            self._vm_end()

    async def __aenter__(self) -> Any:
        self._vm_stream = await awaited(self._vm_real.__aenter__(), self._vm_call)
        return self._vm_stream

    async def __aexit__(self, *raised: Any) -> Any:
        try:
            return await self._vm_real.__aexit__(*raised)
        finally:
            self._vm_end()

    def _vm_end(self) -> None:
        if isinstance(self._vm_stream, Passing):
            self._vm_stream._vm_end()
