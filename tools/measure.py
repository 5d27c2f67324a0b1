"""Measures what specs/performance.md states: `python3 tools/measure.py [--json]`.

Makes `.venv` where vmstore is not installed yet. Durable figures stand beside the raw
append+fdatasync floor of the same run, because flushes vary with the machine and the minute.
The pi session is looked for at ../shared/data/pi; without it its rows are left out.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, RefusedError, entry, ready

PI = ROOT.parent / "shared" / "data" / "pi" / "before-compaction.jsonl"
PAGES = 1_000
UNCHANGED_CALLS = 400
RECORDED_CALLS = 100
FLUSHES = 100
FLUSH_BYTES = 2_000  # about what the two commits of a call of three messages write
WINDOW = 100


# Each figure and what must hold of it; specs/performance.md lists the same.
FIGURES = {
    "log growth of an unchanged call, 1,000 pages": "< 250 B",
    "the same, with an answer's own id and usage": "",
    "pi import: size of the log": "<= 1.1 x distinct content + 500 B a call",
    "pi import: the same with cells as they are": "",
    "pi import: time": "",
    "record: 1,000 messages, 3 new, above the floor": "< 5 ms",
    "record: the same, flush included": "",
    "floor: append of 2,000 B and fdatasync": "",
    "context with content at any call of pi": "< 30 ms",
    "context of 100 pages, 40 times the calls": "grows with pages, not calls",
    "context of 4 times the pages": "",
}


class Row(NamedTuple):
    """One figure as it was measured, and how far it spread."""

    name: str
    measured: str
    spread: str


def main(arguments: Sequence[str]) -> int:
    """Measures everything and prints it."""
    if importlib.util.find_spec("vmstore") is None:
        python = ready("all") / "python"
        try:
            os.execv(python, [str(python), __file__, *arguments])
        except OSError as error:
            raise RefusedError(f"cannot start {python}: {error.strerror}; remove .venv and try again") from None
    parser = argparse.ArgumentParser(prog="measure.py", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=ROOT, prefix=".measure-") as folder:
        rows = [row for measure in MEASURES for row in measure(Path(folder))]
    if asked.json:
        print(json.dumps({"machine": machine(), "rows": [row._asdict() for row in rows]}, indent=1))
    else:
        print("\n".join(table(rows)))
        print("\n" + ", ".join(machine().values()))
    return 0


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as a markdown table."""
    yield "| figure | must hold | measured | spread |"
    yield "|---|---|---|---|"
    for row in rows:
        yield f"| {row.name} | {FIGURES[row.name]} | {row.measured} | {row.spread} |"


def machine() -> dict[str, str]:
    """What the figures were measured on, and how busy it was."""
    import apsw

    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
    return {
        "cpu": f"{os.cpu_count()} x {model}",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"Python {platform.python_version()}",
        "sqlite": f"SQLite {apsw.sqlite_lib_version()}",
        "load": f"load {os.getloadavg()[0]:.2f}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


# ---- how much the log grows


def unchanged(folder: Path) -> Iterator[Row]:
    """The log's growth by a call that changes nothing, with many pages in context."""
    request = {"model": "m-1", "messages": talk(PAGES)}
    message = {"role": "assistant", "content": None}
    told = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9_000}}

    def answer(n: int) -> dict[str, Any]:
        return {"id": f"chatcmpl-{n:024}", **told}

    yield Row("log growth of an unchanged call, 1,000 pages", *growth(folder / "a", request, None))
    yield Row("the same, with an answer's own id and usage", *growth(folder / "b", request, answer))


def growth(place: Path, request: dict[str, Any], answer: Callable[[int], Any] | None) -> tuple[str, str]:
    """Bytes a call adds to the log, and over how many calls."""
    import vmstore

    def call(first: int, count: int) -> int:
        with vmstore.open(place) as store:
            for n in range(first, first + count):
                store.record("s", request, answer and answer(n))
        return log_bytes(place)

    before = call(0, 1)
    after = call(1, UNCHANGED_CALLS)
    return f"{(after - before) / UNCHANGED_CALLS:.0f} B", f"mean of {UNCHANGED_CALLS} calls"


def imported(folder: Path) -> Iterator[Row]:
    """The size of the log after the pi session, beside what it holds."""
    import zstandard

    import vmstore

    if not PI.is_file():
        return
    place = folder / "pi"
    with vmstore.open(place) as store:
        started = time.perf_counter()
        store.import_file(PI, session="pi")
        seconds = time.perf_counter() - started
        session = store.session("pi")
        calls = len(session.calls())
        pages = [session.content(page.page) for page in session.pages() if page.bytes]
    distinct = sum(map(len, set(pages)))
    size, raw = log_bytes(place), 0
    db = opened(place)
    for (content,) in db.execute("SELECT content FROM frames WHERE form = 1"):
        raw += zstandard.frame_content_size(content) - len(content)
    db.close()
    held = f"{distinct:,} B distinct, {calls} calls: {round(1.1 * distinct + 500 * calls):,} B allowed"
    yield Row("pi import: size of the log", f"{size:,} B", held)
    yield Row("pi import: the same with cells as they are", f"{size + raw:,} B", "computed from the cells")
    yield Row("pi import: time", f"{seconds:.2f} s", "one run")


def log_bytes(place: Path) -> int:
    """The bytes of a closed store's log, its WAL folded in."""
    db = opened(place)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    name = Path(db.filename)
    db.close()
    return name.stat().st_size


def opened(place: Path) -> Any:
    """The log of a closed store, as SQLite sees it."""
    import apsw

    return apsw.Connection(str(place / "default" / "log.sqlite"))


# ---- how long a call takes to record


def recorded(folder: Path) -> Iterator[Row]:
    """What `record` adds to a call with many messages of which three are new."""
    import vmstore

    messages = talk(PAGES)
    times = []
    before = floor(folder)
    with vmstore.open(folder / "r") as store:
        store.record("s", {"model": "m-1", "messages": copy.deepcopy(messages)})
        for n in range(RECORDED_CALLS):
            messages += talk(3, f"call {n}, ")
            request = {"model": "m-1", "messages": copy.deepcopy(messages)}  # values of its own, as from JSON
            times.append(timed(lambda request=request: store.record("s", request)))
    after = floor(folder)
    flush = statistics.median([*before, *after])
    added = [one - flush for one in times]
    yield Row("record: 1,000 messages, 3 new, above the floor", ms(added), spread(added))
    yield Row("record: the same, flush included", ms(times), spread(times))
    told = f"medians {ms(before)} before, {ms(after)} after"
    yield Row("floor: append of 2,000 B and fdatasync", ms([*before, *after]), told)


def floor(folder: Path) -> list[float]:
    """Seconds of raw appends, each flushed."""
    handle = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    flush = getattr(os, "fdatasync", os.fsync)

    def append() -> None:
        os.write(handle, b"x" * FLUSH_BYTES)
        flush(handle)

    times = [timed(append) for _ in range(FLUSHES)]
    os.close(handle)
    return times


# ---- how long a context takes


def asked(folder: Path) -> Iterator[Row]:
    """The context with content at every call of the pi session."""
    import vmstore

    if not PI.is_file():
        return
    with vmstore.open(folder / "pi") as store:
        session = store.session("pi")
        calls = session.calls()
        times = [timed(lambda call=call: session.context(call=call.call).contents()) for call in calls]
    held = f"{spread(times)}, max {1e3 * max(times):.1f} ms, up to {max(call.pages for call in calls)} pages"
    yield Row("context with content at any call of pi", ms(times), held)


def grown(folder: Path) -> Iterator[Row]:
    """The context of a window of messages after few calls and after many."""
    few, many = (windows(calls) for calls in (100, 4_000))
    ratio = statistics.median(many) / statistics.median(few)
    told = f"{ms(few)} after 100 calls, {ms(many)} after 4,000"
    yield Row("context of 100 pages, 40 times the calls", f"x {ratio:.2f}", told)
    wide = windows(100, 4 * WINDOW)
    told = f"{ms(few)} and {ms(wide)}, both after 100 calls"
    yield Row("context of 4 times the pages", f"x {statistics.median(wide) / statistics.median(few):.2f}", told)


def windows(calls: int, width: int = WINDOW) -> list[float]:
    """Seconds for contexts of a session whose window of messages moved on at each call."""
    import vmstore

    messages = talk(width + calls)
    with vmstore.memory_store() as store:
        for n in range(calls):
            store.record("s", {"model": "m-1", "messages": messages[n : n + width]})
        session = store.session("s")
        session.context(call=1).contents()
        return [timed(lambda n=n: session.context(call=n).contents()) for n in range(1, calls, max(1, calls // 50))]


def talk(count: int, about: str = "") -> list[dict[str, Any]]:
    """Messages of an agent's conversation, some 300 bytes each."""
    roles = ("user", "assistant")
    words = "words of a session " * 15
    return [{"role": roles[n % 2], "content": f"{about}message {n}: {words}"} for n in range(count)]


def timed(act: Callable[[], object]) -> float:
    """Seconds an act takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def ms(times: Sequence[float]) -> str:
    """The median of times in milliseconds."""
    return f"{1e3 * statistics.median(times):.2f} ms"


def spread(times: Sequence[float]) -> str:
    """The first and the last decile of times."""
    ordered = sorted(times)
    tenth = len(ordered) // 10
    return f"p10 {1e3 * ordered[tenth]:.2f} ms, p90 {1e3 * ordered[-tenth - 1]:.2f} ms, {len(times)} calls"


MEASURES = (unchanged, imported, recorded, asked, grown)

if __name__ == "__main__":
    entry(main)
