"""What is done within a turn is written at once, and is what it would be one by one."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests import refusals
from tests.live.small import FEW
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import RefusedError, StoreError, UnknownError, VmstoreError
from vmstore.store.store import Store

START = 1_795_301_701_000_000


def opened(path: Path | None) -> Store:
    """A store whose clock and ids are made here."""
    fields: dict[str, Any] = {"clock": ManualClock(START), "ids": SeededIds(3)}
    return vmstore.memory_store(**fields) if path is None else vmstore.open(path, **fields)


def acts(session: Any, turn: int) -> list[Any]:
    """What an agent's step comes to: an answer with three calls and their results, one of them long."""
    calls = [{"id": f"c{turn}.{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}} for n in "abc"]
    assistants = [
        session.assistant({"role": "assistant", "content": "I look.", "tool_calls": calls}, at_us=START + turn)
    ]
    for n, call in enumerate(calls):
        text = f"Step {turn} of {n} is about trains. " * (1 + 60 * n)
        assistants.append(session.tool(call["id"], text, at_us=START + turn))
    return assistants


def bodies(store: Store) -> list[tuple[int, bytes]]:
    """The commits of a store, without when they were written."""
    return [(commit.first, commit.body) for commit in store.admin.log.tail(0, 10_000)]


def lived(*, together: bool) -> tuple[list[Any], list[tuple[int, bytes]], int]:
    """Some turns of a session: what was answered, the commits, and how often something was written."""
    with opened(None) as store:
        session: Any = store.live_session("s", **FEW | {"l0_tokens_max": 800})
        log: Any = store.admin.log
        whole, writes = log.together, 0

        def counted(batches: Any) -> Any:
            nonlocal writes
            writes += 1
            return whole(batches)

        log.together = counted
        answers: list[Any] = []
        for turn in range(6):
            session.user(f"What of step {turn}? It is about Zanzibar.", at_us=START + turn)
            answers.append(session.pack(at_us=START + turn).messages())
            if together:
                with session.turn():
                    answers += acts(session, turn)
            else:
                answers += acts(session, turn)
        assert session.stats().evictions
        assert store.verify().ok
        log.together = whole
        return answers, bodies(store), writes


def test_a_turn_writes_the_commits_it_would_write_one_by_one() -> None:
    """Answers, commits and their order are the same, and three writes do for six."""
    one_by_one, together = lived(together=False), lived(together=True)
    assert together[:2] == one_by_one[:2]
    assert one_by_one[2] - together[2] == 3 * 6


def test_an_error_that_leaves_a_turn_keeps_what_was_done() -> None:
    """What was done before a host's own error is written; an act that was refused wrote nothing and stops nothing."""
    with opened(None) as store:
        session: Any = store.live_session("s", **FEW)
        session.user("Hello.")
        with pytest.raises(KeyError), session.turn():
            session.assistant("First.")
            with pytest.raises(UnknownError):
                session.pin("p999")
            session.user("Second.")
            raise KeyError
        texts = [session.content(page.page) for page in session.pages()]
        assert texts[-2:] == [b"First.", b"Second."]


def test_an_act_that_fails_half_way_takes_the_turn_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of such a turn is written, what follows in it is refused, and the session goes on after it."""
    with opened(None) as store:
        session: Any = store.live_session("s", **FEW)
        session.user("Hello.")
        before = bodies(store)
        with session.turn():
            session.assistant("First.")
            with monkeypatch.context() as patch:
                patch.setattr("vmstore.vm.kernel.kernel.Kernel.react", lambda kernel: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    session.user("Second.")
            with refusals.refused("turn-failed"):
                session.user("Third.")
        assert bodies(store) == before
        session.user("Fourth.")
        assert session.content(session.pages()[-1].page) == b"Fourth."
        assert store.verify().ok


def test_a_turn_that_cannot_be_written_is_told() -> None:
    """Where the disk is full at the end of a turn the error is raised, and the session stands where it stood."""
    with opened(None) as store:
        session: Any = store.live_session("s", **FEW)
        session.user("Hello.")
        before, log = bodies(store), store.admin.log
        whole = log.together

        def full(batches: Any) -> Any:
            raise StoreError("the disk is full")

        with pytest.raises(StoreError, match="full"), session.turn():
            session.assistant("First.")
            log.together = full  # type: ignore[method-assign]
        log.together = whole  # type: ignore[method-assign]
        assert bodies(store) == before
        session.assistant("Again.")
        assert store.verify().ok


def test_a_turn_is_one_threads_own() -> None:
    """Neither another turn within it nor an act of another thread is taken."""
    with opened(None) as store:
        session: Any = store.live_session("s", **FEW)
        refused: list[VmstoreError] = []

        def other() -> None:
            try:
                session.user("From elsewhere.")
            except VmstoreError as error:
                refused.append(error)

        with session.turn():
            session.user("Hello.")
            with refusals.refused("turn-under-way"), session.turn():
                pass
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert [type(item) for item in refused] == [RefusedError]
        other()
        assert len(refused) == 1


def test_a_turn_that_another_handle_overtook_is_not_written(tmp_path: Path) -> None:
    """Where somebody else writes to the session meanwhile the turn is refused whole, and both go on."""
    with opened(tmp_path / "a") as store, vmstore.open(tmp_path / "a") as other:
        session: Any = store.live_session("s", **FEW)
        session.user("Hello.")
        second: Any = other.session("s")
        with pytest.raises(VmstoreError), session.turn():
            session.assistant("First.")
            second.user("From elsewhere.")
        session.assistant("Later.")
        texts = [session.content(page.page) for page in session.pages()]
        assert texts[-2:] == [b"From elsewhere.", b"Later."]
        assert store.verify().ok


def _dies(path: Path) -> None:
    with vmstore.open(path) as store, store.session("s").turn():  # type: ignore[union-attr]
        session: Any = store.session("s")
        session.assistant("Never heard.")
        os._exit(0)


def test_a_process_that_dies_within_a_turn_leaves_nothing_of_it(tmp_path: Path) -> None:
    """The log is what it was when the turn began."""
    with opened(tmp_path / "a") as store:
        session: Any = store.live_session("s", **FEW)
        session.user("Hello.")
        before = bodies(store)
    child = multiprocessing.get_context("spawn").Process(target=_dies, args=(tmp_path / "a",))
    child.start()
    child.join()
    with vmstore.open(tmp_path / "a") as store:
        assert bodies(store) == before
        assert store.verify().ok


def test_a_turn_can_be_awaited() -> None:
    """The async twin is given the work, and writes it at once."""

    async def work() -> list[str]:
        async with vmstore.aio.memory_store() as store:
            session: Any = await store.live_session("s", **FEW)
            await session.user("Hello.")

            def step(live: Any) -> list[str]:
                return [*live.assistant("First."), *live.user("Second.")]

            names: list[str] = await session.turn(step)
            return names

    assert len(asyncio.run(work())) == 2
