"""The async twin: the surface of the sync objects, their answers, their order, and cancelled tasks."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vmstore
import vmstore.aio
from tests.capture.words import answer as replied
from tests.capture.words import request as asked
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.store.kept import CALLS, tell
from vmstore.aio.admin import Admin as AsyncAdmin
from vmstore.aio.debug import Debug as AsyncDebug
from vmstore.aio.lineage import Lineage as AsyncLineage
from vmstore.aio.memory import FactMemory, SegmentMemory, StoreFacts, TagMemory, TurnMemory
from vmstore.aio.memory import SessionMemory as AsyncMemory
from vmstore.aio.memory import StoreMemory as AsyncStoreMemory
from vmstore.aio.regions import Sharing as AsyncSharing
from vmstore.aio.store_parts import Catalog, SearchIndex
from vmstore.aio.trust import Trust as AsyncTrust
from vmstore.aio.wire import Wire as AsyncWire
from vmstore.aio.work.artifacts import Artifacts as AsyncArtifacts
from vmstore.aio.work.artifacts import Atoms as AsyncAtoms
from vmstore.aio.work.digests import Digests as AsyncDigests
from vmstore.aio.work.forms import Forms as AsyncForms
from vmstore.aio.work.plans import Plans as AsyncPlans
from vmstore.aio.work.vbrief import VBriefTools as AsyncVBriefTools
from vmstore.aio.work.work import SessionWork as AsyncSessionWork
from vmstore.aio.work.work import StoreWork as AsyncStoreWork
from vmstore.core.mutation import Create, Mark, Turn, Update
from vmstore.core.page import Modality, PageType, Role
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, RefusedError, StoreError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.reads.context import Context
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store, open_store
from vmstore.store.work.artifacts import Artifacts
from vmstore.store.work.atoms import Atoms
from vmstore.store.work.digests import Digests
from vmstore.store.work.forms import Forms
from vmstore.store.work.plans import Plans
from vmstore.store.work.vbrief import VBriefTools

TWINS = [
    (Store, vmstore.aio.Store),
    (Session, vmstore.aio.Session),
    (Context, vmstore.aio.Context),
    (Live, vmstore.aio.Live),
    (vmstore.Admin, AsyncAdmin),
    (vmstore.Catalog, Catalog),
    (vmstore.SearchIndex, SearchIndex),
    (vmstore.Trust, AsyncTrust),
    (vmstore.Sharing, AsyncSharing),
    (vmstore.Lineage, AsyncLineage),
    (vmstore.SessionMemory, AsyncMemory),
    (vmstore.StoreMemory, AsyncStoreMemory),
    (vmstore.FactMemory, FactMemory),
    (vmstore.TagMemory, TagMemory),
    (vmstore.SegmentMemory, SegmentMemory),
    (vmstore.TurnMemory, TurnMemory),
    (vmstore.StoreFacts, StoreFacts),
    (vmstore.Wire, AsyncWire),
    (vmstore.Debug, AsyncDebug),
    (vmstore.SessionWork, AsyncSessionWork),
    (vmstore.StoreWork, AsyncStoreWork),
    (Plans, AsyncPlans),
    (Digests, AsyncDigests),
    (Forms, AsyncForms),
    (Artifacts, AsyncArtifacts),
    (Atoms, AsyncAtoms),
    (VBriefTools, AsyncVBriefTools),
]
# Handles below the store, where nothing could be awaited.
RAW = {"log", "views", "runtime", "look"}
BLOCKS = {"batch"}  # a block there is a function here
STREAMS = {"stream"}  # what is given there at once is awaited as it is looped over
SYNC = {"Iterator": "AsyncIterator"}


def lacking(sync: type, twin: type) -> list[str]:
    """What a twin lacks of a sync class: methods, their arguments, defaults and answers, all to be awaited."""
    wrong = []
    for name, member in inspect.getmembers(sync):
        if name.startswith("_") or name in RAW | BLOCKS:
            continue
        other = getattr(twin, name, None)
        if isinstance(member, property):
            if not (isinstance(other, property) or inspect.iscoroutinefunction(other) or _assigned(twin, name)):
                wrong.append(f"{name} is no property, method or attribute")
        elif inspect.isgeneratorfunction(inspect.unwrap(member)) and not inspect.isgeneratorfunction(member):
            # a block of work with what is yielded: the twin is given the work, and does it in its thread
            parameters = (
                list(inspect.signature(other).parameters.values()) if inspect.iscoroutinefunction(other) else []
            )
            if [parameter for parameter in parameters if parameter.name != "write"] != list(
                inspect.signature(member).parameters.values()
            ):
                wrong.append(f"{name} cannot be awaited with the work to do")
        elif name in STREAMS:
            if not hasattr(inspect.get_annotations(other, eval_str=True)["return"], "__aiter__"):
                wrong.append(f"{name} gives nothing to loop over by async for")
            elif _signature(member) != _signature(other):
                wrong.append(f"{name}{inspect.signature(other)} is not {inspect.signature(member)}")
        elif not (inspect.iscoroutinefunction(other) or inspect.isasyncgenfunction(other)):
            wrong.append(f"{name} cannot be awaited")
        elif _signature(member, awaited=True) != _signature(other):
            wrong.append(f"{name}{inspect.signature(other)} is not {inspect.signature(member)}")
    return wrong


def _assigned(twin: type, name: str) -> bool:
    return f"self.{name} =" in inspect.getsource(twin)


def _signature(function: Any, *, awaited: bool = False) -> tuple[Any, ...]:
    signature = inspect.signature(function)
    returns = str(signature.return_annotation)
    for word, other in SYNC.items() if awaited else ():
        returns = returns.replace(word, other)
    return list(signature.parameters.values()), returns


@pytest.mark.parametrize(("sync", "twin"), TWINS, ids=lambda case: case.__module__)
def test_the_twin_has_the_whole_surface(sync: type, twin: type) -> None:
    """Every public method of the sync class is there, with the same signature, to be awaited."""
    assert lacking(sync, twin) == []


def test_a_lacking_twin_is_found() -> None:
    """A method that is missing, has another default or is not awaited is named."""

    class Short:
        """A twin with three faults."""

        async def turns(self, more: bool = False) -> list[Any]:
            """One argument too many."""
            return []

        def calls(self) -> list[Any]:
            """Not to be awaited."""
            return []

    texts = lacking(Session, Short)
    assert any(line.startswith("turns(") for line in texts)
    assert {"calls cannot be awaited", "info cannot be awaited"} <= set(texts)


def test_open_takes_what_open_takes() -> None:
    """`aio.open` and `aio.memory_store` have the arguments of their sync twins."""
    for sync, twin in ((open_store, vmstore.aio.open), (memory_store, vmstore.aio.memory_store)):
        assert inspect.signature(sync).parameters == inspect.signature(twin).parameters


def test_a_batch_is_a_function() -> None:
    """What a function adds to a batch is one commit, its answer comes back, and a broken rule writes nothing."""

    def claim(batch: Batch) -> int:
        return batch.add(Create(PageType.CLAIM, Modality.TEXT, Role.ASSISTANT, 0, 0, batch.cell(b"so"), 2, 1))

    def broken(batch: Batch) -> None:
        claim(batch)
        batch.add(Update(99, 2, batch.cell(b"x"), 1, 1))

    async def work() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.session("s", create=True)
            page = await session.batch(claim, at_us=5)
            with refused("page_exists"):
                await session.batch(broken)
            assert await session.content(f"p{page}") == b"so"
            with await session.open_content(f"p{page}") as file:
                assert file.read() == b"so"
            assert [p.created_at for p in await session.pages()] == [5]

    asyncio.run(work())


# ---- the same answers


def test_every_question_has_the_same_answer(store_path: Path, tmp_path: Path) -> None:
    """Recorded through the twin, each question of store, session and context is answered as the sync one does."""

    async def work() -> None:
        async with vmstore.aio.open(store_path) as store:
            for number, (items, reply) in enumerate(CALLS, 1):
                response = replied(reply, tokens=100 * number)
                await store.record("s", asked(items), response, at_us=number * 1_000_000)
            with vmstore.open(store_path, "r") as other:
                await _compare(store, other)
            await store.export(tmp_path / "s.jsonl", "s", exact=True)
            assert (await store.import_file(tmp_path / "s.jsonl", exact=True)).new == 0
            child = await (await store.session("s")).fork("child", call=2)
            assert (await child.record(asked(CALLS[0][0]))).session == "child"
            assert (await store.admin.record_gap(child, "lost")).call == 4
            assert await child.batch(lambda batch: batch.add(Mark(Mark.NAMED, name=batch.cell(b"here")))) > 0
            with pytest.raises(RefusedError):
                await child.batch(lambda batch: batch.add(Turn(99)))
            assert (await store.verify()).ok and (await store.admin.rebuild("pages"))["pages"]
            assert (await store.backup(tmp_path / "b")).namespaces[0].sessions == 2
            assert store.folder == store_path / "default"

    asyncio.run(work())


async def _compare(store: vmstore.aio.Store, other: Store) -> None:
    assert await store.sessions() == other.sessions()
    assert (await store.info()).commits == other.info().commits
    assert (await store.admin.usage()).kinds == other.admin.usage().kinds
    assert [entry async for entry in store.tail()] == list(other.tail())
    cursor = list(other.tail(limit=3))[-1].cursor
    assert [entry async for entry in store.tail(cursor, limit=5)] == list(other.tail(cursor, limit=5))
    twin, sync = await store.session("s"), other.session("s")
    assert (
        (await store.catalog.find_page("s/p4"))[1] == other.catalog.find_page("s/p4")[1]
        and twin.name == "s"
        and repr(twin) == repr(sync)
    )
    for question in ("info", "turns", "calls", "pages"):
        assert await getattr(twin, question)() == getattr(sync, question)()
    for question in ("messages", "request"):
        assert await getattr(twin.wire, question)() == getattr(sync.wire, question)()
    for question in ("page", "content"):
        assert await getattr(twin, question)("p4") == getattr(sync, question)("p4")
    for question in ("history", "ancestors", "descendants"):
        assert await getattr(twin.lineage, question)("p4") == getattr(sync.lineage, question)("p4")
    assert await store.search("the") == other.search("the") and await twin.search("a", call=1) == sync.search(
        "a", call=1
    )
    moments = vmstore.Call(1), vmstore.Call(3)
    assert await twin.diff(*moments) == sync.diff(*moments)
    context, wanted = await twin.context(call=2), sync.context(call=2)
    for name in ("basis", "fidelity", "tokens", "tokens_reported", "factor", "model", "root", "page_ids"):
        assert getattr(context, name) == getattr(wanted, name)
    for name in ("contents", "messages", "request", "text", "to_dict"):
        assert await getattr(context, name)() == getattr(wanted, name)()
    assert await context.pages() == wanted.pages and list(context.shown) == list(wanted.shown)


def test_errors_are_the_same() -> None:
    """What the sync store refuses is raised where it is awaited."""

    async def work() -> None:
        async with vmstore.aio.memory_store() as store:
            with refused("no-session", UnknownError, "'x'"):
                await store.session("x")
            with refused("not-a-cursor", InputError):
                _ = [entry async for entry in store.tail("never")]
        with refused("closed", InputError):
            await store.sessions()
        await store.close()
        with refused("no-store", StoreError):
            await vmstore.aio.open("/nowhere/at/all", "r")
        with refused("not-open", InputError):
            await vmstore.aio.memory_store().sessions()

    asyncio.run(work())


# ---- order and cancellation


def test_work_is_done_in_order_and_elsewhere() -> None:
    """Calls recorded by tasks at once are recorded in the order they were asked for, while the loop goes on."""

    async def work() -> None:
        async with vmstore.aio.memory_store() as store:
            ticks, done = 0, asyncio.Event()

            async def tick() -> None:
                nonlocal ticks
                while not done.is_set():
                    ticks += 1
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            asked = [store.record("s", chat(f"question {n}"), answer("fine")) for n in range(40)]
            calls = await asyncio.gather(*asked)
            done.set()
            await ticking
            assert [call.call for call in calls] == list(range(1, 41)) and ticks > 40
        assert not [
            thread for thread in threading.enumerate() if thread.name.startswith("vmstore-aio") and _busy(thread)
        ]

    asyncio.run(work())


def _busy(thread: threading.Thread) -> bool:
    thread.join(5)
    return thread.is_alive()


def test_a_cancelled_record_is_whole_or_absent(store_path: Path) -> None:
    """Tasks cancelled at any moment leave a store that goes on, verifies, and answers a retry with the one call."""

    async def work() -> None:
        async with vmstore.aio.open(store_path) as store:
            cancelled = 0
            for number in range(30):
                some = [
                    asyncio.create_task(store.record("s", chat(f"{number}/{n}"), None, request_id=f"{number}-{n}"))
                    for n in range(3)
                ]
                await asyncio.sleep(0.0004 * (number % 10))
                for task in some:
                    task.cancel()
                ended = await asyncio.gather(*some, return_exceptions=True)
                cancelled += sum(isinstance(entry, asyncio.CancelledError) for entry in ended)
                calls = [
                    await store.record("s", chat(f"{number}/{n}"), None, request_id=f"{number}-{n}") for n in range(3)
                ]
                assert len({call.call for call in calls}) == 3
                for item, again in zip(ended, calls, strict=True):
                    assert isinstance(item, asyncio.CancelledError) or item == again
            assert cancelled > 10, "tasks were cancelled before they ended"
            session = await store.session("s")
            assert len(await session.calls()) == 90 and (await store.verify()).ok

    asyncio.run(work())


def test_a_cancelled_tail_can_be_taken_up(store_path: Path) -> None:
    """A tail that was left in the middle disturbs nobody, and its cursor goes on."""

    async def work() -> None:
        async with vmstore.aio.open(store_path) as store:
            for number in range(120):
                await store.record("s", chat(f"question {number}"), answer("fine"))
            seen = []
            async for entry in store.tail():
                seen.append(entry)
                if len(seen) == 250:
                    break
            rest = [entry async for entry in store.tail(seen[-1].cursor)]
            assert [*seen, *rest] == [entry async for entry in store.tail()]

    asyncio.run(work())


def test_a_cancelled_opening_leaves_nothing_open(store_path: Path) -> None:
    """Where nobody waits for a store to open, it is closed as soon as it is."""
    vmstore.open(store_path).close()
    closed = []

    async def work(opens: Callable[[], Store]) -> None:
        gate = threading.Event()

        def slowly() -> Store:
            gate.wait(5)
            store = opens()
            closing = store.close

            def close() -> None:
                closing()
                closed.append(1)

            store.close = close  # type: ignore[method-assign]
            return store

        async def opened() -> None:
            async with vmstore.aio.Store(slowly):
                raise AssertionError("nobody waits for it any more")

        task = asyncio.create_task(opened())
        await asyncio.sleep(0.01)
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, gate.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work(lambda: open_store(store_path)))
    assert closed == [1]


def test_the_sync_store_sees_what_the_twin_wrote(store_path: Path) -> None:
    """Both can be open at once, as two processes can."""

    async def work() -> None:
        async with vmstore.aio.open(store_path) as store:
            with vmstore.open(store_path) as other:
                await store.record("s", chat("one"))
                tell(other, "t")
                assert [info.session for info in await store.sessions()] == ["s", "t"]
                assert [info.session for info in other.sessions()] == ["s", "t"]

    asyncio.run(work())


# ---- a memory that is managed


def test_a_live_session_is_awaited() -> None:
    """A live session acts, packs, answers faults and runs a model that is awaited, while other tasks ask."""

    async def work() -> None:
        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", l0_tokens_max=3_000, reserve_faults_tokens=300, system="Be brief.")
            assert isinstance(session, vmstore.aio.Live)
            (page,) = await session.user("Let's use Postgres for the orders.")
            asked: list[Any] = []

            async def model(request: dict[str, Any]) -> dict[str, Any]:
                asked.append(request)
                assert (await session.page_fault(page)).content == b"Let's use Postgres for the orders."
                return {"choices": [{"message": {"role": "assistant", "content": "Postgres it is."}}]}

            assert (await session.run(model)).text == "Postgres it is." and len(asked) == 1
            await session.pin(page)
            assert (await session.settings()).l0_tokens_max == 3_000
            assert (await session.configure(pinned_turns=1)).pinned_turns == 1
            assert "Postgres" in await session.developer_message()
            assert (await (await session.fork("f")).pack()).pages
            assert isinstance(await store.session("f"), vmstore.aio.Live)
            with pytest.raises(InputError):
                await session.user("")
            recorded = await store.session("r", create=True)
            assert not isinstance(recorded, vmstore.aio.Live)

    asyncio.run(work())


def test_the_tools_of_a_run_are_awaited() -> None:
    """A tool that is a coroutine works in the event loop, one that is not in the run's thread, and both are logged."""

    async def work() -> None:
        threads: dict[str, threading.Thread] = {}

        async def look(path: str) -> str:
            """Looks at a file."""
            await asyncio.sleep(0)
            threads["look"] = threading.current_thread()
            return f"{path}: 3 lines"

        def count(path: str) -> int:
            """Counts its lines."""
            threads["count"] = threading.current_thread()
            return 3

        def reply(request: dict[str, Any]) -> dict[str, Any]:
            if request["messages"][-1]["role"] == "tool":
                return {"choices": [{"message": {"role": "assistant", "content": "Three."}}]}
            names = [tool["function"]["name"] for tool in request["tools"]]
            assert {"look", "count"} <= set(names)
            calls = [
                {"id": name, "type": "function", "function": {"name": name, "arguments": '{"path": "a.txt"}'}}
                for name in ("look", "count")
            ]
            return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}

        async with vmstore.aio.memory_store() as store:
            session = await store.live_session("s", l0_tokens_max=3_000)
            await session.user("How long is a.txt?")
            ran = await session.run(reply, tools={"look": look, "count": count})
            assert (ran.text, ran.rounds) == ("Three.", 1)
            results = [message for message in ran.request["messages"] if message["role"] == "tool"]
            assert [result["content"].split("] ", 1)[-1] for result in results] == ["a.txt: 3 lines", "3"]
            assert await session.wire.request(call=2) == ran.request
            assert threads["look"] is threading.current_thread() is not threads["count"]

    asyncio.run(work())


def test_importing_the_twin_loads_no_kernel() -> None:
    """A task that only records does not wait for what decides."""
    text = "import sys, vmstore.aio; print([name for name in sys.modules if name.startswith('vmstore.live')])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
