"""Threads of one store share flushes, and each has its own answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.disk import Disk, disk
from tests.engine.stories import answer, chat
from vmstore.capture.conversation.conversation import Conversation
from vmstore.core.mutation import Message
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.errors import ConflictError, InputError, StoreError, VmstoreError
from vmstore.log.commit import Commit
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.group_commit import PendingWrite, WriteDecision
from vmstore.store import recorder
from vmstore.testing.simulate import full_disk

THREADS, CALLS = 8, 12


@pytest.fixture
def made() -> Iterator[Disk]:
    """A disk that counts flushes."""
    with disk() as made:
        yield made


def at_once(work: list[Callable[[], object]]) -> list[BaseException]:
    """Runs pieces of work in threads that start together; what they raised."""
    start, raised = threading.Barrier(len(work)), list[BaseException]()

    def run(act: Callable[[], object]) -> None:
        start.wait()
        try:
            act()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(item,)) for item in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def flushes(made: Disk, store: vmstore.Store, session_of: Callable[[int], str]) -> int:
    """How often the log's WAL is flushed while every thread records its calls."""
    for thread in range(THREADS):
        store.record(session_of(thread), chat("Hello?"), answer("Hello."))
    before = made.syncs("log.sqlite-wal")

    def talk(thread: int) -> None:
        for number in range(CALLS):
            store.record(
                session_of(thread), chat(f"{thread}.{number}"), answer("Yes."), request_id=f"{thread}.{number}"
            )

    assert at_once([partial(talk, thread) for thread in range(THREADS)]) == []
    return made.syncs("log.sqlite-wal") - before


def test_threads_share_a_flush(made: Disk, tmp_path: Path) -> None:
    """Eight threads that record to eight sessions flush the log for half of their calls at most, and none is lost."""
    made.pause = 0.002
    with vmstore.open(tmp_path / "a.vms") as store:
        count = flushes(made, store, lambda thread: f"s{thread}")
        assert [info.calls for info in store.sessions()] == [CALLS + 1] * THREADS
        assert store.verify().ok
    assert THREADS <= count <= THREADS * CALLS // 2


def test_threads_of_one_session_flush_for_each_call(made: Disk, tmp_path: Path) -> None:
    """The count above can come out otherwise: calls of one session follow each other, each with a flush of its own."""
    made.pause = 0.002
    with vmstore.open(tmp_path / "a.vms") as store:
        count = flushes(made, store, lambda thread: "s")
        assert store.session("s").info().calls == THREADS * (CALLS + 1)
        assert store.verify().ok
    assert count >= THREADS * CALLS


def test_a_call_that_is_refused_takes_no_other_with_it(tmp_path: Path) -> None:
    """Of calls granted together each has its own answer or error."""
    with vmstore.open(tmp_path / "a.vms") as store:
        lock, work = store._ns.lock, list[Callable[[], object]]()
        for number in range(4):
            work.append(partial(store.record, f"s{number}", chat("Hello?"), answer("Hello.")))
            work.append(partial(store.record, f"bad{number}", {"messages": 5}))
        with lock:
            threads = threading.Thread(target=lambda: raised.extend(at_once(work)))
            raised: list[BaseException] = []
            threads.start()
            until(lambda: len(store._ns.group_commit._pending) == len(work))
        threads.join()
        assert [type(error) for error in raised] == [InputError] * 4
        assert [info.session for info in store.sessions()] == ["s0", "s1", "s2", "s3"]
        assert store.verify().ok


def until(reached: Callable[[], bool]) -> None:
    """Waits for other threads to have come so far."""
    for _ in range(10_000):
        if reached():
            return
        threading.Event().wait(0.001)
    raise AssertionError("it never came")


def test_a_name_opened_twice_at_once_is_one_session(tmp_path: Path) -> None:
    """Threads that record first calls under few names open each once, no matter which decides for them."""
    with vmstore.open(tmp_path / "a.vms") as store:
        work = [partial(store.record, f"s{n % 3}", chat(f"{n}"), answer("Yes.")) for n in range(9)]
        assert at_once(list(work)) == []
        assert [(info.session, info.calls) for info in store.sessions()] == [(f"s{n}", 3) for n in range(3)]


def test_nobody_is_overtaken_after_it_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that another handle asks for while one decides waits for it, and comes after it."""
    with vmstore.open(tmp_path / "a.vms") as store, vmstore.open(tmp_path / "a.vms") as other:
        for case in (store, other):
            case.record("s", chat("Hello?"), answer("Hello."))
        right, raced, waited = recorder.record, list[threading.Thread](), list[bool]()

        def record(conversation: Conversation, *arguments: Any, **fields: Any) -> Any:
            if not raced:
                raced.append(threading.Thread(target=lambda: other.record("s", chat("And?"), answer("So."))))
                raced[0].start()
                raced[0].join(0.2)
                waited.append(raced[0].is_alive())
            return right(conversation, *arguments, **fields)

        monkeypatch.setattr(recorder, "record", record)
        assert store.record("s", chat("Well?"), answer("Yes.")).call == 3
        raced[0].join()
        assert waited == [True] and store.session("s").info().calls == 4 and store.verify().ok


def test_a_thread_that_holds_the_store_writes_at_once(tmp_path: Path) -> None:
    """A call made while its own thread holds the store waits for no other, though others wait for that thread."""
    with vmstore.open(tmp_path / "a.vms") as store:
        with store._ns.lock:
            other = threading.Thread(target=lambda: store.record("b", chat("Hello?"), answer("Hello.")))
            other.start()
            until(lambda: len(store._ns.group_commit._pending) == 1)
            assert store.record("a", chat("Hello?"), answer("Hello.")).call == 1
        other.join()
        assert [info.session for info in store.sessions()] == ["a", "b"]


def unwanted(name: str) -> PendingWrite[None]:
    """A write that nobody decides."""
    return PendingWrite(name, WriteDecision(lambda: pytest.fail("nobody waits for it"), lambda commits: None))


@pytest.mark.parametrize("woken", [False, True])
def test_who_is_interrupted_while_waiting_holds_up_nobody(tmp_path: Path, woken: bool) -> None:
    """A thread that gives up its wait, woken to lead or not, leaves the queue, and the next one leads."""
    with vmstore.open(tmp_path / "a.vms") as store:
        group = store._ns.group_commit
        group._led = True  # somebody leads
        given_up, raised = unwanted("gone"), list[BaseException]()
        group._pending.append(given_up)
        work: list[Callable[[], object]] = [partial(store.record, "s", chat("Hello?"), answer("Hello."))]
        waiting = threading.Thread(target=lambda: raised.extend(at_once(work)))
        waiting.start()
        until(lambda: len(group._pending) == 2)
        given_up.leads = woken
        group._leave(given_up)
        if not woken:
            leader = unwanted("leader")
            leader.leads = True
            group._leave(leader)
        waiting.join()
        assert raised == [] and store.session("s").info().calls == 1
        assert not group._led and not group._pending


def test_an_append_that_fails_as_a_whole_is_everybodys_error(tmp_path: Path) -> None:
    """Where the log refuses all of them each call raises, forgets what it half changed, and fits when tried again."""
    with vmstore.open(tmp_path / "a.vms") as store:
        first = store.record("s", chat("Hello?"), answer("Hello."))
        with full_disk(store.admin.log), pytest.raises(StoreError, match="full"):
            store.record("s", chat("Hello?", "Hello.", "And?"), answer("So."))
        assert store.record("s", chat("Hello?", "Hello.", "And?"), answer("So.")).call == first.call + 1
        assert store.verify().ok


def test_a_lock_that_cannot_be_had_is_everybodys_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the lock's file cannot be opened each of the calls that wait hears why, and none that it is unknown."""
    with vmstore.open(tmp_path / "a.vms") as store:
        assert isinstance(store.admin.log, SqliteLog)

        def refused() -> tuple[int, ...]:
            raise StoreError("log.lock cannot be locked")

        monkeypatch.setattr(store.admin.log.lock, "_open", refused)
        raised = list[BaseException]()
        work: list[Callable[[], object]] = [
            partial(store.record, name, chat("Hello?"), answer("Hello.")) for name in ("a", "b", "c")
        ]
        with store._ns.lock:
            waiting = threading.Thread(target=lambda: raised.extend(at_once(work)))
            waiting.start()
            until(lambda: len(store._ns.group_commit._pending) == 3)
        waiting.join()
        assert [str(error) for error in raised] == ["log.lock cannot be locked"] * 3
        monkeypatch.undo()
        assert store.record("a", chat("Hello?"), answer("Hello.")).call == 1


Read = list[tuple[bool, bool]]
"""Of each time a conversation was brought on: whether it began with nothing, and whether the log's lock was held."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """What is read of sessions from here on."""
    rows: Read = []
    right = recorder.follow

    def follow(engine: Engine, session: int, conversation: Conversation, position: int) -> int:
        assert isinstance(engine.log, SqliteLog)
        rows.append((not position, engine.log.lock.held))
        return right(engine, session, conversation, position)

    monkeypatch.setattr(recorder, "follow", follow)
    return rows


def test_a_shared_session_is_read_once(read: Read, tmp_path: Path) -> None:
    """Of two handles that take turns with a session each folds what the other wrote; who came later read it once."""
    with vmstore.open(tmp_path / "a.vms") as file, vmstore.open(tmp_path / "a.vms") as other:
        for number in range(6):
            for store in (file, other):
                store.record("s", chat(f"{number}"), answer("Yes."))
        assert file.session("s").info().calls == 12 and file.verify().ok
    assert [begins for begins, _ in read].count(True) == 1 and len(read) >= 11


def test_a_session_is_never_read_whole_while_others_wait(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first call reads its session before it takes the lock, and holding it what was written meanwhile alone."""
    with vmstore.open(tmp_path / "a.vms") as file, vmstore.open(tmp_path / "a.vms") as other:
        file.record("s", chat("Hello?"), answer("Hello."))
        follow = recorder.follow

        def raced(*arguments: Any) -> int:
            position = follow(*arguments)
            monkeypatch.setattr(recorder, "follow", follow)
            file.record("s", chat("Me first."), answer("Well."))
            return position

        monkeypatch.setattr(recorder, "follow", raced)
        assert other.record("s", chat("Now?"), answer("Now.")).call == 3
    assert read == [(True, False), (False, True)]


@pytest.mark.parametrize("opened", [True, False])
def test_a_call_tried_by_two_at_once_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool) -> None:
    """A request id that somebody else writes between a call's reading and its turn gets that first answer."""
    with vmstore.open(tmp_path / "a.vms") as file, vmstore.open(tmp_path / "a.vms") as other:
        if opened:
            file.record("s", chat("Hello?"), answer("Hello."))
        values = ("s", chat("Again?"), answer("Yes."))
        right, raced = PendingWrite.prepare, list[Any]()

        def prepare(write: PendingWrite[Any]) -> None:
            right(write)
            if not raced:
                raced.append(None)
                raced[0] = other.record(*values, request_id="r1")

        monkeypatch.setattr(PendingWrite, "prepare", prepare)
        assert file.record(*values, request_id="r1") == raced[0]
        assert file.session("s").info().calls == 1 + opened and file.verify().ok


class Interrupted(BaseException):
    """As if somebody pressed a key."""


def test_who_is_interrupted_says_so_to_the_others(tmp_path: Path) -> None:
    """Where the thread that writes for others is interrupted, they hear that nobody knows, and none waits for ever."""
    with vmstore.open(tmp_path / "a.vms") as store:
        for name in ("a", "b"):
            store.record(name, chat("Hello?"), answer("Hello."))
        engine, lock, group = store._ns.engine, store._ns.lock, store._ns.group_commit

        def cut(*arguments: object, **more: object) -> None:
            raise Interrupted

        raised: list[BaseException] = []
        keys = {name: store._ns.key(name) for name in "ab"}  # asked now: the lock is held meanwhile

        def write(name: str) -> object:
            return group.write(name, WriteDecision(lambda: engine.batch(keys[name] or 0), lambda commits: None))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "append", cut)
            with lock:
                waiting = threading.Thread(target=lambda: raised.extend(at_once([partial(write, n) for n in "ab"])))
                waiting.start()
                until(lambda: len(group._pending) == 2)
            waiting.join()
        assert sorted(type(error).__name__ for error in raised) == ["Interrupted", "StoreError"]
        assert isinstance(next(error for error in raised if isinstance(error, VmstoreError)), StoreError)
        store.record("b", chat("Hello?", "Hello.", "Still there?"), answer("Yes."))
        assert store.verify().ok


class Steps:
    """A write of a batch that is none, one step of which may fail."""

    batch: Any = object()

    def __init__(self, fails: str | None) -> None:
        self._fails = fails

    def prepare(self) -> bool:
        """Reads, and says that there is something to decide unless it says that there is nothing."""
        self._step("reading")
        return self._fails != "nothing to decide"

    def decide(self) -> Any:
        """Decides."""
        self._step("deciding")
        return None if self._fails == "nothing to write" else self.batch

    def done(self, commits: list[Commit]) -> list[Commit]:
        """Answers."""
        self._step("answering")
        return commits

    def _step(self, name: str) -> None:
        if self._fails == name:
            raise ConflictError(name)


@pytest.mark.parametrize(
    "fails", ["reading", "nothing to decide", "deciding", "nothing to write", "writing", "answering", None]
)
def test_a_pending_write_keeps_what_its_steps_raised(fails: str | None) -> None:
    """An error of reading, deciding, writing or answering is raised to who asked; else there is an answer."""
    write = PendingWrite("s", Steps(fails))
    write.prepare()
    assert write.done == (fails in ("reading", "nothing to decide"))
    if not write.done:
        assert write.decide() is (None if fails in ("deciding", "nothing to write") else Steps.batch)
    if not write.done:
        write.end(ConflictError("writing") if fails == "writing" else [])
    assert write.done and write.decide() is None
    if fails is None or fails.startswith("nothing"):
        assert write.answer() == []
    else:
        with pytest.raises(ConflictError, match=fails):
            write.answer()


# ---- what is decided with the lock held


def annotated(store: vmstore.Store, name: str) -> Callable[[], object]:
    """Says of a session's first page that it matters."""
    page = next(iter(store.session(name).pages())).page
    return partial(store.session(name).annotate, page, importance=0.5)


def batched(store: vmstore.Store) -> vmstore.Session:
    """Writes a message of one's own."""
    with store.session("own").batch() as batch:
        batch.add(Message(0, 0, batch.cell(b'"mine"')))
    return store.session("own")


def acted(store: vmstore.Store) -> vmstore.Session:
    """Says something to a live session."""
    live = store.live_session("live", l0_tokens_max=6_000)
    live.user("And?")
    return live


def turned(store: vmstore.Store) -> vmstore.Session:
    """Says something to a live session within a turn."""
    live = store.live_session("live", l0_tokens_max=6_000)
    with live.turn():
        live.user("And?")
        live.user("So?")
    return live


@pytest.mark.parametrize("write", [batched, acted, turned])
def test_what_waits_for_the_lock_is_taken_along(
    made: Disk, tmp_path: Path, write: Callable[[vmstore.Store], vmstore.Session]
) -> None:
    """Calls, annotations and forks that wait while a batch or a live act is decided share its one flush."""
    with vmstore.open(tmp_path / "a.vms") as store:
        store.session("own", create=True)
        acted(store)
        for name in "abc":
            store.record(name, chat("Hello?"), answer("Hello."))
        group, log, raised = store._ns.group_commit, store.admin.log, list[BaseException]()
        work: list[Callable[[], object]] = [
            partial(store.record, "a", chat("And?"), answer("So.")),
            partial(store.record, "new", chat("And?"), answer("So.")),
            annotated(store, "b"),
            partial(store.session("c").fork, "child"),
        ]
        flushed: list[int] = []
        whole = log.together

        def counted(appends: Any) -> Any:
            flushed.append(len(appends))
            return whole(appends)

        waiting = threading.Thread(target=lambda: raised.extend(at_once(work)))

        def queue() -> None:
            waiting.start()
            until(lambda: len(group._pending) == len(work))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log, "together", counted)
            close = Batch.close

            def closing(batch: Batch, at: int) -> None:
                if not flushed and not waiting.ident:
                    queue()
                close(batch, at)

            patch.setattr(Batch, "close", closing)
            session = write(store)
            waiting.join()
        assert raised == [] and flushed == [len(work) + 1]
        names = [info.session for info in store.sessions()]
        assert names == ["a", "b", "c", "child", "live", "new", "own"]
        assert store.session("a").info().calls == 2 and session.info().mutations >= 2
        assert store.verify().ok


def test_who_waits_for_the_same_session_comes_after(tmp_path: Path) -> None:
    """A call to the session that a batch is of is not taken along with it, and is recorded next."""
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", chat("Hello?"), answer("Hello."))
        with store.session("s").batch() as batch:
            other = threading.Thread(target=lambda: store.record("s", chat("And?"), answer("So.")))
            other.start()
            until(lambda: len(store._ns.group_commit._pending) == 1)
            batch.add(Message(0, 0, batch.cell(b'"mine"')))
        other.join()
        assert store.session("s").info().calls == 2 and store.verify().ok


def test_nobody_is_taken_along_by_a_write_within_another(tmp_path: Path) -> None:
    """Where a batch ends while its thread holds the store for something else, who waits goes on waiting."""
    with vmstore.open(tmp_path / "a.vms") as store:
        store.session("own", create=True)
        group = store._ns.group_commit
        with store._ns.lock:
            other = threading.Thread(target=lambda: store.record("b", chat("Hello?"), answer("Hello.")))
            other.start()
            until(lambda: len(group._pending) == 1)
            batched(store)
            assert len(group._pending) == 1
        other.join()
        assert store.session("b").info().calls == 1


def test_all_kinds_of_writers_go_on_beside_each_other(tmp_path: Path) -> None:
    """Threads that record, batch, annotate, fork and act live at once all come to their end with what they wrote."""
    with vmstore.open(tmp_path / "a.vms") as store:
        for name in "abcd":
            store.record(name, chat("Hello?"), answer("Hello."))
        store.session("own", create=True)
        acted(store)
        rounds = 6

        def often(do: Callable[[int], object]) -> None:
            for number in range(rounds):
                do(number)

        work: list[Callable[[], object]] = [
            partial(often, lambda number: store.record("a", chat(f"{number}"), answer("Yes."))),
            partial(often, lambda number: store.record("b", chat(f"{number}"), answer("Yes."))),
            partial(often, lambda number: annotated(store, "c")()),
            partial(often, lambda number: store.session("d").fork(f"d{number}")),
            partial(often, lambda number: batched(store)),
            partial(often, lambda number: acted(store)),
        ]
        assert at_once(work) == []
        assert [store.session(name).info().calls for name in "ab"] == [rounds + 1] * 2
        assert len(list(store.sessions())) == 6 + rounds
        assert not store._ns.group_commit._led and store.verify().ok
