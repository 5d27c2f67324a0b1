"""Calls the model until it answers, and answers the tools it calls meanwhile.

Each request is the session's next pack, and each answer and result is taken in before the next one, so
that the log holds what was sent. Nothing that a model asks for raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from vmstore.core.page import Modality
from vmstore.errors import InputError, UnknownError, VmstoreError
from vmstore.vm.protocol.calls import object_of
from vmstore.vm.protocol.dialect import Asked, Dialect, Said
from vmstore.vm.protocol.envelope import Budget, Found, Loaded, page_result, refusal, search_result
from vmstore.vm.protocol.messages import dialect
from vmstore.vm.protocol.tools import VM_TOOLS, arguments_of
from vmstore.vm.protocol.wire import dumps, finite, name_of

ROUNDS_MAX = 10
CALLS_MAX = 16  # memory calls answered in one round; a model that asks for more is told to come again
HITS_MAX = 20

ANSWERED, TOOLS, ROUNDS = "answered", "tools", "rounds"
Tools = Mapping[str, Callable[..., Any]]
"""The host's tools that the loop calls itself, by name; each is called with the arguments by keyword."""


class Denied(NamedTuple):
    """A fault that was not granted, and why, in a sentence the model can act on."""

    why: str


class Session(Protocol):
    """A session whose memory is managed, as the loop uses it."""

    def request(self) -> dict[str, Any]:
        """The request of the next call, logged as it is sent."""
        ...

    def take(self, response: Mapping[str, Any], calls: Sequence[Asked]) -> None:
        """Logs what came back; `calls` are those it makes, each with an id."""
        ...

    def failed(self, outcome: Any) -> None:
        """Logs that no answer came back: what was raised, or what came that is none."""
        ...

    def result(self, call: Asked, text: str) -> None:
        """Logs what a tool answers to a call."""
        ...

    def fault(self, page: str, level: int, reason: str) -> Loaded | Denied:
        """Loads a page, by its name or address, at a level; raises UnknownError where there is no such page."""
        ...

    def search(self, query: str, modality: Modality | None, limit: int) -> Found:
        """The pages that match best."""
        ...

    def left(self) -> tuple[int, int]:
        """The faults and the tokens of faults that this turn has left."""
        ...


class Ran(NamedTuple):
    """How a run ended: `stopped` says whether by an answer, at a tool of the host's, or at the round limit.

    `pending` are the calls of the last response that the host answers, each with `session.tool(call.id, …)`;
    then it runs again. `rounds` are those in which the memory or a tool was called.
    """

    stopped: str
    text: str
    rounds: int
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    pending: tuple[Asked, ...] = ()


def run(
    model_call: Callable[[dict[str, Any]], Any],
    session: Session,
    *,
    tools: Tools | None = None,
    rounds_max: int = ROUNDS_MAX,
    shape: str = "chat",
) -> Ran:
    """Calls the model with one pack after another until it answers without calling a tool.

    What `model_call` raises is raised; InputError where it returns no response of this shape. Either way the
    call is logged as failed.
    """
    speaks, own = dialect(shape), tools or {}
    rounds, was_refused = 0, False
    while True:
        asked = session.request()
        offered = speaks.names(asked.get("tools", ()))
        response, said = _answer(session, speaks, model_call, asked)
        calls = _identified(said.calls, rounds)
        session.take(response, calls)
        if not calls or was_refused:
            for call in calls:
                session.result(call, _refused(session, 0, "no_rounds_left", NO_ROUNDS))
            return Ran(ROUNDS if calls else ANSWERED, said.text, rounds, asked, response)
        pending = tuple(one for one in calls if one.tool in offered and one.tool not in (*VM_TOOLS, *own))
        was_refused = rounds >= rounds_max and len(pending) < len(calls)
        rounds += not was_refused
        desk = _Desk(session, own, offered, -1 if was_refused else rounds_max - rounds)
        for call in calls:
            if call not in pending:
                session.result(call, desk.answer(call))
        if pending:
            return Ran(TOOLS, said.text, rounds, asked, response, pending)


def _answer(
    session: Session, speaks: Dialect, model_call: Callable[[dict[str, Any]], Any], asked: dict[str, Any]
) -> tuple[Mapping[str, Any], Said]:
    """What came back and what it says; where that is no answer the call does not stay open."""
    response: Any = None
    try:
        response = _plain(model_call(asked))
        return response, speaks.said(response)
    except BaseException as error:
        with suppress(VmstoreError):  # what went wrong with the call is raised, not what went wrong with its record
            session.failed(error if response is None else response)
        raise


NO_ROUNDS = "no rounds of calls are left; answer with what you have"


def _identified(calls: Sequence[Asked], rounds: int) -> tuple[Asked, ...]:
    """The calls, each with an id of its own: a provider that gives none takes results in their order."""
    seen: set[str] = set()
    told = []
    for nth, call in enumerate(calls):
        name = call.id or f"call_{rounds + 1}_{nth + 1}"
        while name in seen:
            name += "_"
        seen.add(name)
        told.append(call._replace(id=name))
    return tuple(told)


class _Desk:
    """Answers the calls of one response; `rounds` are those the model has left, -1 where it has none now."""

    def __init__(self, session: Session, own: Tools, offered: Sequence[str], rounds: int) -> None:
        self._session = session
        self._own = own
        self._offered = offered
        self._rounds = rounds
        self._calls = 0

    def answer(self, call: Asked) -> str:
        """What the model is told, in JSON where the memory says it."""
        if self._rounds >= 0 and call.tool in self._own and call.tool in self._offered:
            return self._called(call)
        self._calls += 1
        return dumps(self._answer(call))

    def _called(self, call: Asked) -> str:
        try:
            value = self._own[call.tool](**object_of(call.arguments))
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        except Exception as error:  # a tool that fails answers so, and the model goes on
            return dumps({"error": f"{type(error).__name__}: {error}"})

    def _answer(self, call: Asked) -> dict[str, Any]:
        if call.tool not in VM_TOOLS or call.tool not in self._offered:
            known = ", ".join(self._offered) or "none"
            return self._no("unknown_tool", f"there is no tool {call.tool[:80]!r}; the tools are: {known}")
        if self._rounds < 0:
            return self._no("no_rounds_left", NO_ROUNDS)
        if self._calls > CALLS_MAX:
            return self._no("too_many_calls", f"only {CALLS_MAX} calls are answered at once; ask again, for less")
        try:
            given = arguments_of(call.tool, call.arguments)
            return self._fault(**given) if call.tool == "page_fault" else self._search(**given)
        except InputError as error:
            return self._no("bad_arguments", str(error))
        except UnknownError as error:
            return self._no("unknown_page", str(error))
        except VmstoreError as error:
            return self._no("denied", str(error))

    def _fault(self, page_id: str, target_level: int, reason: str) -> dict[str, Any]:
        loaded = self._session.fault(name_of(page_id), target_level, reason)
        if isinstance(loaded, Denied):
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


def _refused(session: Session, rounds: int, code: str, why: str) -> str:
    return dumps(refusal(code, why, _budget(session, rounds)))


def _budget(session: Session, rounds: int) -> Budget:
    faults, tokens = session.left()
    return Budget(max(rounds, 0), max(faults, 0), max(tokens, 0))


def _plain(response: Any) -> Mapping[str, Any]:
    """A response as a dict, also where a provider's library made an object of it."""
    dump = getattr(response, "model_dump", None)
    value = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else response
    if not isinstance(value, Mapping):
        kind = type(response).__name__
        raise InputError(f"the model call gave a {kind}; return the provider's response, as a dict")
    plain: Mapping[str, Any] = finite(value)
    return plain
