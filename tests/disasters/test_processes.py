"""A process that has a store open is forked: parent and children lose nothing, whichever closes or dies first."""

from __future__ import annotations

import asyncio
import fcntl
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import httpx2
import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.core.mutation import Create
from vmstore.core.page import Modality, PageType, Role
from vmstore.core.system import after_fork
from vmstore.engine.batch import Batch
from vmstore.errors import StoreError, VmstoreError
from vmstore.log.lock import WriteLock
from vmstore.namespace.storekey import new_store_key
from vmstore.store.store import memory_store

EACH = 8
VMQL = "PAGES page, tokens"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a call in it."""
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", chat("first"), answer("yes"))
    return tmp_path / "a.vms"


def calls(store: vmstore.Store, session: str, count: int = EACH) -> None:
    """Records some calls."""
    for n in range(count):
        store.record(session, chat(f"{session} {n}"), answer(f"because {n}"))


def counted(path: Path, **how: Any) -> dict[str, int]:
    """How many calls each session of a sound store has."""
    with vmstore.open(path, **how) as store:
        assert store.verify().ok
        return {info.session: info.calls for info in store.sessions()}


def elsewhere(path: Path) -> None:
    """Opens and closes a store in a process that has nothing to do with it."""
    script = f"import vmstore; s = vmstore.open({str(path)!r}); s.session('s').info(); s.close()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


class Gate:
    """Children wait at it until it is opened."""

    def __init__(self) -> None:
        self._ends = os.pipe()
        self._arrived = os.pipe()

    def wait(self) -> None:
        """Waits until it is opened."""
        os.close(self._ends[1])
        os.write(self._arrived[1], b".")
        os.read(self._ends[0], 1)

    def open(self) -> None:
        """Lets everybody through."""
        os.close(self._ends[1])

    def arrived(self, children: int) -> None:
        """Waits until so many have come to it."""
        for _ in range(children):
            assert select.select([self._arrived[0]], [], [], 30)[0] and os.read(self._arrived[0], 1)


def later(gate: Gate, work: Callable[[], None], before: Callable[[], object] = lambda: None) -> int:
    """A forked process that works once the gate is open, and does something before it comes there."""

    def waiting() -> None:
        before()
        gate.wait()
        work()

    return start(waiting)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("parent", ["closes", "goes on"])
def test_children_lose_nothing(path: Path, own: bool, parent: str) -> None:
    """What a child records with its own handle or the inherited one is there, whatever its parent does with its own."""
    store, gate = vmstore.open(path), Gate()
    calls(store, "s", 1)

    def child(name: str) -> int:
        handles = [store]

        def begin() -> None:
            if own:
                handles[0] = vmstore.open(path)
            calls(handles[0], name, 1)

        return later(gate, lambda: calls(handles[0], name), begin)

    children = [child("x"), child("y")]
    gate.arrived(2)
    if parent == "closes":
        store.close()
    elsewhere(path)
    gate.open()
    if parent != "closes":
        calls(store, "parent")
    assert [joined(pid) for pid in children] == [0, 0]
    store.close()
    expected = {"s": 2, "x": EACH + 1, "y": EACH + 1}
    assert counted(path) == (expected if parent == "closes" else {**expected, "parent": EACH})


def test_a_daemon_goes_on_without_its_parents(path: Path) -> None:
    """A process forked twice, whose parents are gone, records beside an operator and loses nothing."""
    read, write = os.pipe()

    def first() -> None:
        store = vmstore.open(os.path.relpath(path))
        calls(store, "s", 1)

        def second() -> None:
            os.setsid()
            os.chdir("/")
            if not os.fork():
                for _ in range(3):
                    calls(store, "daemon")
                    elsewhere(path)
                os.write(write, b"done")
                os._exit(0)

        start(second)

    child = start(first)
    os.close(write)
    assert joined(child) == 0
    assert os.read(read, 9) == b"done"
    assert counted(path) == {"s": 2, "daemon": 3 * EACH}


@pytest.mark.parametrize("text", ["path", "store"])
def test_a_wrapped_client_records_in_children_while_the_parents_recorder_rests(path: Path, text: str) -> None:
    """Calls made in a forked process are in the store although the parent closed its recorder first."""
    answers = httpx2.MockTransport(lambda _: httpx2.Response(200, json=answer("because")))
    client = httpx2.Client(transport=answers, base_url="http://provider/v1")
    store = vmstore.open(path)
    wrapped = vmstore.wrap(client, path if text == "path" else store, "w")
    wrapped.post("/chat/completions", json=chat("in the parent"))
    assert wrapped.vmstore.flush()
    gate = Gate()

    def ask(count: int) -> None:
        for n in range(count):
            wrapped.post("/chat/completions", json=chat(f"in the child {n}"))
        assert wrapped.vmstore.flush() and not wrapped.vmstore.problems

    child = later(gate, lambda: ask(EACH), lambda: ask(1))
    gate.arrived(1)
    wrapped.vmstore.close()
    store.close()
    elsewhere(path)
    gate.open()
    assert joined(child) == 0
    assert counted(path) == {"s": 1, "w": 2 + EACH}


def _record(number: int) -> int:
    with vmstore.open(os.environ["FORKS_STORE"]) as store:
        calls(store, f"task {number}", 2)
    return number


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_pool_of_any_start_method(path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a pool record into a store that is open in their parent, and is closed there meanwhile."""
    monkeypatch.setenv("FORKS_STORE", str(path))
    store = vmstore.open(path)
    calls(store, "s", 1)
    with multiprocessing.get_context(method).Pool(2) as pool:
        asked = pool.map_async(_record, range(4), 1)
        store.close()
        assert asked.get(120) == [0, 1, 2, 3]
    assert counted(path) == {"s": 2, **{f"task {n}": 2 for n in range(4)}}


def test_a_fork_waits_for_a_thread_that_commits(path: Path) -> None:
    """A process that is forked while another thread is inside a commit has a store that works."""
    store, inside, go = vmstore.open(path), threading.Event(), threading.Event()
    log: Any = store.admin.log

    def hold() -> None:
        with log.file as db:
            db.execute("BEGIN IMMEDIATE")
            inside.set()
            go.wait(0.3)
            db.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    child = start(lambda: calls(store, "child"))
    assert joined(child) == 0
    thread.join()
    store.close()
    assert counted(path) == {"s": 1, "child": EACH}


def test_what_is_in_use_too_long_is_refused_in_the_child(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a thread stays inside the log while the process is forked, the child is told so, and breaks nothing."""
    monkeypatch.setattr(after_fork, "WAIT_US", 20_000)
    store, inside, go = vmstore.open(path), threading.Event(), threading.Event()
    log: Any = store.admin.log

    def hold() -> None:
        with log.file as db:
            db.execute("BEGIN IMMEDIATE")
            inside.set()
            go.wait()
            db.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()

    def work() -> None:
        for use in (lambda: calls(store, "child"), lambda: vmstore.open(path)):
            with pytest.raises(StoreError, match=f"was forked from {os.getppid()}, so it cannot be opened here"):
                use()

    assert joined(start(work)) == 0
    go.set()
    thread.join()
    calls(store, "parent")
    store.close()
    assert counted(path) == {"s": 1, "parent": EACH}


def test_views_in_use_too_long_are_folded_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a thread stays inside a question while the process is forked, a child asks without its views."""
    monkeypatch.setattr(after_fork, "WAIT_US", 20_000)
    store, inside, go = vmstore.open(path), threading.Event(), threading.Event()

    def hold() -> None:
        with store._ns.asking():
            inside.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()

    def work() -> None:
        calls(store, "child")
        assert len(store.session("child").calls()) == EACH and not store.admin.views.filename

    assert joined(start(work)) == 0
    go.set()
    thread.join()
    store.close()
    assert counted(path) == {"s": 1, "child": EACH}


def claim(batch: Batch) -> None:
    """Adds a page."""
    batch.add(Create(PageType.CLAIM, Modality.TEXT, Role.ASSISTANT, 0, 0, batch.cell(b"one"), 3, 1))


def test_a_batch_belongs_to_the_process_that_began_it(path: Path) -> None:
    """A batch that was begun before the fork is refused in the child, and committed in the parent."""
    store = vmstore.open(path)
    before = store.admin.log.ordinal
    with store.session("s").batch() as batch:
        claim(batch)

        def work() -> None:
            with pytest.raises(StoreError, match=f"belongs to process {os.getppid()}"):
                batch.commit(1)
            calls(store, "child")

        assert joined(start(work)) == 0
    assert store.admin.log.ordinal == before + 1 + 2 * EACH + 1
    store.close()


def test_a_question_under_way_belongs_to_the_process_that_asked(path: Path) -> None:
    """A moment that is held at the fork is refused where a child goes on with it, and stands in the parent."""
    store, child = vmstore.open(path), -1
    try:
        with store._ns.asking():
            child = os.fork()
            if child:
                assert len(store.sessions()) == 1
    except StoreError as error:
        os._exit(0 if f"belongs to process {os.getppid()}" in str(error) else 1)
    finally:
        if not child:
            os._exit(2)
    assert joined(child) == 0
    store.close()


def test_an_answer_belongs_to_the_process_that_asked(path: Path) -> None:
    """A context that its parent asked for and did not read is refused in a child, which asks for it again."""
    store = vmstore.open(path)
    context = store.session("s").context()
    messages = store.session("s").context().messages()

    def work() -> None:
        with pytest.raises(StoreError, match=f"belongs to process {os.getppid()}"):
            context.messages()
        assert store.session("s").context().messages() == messages

    assert joined(start(work)) == 0
    assert context.messages() == messages
    store.close()


def test_a_lock_ends_with_the_parent_that_held_it(tmp_path: Path) -> None:
    """A lock that was held at the fork is free as soon as its holder is killed, and stays held while the child ends."""
    gate, (read, write) = Gate(), os.pipe()

    def parent() -> None:
        lock = WriteLock(tmp_path / "log.lock")
        with lock:
            start(gate.wait)
            os.write(write, b"held")
            signal.pause()

    pid = start(parent)
    assert os.read(read, 9) == b"held"
    with (tmp_path / "log.lock").open("rb") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    gate.open()


def test_a_child_that_leaves_a_lock_leaves_it_to_its_parent(tmp_path: Path) -> None:
    """A child that was forked within a lock goes out of it without letting anybody else in."""
    lock = WriteLock(tmp_path / "log.lock")
    with lock:
        child = os.fork()
        if child:
            assert joined(child) == 0
            with (tmp_path / "log.lock").open("rb") as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if not child:
        os._exit(0)
    lock.close()


def test_another_handle_leaves_the_locks_of_the_first(path: Path) -> None:
    """A store that is opened again in a process keeps the lock that the first handle has on the log."""
    with vmstore.open(path), vmstore.open(path), vmstore.open(path, mode="r"):

        def work() -> None:
            with (path / "default/log.sqlite").open("r+b") as file, pytest.raises(BlockingIOError):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)  # SQLite's shared bytes

        assert joined(start(work)) == 0


@pytest.mark.parametrize("how", [{}, {"close_fds": False}, {"preexec_fn": os.setsid}])
def test_a_command_harms_no_open_store(path: Path, how: dict[str, Any]) -> None:
    """A command that is run by a process with a store open leaves that store alone."""
    store = vmstore.open(path)
    calls(store, "s", 1)
    subprocess.run([sys.executable, "-c", ""], check=True, timeout=60, **how)
    elsewhere(path)
    calls(store, "after")
    store.close()
    assert counted(path) == {"s": 2, "after": EACH}


def test_an_encrypted_store_follows(tmp_path: Path) -> None:
    """An encrypted store is asked and written by a child through the handle of its parent."""
    key = tmp_path / "store.key"
    new_store_key(key)
    store = vmstore.open(tmp_path / "a.vms", key=key)
    calls(store, "s", 1)

    def work() -> None:
        calls(store, "child")
        assert len(store.session("s").calls()) == 1

    child = start(work)
    store.close()
    assert joined(child) == 0
    assert counted(tmp_path / "a.vms", key=key) == {"s": 1, "child": EACH}


def test_a_store_that_is_read_follows(path: Path) -> None:
    """A handle for reading answers in a child, also what was written after the fork."""
    with vmstore.open(path) as writer, vmstore.open(path, mode="r") as reader:
        session, gate = reader.session("s"), Gate()

        def work() -> None:
            assert session.info().calls == 3

        child = later(gate, work)
        calls(writer, "s", 2)
        gate.open()
        assert joined(child) == 0
        assert session.info().calls == 3


def test_a_live_session_follows(path: Path) -> None:
    """A session that manages its memory goes on in a child, and then in the parent, with all that was said."""
    store = vmstore.open(path)
    session = store.live_session("live", l0_tokens_max=8_000, compressor=lambda *_: None)
    session.user("Which database should we use?")

    def work() -> None:
        session.assistant("Let us use Postgres.")
        assert "Let us use Postgres." in str(session.pack().messages())

    assert joined(start(work)) == 0
    session.user("Yes, let's go with Postgres.")
    text = str(session.pack().messages())
    assert "Which database" in text and "Let us use Postgres." in text and "Yes, let's go" in text
    store.close()


def test_a_region_follows(path: Path) -> None:
    """A handle on a region reads and writes in a child as far as its grants go."""
    with vmstore.open(path) as keeper, vmstore.open(path, namespace="other") as other:
        vmstore.share(keeper, "sandbox:other", "read,write")
        region = other.sharing.region("default")
        calls(region, "s", 1)

        def work() -> None:
            assert region.session("s").info().calls == 2
            calls(region, "s", 1)
            vmstore.revoke(keeper, "sandbox:other")
            with refused("region_is_shared", VmstoreError):
                calls(region, "s", 1)

        assert joined(start(work)) == 0
        assert keeper.session("s").info().calls == 3
        region.close()


def test_questions_follow(path: Path) -> None:
    """Every kind of question that was asked before is answered in a child, with what was written since."""
    pytest.importorskip("numpy")
    store = vmstore.open(path)
    session = store.session("s")

    def asked() -> tuple[int, ...]:
        values = (
            store.search("first"),
            session.calls(),
            store.tail(),
            store.query(VMQL, session="s"),
            session.pages(),
            store.sessions(),
        )
        return tuple(len(list(value)) for value in values)

    before, gate = asked(), Gate()

    def work() -> None:
        now = asked()
        assert all(first >= other for first, other in zip(now, before, strict=True)) and now[1] == before[1] + 1

    child = later(gate, work)
    calls(store, "s", 1)
    gate.open()
    assert joined(child) == 0
    assert asked()[1] == before[1] + 1
    store.close()


def test_a_store_in_memory_is_a_copy(tmp_path: Path) -> None:
    """A store in memory goes on in a child as the copy it is."""
    store = memory_store()
    calls(store, "s", 2)

    def work() -> None:
        calls(store, "s", 1)
        assert store.session("s").info().calls == 3

    assert joined(start(work)) == 0
    assert store.session("s").info().calls == 2


def test_column_segments_follow(path: Path) -> None:
    """A child asks the columns that its parent held in DuckDB, and ends in peace."""
    pytest.importorskip("duckdb")
    script = f"""
import os, sys, vmstore
store = vmstore.open({str(path)!r})
before = len(store.admin.page_table())
child = os.fork()
assert len(store.admin.page_table()) == before
if not child:
    store.close()
    sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_awaiting_goes_on_in_a_child(path: Path) -> None:
    """A store that was awaited in the parent is awaited in a child, whose thread is its own."""
    opened: list[Any] = []

    async def begin() -> None:
        opened.append(await vmstore.aio.open(path))
        await opened[0].record("s", chat("second"), answer("yes"))

    async def go_on() -> None:
        await asyncio.wait_for(opened[0].record("child", chat("third"), answer("yes")), 30)

    asyncio.run(begin())
    assert joined(start(lambda: asyncio.run(go_on()))) == 0
    assert counted(path) == {"s": 2, "child": 1}


def test_handles_of_other_threads_are_closed_too(path: Path) -> None:
    """A handle that only another thread's memory held does not fold the log in a child, which has no such thread."""
    mine, ready, done = threading.local(), threading.Event(), threading.Event()

    def thread() -> None:
        mine.store = vmstore.open(path)
        calls(mine.store, "thread", 1)
        ready.set()
        done.wait()
        calls(mine.store, "thread", EACH)
        mine.store.close()

    other = threading.Thread(target=thread)
    other.start()
    ready.wait()

    def work() -> None:
        with vmstore.open(path) as store:
            calls(store, "child")

    assert joined(start(work)) == 0
    elsewhere(path)
    done.set()
    other.join()
    assert counted(path) == {"s": 1, "thread": EACH + 1, "child": EACH}


def test_somebody_elses_connection_is_not_shared(path: Path) -> None:
    """Where the host itself has the log open by SQLite at the fork, a child is refused it."""
    db = apsw.Connection(str(path / "default/log.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    db.execute("SELECT count(*) FROM commits").fetchall()

    def work() -> None:
        with refused("forked", StoreError, "'spawn'"):
            vmstore.open(path)

    assert joined(start(work)) == 0
    db.close()


def test_salts_differ_in_parent_and_child(path: Path) -> None:
    """The same words that parent and child record in sessions of their own are sealed under different salts."""
    store = vmstore.open(path)
    child = start(lambda: calls(store, "child", 2))
    calls(store, "parent", 2)
    assert joined(child) == 0
    salts = [cell.salt for cell in store.admin.log.cells(range(1, store.admin.log.last_cell + 1)).values()]
    assert len(set(salts)) == len(salts)
    store.close()
