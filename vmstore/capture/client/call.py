"""One HTTP request to a model under way: held as it was sent, its answer as it passes to the caller."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from vmstore.capture.client.body import ANSWER_BYTES_MAX, Endpoint, ResponseBody, endpoint
from vmstore.capture.client.recorder import ClientExchange, MissedCall, Recorder

SYNC_STREAM, ASYNC_STREAM = "SyncByteStream", "AsyncByteStream"  # of httpx and of what descends from it


class ClientCall:
    """One request to a model; whatever ends it first ends it for good."""

    __slots__ = ("_at", "_body", "_ended", "_held", "_recorder", "_response", "_session", "_size", "_started")

    def __init__(self, recorder: Recorder, body: bytes) -> None:
        self._recorder = recorder
        self._body = body
        self._session = recorder.session_of(body)
        self._ended = False
        self._response: tuple[Any, ...] = (None, "", "", None)
        self._held: list[bytes] = []
        self._size = 0
        self._at = recorder.clock.now()
        self._started = recorder.clock.ticks()

    def take(self, data: bytes) -> None:
        """Holds a piece of the answer on its way to the caller."""
        self._size += len(data)
        if self._size <= ANSWER_BYTES_MAX:
            self._held.append(data)

    def passed(self, response: Any, stream: bool, base: str) -> Any:
        """The response for the caller; a stream, of the library's class `base`, is still to be read and gets a tap."""
        try:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            encoding = response.headers.get("content-encoding", "") if stream else ""  # content is decoded when read
            self._response = (response.status_code, kind, encoding, type(response))
            if stream:
                response.stream = tap(response.stream, base)(response.stream, self)
            else:
                self.take(response.content)
                self.end()
        except Exception as error:
            self.lose(error)
        return response

    def lose(self, problem: object) -> None:
        """Ends the call as one that could not be recorded."""
        if not self._ended:
            self._ended = True
            self._recorder.submit(MissedCall(self._recorder.trouble(problem), self._session))

    def end(self, error: BaseException | None = None) -> None:
        """Hands the call to the recorder: what came of its answer, and what broke it."""
        if self._ended:
            return
        try:
            latency = self._recorder.clock.ticks() - self._started
            status, kind, encoding, response_type = self._response
            cut = self._size > ANSWER_BYTES_MAX
            data = b"" if cut else b"".join(self._held)
            twin = None if error is None else twin_of(error)
            answer = ResponseBody(status, kind, encoding, data, twin, response_type, cut)
            job = ClientExchange(self._session, self._body, answer, self._at, latency)
        except Exception as problem:
            self.lose(problem)
            return
        self._ended = True
        self._held = []
        self._recorder.submit(job)


def begun(recorder: Recorder, request: Any) -> ClientCall | None:
    """The call a request makes, or None where it asks no model or cannot be recorded."""
    try:
        path = request.url.path
        what = endpoint(request.method, path)
        if what is Endpoint.CALL:
            return ClientCall(recorder, request.content)
        if what is Endpoint.GAP:
            reason = f"calls to {path} cannot be recorded; chat completions, responses and messages can"
            recorder.submit(MissedCall(recorder.trouble(reason), recorder.session_of(None)))
        else:
            recorder.pass_over(request.method, path)
    except Exception as error:  # the request goes out, whatever happens here
        recorder.submit(MissedCall(recorder.trouble(error), None))
    return None


def twin_of(error: BaseException) -> BaseException:
    """An exception that says what `error` says and holds none of the agent's frames.

    The real one would keep them alive while it waits, and end them on the recorder's thread.
    """
    base = Exception if isinstance(error, Exception) else BaseException
    twin: BaseException = type(type(error).__name__, (base,), {})(str(error))
    return twin


class Tap:
    """A response's stream: its bytes are held as they pass, however it ends."""

    def __init__(self, stream: Any, call: ClientCall) -> None:
        self._vm_stream = stream
        self._vm_call = call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_vm_"):
            raise AttributeError(name)
        return getattr(self._vm_stream, name)

    def __del__(self) -> None:
        with suppress(Exception):
            self._vm_call.end()


class SyncTap(Tap):
    """A tapped stream, read and closed as the one behind it."""

    def __iter__(self) -> Iterator[bytes]:
        try:
            for data in self._vm_stream:
                self._vm_call.take(data)
                yield data
        except GeneratorExit:
            raise
        except BaseException as error:
            self._vm_call.end(error)
            raise
        self._vm_call.end()

    def close(self) -> None:
        """Closes the stream behind."""
        try:
            self._vm_stream.close()
        finally:
            self._vm_call.end()


class AsyncTap(Tap):
    """A tapped async stream, read and closed as the one behind it."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._vm_stream:
                self._vm_call.take(data)
                yield data
        except GeneratorExit:
            raise
        except BaseException as error:
            self._vm_call.end(error)
            raise
        self._vm_call.end()

    async def aclose(self) -> None:
        """Closes the stream behind."""
        try:
            await self._vm_stream.aclose()
        finally:
            self._vm_call.end()


def tap(stream: Any, base: str) -> type[Any]:
    """The class of taps for a stream; HTTP libraries look whether their own class is among its bases."""
    return _tap(next(kind for kind in type(stream).__mro__ if kind.__name__ == base))


@lru_cache(maxsize=8)
def _tap(base: type[Any]) -> type[Any]:
    ours = AsyncTap if base.__name__ == ASYNC_STREAM else SyncTap
    return type(ours.__name__, (ours, base), {"__module__": __name__})
