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
from vmstore.engine.engine import Engine
from vmstore.errors import ConflictError, InputError, StoreError, VmstoreError
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.group_commit import Wish, Writing
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

    def run(one: Callable[[], object]) -> None:
        start.wait()
        try:
            one()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
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
        held, work = store._ns.lock, list[Callable[[], object]]()
        for number in range(4):
            work.append(partial(store.record, f"s{number}", chat("Hello?"), answer("Hello.")))
            work.append(partial(store.record, f"bad{number}", {"messages": 5}))
        with held:
            threads = threading.Thread(target=lambda: raised.extend(at_once(work)))
            raised: list[BaseException] = []
            threads.start()
            until(lambda: len(store._ns.together._wishes) == len(work))
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
    """Threads that record first calls under few names open each once, whoever decides for them."""
    with vmstore.open(tmp_path / "a.vms") as store:
        work = [partial(store.record, f"s{n % 3}", chat(f"{n}"), answer("Yes.")) for n in range(9)]
        assert at_once(list(work)) == []
        assert [(info.session, info.calls) for info in store.sessions()] == [(f"s{n}", 3) for n in range(3)]


def test_nobody_is_overtaken_after_it_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that another handle asks for while one decides waits for it, and comes after it."""
    with vmstore.open(tmp_path / "a.vms") as store, vmstore.open(tmp_path / "a.vms") as other:
        for one in (store, other):
            one.record("s", chat("Hello?"), answer("Hello."))
        right, raced, waited = recorder.record, list[threading.Thread](), list[bool]()

        def record(conversation: Conversation, *given: Any, **told: Any) -> Any:
            if not raced:
                raced.append(threading.Thread(target=lambda: other.record("s", chat("And?"), answer("So."))))
                raced[0].start()
                raced[0].join(0.2)
                waited.append(raced[0].is_alive())
            return right(conversation, *given, **told)

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
            until(lambda: len(store._ns.together._wishes) == 1)
            assert store.record("a", chat("Hello?"), answer("Hello.")).call == 1
        other.join()
        assert [info.session for info in store.sessions()] == ["a", "b"]


def unwanted() -> Writing[None]:
    """A write that nobody decides."""
    pytest.fail("nobody waits for it")
    yield None


@pytest.mark.parametrize("woken", [False, True])
def test_who_is_interrupted_while_waiting_holds_up_nobody(tmp_path: Path, woken: bool) -> None:
    """A thread that gives up its wait, woken to lead or not, leaves the queue, and the next one leads."""
    with vmstore.open(tmp_path / "a.vms") as store:
        together = store._ns.together
        together._led = True  # somebody leads
        given_up, raised = Wish("gone", unwanted()), list[BaseException]()
        together._wishes.append(given_up)
        work: list[Callable[[], object]] = [partial(store.record, "s", chat("Hello?"), answer("Hello."))]
        waiting = threading.Thread(target=lambda: raised.extend(at_once(work)))
        waiting.start()
        until(lambda: len(together._wishes) == 2)
        if woken:
            given_up.woken.set()
        together._leave(given_up, False)
        if not woken:
            together._leave(Wish("leader", unwanted()), True)
        waiting.join()
        assert raised == [] and store.session("s").info().calls == 1
        assert not together._led and not together._wishes


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
            until(lambda: len(store._ns.together._wishes) == 3)
        waiting.join()
        assert [str(error) for error in raised] == ["log.lock cannot be locked"] * 3
        monkeypatch.undo()
        assert store.record("a", chat("Hello?"), answer("Hello.")).call == 1


Read = list[tuple[bool, bool]]
"""Of each time a conversation was brought on: whether it began with nothing, and whether the log's lock was held."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """What is read of sessions from here on."""
    found: Read = []
    right = recorder.follow

    def follow(engine: Engine, session: int, conversation: Conversation, position: int) -> int:
        assert isinstance(engine.log, SqliteLog)
        found.append((not position, engine.log.lock.held))
        return right(engine, session, conversation, position)

    monkeypatch.setattr(recorder, "follow", follow)
    return found


def test_a_shared_session_is_read_once(read: Read, tmp_path: Path) -> None:
    """Of two handles that take turns with a session each folds what the other wrote; who came later read it once."""
    with vmstore.open(tmp_path / "a.vms") as one, vmstore.open(tmp_path / "a.vms") as other:
        for number in range(6):
            for store in (one, other):
                store.record("s", chat(f"{number}"), answer("Yes."))
        assert one.session("s").info().calls == 12 and one.verify().ok
    assert [begins for begins, _ in read].count(True) == 1 and len(read) >= 11


def test_a_session_is_never_read_whole_while_others_wait(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first call reads its session before it takes the lock, and holding it what was written meanwhile alone."""
    with vmstore.open(tmp_path / "a.vms") as one, vmstore.open(tmp_path / "a.vms") as other:
        one.record("s", chat("Hello?"), answer("Hello."))
        follow = recorder.follow

        def raced(*told: Any) -> int:
            position = follow(*told)
            monkeypatch.setattr(recorder, "follow", follow)
            one.record("s", chat("Me first."), answer("Well."))
            return position

        monkeypatch.setattr(recorder, "follow", raced)
        assert other.record("s", chat("Now?"), answer("Now.")).call == 3
    assert read == [(True, False), (False, True)]


@pytest.mark.parametrize("opened", [True, False])
def test_a_call_tried_by_two_at_once_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool) -> None:
    """A request id that somebody else writes between a call's reading and its turn gets that first answer."""
    with vmstore.open(tmp_path / "a.vms") as one, vmstore.open(tmp_path / "a.vms") as other:
        if opened:
            one.record("s", chat("Hello?"), answer("Hello."))
        told = ("s", chat("Again?"), answer("Yes."))
        right, raced = Wish.read, list[Any]()

        def read(wish: Wish[Any]) -> None:
            right(wish)
            if not raced:
                raced.append(None)
                raced[0] = other.record(*told, request_id="r1")

        monkeypatch.setattr(Wish, "read", read)
        assert one.record(*told, request_id="r1") == raced[0]
        assert one.session("s").info().calls == 1 + opened and one.verify().ok


class Interrupted(BaseException):
    """As if somebody pressed a key."""


def test_who_is_interrupted_says_so_to_the_others(tmp_path: Path) -> None:
    """Where the thread that writes for others is interrupted, they hear that nobody knows, and none waits for ever."""
    with vmstore.open(tmp_path / "a.vms") as store:
        for name in ("a", "b"):
            store.record(name, chat("Hello?"), answer("Hello."))
        engine, lock, together = store._ns.engine, store._ns.lock, store._ns.together

        def cut(*told: object, **more: object) -> None:
            raise Interrupted

        raised: list[BaseException] = []
        keys = {name: store._ns.key(name) for name in "ab"}  # asked now: the lock is held meanwhile

        def write(name: str) -> object:
            def writing() -> Writing[None]:
                yield None
                yield engine.batch(keys[name] or 0)

            return together.write(name, writing())

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Engine, "append", cut)
            with lock:
                waiting = threading.Thread(target=lambda: raised.extend(at_once([partial(write, n) for n in "ab"])))
                waiting.start()
                until(lambda: len(together._wishes) == 2)
            waiting.join()
        assert sorted(type(error).__name__ for error in raised) == ["Interrupted", "StoreError"]
        assert isinstance(next(error for error in raised if isinstance(error, VmstoreError)), StoreError)
        store.record("b", chat("Hello?", "Hello.", "Still there?"), answer("Yes."))
        assert store.verify().ok


@pytest.mark.parametrize("fails", ["reading", "deciding", "writing", None])
def test_a_wish_keeps_what_its_write_raised(fails: str | None) -> None:
    """An error of reading, of deciding, or of what came of the batch, is the wish's answer; else what was returned."""
    batch = object()

    def writing() -> Any:
        for step in ("reading", "deciding"):
            if fails == step:
                raise ConflictError(step)
            outcome = yield None if step == "reading" else batch
        return outcome

    wish: Wish[object] = Wish("s", writing())
    wish.read()
    assert wish.done == (fails == "reading")
    assert wish.decide() is (None if fails in ("reading", "deciding") else batch)
    if not wish.done:
        wish.end(ConflictError("writing") if fails == "writing" else [])
    assert wish.done
    if fails is None:
        assert wish.answer() == []
    else:
        with pytest.raises(ConflictError, match=fails):
            wish.answer()
