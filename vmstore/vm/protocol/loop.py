"""The rounds of a run: a pack, what the model answers, what its tools answer, until it answers without a tool.

`rounds` does nothing itself that takes long: it gives out what is to be done (a request to send, functions
to call) and continues with the results, so that threads, tasks and streams run the same rounds. Each
answer and result is logged before the next pack, and nothing that a model asks for raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from vmstore.core.page import Modality
from vmstore.errors import InputError, UnknownError, VmstoreError
from vmstore.vm.protocol.citation_filter import unmarked
from vmstore.vm.protocol.dialects.dialect import Dialect, ToolCall
from vmstore.vm.protocol.escape import dumps, name_of
from vmstore.vm.protocol.messages import dialect
from vmstore.vm.protocol.tool_results import (
    Budget,
    LoadedPage,
    SearchResults,
    page_result,
    recall_result,
    refusal,
    search_result,
)
from vmstore.vm.protocol.tools import RECALL_TOOLS, arguments_of, memory_tools

ROUNDS_MAX = 10
CALLS_MAX = 16  # memory calls answered in one round; a model that asks for more is refused the rest
HITS_MAX = 20

ANSWERED, TOOLS, ROUNDS = "answered", "tools", "rounds"


class DeniedFault(NamedTuple):
    """A fault that was not granted, and why, in a sentence the model can act on."""

    why: str


class Answer(NamedTuple):
    """The answer of a model call: a response, or, `streamed`, a list of its parts; `error` is what it raised."""

    response: Any
    streamed: bool = False
    error: BaseException | None = None


class ReceivedResponse(NamedTuple):
    """A response as a dict, and the provider's shape it is in."""

    body: Mapping[str, Any]
    shape: str


class ManagedSession(Protocol):
    """A session whose memory is managed, as the rounds use it."""

    def request(self) -> dict[str, Any]:
        """The request of the next call, logged as it is sent."""
        ...

    def heard(self, answer: Answer) -> ReceivedResponse:
        """The response that was given; raises InputError where there is none."""
        ...

    def take(self, answer: Answer, calls: Sequence[ToolCall]) -> None:
        """Logs what came back, an error or a part of a stream too; `calls` are those it makes, each with an id."""
        ...

    def result(self, call: ToolCall, value: Any) -> None:
        """Takes what a tool answers to a call; it is logged before anything else is, and by `settle`."""
        ...

    def settle(self) -> None:
        """Logs the results that wait, together: one by one each would be decided on among all before it."""
        ...

    def fault(self, page: str, level: int, reason: str) -> LoadedPage | DeniedFault:
        """Loads a page, by its name or address, at a level; raises UnknownError where there is no such page."""
        ...

    def search(self, query: str, modality: Modality | None, limit: int) -> SearchResults:
        """The pages that match best."""
        ...

    def recall(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a reading tool as JSON; raises InputError for arguments it cannot take."""
        ...

    def recalls(self) -> bool:
        """Whether the model is offered the tools that only read."""
        ...

    def left(self) -> tuple[int, int]:
        """The faults and the tokens of faults that this turn has left."""
        ...


class RunResult(NamedTuple):
    """Result of a run: `stopped` says whether by an answer, at a tool of the host's, or at the round limit.

    `text` is what the model wrote last. `pending` are the calls of the last response that the host answers,
    each with `session.tool(call.id, …)`; then it runs again. `rounds` are those in which the memory or a
    tool was called.
    """

    stopped: str
    text: str
    rounds: int
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    pending: tuple[ToolCall, ...] = ()

    @property
    def answer(self) -> str:
        """The text as a user reads it: without its citations."""
        return unmarked(self.text)


class Ask(NamedTuple):
    """A request to send; what comes of it is an Answer."""

    request: dict[str, Any]


class HostCalls(NamedTuple):
    """Calls of the host's functions to make, at once if it likes; what comes of them is a Done."""

    calls: tuple[ToolCall, ...]


class HostResults(NamedTuple):
    """Results of host functions, one a call; `is_over` where they were interrupted and the run ends."""

    values: Sequence[Any]
    is_over: bool = False


class ResponseText(NamedTuple):
    """The text of a response that did not stream, as an event for listeners."""

    text: str


Step = Ask | HostCalls | ResponseText
Rounds = Generator[Step, Any, RunResult | None]


def rounds(
    session: ManagedSession, *, own: Collection[str], rounds_max: int = ROUNDS_MAX, shape: str = "chat"
) -> Rounds:
    """Gives out what is to be done until the model answers without a tool; None where a model call raised.

    `own` names the host's functions. Raises InputError for what is no response. Closed while a model call is
    under way, it logs that call as aborted; where its functions were interrupted, what they gave by then.
    """
    count, was_refused = 0, False
    while True:
        request = session.request()
        offered = dialect(shape).names(request.get("tools", ()))
        try:
            answer: Answer = yield Ask(request)
        except GeneratorExit:
            with suppress(VmstoreError):  # a store that was closed meanwhile takes nothing
                session.take(Answer(None), ())
            raise
        if answer.error is not None:
            session.take(answer, ())
            return None
        body, speaks = _heard(session, answer)
        spoken = speaks.said(body)
        calls = _identified(spoken.calls, count)
        session.take(answer, calls)
        if spoken.text and not answer.streamed:
            yield ResponseText(spoken.text)
        if not calls or was_refused:
            for call in calls:
                session.result(call, _refused(session, 0, "no_rounds_left", NO_ROUNDS))
            session.settle()
            return RunResult(ROUNDS if calls else ANSWERED, spoken.text, count, request, body)
        answered = (*memory_tools(session.recalls()), *own)
        pending = tuple(one for one in calls if one.tool in offered and one.tool not in answered)
        was_refused = count >= rounds_max and len(pending) < len(calls)
        count += not was_refused
        desk = _Desk(session, offered, -1 if was_refused else rounds_max - count)
        mine = () if was_refused else tuple(one for one in calls if one.tool in own and one.tool in offered)
        done: HostResults = (yield HostCalls(mine)) if mine else HostResults(())
        values = {call.id: value for call, value in zip(mine, done.values, strict=True)}
        waiting = {call.id for call in pending}
        for call in calls:
            if call.id not in waiting:
                session.result(call, values[call.id] if call.id in values else dumps(desk.answer(call)))
        session.settle()
        if done.is_over:
            return None
        if pending:
            return RunResult(TOOLS, spoken.text, count, request, body, pending)


NO_ROUNDS = "no rounds of calls are left; answer with what you have"


def _heard(session: ManagedSession, answer: Answer) -> tuple[Mapping[str, Any], Dialect]:
    """The response and who reads it; what cannot be read is logged as a failed call.

    A body that is no answer says itself what failed: a provider's error, a prompt that was blocked.
    """
    try:
        body, shape = session.heard(answer)
        speaks = dialect(shape)
    except InputError as error:
        session.take(answer._replace(response=[], streamed=True, error=error), ())
        raise
    try:
        speaks.said(body)
    except InputError as error:
        session.take(answer, ())
        if failed := body.get("error"):
            raise InputError(
                f"the provider answered with an error: {failed!s:.400}; call again", code="provider-error"
            ) from error
        raise
    return body, speaks


def _identified(calls: Sequence[ToolCall], count: int) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own: a provider that gives none takes results in their order."""
    seen: Counter[str] = Counter()
    identified = []
    for nth, call in enumerate(calls):
        base = call.id.encode("utf-8", "replace").decode() or f"call_{count + 1}_{nth + 1}"  # as a log can hold it
        name = base + "_" * seen[base]
        while name in seen:
            name += "_"
        seen[base] += 1
        seen[name] += name != base
        identified.append(call._replace(id=name))
    return tuple(identified)


class _Desk:
    """Answers the memory calls of one response; `left` are the rounds the model has left, -1 where it has none now."""

    def __init__(self, session: ManagedSession, offered: Sequence[str], left: int) -> None:
        self._session = session
        self._offered = offered
        self._known = memory_tools(session.recalls())
        self._rounds = left
        self._calls = 0

    def answer(self, call: ToolCall) -> dict[str, Any]:
        """The answer that the model gets."""
        self._calls += 1
        if self._rounds < 0 and call.tool in self._offered:
            return self._no("no_rounds_left", NO_ROUNDS)
        if call.tool not in self._known or call.tool not in self._offered:
            known = ", ".join(self._offered) or "none"
            return self._no("unknown_tool", f"there is no tool {call.tool[:80]!r}; the tools are: {known}")
        if self._calls > CALLS_MAX:
            return self._no("too_many_calls", f"only {CALLS_MAX} calls are answered at once; ask again, for less")
        try:
            given = arguments_of(call.tool, call.arguments)
            if call.tool in RECALL_TOOLS:
                return recall_result(self._session.recall(call.tool, given), self._budget())
            return self._fault(**given) if call.tool == "page_fault" else self._search(**given)
        except InputError as error:
            return self._no("bad_arguments", str(error))
        except UnknownError as error:
            return self._no("unknown_page", str(error))
        except VmstoreError as error:
            return self._no("denied", str(error))

    def _fault(self, page_id: str, target_level: int, reason: str) -> dict[str, Any]:
        loaded = self._session.fault(name_of(page_id), target_level, reason)
        if isinstance(loaded, DeniedFault):
            return self._no("denied", loaded.why)
        return page_result(loaded, self._budget())

    def _search(self, query: str, limit: int, modality: str | None = None) -> dict[str, Any]:
        if not query.strip():
            raise InputError("search_pages: an empty query; say what the page is about")
        kind = None if modality is None else Modality[modality.upper()]
        return search_result(self._session.search(query, kind, min(max(limit, 1), HITS_MAX)), self._budget())

    def _no(self, code: str, why: str) -> dict[str, Any]:
        return refusal(code, why, self._budget())

    def _budget(self) -> Budget:
        return _budget(self._session, self._rounds)


def _refused(session: ManagedSession, left: int, code: str, why: str) -> str:
    return dumps(refusal(code, why, _budget(session, left)))


def _budget(session: ManagedSession, left: int) -> Budget:
    faults, tokens = session.left()
    return Budget(max(left, 0), max(faults, 0), max(tokens, 0))
