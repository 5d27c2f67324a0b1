"""Calls the model until it answers, and answers the memory tools it calls meanwhile; never raises for what it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from vmstore.core.page import Modality
from vmstore.errors import InputError, UnknownError, VmstoreError
from vmstore.vm.protocol.dialect import Answer, Asked, Dialect
from vmstore.vm.protocol.envelope import Budget, Found, Loaded, page_result, refusal, search_result
from vmstore.vm.protocol.messages import dialect
from vmstore.vm.protocol.picture import Picture, picture
from vmstore.vm.protocol.tools import VM_TOOLS, arguments_of
from vmstore.vm.protocol.wire import dumps, name_of

ROUNDS_MAX = 10
CALLS_MAX = 16  # memory calls answered in one round; a model that asks for more is told to come again
HITS_MAX = 20

ANSWERED, TOOLS, ROUNDS = "answered", "tools", "rounds"


class Denied(NamedTuple):
    """A fault that was not granted, and why, in a sentence the model can act on."""

    why: str


class Memory(Protocol):
    """What answers the memory tools; it decides and records, the loop only carries."""

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
    """How a run ended: `stopped` says whether by an answer, at a tool of the caller's, or at the round limit.

    `pending` are the caller's tools the last response calls; `answered` gives the request that goes
    on once their results are there.
    """

    stopped: str
    text: str
    rounds: int
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    pending: tuple[Asked, ...]
    known: tuple[Answer | None, ...]
    speaks: Dialect

    def answered(self, results: Sequence[str]) -> dict[str, Any]:
        """The request that goes on, with a result for each pending call, in their order."""
        if len(results) != len(self.pending):
            raise InputError(f"{len(results)} results for {len(self.pending)} pending calls; give one for each")
        given = (Answer(call, text) for call, text in zip(self.pending, results, strict=True))
        answers = [next(given) if known is None else known for known in self.known]
        going_on: dict[str, Any] = self.speaks.answered(self.request, self.response, answers)
        return going_on


def run(
    model_call: Callable[[dict[str, Any]], Any],
    request: Mapping[str, Any],
    memory: Memory,
    *,
    tools: Sequence[Any] = (),
    rounds_max: int = ROUNDS_MAX,
    shape: str = "chat",
) -> Ran:
    """Calls the model with a request and `tools` until it answers without calling the memory.

    What `model_call` raises is raised; InputError where it returns no response of this shape.
    A run that hands back a caller's tool has used `rounds` of its limit.
    """
    speaks = dialect(shape)
    offered = speaks.names(tools)
    asked: dict[str, Any] = {**request, "tools": list(tools)} if tools else dict(request)
    rounds, was_refused = 0, False
    while True:
        response = _plain(model_call(asked))
        said = speaks.said(response)
        pending = tuple(call for call in said.calls if call.tool in offered and call.tool not in VM_TOOLS)
        mine = len(said.calls) - len(pending)
        if not mine and not pending:
            return Ran(ANSWERED, said.text, rounds, asked, response, (), (), speaks)
        if mine and was_refused:
            return Ran(ROUNDS, said.text, rounds, asked, response, (), (), speaks)
        was_refused = mine > 0 and rounds >= rounds_max
        rounds += mine > 0 and not was_refused
        desk = _Desk(memory, offered, -1 if was_refused else rounds_max - rounds)
        known = tuple(None if call in pending else desk.answer(call) for call in said.calls)
        if pending:
            return Ran(TOOLS, said.text, rounds, asked, response, pending, known, speaks)
        asked = speaks.answered(asked, response, [one for one in known if one is not None])


class _Desk:
    """Answers the memory calls of one response; `rounds` are those the model has left, -1 where it has none now."""

    def __init__(self, memory: Memory, offered: Sequence[str], rounds: int) -> None:
        self._memory = memory
        self._offered = offered
        self._rounds = rounds
        self._calls = 0

    def answer(self, call: Asked) -> Answer:
        self._calls += 1
        told, shown = self._answer(call)
        return Answer(call, dumps(told), shown)

    def _answer(self, call: Asked) -> tuple[dict[str, Any], Picture | None]:
        if call.tool not in VM_TOOLS or call.tool not in self._offered:
            known = ", ".join(self._offered) or "none"
            return self._refused("unknown_tool", f"there is no tool {call.tool[:80]!r}; the tools are: {known}")
        if self._rounds < 0:
            return self._refused("no_rounds_left", "no rounds of calls are left; answer with what you have")
        if self._calls > CALLS_MAX:
            return self._refused("too_many_calls", f"only {CALLS_MAX} calls are answered at once; ask again, for less")
        try:
            given = arguments_of(call.tool, call.arguments)
            return self._fault(**given) if call.tool == "page_fault" else self._search(**given)
        except InputError as error:
            return self._refused("bad_arguments", str(error))
        except UnknownError as error:
            return self._refused("unknown_page", str(error))
        except VmstoreError as error:
            return self._refused("denied", str(error))

    def _fault(self, page_id: str, target_level: int, reason: str) -> tuple[dict[str, Any], Picture | None]:
        loaded = self._memory.fault(name_of(page_id), target_level, reason)
        if isinstance(loaded, Denied):
            return self._refused("denied", loaded.why)
        return page_result(loaded, self._budget()), picture(loaded.leaf)

    def _search(self, query: str, limit: int, modality: str | None = None) -> tuple[dict[str, Any], None]:
        if not query.strip():
            raise InputError("search_pages: an empty query; say what the page is about")
        kind = None if modality is None else Modality[modality.upper()]
        found = self._memory.search(query, kind, min(max(limit, 1), HITS_MAX))
        return search_result(found, self._budget()), None

    def _refused(self, code: str, why: str) -> tuple[dict[str, Any], None]:
        return refusal(code, why, self._budget()), None

    def _budget(self) -> Budget:
        faults, tokens = self._memory.left()
        return Budget(max(self._rounds, 0), max(faults, 0), max(tokens, 0))


def _plain(response: Any) -> Mapping[str, Any]:
    """A response as a dict, also where a provider's library made an object of it."""
    dump = getattr(response, "model_dump", None)
    value = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else response
    if not isinstance(value, Mapping):
        kind = type(response).__name__
        raise InputError(f"the model call gave a {kind}; return the provider's response, as a dict")
    return value
