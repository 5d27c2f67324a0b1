"""Recording: what a call of a long conversation adds in bytes and milliseconds, and asking an imported one."""

from __future__ import annotations

import copy
import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benches.parts import doors, peers
from benches.parts.rounds import LOWER, Bench, Goal, Row, row, wall

UNCHANGED = Goal("log growth of an unchanged call, 1,000 pages, bytes", 250, LOWER)
ANSWERED = Goal("the same with an answer's own id and usage, bytes", "", LOWER)
RECORD = Goal("record: 1,000 messages of which 3 are new, above the floor, ms", 5, LOWER)
IMPORT = Goal("pi import: log, against 1.1 x distinct content + 500 B a call", 1, LOWER)
IMPORT_TIME = Goal("pi import, s of CPU", "", LOWER)
GROWTH = Goal("import of 8,000 calls, against 4,000: CPU", 2.2, LOWER)
RATE = Goal("import of 8,000 calls: MB a second of CPU", 3)
CONTEXT = Goal("context with content at any call of pi, ms of CPU", 30, LOWER)
GOALS = (UNCHANGED, ANSWERED, RECORD, GROWTH, RATE, IMPORT, IMPORT_TIME, CONTEXT)

PI = Path(__file__).resolve().parents[3] / "shared" / "data" / "pi" / "before-compaction.jsonl"
PAGES = (1_000, 100)
UNCHANGED_CALLS = (400, 20)
RECORDED_CALLS = (100, 8)
IMPORTED_CALLS = (8_000, 80)
FLUSH_BYTES = 2_000  # about what the two commits of a call of three messages write


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; those of the imported session only where it is at hand."""
    yield from _grown(bench)
    yield _recorded(bench)
    yield from _grown_import(bench)
    if PI.is_file():
        yield from _imported(bench)
    else:
        bench.say(f"left out: the rows of pi, which is not at {PI}")


def talk(count: int, about: str = "") -> list[dict[str, Any]]:
    """Messages of an agent's conversation, some 300 bytes each."""
    roles = ("user", "assistant")
    words = "words of a session " * 15
    return [{"role": roles[n % 2], "content": f"{about}message {n}: {words}"} for n in range(count)]


# ---- how much the log grows


def _grown(bench: Bench) -> Iterator[Row]:
    request = {"model": "m-1", "messages": talk(bench.size(*PAGES))}
    message = {"role": "assistant", "content": None}
    fields = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9_000}}

    def answer(n: int) -> dict[str, Any]:
        return {"id": f"chatcmpl-{n:024}", **fields}

    calls = bench.size(*UNCHANGED_CALLS)
    yield row(UNCHANGED, [_growth(bench.memory / "a.vms", request, lambda n: None, calls)])
    yield row(ANSWERED, [_growth(bench.memory / "b.vms", request, answer, calls)])


def _growth(path: Path, request: dict[str, Any], answer: Callable[[int], Any], calls: int) -> float:
    """Bytes a call adds to the log once it is packed, in the mean."""

    def call(first: int, count: int) -> int:
        with doors.opened(path) as store:
            for n in range(first, first + count):
                store.record("s", request, answer(n))
            doors.compact(store)
        return doors.log_bytes(path)

    before = call(0, 1)
    return (call(1, calls) - before) / calls


# ---- how long a call takes to record


def _recorded(bench: Bench) -> Row:
    """What `record` adds to a call with many messages; the floor is taken before and after each."""
    messages = talk(bench.size(*PAGES))
    floor = peers.Floor(bench.folder / "floor")
    flushes: list[float] = []
    added: list[float] = []

    def flushed() -> float:
        flushes.append(bench.time("floor", lambda: floor.append(b"x" * FLUSH_BYTES), wall))
        return flushes[-1]

    with doors.opened(bench.folder / "r.vms") as store:
        store.record("s", {"model": "m-1", "messages": copy.deepcopy(messages)})
        for n in range(bench.size(*RECORDED_CALLS)):
            messages += talk(3, f"call {n}, ")
            request = {"model": "m-1", "messages": copy.deepcopy(messages)}  # values of its own, as from JSON
            before = flushed()
            taken = bench.time("vmstore", lambda request=request: store.record("s", request), wall)
            added.append(1e3 * (taken - (before + flushed()) / 2))
    floor.close()
    bench.flushes(flushes)
    quarter = len(added) // 4
    medians = [statistics.median(added[n * quarter : (n + 1) * quarter]) for n in range(4)]
    return row(RECORD, medians)


# ---- an import that grows


def _grown_import(bench: Bench) -> Iterator[Row]:
    """A file of calls and their results, all in one stretch, and one of half as many."""
    many = bench.size(*IMPORTED_CALLS)
    files = {calls: _transcript(bench.memory / f"{calls}.jsonl", calls) for calls in (many // 2, many)}

    def taken(calls: int, n: int) -> float:
        with doors.opened(bench.memory / f"i{calls}.{n}.vms") as store:
            return bench.time("vmstore", lambda: store.import_file(files[calls]))

    few, seconds = ([taken(calls, n) for n in range(2)] for calls in files)
    yield row(GROWTH, [large / small for small, large in zip(few, seconds, strict=True)])
    yield row(RATE, [files[many].stat().st_size / 1e6 / each_seconds for each_seconds in seconds])


def _transcript(path: Path, calls: int) -> Path:
    """Messages of a coding session: a call and its result for each, some 600 bytes together."""
    words = "reads a file of the parser and says what is in it "
    with path.open("w") as file:
        for n in range(calls):
            call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"n": {n}}}'}}
            asked = {"role": "assistant", "content": f"Step {n} {words}", "tool_calls": [call]}
            result = {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n}: {words * 6}"}
            file.write(f"{json.dumps(asked)}\n{json.dumps(result)}\n")
    return path


# ---- an imported session


def _imported(bench: Bench) -> Iterator[Row]:
    path = bench.memory / "pi.vms"
    with doors.opened(path) as store:
        seconds = bench.time("vmstore", lambda: store.import_file(PI, session="pi"))
        session = store.session("pi")
        calls = session.calls()
        distinct = {session.content(page.page) for page in session.pages() if page.bytes}
        times = [
            [1e3 * bench.time("vmstore", lambda n=call.call: session.context(call=n).contents()) for call in calls]
            for _ in range(bench.size(3, 1))
        ]
    allowed = 1.1 * sum(map(len, distinct)) + 500 * len(calls)
    yield row(IMPORT, [doors.log_bytes(path) / allowed])
    yield row(IMPORT_TIME, [seconds])
    yield row(CONTEXT, [statistics.median(time) for time in times])
