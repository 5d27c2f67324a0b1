"""A live session's side of the loop: it packs, logs what came back, and the kernel decides on what is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from vmstore.core.page import Modality, Tier
from vmstore.errors import UnknownError
from vmstore.live.leaves import Leaves
from vmstore.live.runtime import Runtime
from vmstore.store.answers import Faulted
from vmstore.store.answers import Hit as StoreHit
from vmstore.store.packed import Packed
from vmstore.vm.protocol.dialect import Asked
from vmstore.vm.protocol.envelope import Found, Hit, Loaded
from vmstore.vm.protocol.loop import Denied
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
    "approval": "the page may not be loaded without approval",
    "retracted": "the page was retracted: what it says does not hold; answer without it",
}


class Live(Protocol):
    """What is asked of a live session."""

    def pack(self) -> Packed: ...
    def took(self, response: Any, calls: Sequence[Asked] = (), *, since: int | None = None) -> object: ...
    def tool(self, call_id: str, content: Any, *, name: str | None) -> object: ...
    def page_fault(self, page: str, level: int, *, reason: str, by_model: bool) -> Faulted: ...
    def search(self, query: str, *, limit: int | None) -> list[StoreHit]: ...
    def look_for(self, query: str, limit: int) -> list[tuple[int, float]]: ...
    def look(self, see: Callable[[Runtime], T]) -> T: ...


class Memory:
    """Answers the memory tools of one live session; each answer is logged with what was decided."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._packed_at: int | None = None  # when the call was made that is answered next

    def request(self) -> dict[str, Any]:
        """The request of the next call, logged as it is sent."""
        packed = self._live.pack()
        self._packed_at = self._live.look(lambda runtime: runtime.at)
        return packed.request

    def take(self, response: Mapping[str, Any], calls: Sequence[Asked]) -> None:
        """Logs what came back for it, and how long that took."""
        self._live.took(response, calls, since=self._packed_at)

    def failed(self, outcome: Any) -> None:
        """Logs what came back in place of an answer: an exception, or a body that is none."""
        self._live.took(outcome, since=self._packed_at)

    def result(self, call: Asked, text: str) -> None:
        """Logs what a tool answers."""
        self._live.tool(call.id, text, name=call.tool)

    def fault(self, page: str, level: int, reason: str) -> Loaded | Denied:
        """Loads a page at a level; raises UnknownError where there is no such page."""
        found = self._live.page_fault(page, level, reason=reason, by_model=True)
        if found.denied_because == "no_page":
            raise UnknownError(f"there is no page {page!r:.80}; search_pages finds pages by what they say")
        if not found.granted:
            return Denied(WHY.get(found.denied_because or "", "the page cannot be loaded now"))
        return self._live.look(lambda runtime: _loaded(runtime, found))

    def search(self, query: str, modality: Modality | None, limit: int) -> Found:
        """The pages that match best."""
        if modality is None and asked(query):
            ranked = self._live.look_for(query, limit)
        else:
            gone = self._live.look(lambda runtime: len(runtime.state.retracted.pages))
            hits = self._live.search(query, limit=limit + gone if modality is None else SEARCHED_MAX + gone)
            ranked = [(int(hit.page[1:]), hit.score) for hit in hits]
        best = max((score for _, score in ranked), default=1.0)

        def leaves(runtime: Runtime) -> Found:
            made = Leaves(runtime.state, runtime.spoken, runtime.forms)
            found = []
            for page, score in ranked:
                held = runtime.state.pages[page]
                if held.page not in runtime.state.retracted and modality in (None, held.modality):
                    tier = Tier.L0 if held.page in runtime.state.here else Tier.L2
                    found.append(Hit(made.of(held, 0, tier, words=False), round(score / best * 1_000_000)))
            return Found(found[:limit], min(len(found), limit if modality is None else SEARCHED_MAX))

        return self._live.look(leaves)

    def left(self) -> tuple[int, int]:
        """The faults and the tokens of faults that this turn has left."""
        return self._live.look(lambda runtime: runtime.state.left())


def _loaded(runtime: Runtime, found: Faulted) -> Loaded:
    held = runtime.state.pages[found.number]
    leaf = Leaves(runtime.state, runtime.spoken, runtime.forms).of(held, held.level, Tier.L0)
    return Loaded(leaf, Tier.L2 if found.came else Tier.L0, True, tuple(found.evicted))
