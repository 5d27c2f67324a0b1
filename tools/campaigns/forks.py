"""Forks: processes that have a store open are forked, as servers, pools, daemons and threads do it.

Each scene is a parent that opens a store and forks children, which go on with its handle or open their
own, while the parent closes, leaves or goes on, children are killed, and strangers open and close the
store beside them. Every call is asked for and acknowledged under a number; afterwards each one
acknowledged is in the log once, as it was sent, and `verify` is clean.

The kind of each scene and what happens in it are drawn from the seed; when it happens is the machine's.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from campaigns.crew import Slots, record, request, start
from campaigns.held import Broken
from campaigns.script import STORE, answer

import vmstore
from vmstore.core.system import after_fork
from vmstore.errors import VmstoreError

FORKS = 60  # of one store
CHILDREN = (3, 9)  # of one scene
CALLS_MAX = 6  # of one child
PATIENCE_S = 60.0
KINDS = ("own handles", "inherited", "daemon", "pool", "prefork", "wrapped", "threads")
CONTROL = KINDS[:3]  # what loses without the mechanism, and soon
NEEDED = {*KINDS, "killed", "strangers", "acknowledged"}


def batch(seed: int, folder: Path, forks: int = FORKS, plant: str | None = None) -> Counter[str]:
    """Forks processes with one store open, some scenes one after the other; what was done and what was found.

    Planted `shared`, children share their parent's connections, as they would if nothing let go of them.
    """
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    slots = Slots(4 * forks + 64)
    vmstore.open(folder / STORE).close()
    writer = 0
    kinds = CONTROL if plant else KINDS
    while counts["forks"] < forks:
        kind = kinds[(seed + counts["scenes"]) % len(kinds)]
        scene = Scene(folder, slots, writer, chance.randrange(1 << 30), SHARED if plant else None)
        scene.play(kind)
        writer = scene.end
        counts["scenes"] += 1
        counts["forks"] += scene.forks
        counts[kind] += scene.forks
        counts["killed"] += scene.killed
        counts["strangers"] += 1
    counts.update(tally(folder, slots, writer))
    if counts["lost"] or counts["damaged"] or counts["doubled"]:
        broken = Broken("lost" if counts["lost"] else "damaged", f"{dict(counts)}")
        broken.found = counts  # type: ignore[attr-defined]
        raise broken
    return counts


class Nobody(set[Any]):
    """A set that stays empty."""

    def add(self, value: object) -> None:
        """Forgets it at once."""


def SHARED() -> None:
    """Lets forked processes share every connection with their parent."""
    known: Any = after_fork._process
    known.owners, known.heirs, known.busy = Nobody(), Nobody(), Nobody()


class Plan(NamedTuple):
    """What a child is to do: under which number it writes, how often, with a handle of its own or not."""

    writer: int
    calls: int
    own: bool
    quick: bool  # it leaves without closing


def drawn(chance: random.Random, writer: int) -> Plan:
    """A plan by chance."""
    return Plan(writer, chance.randint(1, CALLS_MAX), chance.random() < 0.5, chance.random() < 0.5)


class Scene:
    """A parent and its children on a store; `end` is the first number that no writer of it has."""

    def __init__(self, folder: Path, slots: Slots, first: int, seed: int, plant: Callable[[], None] | None) -> None:
        self.folder = folder
        self.path = folder / STORE
        self.slots = slots
        self.chance = random.Random(seed)
        self.parent = first
        self.stranger = first + 1
        self.plans = [
            Plan(
                first + 2 + n, self.chance.randint(1, CALLS_MAX), self.chance.random() < 0.5, self.chance.random() < 0.5
            )
            for n in range(self.chance.randint(*CHILDREN))
        ]
        self.end = first + 2 + len(self.plans)
        self.workers = min(3, len(self.plans))  # of a pool
        self.forks = len(self.plans)
        self.killed = 0
        self.plant = plant
        self.patience = PATIENCE_S if plant is None else 5.0
        self.alive = os.pipe()  # written to by who fails, closed by the last who ends

    def play(self, kind: str) -> None:
        """Plays a parent of a kind, with a stranger beside it, to the end of all of its processes."""
        if kind == "prefork":
            self.killed = sum(plan.quick for plan in self.plans)
            self.forks += self.killed
        if kind == "pool":
            self.forks = self.workers
        parents = [start(lambda: self._parent(kind)), start(self._strange)]
        os.close(self.alive[1])
        failed, until = b"", time.monotonic() + self.patience + 2
        os.set_blocking(self.alive[0], False)
        while time.monotonic() < until:
            try:
                content = os.read(self.alive[0], 99)
            except BlockingIOError:
                time.sleep(0.002)
                continue
            if not content:
                break
            failed += content
        else:
            failed += b"stuck"
        os.close(self.alive[0])
        for pid in parents:
            if b"stuck" in failed:
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if failed and self.plant is None:
            raise Broken(
                "stuck" if b"stuck" in failed else "crashed", f"processes of a scene {kind!r} failed: {failed!r}"
            )

    # ---- the processes

    def _within(self, work: Callable[[], None]) -> None:
        """Does the work of a process and ends it; says so where it failed."""
        signal.alarm(int(self.patience))  # ends it where it hangs
        try:
            work()
        except BaseException:
            os.write(self.alive[1], b"x")
            if self.plant is None:
                traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)

    def _fork(self, work: Callable[[], None]) -> int:
        pid = os.fork()
        if not pid:
            self._within(work)
        return pid

    def _parent(self, kind: str) -> None:
        if self.plant is not None:
            self.plant()
        play = {
            "own handles": lambda: self._plain(own=True),
            "inherited": lambda: self._plain(own=False),
            "daemon": self._daemon,
            "pool": self._pool,
            "prefork": self._prefork,
            "wrapped": self._wrapped,
            "threads": self._threads,
        }[kind]
        self._within(play)

    def _strange(self) -> None:
        """Somebody who has nothing to do with it opens, records and closes, again and again."""

        def work() -> None:
            for number in range(1, 5):
                with vmstore.open(self.path) as store:
                    record(store, self.slots, self.stranger, number, f"own-{self.stranger}")
                time.sleep(self.chance.uniform(0, 0.1))

        self._within(work)

    def _child(self, plan: Plan, store: vmstore.Store, own: bool | None = None) -> None:
        """Records calls under a number, through the handle it has or one of its own."""
        if plan.own if own is None else own:
            store = vmstore.open(self.path)
        for number in range(self.slots.acked(plan.writer) + 1, plan.calls + 1):
            record(store, self.slots, plan.writer, number, self._session(plan.writer))
            time.sleep(random.uniform(0, 0.01))
        if not plan.quick:
            store.close()

    def _session(self, writer: int) -> str:
        """Every third writer shares its session with the others."""
        return f"own-{writer}" if writer % 3 else "shared"

    def _open(self) -> vmstore.Store:
        """The parent's handle, which has recorded, and been asked."""
        store = vmstore.open(self.path)
        for number in (1, 2):
            record(store, self.slots, self.parent, number, self._session(self.parent))
        store.session(self._session(self.parent)).calls()
        return store

    # ---- the parents

    def _plain(self, *, own: bool) -> None:
        """Forks children, then goes on, closes, or leaves without a word."""
        store = self._open()
        pids = [self._fork(lambda plan=plan: self._child(plan, store, own)) for plan in self.plans]
        time.sleep(self.chance.uniform(0, 0.03))
        what = self.chance.choice(("goes on", "closes", "leaves"))
        if what == "leaves":
            os._exit(0)
        if what == "closes":
            store.close()
        else:
            record(store, self.slots, self.parent, 3, self._session(self.parent))
        for pid in pids:
            os.waitpid(pid, 0)
        store.close()

    def _daemon(self) -> None:
        """Forks a process that forks the children and leaves, and leaves before it."""
        store = self._open()

        def middle() -> None:
            os.setsid()
            os.chdir("/")
            for plan in self.plans:
                self._fork(lambda plan=plan: self._child(plan, store))  # type: ignore[misc]

        self._fork(middle)

    def _pool(self) -> None:
        """Hands the work to a pool of forked processes, and closes while it is done."""
        global _scene, _store
        _scene, _store = self, self._open()
        if self.chance.random() < 0.5:
            with multiprocessing.get_context("fork").Pool(self.workers) as pool:
                done = pool.map_async(_task, self.plans, 1)
                if self.chance.random() < 0.5:
                    _store.close()
                done.get(PATIENCE_S)
        else:
            with ProcessPoolExecutor(self.workers, mp_context=multiprocessing.get_context("fork")) as pool2:
                list(pool2.map(_task, self.plans))
        _store.close()

    def _prefork(self) -> None:
        """Loads all there is, forks its workers, kills some of them at any moment, and forks others in their place."""
        store = self._open()
        store.search("why")
        for plan in self.plans:
            pid = self._fork(lambda plan=plan: self._child(plan, store))  # type: ignore[misc]
            if plan.quick:
                time.sleep(self.chance.uniform(0, 0.05))
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                self._fork(lambda plan=plan: self._child(plan, store))  # type: ignore[misc]
        with suppress(ChildProcessError):
            while True:
                os.wait()
        if self.chance.random() < 0.5:
            store.close()

    def _wrapped(self) -> None:
        """A wrapped client is called here and in the children, and its recorder rests here."""
        answers = httpx2.MockTransport(lambda _: httpx2.Response(200, json=answer("because")))
        path: Any = self.path if self.chance.random() < 0.5 else vmstore.open(self.path)
        client: Any = vmstore.wrap(httpx2.Client(transport=answers, base_url="http://provider/v1"), path, "wrapped")

        def ask(writer: int, numbers: range) -> None:
            for number in numbers:
                self.slots.ask(writer, number)
                client.post("/chat/completions", json=request(writer, number))
            if not client.vmstore.flush(PATIENCE_S):
                raise Broken("lost", f"not recorded: {list(client.vmstore.problems)}")
            if numbers:
                self.slots.ack(writer, numbers[-1])

        ask(self.parent, range(1, 3))
        for plan in self.plans:
            self._fork(lambda plan=plan: ask(plan.writer, range(1, plan.calls + 1)))  # type: ignore[misc]
        client.vmstore.close()
        time.sleep(self.chance.uniform(0, 0.05))

    def _threads(self) -> None:
        """Forks while other threads record, ask and read."""
        store, ended = self._open(), threading.Event()
        halves = [self.plans[::2], self.plans[1::2]]

        def busy(work: Callable[[], object]) -> None:
            while not ended.is_set():
                work()

        works = (
            lambda: store.record("beside", {"model": "m", "messages": [{"role": "user", "content": "beside"}]}),
            lambda: store.search("why"),
            lambda: list(store.tail(limit=50)),
        )
        threads = [threading.Thread(target=busy, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        pids = []

        def fork(plans: list[Plan]) -> None:
            for plan in plans:
                pids.append(self._fork(lambda plan=plan: self._child(plan, store)))  # type: ignore[misc]
                time.sleep(random.uniform(0, 0.01))

        other = threading.Thread(target=fork, args=(halves[1],))
        other.start()
        fork(halves[0])
        other.join()
        for pid in pids:
            os.waitpid(pid, 0)
        ended.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        store.close()


_scene: Scene | None = None
_store: vmstore.Store | None = None


def _task(plan: Plan) -> None:
    """What a process of a pool does: it finds the handle where its parent left it."""
    assert _scene is not None and _store is not None, "the parent set both before it forked"
    signal.alarm(int(_scene.patience))
    try:
        _scene._child(plan._replace(quick=True), _store)
    except BaseException:
        os.write(_scene.alive[1], b"x")
        raise


def tally(folder: Path, slots: Slots, writers: int) -> Counter[str]:
    """How many calls were acknowledged, how many of those the store has not, or not once, and whether it is damaged."""
    counts: Counter[str] = Counter()
    there: Counter[tuple[int, int]] = Counter()
    try:
        with vmstore.open(folder / STORE) as store:
            for info in store.sessions():
                session = store.session(info.session)
                for call in range(1, info.calls + 1):
                    sent: Any = session.wire.request(call=call)
                    writer, _, _ = sent["messages"][-1]["content"].partition(".")
                    if writer.isdigit() and sent == request(int(writer), sent["seed"]):
                        there[int(writer), sent["seed"]] += 1
            counts["damaged"] += not store.verify().ok
    except (VmstoreError, LookupError, ValueError):
        traceback.print_exc()
        counts["damaged"] += 1
    for writer in range(writers):
        acked = slots.acked(writer)
        counts["acknowledged"] += acked
        counts["lost"] += sum(not there[writer, number] for number in range(1, acked + 1))
    counts["doubled"] += sum(count > 1 for count in there.values())
    return counts
