"""The checkpointer: what LangGraph does with it, and what the store answers about it."""

from __future__ import annotations

import asyncio
import gc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.graph", reason="runs in the lane of tools/integrations.py")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.types import Command

import vmstore
from tests.integrations.langgraph.graphs import asker, checkpoint, parrot, put, thread, words
from tests.refusals import refused
from vmstore.errors import InputError, UnknownError
from vmstore.integrations.langgraph import VmstoreSaver
from vmstore.integrations.langgraph.pages import BLOCK_BYTES
from vmstore.integrations.langgraph.saver import THREADS_MAX
from vmstore.integrations.langgraph.thread import GraphThread
from vmstore.store.session import Session
from vmstore.store.store import Store


def texts(state: Any) -> list[str]:
    """What the messages of a state say."""
    return [message.content for message in state.values["messages"]]


def values_of(saver: VmstoreSaver, config: Any) -> dict[str, Any]:
    """The values of a checkpoint's channels."""
    checkpoint = saver.get_tuple(config)
    assert checkpoint is not None
    return checkpoint.checkpoint["channel_values"]


def state_bytes(store: Store, session: str = "langgraph/t") -> int:
    """How many bytes of state the pages of a thread hold."""
    rows = store.query("PAGES bytes WHERE type = value", session=session)
    return sum(size for (size,) in rows)


# ---- what a graph does


def test_a_graph_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A graph's thread is there after the store was closed, and the next turn goes on from it."""
    with VmstoreSaver.from_path(tmp_path / "agent.vms") as saver:
        parrot(saver).invoke(words("Hello"), thread())
    with VmstoreSaver.from_path(tmp_path / "agent.vms") as saver:
        graph = parrot(saver)
        graph.invoke(words("Again"), thread())
        assert texts(graph.get_state(thread())) == ["Hello", "You said: Hello", "Again", "You said: Again"]
        assert [state.metadata["step"] for state in graph.get_state_history(thread())] == [4, 3, 2, 1, 0, -1]


def test_a_graph_is_awaited(store: Store) -> None:
    """The async methods give what the sync ones do."""
    saver = VmstoreSaver(store)

    async def main() -> list[str]:
        graph = parrot(saver)
        await graph.ainvoke(words("Hello"), thread())
        history = [state async for state in graph.aget_state_history(thread())]
        assert len(history) == len(list(saver.list(thread()))) == 3
        return texts(await graph.aget_state(thread()))

    assert asyncio.run(main()) == texts(parrot(saver).get_state(thread()))


def test_a_graph_waits_for_a_human(tmp_path: Path) -> None:
    """An interrupt is kept as a pending write, and answered in another process's saver."""
    with VmstoreSaver.from_path(tmp_path / "agent.vms") as saver:
        asked = asker(saver).invoke(words("Take me home"), thread())
        assert asked["__interrupt__"][0].value == "Which harbour?"
    with VmstoreSaver.from_path(tmp_path / "agent.vms") as saver:
        done = asker(saver).invoke(Command(resume="Bergen"), thread())
        assert done["messages"][-1].content == "They answered: Bergen"


def test_a_graph_forks_from_its_past(store: Store) -> None:
    """A run from an older checkpoint goes its own way, and the other way is still there."""
    graph = parrot(VmstoreSaver(store))
    graph.invoke(words("one"), thread())
    before = graph.get_state(thread()).config
    graph.invoke(words("two"), thread())
    left = graph.get_state(thread()).config
    graph.invoke(words("three"), before)
    assert texts(graph.get_state(thread())) == ["one", "You said: one", "three", "You said: three"]
    assert texts(graph.get_state(left)) == ["one", "You said: one", "two", "You said: two"]


def test_an_encrypting_serializer_is_used(store: Store) -> None:
    """What the serializer of LangGraph encrypts is encrypted in the store, and read back."""

    class Turned:
        """A cipher that any child breaks."""

        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "turned", bytes(byte ^ 0x55 for byte in plaintext)

        def decrypt(self, name: str, ciphertext: bytes) -> bytes:
            return bytes(byte ^ 0x55 for byte in ciphertext)

    saver = VmstoreSaver(store, serde=EncryptedSerializer(Turned()), readable=False)
    put(saver, thread(), {"note": "attack at dawn " * 200})
    checkpoint = saver.get_tuple(thread())
    assert checkpoint is not None and checkpoint.checkpoint["channel_values"] == {"note": "attack at dawn " * 200}
    session = store.session("langgraph/t")
    assert not any(b"attack" in session.content(page.page) for page in session.pages())


# ---- how it is written


def test_a_growing_list_is_written_once(store: Store) -> None:
    """A list of 2,000 messages that grows by one a checkpoint costs its own size, not a copy a checkpoint."""
    saver = VmstoreSaver(store, readable=False)
    messages = [HumanMessage(f"message {number} of a long talk", id=str(number)) for number in range(2_000)]
    config = put(saver, thread(), {"messages": messages})
    first = state_bytes(store)
    for number in range(2_000, 2_050):
        messages = [*messages, HumanMessage(f"message {number} of a long talk", id=str(number))]
        config = put(saver, config, {"messages": messages})
    assert first > 5 * BLOCK_BYTES
    assert state_bytes(store) - first < 50 * 1.2 * BLOCK_BYTES  # not 50 * first
    reader = VmstoreSaver(store)
    assert values_of(reader, config) == {"messages": messages}
    assert [len(saved.checkpoint["channel_values"]["messages"]) for saved in reader.list(thread(), limit=3)] == [
        2_050, 2_049, 2_048
    ]  # fmt: skip


@pytest.mark.parametrize("size", [0, 511, 512, 513, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
def test_values_of_any_size_come_back(store: Store, size: int) -> None:
    """A value is read back equal around each size at which it is written another way, before and after a change."""
    saver, config = VmstoreSaver(store), thread()
    for filler in ("x", "y"):
        values = {"text": filler * size, "bytes": b"\xff" * size, "list": ["z"] * size, "none": None}
        config = put(saver, config, values)
        for reader in (saver, VmstoreSaver(store)):
            assert values_of(reader, config) == values


def test_an_unchanged_value_is_not_written_again(store: Store) -> None:
    """A large value that steps do not change is copied once at most, and from then on named by each checkpoint."""
    saver, large = VmstoreSaver(store), {"plan": "p" * 5_000}
    config = put(saver, thread(), large)
    sizes = [state_bytes(store)]
    for step in (2, 3, 4):
        made = checkpoint(large, {"plan": 1})
        config = saver.put(config, made, {"source": "loop", "step": step, "parents": {}}, {})
        sizes.append(state_bytes(store))
    grown = [after - before for before, after in pairwise(sizes)]
    assert grown[0] < 6_000 and max(grown[1:]) < 1_000
    assert values_of(saver, thread()) == large


def test_a_checkpoint_is_one_commit(store: Store) -> None:
    """A checkpoint with its values and messages is written whole or not at all."""
    saver = VmstoreSaver(store)
    put(saver, thread(), {"a": "x"})
    before = store.admin.log.ordinal
    put(saver, thread(), {"messages": [HumanMessage("hi", id="1")], "big": "x" * 100_000})
    assert store.admin.log.ordinal == before + 1


def test_two_processes_write_one_thread(tmp_path: Path) -> None:
    """Two savers over one store's files see what the other wrote, and neither loses a checkpoint."""
    with vmstore.open(tmp_path / "agent.vms") as first, vmstore.open(tmp_path / "agent.vms") as two:
        savers, config = (VmstoreSaver(first), VmstoreSaver(two)), thread()
        for step in range(6):
            config = put(savers[step % 2], config, {"n": step})
            assert savers[(step + 1) % 2].get_tuple(thread()).config == config
        assert [saved.checkpoint["channel_values"]["n"] for saved in savers[0].list(thread())] == [5, 4, 3, 2, 1, 0]


def test_a_thread_that_another_process_began_is_taken_in(tmp_path: Path) -> None:
    """A saver that looked before there was a thread sees what another wrote to it before its own first checkpoint."""
    with vmstore.open(tmp_path / "agent.vms") as first, vmstore.open(tmp_path / "agent.vms") as two:
        savers = VmstoreSaver(first), VmstoreSaver(two)
        assert savers[0].get_tuple(thread()) is None
        for step, saver in enumerate(reversed(savers)):
            put(saver, thread(), {"n": step})
        assert [saved.checkpoint["channel_values"]["n"] for saved in savers[0].list(thread())] == [1, 0]


def test_few_threads_are_kept_in_memory(store: Store) -> None:
    """Of many threads a saver keeps those it was asked for last in memory, and answers for all."""
    saver, names = VmstoreSaver(store), [str(number) for number in range(THREADS_MAX + 3)]
    for name in names:
        put(saver, thread(name), {"name": name})
    gc.collect()
    assert sum(isinstance(item, GraphThread) and item.name[10:] in names for item in gc.get_objects()) <= THREADS_MAX
    assert [values_of(saver, thread(name)) for name in names] == [{"name": name} for name in names]


# ---- what the store answers of it


def test_what_a_graph_said_is_found(store: Store) -> None:
    """The messages of a thread are pages of text, once each, with their roles, found across threads."""
    graph = parrot(VmstoreSaver(store))
    graph.invoke(words("The harbour master is Olga"), thread("a"))
    graph.invoke(words("It rains"), thread("b"))
    quote, answer = store.memory.find_quote("harbour master is Olga").quotes
    assert {quote.session, answer.session} == {"langgraph/a"}
    assert {quote.role, answer.role} == {"user", "assistant"}
    assert store.memory.find_quote("raining")


def test_a_message_tells_which_checkpoint_brought_it(store: Store) -> None:
    """The sources of a message lead to the checkpoint that brought it, and on to those before."""
    graph = parrot(VmstoreSaver(store))
    graph.invoke(words("hello"), thread())
    session = store.session("langgraph/t")
    (page,) = session.pages(role="assistant")
    hints = [str(session.page(link.target).hint).split(" ")[0] for link in session.lineage.ancestors(page.page)]
    assert hints[0] == "checkpoint" and hints.count("checkpoint") > 1


def test_the_past_of_a_thread_is_asked(store: Store) -> None:
    """A position of the log answers what a thread held then."""
    saver = VmstoreSaver(store)
    config = put(saver, thread(), {"messages": [HumanMessage("first", id="1")]})
    then = store.session("langgraph/t").info().position
    put(saver, config, {"messages": [HumanMessage("first", id="1"), AIMessage("second", id="2")]})
    rows = store.query(
        "PAGES hint AS OF POSITION $p WHERE type = transcript", session="langgraph/t", params={"p": then}
    )
    assert [hint for (hint,) in rows] == ["message 1"]


# ---- what is taken away


def test_a_deleted_thread_is_destroyed(tmp_path: Path) -> None:
    """delete_thread destroys contents and name in every file of the store, and the log still verifies."""
    with VmstoreSaver.from_path(tmp_path / "agent.vms") as saver:
        put(
            saver,
            thread("lisbon-affair"),
            {"messages": [HumanMessage("xyzzy-secret-7", id="1")], "b": "xyzzy-secret-7" * 90},
        )
        saver.delete_thread("lisbon-affair")
        assert saver.get_tuple(thread("lisbon-affair")) is None
        put(saver, thread("lisbon-affair"), {"a": 1})
        assert len(list(saver.list(thread("lisbon-affair")))) == 1
        saver.delete_thread("lisbon-affair")
    files = [path for path in (tmp_path / "agent.vms").rglob("*") if path.is_file()]
    assert not any(b"xyzzy-secret-7" in path.read_bytes() for path in files)
    with vmstore.open(tmp_path / "agent.vms") as store:
        assert store.verify().ok and not [info for info in store.sessions() if "lisbon" in info.session]


def test_a_deleted_run_takes_only_what_is_its_own(store: Store) -> None:
    """delete_for_runs erases a run's checkpoints and messages, and keeps what the others need of their values."""
    saver = VmstoreSaver(store)
    kept, gone, twin = (
        HumanMessage("keep me", id="1"),
        AIMessage("forget plugh", id="2"),
        HumanMessage("keep me", id="3"),
    )
    big = "b" * 40_000
    first = put(saver, thread(), {"messages": [kept], "big": big}, run_id="one")
    second = put(saver, first, {"messages": [kept, gone, twin], "big": big + "plugh"}, run_id="two")
    third = put(saver, second, {"messages": [kept], "big": big}, run_id="three")
    saver.delete_for_runs(["two"])
    assert saver.get_tuple(second) is None
    for config in (first, third):
        for reader in (saver, VmstoreSaver(store)):
            assert values_of(reader, config) == {"messages": [kept], "big": big}
    assert store.memory.find_quote("plugh").quotes == []
    assert store.memory.find_quote("keep me").quotes[0].match == "exact"


def test_pruning_keeps_what_the_newest_is_made_of(store: Store) -> None:
    """prune leaves the newest checkpoint, and it is whole though its blocks were written by older ones."""
    saver, config = VmstoreSaver(store), thread()
    for step in range(4):
        config = put(saver, config, {"big": "b" * 40_000, "n": step})
    saver.prune(["t"])
    (left,) = VmstoreSaver(store).list(thread())
    assert left.checkpoint["channel_values"] == {"big": "b" * 40_000, "n": 3}


def test_pruning_keeps_what_deltas_need(store: Store) -> None:
    """prune keeps the ancestors that a channel of deltas is rebuilt from, up to the last that has a value."""
    saver, config = VmstoreSaver(store), thread()
    counters = {"counters_since_delta_snapshot": {"log": (1, 1)}}
    for step in range(4):
        config = put(saver, config, {"log": [step]} if step == 1 else {"n": step}, **counters)
        saver.put_writes(config, [("log", f"write {step}")], "task")
    before = saver.get_delta_channel_history(config=config, channels=["log"])
    saver.prune(["t"])
    assert saver.get_delta_channel_history(config=config, channels=["log"]) == before
    assert before["log"] == {"writes": [("task", "log", "write 1"), ("task", "log", "write 2")], "seed": [1]}
    assert [saved.checkpoint["channel_values"] for saved in saver.list(thread())] == [{"n": 3}, {"n": 2}, {"log": [1]}]


def test_a_message_that_was_replaced_is_erased_with_its_run(store: Store) -> None:
    """What a message said before another took its id is gone once no checkpoint holds it."""
    saver = VmstoreSaver(store)
    first = put(saver, thread(), {"messages": [HumanMessage("the word is plugh", id="1")]}, run_id="one")
    put(saver, first, {"messages": [HumanMessage("no word at all", id="1")]}, run_id="two")
    saver.delete_for_runs(["one"])
    assert store.memory.find_quote("plugh").quotes == []


def test_a_run_is_deleted_after_a_message_was_erased(store: Store) -> None:
    """A message that somebody erased by its page does not stop the deletion of a run that brought another."""
    saver, config = VmstoreSaver(store), thread()
    talk = [HumanMessage(f"number {number}", id=str(number)) for number in range(3)]
    for number in range(3):
        config = put(saver, config, {"messages": talk[: number + 1]}, run_id=str(number))
    (page,) = store.memory.find_quote("number 0").quotes[:1]
    store.trust.erase(where=f"page = {page.page}", in_session="langgraph/t")
    saver.delete_for_runs(["2"])
    assert [len(saved.checkpoint["channel_values"]["messages"]) for saved in saver.list(thread())] == [2, 1]
    assert store.memory.find_quote("number 2").quotes[0].match != "exact"


def test_a_copy_goes_its_own_way(store: Store) -> None:
    """A copied thread keeps its checkpoints when the other is destroyed."""
    saver = VmstoreSaver(store)
    config = put(saver, thread(), {"big": "b" * 40_000})
    put(saver, config, {"big": "b" * 40_000 + "c"})
    saver.copy_thread("t", "u")
    saver.delete_thread("t")
    values = [saved.checkpoint["channel_values"]["big"][-1] for saved in VmstoreSaver(store).list(thread("u"))]
    assert values == ["c", "b"]


def test_a_copy_is_found_by_what_it_says(store: Store) -> None:
    """The messages of a copied thread are found by their words, each by its checkpoint, after the other is gone."""
    saver = VmstoreSaver(store)
    config = put(saver, thread(), {"messages": [HumanMessage("the harbour master is Olga", id="1")]})
    put(saver, config, {"messages": [HumanMessage("the harbour master is Olga", id="1"), AIMessage("Noted", id="2")]})
    saver.copy_thread("t", "u")
    saver.delete_thread("t")
    (quote,) = store.memory.find_quote("harbour master is Olga").quotes
    assert (quote.session, quote.role) == ("langgraph/u", "user")
    session = store.session("langgraph/u")
    (answer,) = session.pages(role="assistant")
    ids = [str(session.page(link.target).hint).split(" ")[1] for link in session.lineage.ancestors(answer.page)]
    assert ids == [saved.checkpoint["id"] for saved in saver.list(thread("u"))]


def test_wrong_asking_is_refused(store: Store) -> None:
    """An unknown thread to copy and an unknown strategy are refused by name; an unknown thread holds nothing."""
    saver = VmstoreSaver(store)
    assert saver.get_tuple(thread("nobody")) is None and list(saver.list(thread("nobody"))) == []
    with refused("no-session", UnknownError, "'nobody'"):
        saver.copy_thread("nobody", "t")
    with refused("input", InputError, "keep_latest", "delete"):
        saver.prune(["t"], strategy="all")
    assert store.sessions() == []


def test_what_comes_while_a_thread_is_read_is_read_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that comes between two reads of one look is found by the next, and counted once."""
    with vmstore.open(tmp_path / "agent.vms") as first, vmstore.open(tmp_path / "agent.vms") as two:
        reader, writer = VmstoreSaver(first), VmstoreSaver(two)
        config = put(writer, thread(), {"n": 0})
        info, late = Session.info, [{"n": 1}]

        def slowly(session: Session) -> Any:
            """The counts of a session, which another process writes to just before."""
            if session._ns is not first._ns or not late:
                return info(session)
            put(writer, config, late.pop())
            return info(session)

        monkeypatch.setattr(Session, "info", slowly)
        reader.get_tuple(thread())
        assert values_of(reader, thread()) == {"n": 1}
        assert len(list(reader.list(thread()))) == 2
