"""A live session's side of a run: it packs, logs what came back, and the kernel decides on what is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from vmstore.core.draft import TokenUsage
from vmstore.core.page import Modality, PageType, Role, Tier
from vmstore.errors import InputError, RefusedError, UnknownError, VmstoreError
from vmstore.live.pack import SHAPES
from vmstore.live.prompt_pages import PromptPages
from vmstore.live.runtime import Act, Runtime
from vmstore.namespace.results import FaultAnswer
from vmstore.namespace.results import Hit as StoreHit
from vmstore.providers import assembled, plain, shape_of_body
from vmstore.store.live.driver import FailedCall
from vmstore.store.live.prompt import Prompt
from vmstore.store.recall.envelopes import recalled_json
from vmstore.store.recall.memory import SessionMemory
from vmstore.store.session import Session
from vmstore.vm.protocol.dialects.dialect import ToolCall
from vmstore.vm.protocol.escape import dumps, finite
from vmstore.vm.protocol.loop import Answer, DeniedFault, ReceivedResponse
from vmstore.vm.protocol.tool_calls import tool_called
from vmstore.vm.protocol.tool_results import LoadedPage, SearchHit, SearchResults
from vmstore.vm.protocol.tools import memory_tools
from vmstore.vm.signals import asked

T = TypeVar("T")

SEARCHED_MAX = 50  # hits read to find enough of one modality

WHY = {
    "faults_a_turn": "no page_fault is left in this turn; answer with what you have, or say that you do not have it",
    "tokens_a_turn": "the page is larger than what this turn may still load; ask for it at a higher level",
    "reason": "a page is not loaded on a guess; name the reason you need it for",
    "no_room": "the prompt has no room for the page; ask for it at a higher level",
    "no_level": "the page cannot be shown at that level or above; ask for a lower one",
    "paging": "this memory loads pages by itself; answer with what is mapped",
    "approval": "the user has not approved that file for a prompt; ask, or answer without it",
    "retracted": "the page was retracted: what it says does not hold; answer without it",
}


class ToolTarget(Protocol):
    """The methods of a live session that tools call."""

    def pack(self) -> Prompt: ...
    def join(self, child: Any, *, call: str) -> object: ...
    def page_fault(self, page: str, level: int, *, reason: str, by_model: bool) -> FaultAnswer: ...
    def search(self, query: str, *, limit: int | None) -> list[StoreHit]: ...
    @property
    def memory(self) -> SessionMemory: ...
    def look(self, see: Callable[[Runtime], T]) -> T: ...


class ToolAnswer(NamedTuple):
    """A tool's answer: the id of its call, the text, the tool's name; of a host's function how it ended."""

    call: str
    text: str
    tool: str
    end: Any = None

    def refused(self, error: Exception) -> ToolAnswer:
        """The answer of the same call where the session refuses what the tool would write."""
        end = self.end.refused(error)
        return self._replace(text=_text(end.value), end=end)


class MemoryTools:
    """Answers the memory tools of one live session; each answer is logged with what was decided.

    `take` logs a response, `results` what tools answer by the ids of their calls, as one commit; `ranked` searches
    for the model: pages and scores, best first, and how many there are; `now` is the time.
    """

    def __init__(
        self,
        live: ToolTarget,
        take: Callable[..., object],
        results: Callable[[Sequence[ToolAnswer]], object],
        ranked: Callable[[str, int], tuple[list[tuple[int, float]], int]],
        now: Callable[[], int],
        shape: str,
    ) -> None:
        self._live = live
        self._take = take
        self._results = results
        self._ranked = ranked
        self._now = now
        self._shape = shape
        self._sent = self._call = 0
        self._heard: tuple[Any, dict[str, Any]] | None = None  # a response, and what was read of it
        self._waiting: list[ToolAnswer] = []

    def request(self) -> dict[str, Any]:
        """The request of the next call, logged as it is sent."""
        packed = self._live.pack()
        request, self._call = packed.request, packed.call
        self._sent = self._now()
        return request

    def heard(self, answer: Answer) -> ReceivedResponse:
        """The response that was given, put together where it was streamed, and the shape it is in."""
        if not answer.streamed:
            body = _json(answer.response)
            body_shape = shape_of_body(body)
            self._heard = answer.response, body
            return ReceivedResponse(body, self._shape if body_shape is None else WORDS[body_shape])
        if not answer.response:
            raise InputError("the model call gave a stream without parts; return the provider's response")
        shape, body, _ = assembled(SHAPES[self._shape], answer.response)
        return ReceivedResponse(finite(body), WORDS[shape])

    def take(self, answer: Answer, calls: Sequence[ToolCall]) -> None:
        """Logs what came back for it, how long that took, and what was raised."""
        given = answer.response
        if answer.error is not None:
            given = [*(given if answer.streamed else ()), answer.error]
        elif not answer.streamed and given is not None:
            given = self._heard[1] if self._heard is not None and self._heard[0] is given else _json(given)
        latency, self._heard = max(0, self._now() - self._sent), None
        self._take(given, calls, usage=TokenUsage(latency=latency), check=self._is_mine)

    def _is_mine(self, act: Act) -> None:
        """Refuses an answer where another process packed a call meanwhile: it would stand for an answer to that."""
        if act.state.call != self._call:
            raise RefusedError(
                f"another process packed call {act.state.call} while the model answered call {self._call}, which stays "
                "open: the answer is not logged; run a session in one process at a time, or fork it",
                code="packed-meanwhile",
            )

    def result(self, call: ToolCall, value: Any) -> None:
        """Takes what a tool answers: what it gave, or what the child that it gave came to, which is logged at once."""
        end = value if hasattr(value, "duration_us") else None
        value = value if end is None else end.value
        if isinstance(value, Session):
            self.settle()
            try:
                self._live.join(value, call=call.id)
                return
            except VmstoreError as error:
                value = FailedCall(error)
                end = None if end is None else end.refused(error)
        self._waiting.append(ToolAnswer(call.id, _text(value), call.tool, end))

    def settle(self) -> None:
        """Logs the results that wait."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._results(waiting)

    def fault(self, page: str, level: int, reason: str) -> LoadedPage | DeniedFault:
        """Loads a page at a level; raises UnknownError where there is no such page."""
        self.settle()
        found = self._live.page_fault(page, level, reason=reason, by_model=True)
        if found.denied_because == "no_page":
            raise UnknownError(f"there is no page {page!r:.80}; search_pages finds pages by what they say")
        if not found.granted:
            return DeniedFault(WHY.get(found.denied_because or "", "the page cannot be loaded now"))
        return self._live.look(lambda runtime: _loaded(runtime, found))

    def search(self, query: str, modality: Modality | None, limit: int) -> SearchResults:
        """The pages that match best."""
        self.settle()
        if modality is None and asked(query):
            ranked, total = self._ranked(query, limit)
        else:
            total = self._live.memory._counted(query, modality)
            gone = self._live.look(lambda runtime: len(runtime.state.barred.pages))
            hits = self._live.search(query, limit=limit + gone if modality is None else SEARCHED_MAX + gone)
            ranked = [(int(hit.page[1:]), hit.score) for hit in hits]
        best = max((score for _, score in ranked), default=0.0) or 1.0

        def leaves(runtime: Runtime) -> SearchResults:
            """The pages that were found as the session holds them, but for values and files that are barred."""
            made = PromptPages(runtime.state, runtime.spoken, runtime.forms)
            found = []
            for page, score in ranked:
                managed = runtime.state.pages[page]
                if managed.type is PageType.VALUE or managed.page in runtime.state.barred:
                    continue
                if modality in (None, managed.modality):
                    tier = Tier.L0 if managed.page in runtime.state.here else Tier.L2
                    found.append(
                        SearchHit(made.of(managed, 0, tier, words=False), round(max(score, 0.0) / best * 1_000_000))
                    )
            return SearchResults(found[:limit], max(total, len(found)))

        return self._live.look(leaves)

    def recall(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a reading tool: it leaves the prompt as it is, and is logged as a search."""
        self.settle()
        return recalled_json(self._live.memory, tool, given)

    def recalls(self) -> bool:
        """Whether the session's settings offer the tools that only read."""
        settings = self._live.look(lambda runtime: runtime.state.settings)
        return settings is not None and settings.recall_tools

    def left(self) -> tuple[int, int]:
        """The faults and the tokens of faults that this turn has left."""
        return self._live.look(lambda runtime: runtime.state.left())


def unfit(runtime: Runtime, page: int) -> bool:
    """Whether recall tells nobody of a page: no prompt is given it, it is a value, or the memory itself answered it."""
    held = runtime.state.pages.get(page)
    if held is None:
        return False
    if page in runtime.state.barred or held.type is PageType.VALUE:
        return True
    call = held if held.role == Role.ASSISTANT else runtime.state.pages.get(held.answers)
    form = None if call is None or held.role not in (Role.ASSISTANT, Role.TOOL) else call.forms[0]
    if form is None:
        return False
    text = runtime.forms.of(form.position)
    return isinstance(text, bytes) and tool_called(text.decode("utf-8", "replace")) in memory_tools(True)


WORDS = {shape: word for word, shape in reversed(SHAPES.items())}


def _plain(response: Any) -> dict[str, Any]:
    """A response as a dict, also where a provider's library made an object of it."""
    dump = getattr(response, "model_dump", None)
    value = dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else response
    if not isinstance(value, Mapping):
        kind = type(response).__name__
        raise InputError(f"the model call gave a {kind}; return the provider's response, as a dict, or its stream")
    return dict(value)


def _json(response: Any) -> dict[str, Any]:
    """A response as JSON that a log can hold; InputError where it is none."""
    try:
        body: dict[str, Any] = plain(finite(_plain(response)), "the response")
    except RecursionError:
        raise InputError("the response is nested too deeply to be read; flatten it", code="too-deep") from None
    return body


def _text(value: Any) -> str:
    """The result of a tool as the model gets it."""
    if isinstance(value, FailedCall):
        return dumps({"error": value.said})
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except Exception as error:  # a value that contains itself, or raises where it is written
        return _text(FailedCall(error))


def _loaded(runtime: Runtime, found: FaultAnswer) -> LoadedPage:
    managed = runtime.state.pages[found.number]
    leaf = PromptPages(runtime.state, runtime.spoken, runtime.forms).of(managed, managed.level, Tier.L0)
    return LoadedPage(leaf, Tier.L2 if found.came else Tier.L0, True, tuple(found.evicted))
