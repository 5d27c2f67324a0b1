"""What interrupts a run: nothing that was answered by then is lost, and the session goes on after it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.refusals import refused
from vmstore.errors import InputError, RefusedError
from vmstore.store.live.live_session import Live
from vmstore.vm.kernel.eviction import EvictionPlan

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]
NESTED: list[Any] = []
for _ in range(300):
    NESTED = [NESTED]


def response_of(text: str | None = None, *calls: tuple[str, str]) -> dict[str, Any]:
    """A response: words, and calls by id and tool."""
    asked = [{"id": call, "type": "function", "function": {"name": tool, "arguments": "{}"}} for call, tool in calls]
    message = {"role": "assistant", "content": text, **({"tool_calls": asked} if asked else {})}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def live(store: vmstore.Store) -> Live:
    """A session that was just asked something."""
    session = store.live_session("s", l0_tokens_max=8_000)
    session.user("Hello?")
    return session


def results(session: Live) -> list[str]:
    """What tools answered, in order, as the log has it."""
    return [session.content(page.page).decode() for page in session.pages(role="tool")]


def goes_on(store: vmstore.Store, session: Live) -> None:
    """The log holds, what is decided is what a replay decides, and the next run answers."""
    session.user("Again?")
    assert session.run(lambda request: response_of("Fine.")).text == "Fine."
    assert store.verify().ok and session.debug.check().ok and not session.stats().calls_over_budget


@pytest.mark.parametrize("parallel", [True, False])
def test_what_tools_gave_before_an_interrupt_is_logged(parallel: bool) -> None:
    """The result of the tool that ended is kept, the other is told as interrupted, and the interrupt comes out."""
    ended = threading.Event()

    def good() -> str:
        ended.set()
        return "GOOD"

    def bad() -> str:
        assert ended.wait(20)
        raise KeyboardInterrupt

    with vmstore.memory_store() as store:
        session = live(store)
        with pytest.raises(KeyboardInterrupt):
            session.run(
                lambda request: response_of(None, ("c1", "good"), ("c2", "bad")),
                tools={"good": good, "bad": bad},
                parallel=parallel,
            )
        assert results(session) == ["GOOD", '{"error": "KeyboardInterrupt"}']
        goes_on(store, session)


def test_a_tool_that_hangs_does_not_hold_an_interrupt() -> None:
    """Nobody waits for a tool that never returns once another was interrupted."""
    hangs, begun = threading.Event(), threading.Event()

    def hang() -> str:
        begun.set()
        hangs.wait()
        return "late"

    def stop() -> str:
        assert begun.wait(20)
        raise KeyboardInterrupt

    with vmstore.memory_store() as store:
        session = live(store)
        try:
            with pytest.raises(KeyboardInterrupt):
                session.run(
                    lambda request: response_of(None, ("c1", "hang"), ("c2", "stop")),
                    tools={"hang": hang, "stop": stop},
                )
            assert not hangs.is_set() and results(session) == ['{"error": "KeyboardInterrupt"}'] * 2
        finally:
            hangs.set()
        goes_on(store, session)


def test_a_process_ends_beside_a_tool_that_hangs() -> None:
    """A tool that never returns keeps no process from its end."""
    program = """
import threading, vmstore
def said(*tools):
    calls = [{"id": t, "type": "function", "function": {"name": t, "arguments": "{}"}} for t in tools]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}
begun = threading.Event()
def hang(): begun.set(); threading.Event().wait()
def stop(): begun.wait(); raise KeyboardInterrupt
session = vmstore.memory_store().live_session("s", l0_tokens_max=8_000)
session.user("Hello?")
try:
    session.run(lambda request: said("hang", "stop"), tools={"hang": hang, "stop": stop})
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "interrupted\n", ended.stderr


def test_results_of_a_task_that_is_cancelled_are_logged() -> None:
    """What awaited tools gave before their run was cancelled stands in the log, and the others as cancelled."""

    async def cancelled() -> list[str]:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", l0_tokens_max=8_000)
            await session.user("Hello?")
            event = asyncio.Event()

            async def good() -> str:
                event.set()
                return "GOOD"

            async def slow() -> None:
                await asyncio.Event().wait()

            async def model(request: dict[str, Any]) -> Any:
                return response_of(None, ("c1", "good"), ("c2", "slow"))

            run = asyncio.create_task(session.run(model, tools={"good": good, "slow": slow}))
            await event.wait()
            await asyncio.sleep(0)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            texts = [(await session.content(page.page)).decode() for page in await session.pages(role="tool")]
            assert (await store.verify()).ok
            return texts

    assert asyncio.run(cancelled()) == ["GOOD", '{"error": "CancelledError"}']


@pytest.mark.parametrize(
    "response", [{"choices": DEEP}, response_of("x") | {"more": DEEP}, response_of("x") | {"more": NESTED}]
)
def test_a_response_that_nobody_can_read_fails_its_call(response: Any) -> None:
    """A response nested too deeply is refused by name, and its call is failed, not open for ever."""
    with vmstore.memory_store() as store:
        session = live(store)
        with refused("too-deep", InputError):
            session.run(lambda request: response)
        assert [call.status for call in session.calls()] == ["failed"]
        goes_on(store, session)


def test_ids_and_errors_that_cannot_be_written() -> None:
    """An id that is no text of UTF-8, and an error that cannot be printed, are answered and logged all the same."""

    class EvilError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def evil() -> str:
        raise EvilError

    with vmstore.memory_store() as store:
        session = live(store)
        answers = [response_of(None, ("c\ud800", "evil"), ("c\ud801", "evil"), ("c?", "evil")), response_of("Done.")]
        assert session.run(lambda request: answers.pop(0), tools={"evil": evil}).text == "Done."
        assert results(session) == ['{"error": "EvilError"}'] * 3
        goes_on(store, session)


@pytest.mark.parametrize("when", ["model", "tool"])
def test_a_store_that_is_closed_in_a_run(when: str, tmp_path: Path) -> None:
    """The run says that the store is closed, what was logged by then is whole, and the session is run again."""
    store = vmstore.open(tmp_path / "a.vms")
    session = live(store)

    def model(request: dict[str, Any]) -> Any:
        if when == "model":
            store.close()
        return response_of(None, ("c1", "read"))

    with refused("closed", InputError):
        session.run(model, tools={"read": store.close})
    with vmstore.open(tmp_path / "a.vms") as again:
        (gone_on,) = [again.session("s")]
        assert isinstance(gone_on, Live)
        assert [call.status for call in gone_on.calls()] == ["open" if when == "model" else "ok"]
        goes_on(again, gone_on)


def test_an_awaited_store_that_is_closed_in_a_run(recwarn: pytest.WarningsRecorder) -> None:
    """The awaited run says so too, and leaves nothing behind that fails when it is collected."""

    async def closing() -> None:
        store = await vmstore.aio.memory_store()
        session = await store.live_session("s", l0_tokens_max=8_000)
        await session.user("Hello?")

        async def model(request: dict[str, Any]) -> Any:
            await store.close()
            return response_of("Late.")

        await session.run(model)

    with refused("closed", InputError):
        asyncio.run(closing())
    assert not [item for item in recwarn if issubclass(item.category, pytest.PytestUnraisableExceptionWarning)]


def test_an_answer_to_another_processes_call_is_not_taken(tmp_path: Path) -> None:
    """Where another process packs a call meanwhile, the answer is refused by number, and never stands for one to it."""
    with vmstore.open(tmp_path / "a.vms") as store:
        session = live(store)
        program = f"import vmstore; s = vmstore.open({str(tmp_path / 'a.vms')!r}).session('s'); s.user('Me!'); s.pack()"

        def model(request: dict[str, Any]) -> Any:
            subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
            return response_of("An answer to Hello.")

        with refused("packed-meanwhile", RefusedError, "call 2", "call 1"):
            session.run(model)
        assert [call.status for call in session.calls()] == ["open", "open"]
        assert not session.pages(role="assistant")
        goes_on(store, session)


@pytest.mark.parametrize("same", [True, False])
def test_what_parallel_results_cost_grows_as_they_do(same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many results of one answer are twice the work of deciding, whatever their ids: they come at once."""
    looked: Counter[str] = Counter()
    tokens = EvictionPlan.tokens

    def counted(self: EvictionPlan, value: Any) -> int:
        looked["pages"] += 1
        return tokens(self, value)

    monkeypatch.setattr(EvictionPlan, "tokens", counted)

    def work(count: int) -> int:
        looked.clear()
        with vmstore.memory_store() as store:
            session = live(store)
            answers = [
                response_of(None, *[("c" if same else f"c{n}", "read") for n in range(count)]),
                response_of("Done."),
            ]
            session.run(lambda request: answers.pop(0), tools={"read": lambda: "a result of some words"})
            assert len(session.pages(role="tool")) == count and store.verify().ok
        return looked["pages"]

    small, large = work(400), work(1_600)
    assert small and large <= 5 * small, json.dumps([small, large])
