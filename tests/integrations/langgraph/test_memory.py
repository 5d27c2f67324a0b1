"""LangGraph's long-term memory over a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.graph", reason="runs in the lane of tools/integrations.py")

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import vmstore
from tests.integrations.langgraph.graphs import parrot, thread, words
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.integrations.langgraph import VmstoreMemory, VmstoreSaver
from vmstore.store.store import Store

ADA, BOB = ("users", "ada"), ("users", "bob")
ITEMS = [
    (ADA, "tea", {"text": "drinks green tea", "n": 3, "at": {"city": "Oslo"}}),
    (ADA, "car", {"text": "has no car", "n": 5}),
    (BOB, "car", {"text": "drives a van", "n": 5, "tags": ["a", "b"]}),
    (("docs", "v1", "guide"), "intro", {"text": "how to begin"}),
]
QUESTIONS: list[Any] = [
    *(GetOp(namespace, key) for namespace, key, _ in ITEMS),
    GetOp(ADA, "nothing"),
    SearchOp(("users",), limit=100),
    SearchOp((), filter={"n": 5}),
    SearchOp(("users",), filter={"n": {"$gte": 4}}),
    SearchOp(("users",), filter={"n": {"$lt": 4, "$ne": 2}}),
    SearchOp(("users",), filter={"at": {"city": "Oslo"}}),
    SearchOp(("users",), filter={"tags": ["a", "b"]}),
    SearchOp(("nobody",)),
    ListNamespacesOp(),
    ListNamespacesOp(max_depth=1),
    ListNamespacesOp((MatchCondition("prefix", ("users", "*")),)),
    ListNamespacesOp((MatchCondition("suffix", ("guide",)),)),
    ListNamespacesOp(limit=2, offset=1),
]


def filled(memory: Any) -> Any:
    """A memory with the items."""
    for namespace, key, value in ITEMS:
        memory.put(namespace, key, value)
    return memory


def plain(answer: Any) -> Any:
    """An answer without its times, items in the order of their places."""
    if not isinstance(answer, list):
        return answer and (answer.namespace, answer.key, answer.value)
    parts = [plain(item) if hasattr(item, "key") else item for item in answer]
    return sorted(parts, key=str)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_it_answers_as_the_reference_does(store: Store, question: Any) -> None:
    """Each question has the answer of LangGraph's own store in memory."""
    ours, theirs = filled(VmstoreMemory(store)), filled(InMemoryStore())
    assert plain(ours.batch([question])[0]) == plain(theirs.batch([question])[0])


def test_another_handle_sees_the_same(tmp_path: Path) -> None:
    """Items, their changes and deletions are there in another handle, at once and after a restart."""
    with vmstore.open(tmp_path / "agent.vms") as writer, vmstore.open(tmp_path / "agent.vms") as reader:
        first, second = filled(VmstoreMemory(writer)), VmstoreMemory(reader)
        first.delete(ADA, "tea")
        second.put(ADA, "car", {"text": "bought a car"})
        assert second.get(ADA, "tea") is None
        assert first.get(ADA, "car").value == {"text": "bought a car"}
        first.put(ADA, "tea", {"text": "again"})
    with vmstore.open(tmp_path / "agent.vms") as store:
        memory = VmstoreMemory(store)
        items: list[Any] = [memory.get(ADA, key) for key in ("tea", "car")]
        assert [item.value["text"] for item in items] == ["again", "bought a car"]


def test_a_search_ranks_by_words(store: Store) -> None:
    """A query finds the items by their words, the best first with a score of 1, under the prefix alone."""
    memory = filled(VmstoreMemory(store))
    memory.put(BOB, "hidden", {"text": "green tea for Bob"}, index=False)
    items = memory.search(("users",), query="green tea")
    assert (items[0].namespace, items[0].key, items[0].score) == (ADA, "tea", 1.0)
    assert "hidden" not in {item.key for item in items}
    assert memory.search(BOB, query="green tea") == []


def test_an_item_has_its_history(store: Store) -> None:
    """Each change of an item is a version, and what it said before can be asked for."""
    memory = filled(VmstoreMemory(store))
    then = memory.session.info().position
    memory.put(ADA, "tea", {"text": "drinks coffee"})
    page = memory.page_of(ADA, "tea")
    assert page is not None and [event.event for event in memory.session.lineage.history(page)] == ["create", "update"]
    assert b"green tea" in memory.session.content(page, position=then)
    changed = memory.get(ADA, "tea")
    assert changed is not None and changed.created_at < changed.updated_at


def test_a_batch_is_one_commit(store: Store) -> None:
    """What is put together is written together, and reads of the same batch see what was before."""
    memory = filled(VmstoreMemory(store))
    before = store.admin.log.ordinal
    answers = memory.batch([PutOp(ADA, "tea", None), GetOp(ADA, "tea"), PutOp(ADA, "new", {"text": "x"})])
    assert store.admin.log.ordinal == before + 1
    assert answers[1].value["text"] == "drinks green tea" and memory.get(ADA, "tea") is None


def test_an_erased_item_is_gone(store: Store) -> None:
    """An item whose page was erased is answered as one that is not there."""
    memory = filled(VmstoreMemory(store))
    page = memory.page_of(ADA, "tea")
    store.trust.erase(page=f"{memory.session.name}/{page}")
    assert memory.get(ADA, "tea") is None and "tea" not in {item.key for item in memory.search(ADA)}


def test_it_is_awaited(store: Store) -> None:
    """The async methods give what the sync ones do."""

    async def main() -> Any:
        memory = VmstoreMemory(store)
        await memory.aput(ADA, "tea", {"text": "green"})
        return await memory.aget(ADA, "tea"), await memory.asearch(("users",), query="green")

    item, (match,) = asyncio.run(main())
    assert (item.value, match.key) == ({"text": "green"}, "tea")


def test_a_graph_takes_both(store: Store) -> None:
    """A graph is compiled with the checkpointer and the memory over one store."""
    memory = VmstoreMemory(store)
    parrot(VmstoreSaver(store), memory).invoke(words("hello"), thread())
    memory.put(ADA, "tea", {"text": "green"})
    assert {info.session for info in store.sessions(agent="langgraph")} == {"langgraph/t", "langgraph-memory"}


@pytest.mark.parametrize("value", [float("inf"), object(), {1, 2}], ids=["number", "object", "set"])
def test_what_json_cannot_hold_is_refused(store: Store, value: Any) -> None:
    """A value that would not come back equal is refused by name, and what the item held stays."""
    memory = filled(VmstoreMemory(store))
    with refused("input", InputError, "JSON"):
        memory.put(ADA, "tea", {"value": value})
    assert memory.get(ADA, "tea").value == ITEMS[0][2]


def test_wrong_operators_are_refused(store: Store) -> None:
    """An operator there is not is refused with those there are."""
    with refused("input", InputError, "$near", "$gte"):
        filled(VmstoreMemory(store)).search((), filter={"n": {"$near": 3}})
