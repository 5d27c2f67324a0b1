"""Drives the rounds of a run: sends the requests, reads streams, calls the host's functions in threads.

What a thread does here, `vmstore.aio.driver` does with tasks.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from vmstore.errors import InputError
from vmstore.providers import plain, words_of
from vmstore.vm.protocol.citation_filter import CitationFilter, unmarked
from vmstore.vm.protocol.dialects.dialect import ToolCall
from vmstore.vm.protocol.escape import finite, loads
from vmstore.vm.protocol.loop import Answer, Ask, HostCalls, HostResults, ResponseText, Rounds, RunResult, Step
from vmstore.vm.protocol.tool_calls import object_of

Model = Callable[[dict[str, Any]], Any]
Tools = Mapping[str, Callable[..., Any]]
BETWEEN = "\n\n"  # between the words of two rounds
AT_ONCE_MAX = 32  # functions called in threads at the same time
UNANSWERED = object()


class RunEnd(NamedTuple):
    """The rounds are over; `ran` is None where a model call raised."""

    ran: RunResult | None


class FailedCall(NamedTuple):
    """The error a host function raised, or the interrupt that ended it."""

    error: BaseException

    @property
    def said(self) -> str:
        """It in words, as far as it has any."""
        try:
            return f"{type(self.error).__name__}: {self.error}".removesuffix(": ")
        except Exception:  # the host's own class, whose words are code of the host's
            return type(self.error).__name__


class Streamed:
    """The words of a run as they come, without citations; `ran` says how it ended once they are all taken.

    Closed before its end, as a `with` does, it logs the call under way as aborted, with what came of it.
    """

    def __init__(self, texts: Generator[str, None, RunResult]) -> None:
        self._texts = texts
        self._ran: RunResult | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            return next(self._texts)
        except StopIteration as ended:
            self._ran = self._ran or ended.value
            raise StopIteration from None

    def __enter__(self) -> Streamed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the run where it is; twice does nothing."""
        self._texts.close()

    @property
    def ran(self) -> RunResult:
        """The result of the run."""
        return ended(self._ran)


def ended(ran: RunResult | None) -> RunResult:
    """The result of a run; InputError where it has not ended."""
    if ran is None:
        raise InputError("the run has not ended; take its words to their end first", code="still-running")
    return ran


def texts(model_call: Model, going: Rounds, own: Tools, *, parallel: bool) -> Generator[str, None, RunResult]:
    """Does what the rounds ask for, gives the words as they come, and how it ended.

    What the model call raises is raised, once it is logged.
    """
    said = RunText()
    try:
        step = advance(going, None)
        while not isinstance(step, RunEnd):
            reply: Any = None
            if isinstance(step, Ask):
                hearing = ModelCall()
                try:
                    for text in hearing.of(model_call, step.request):
                        yield from said.more(text)
                except BaseException as error:
                    advance(going, hearing.broken(error))
                    raise
                reply = hearing.answer
            elif isinstance(step, HostCalls):
                calling = RunningCalls(own, step.calls)
                try:
                    calling.make(parallel=parallel)
                except BaseException as error:
                    advance(going, calling.broken(error))
                    raise
                reply = HostResults(calling.values)
            else:
                yield from said.more(unmarked(step.text))
            said.ended = True
            step = advance(going, reply)
    finally:
        going.close()
    return ended(step.ran)


def advance(going: Rounds, reply: Any) -> Step | RunEnd:
    """The next step, given the reply to the last."""
    try:
        return going.send(reply)
    except StopIteration as over:
        return RunEnd(over.value)


class RunText:
    """The words of all rounds, with a blank line between those of two."""

    def __init__(self) -> None:
        self._any = False
        self.ended = False  # whether a round ended since something was said

    def more(self, text: str) -> Iterator[str]:
        """A further piece."""
        if text:
            if self.ended and self._any:
                yield BETWEEN
            self._any, self.ended = True, False
            yield text


class StreamParts:
    """The parts of a stream as they come, and the words they bring."""

    def __init__(self) -> None:
        self.list: list[Any] = []
        self._unmarked = CitationFilter()

    def more(self, part: Any) -> str:
        """A further part; the words that can be shown now."""
        value = plain(finite(part), f"stream part {len(self.list)}")
        if not isinstance(value, dict):
            kind = type(part).__name__
            raise InputError(f"the stream of the model call holds a {kind}; return the provider's parts as they come")
        self.list.append(value)
        return self._unmarked.feed(words_of(value))

    def end(self) -> str:
        """The words that waited."""
        return self._unmarked.end()


class ModelCall:
    """One model call under way."""

    def __init__(self) -> None:
        self._parts = StreamParts()
        self.answer = Answer(None)

    def of(self, model_call: Model, request: dict[str, Any]) -> Iterator[str]:
        """Calls the model and gives the words of a stream as they come."""
        response = model_call(request)
        if inspect.isawaitable(response):
            if inspect.iscoroutine(response):
                response.close()
            raise InputError(
                "the model call is to be awaited; run it on the async twin, vmstore.aio, or make it plain",
                code="async-call",
            )
        if not is_stream(response):
            self.answer = Answer(response)
            return
        try:
            for part in response:
                if text := self._parts.more(part):
                    yield text
        finally:
            if callable(close := getattr(response, "close", None)):
                close()
        if text := self._parts.end():
            yield text
        self.answer = Answer(self._parts.list, streamed=True)

    def broken(self, error: BaseException) -> Answer:
        """The answer so far of a call that raised."""
        return Answer(self._parts.list, streamed=True, error=error)


def is_stream(response: Any) -> bool:
    """Whether a model call gave the parts of a response; what a library made of a whole one can be looped over too."""
    whole = isinstance(response, Mapping | str | bytes) or callable(getattr(response, "model_dump", None))
    return not whole and hasattr(response, "__iter__")


class RunningCalls:
    """Some calls of functions under way: `values` has what each gave so far; what one raises is its value."""

    def __init__(self, own: Tools, calls: Sequence[ToolCall]) -> None:
        self._own, self._calls = own, calls
        self.values: list[Any] = [UNANSWERED] * len(calls)

    def make(self, *, parallel: bool) -> None:
        """Calls them, several at once in threads; raises what no tool may, such as KeyboardInterrupt, at once."""
        if len(self._calls) < 2 or not parallel:
            for nth, call in enumerate(self._calls):
                self.values[nth] = call_one(self._own, call)
        else:
            self._in_threads()

    def broken(self, error: BaseException) -> HostResults:
        """The results before the interrupt; the other calls count as failed."""
        return HostResults([FailedCall(error) if value is UNANSWERED else value for value in self.values], is_over=True)

    def _in_threads(self) -> None:
        """Has threads make the calls. Nobody waits for one that hangs: neither an interrupt nor the process's end."""
        left = deque((nth, call, contextvars.copy_context()) for nth, call in enumerate(self._calls))
        done: SimpleQueue[BaseException | None] = SimpleQueue()

        def work() -> None:
            with suppress(IndexError):
                while True:
                    nth, call, context = left.popleft()
                    try:
                        self.values[nth] = context.run(call_one, self._own, call)
                        done.put(None)
                    except BaseException as error:
                        done.put(error)

        for nth in range(min(len(self._calls), AT_ONCE_MAX)):
            threading.Thread(target=work, name=f"vmstore-tool_{nth}", daemon=True).start()
        try:
            for _ in self._calls:
                if (error := done.get()) is not None:
                    raise error
        finally:
            left.clear()


ANSWERING: contextvars.ContextVar[str] = contextvars.ContextVar("ANSWERING")
"""The id of the call that a function of the host's answers now."""


def calling(known: Container[str]) -> str | None:
    """The call that is being answered here, where it is one of those."""
    call = ANSWERING.get(None)
    return call if call in known else None


def call_one(own: Tools, call: ToolCall) -> Any:
    """The result of a function for a call, or the error it raised."""
    before = ANSWERING.set(call.id)
    try:
        return own[call.tool](**arguments(call))
    except Exception as error:  # a tool that fails answers so, and the run continues
        return FailedCall(error)
    finally:
        ANSWERING.reset(before)


def arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call; InputError where they are no JSON object, as in a stream that was cut."""
    given = call.arguments
    try:
        sound = not isinstance(given, str) or not given.strip() or isinstance(loads(given), dict)
    except ValueError:
        sound = False
    if not sound:
        raise InputError("the arguments are no JSON object; call again with one")
    return object_of(given)


def runnable(model_call: Any, tools: Any, rounds_max: Any) -> None:
    """Refuses what no run can be made with, before anything of it is logged."""
    if not callable(model_call):
        raise InputError(
            f"the model call is {model_call!r:.40}; give a function that takes a request and calls it",
            code="not-a-function",
        )
    if type(rounds_max) is not int or rounds_max < 0:
        raise InputError(f"rounds_max is a number of rounds from 0 up, not {rounds_max!r:.40}", code="not-a-limit")
    if not isinstance(tools, Mapping | Sequence) or isinstance(tools, str | bytes):
        raise InputError(
            f"tools are functions by name, {{'read': read}}, or a list of schemas, not {tools!r:.40}", code="not-tools"
        )
    for tool in () if isinstance(tools, Mapping) else tools:
        if callable(tool):
            name = getattr(tool, "__name__", "read")
            raise InputError(
                f"a list of tools holds schemas; give a function by its name: {{{name!r}: {name}}}", code="not-tools"
            )


def hearing(on_text: Any) -> None:
    """Refuses a listener that is no function."""
    if on_text is not None and not callable(on_text):
        raise InputError(f"on_text is {on_text!r:.40}; give a function that takes a text", code="not-a-function")


def plain_tools(tools: Tools) -> None:
    """Refuses functions that are to be awaited: nobody awaits them here."""
    for name, function in tools.items():
        if inspect.iscoroutinefunction(function):
            raise InputError(
                f"tool {name!r} is async; run it on the async twin, vmstore.aio, or make it plain", code="async-call"
            )


__all__ = [
    "UNANSWERED",
    "Ask",
    "RunningCalls",
    "HostCalls",
    "HostResults",
    "RunEnd",
    "FailedCall",
    "ModelCall",
    "StreamParts",
    "RunText",
    "Streamed",
    "ResponseText",
    "advance",
    "arguments",
    "ended",
    "hearing",
    "is_stream",
    "plain_tools",
    "runnable",
    "texts",
]
