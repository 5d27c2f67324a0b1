"""What the tools of the shipped session answer: files, searches, benchmarks, costs, metrics, a log.

Each takes what stands behind its letter in demo_text/story.txt and gives (arguments, result). Numbers
nobody chose are rolled from a fixed seed, so the same words always give the same bytes.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

SEED = "planning-220"
TEXTS = Path(__file__).resolve().parent / "demo_text"


def dice(key: str, low: int, high: int) -> int:
    """A number from low to high that depends on the seed and the key alone."""
    digest = hashlib.sha256(f"{SEED}/{key}".encode()).digest()
    return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


def words(name: str) -> str:
    """One of the texts this is made from."""
    return (TEXTS / f"{name}.txt").read_text("utf-8").strip("\n")


def sections(name: str) -> dict[str, list[str]]:
    """The lines of a text under their `==== ` heads."""
    parts = words(name).removeprefix("==== ").split("\n\n==== ")
    return {head: body.split("\n") for head, _, body in (part.partition("\n") for part in parts)}


@cache
def files() -> dict[str, list[str]]:
    """The files and tickets tools can read: numbered lines by path."""
    fields = {}
    for head, body in sections("files").items():
        path, start = head.split("@")
        fields[path] = [f"{n:>4}  {text}" for n, text in enumerate(body, int(start))]
    return fields


def pairs(text: str, fields: int) -> list[list[str]]:
    """The rows of `name value value, name value value`."""
    return [row.rsplit(" ", fields) for row in text.split(", ")]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Rows under their heads, the first column to the left and numbers to the right."""
    wide = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for first, *rest in [head, *rows]:
        cells = [
            first.ljust(wide[0]),
            *(cell.rjust(width) for cell, width in zip(rest, wide[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def read_file(path: str) -> tuple[dict[str, Any], str]:
    """What reading a file asks for and gives."""
    lines = files()[path]
    first, last = int(lines[0][:4]), int(lines[-1][:4])
    of = last if path.endswith(".md") else last + dice(path, 3, 190)
    asked = {"path": path, "start_line": first, "end_line": last}
    return asked, f"{path} (lines {first}-{last} of {of})\n" + "\n".join(lines)


def search_code(pattern: str) -> tuple[dict[str, Any], str]:
    """What searching the repository asks for and gives: the matching lines, each with its neighbours."""
    hits = []
    for path, lines in files().items():
        if path.startswith("SUP-"):
            continue
        for i, line in enumerate(lines):
            if pattern in line[6:]:
                near = [f"{path}-{n[:4].strip()}- {n[6:]}" for n in lines[max(0, i - 1) : i + 2]]
                near[min(i, 1)] = f"{path}:{line[:4].strip()}: {line[6:]}"
                hits.append("\n".join(near))
    text = f"{len(hits)} match{'es' * (len(hits) != 1)} for {pattern!r}"
    asked = {"pattern": pattern, "paths": ["src", "db", "infra", "docs"]}
    return asked, "\n".join([text, "\n--\n".join(hits[:9])]).strip()


def between(median: str, p99: str) -> str:
    """A believable 95th percentile."""
    value = float(median) * 0.4 + float(p99) * 0.6
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def run_benchmark(spec: str) -> tuple[dict[str, Any], str]:
    """What a benchmark asks for and gives."""
    name, _, body = spec.partition(": ")
    if body.startswith("error"):
        return {"suite": name, "target": "staging", "duration_s": 120}, body
    rows = pairs(body, 3)
    if all(row[2:] == ["0", "0"] for row in rows):
        head, cells = ["counted", "events"], [row[:2] for row in rows]
    elif all(row[1] == "1" for row in rows):
        head = ["measured", "runs", "median", "p95" if rows[0][0].endswith("_ms") else "worst"]
        cells = [[row[0], str(dice(name, 4, 9)), *row[2:]] for row in rows]
    else:
        head = ["variant", "ops/s", "p50 ms", "p95 ms", "p99 ms", "cpu %"]
        cells = [[v, o, a, between(a, z), z, str(dice(v + o, 31, 88))] for v, o, a, z in rows]
    run = f"run {dice(name, 4000, 9000)} on staging (8 vCPU, 64 GB, gp3 12000 IOPS), "
    run += "warm-up 30 s, 5 repeats, median of repeats"
    asked = {
        "suite": name,
        "variants": [row[0] for row in rows],
        "target": "staging",
        "duration_s": 30 * dice(name, 2, 8),
    }
    spread = f"spread between repeats {dice(name, 12, 49) / 10} %, 0 errors, "
    spread += f"raw samples in s3://tidemark-bench/{name}/"
    return asked, f"{name}\n{run}\n\n{table(head, cells)}\n\n{spread}"


def estimate_cost(spec: str) -> tuple[dict[str, Any], str]:
    """What an estimate asks for and gives."""
    name, _, body = spec.partition(": ")
    rows = pairs(body, 1)
    total = sum(int(row[1]) for row in rows)
    cells = [[item, f"{int(usd):,}", f"{100 * int(usd) / total:.0f} %"] for item, usd in rows]
    note = f"price list of 2026-02-{dice(name, 1, 28):02}, on demand, before tax; "
    note += f"{100 * total / 9500:.1f} % of the budget of 9,500"
    grid = table(["item", "USD a month", "share"], [*cells, ["total", f"{total:,}", "100 %"]])
    asked = {"label": name, "items": [row[0] for row in rows], "period": "month"}
    return asked, f"{name}\n\n{grid}\n\n{note}"


def query_metrics(spec: str) -> tuple[dict[str, Any], str]:
    """What a question to the metrics asks for and gives."""
    name, _, body = spec.partition(": ")
    rows = pairs(body, 2)
    top = max(float(row[1]) for row in rows) or 1.0
    grid = table(["series", "value", "unit"], rows).splitlines()
    scale = 18 / top if len({row[2] for row in rows}) == 1 else 0  # unlike units share no axis
    bars = ["", *("#" * round(scale * float(row[1])) for row in rows)]
    drawn = "\n".join(f"{line:<44}{bar}".rstrip() for line, bar in zip(grid, bars, strict=True))
    step = ("30s", "1m", "5m", "1h")[dice(name, 0, 3)]
    below = f"step {step}, {dice(name, 900, 43000):,} samples, 0 gaps filled"
    return {"query": name, "step": step}, f"{name}\n\n{drawn}\n\n{below}"


def read_ticket(ticket: str) -> tuple[dict[str, Any], str]:
    """What reading a ticket asks for and gives."""
    lines = [line[6:] for line in files()[ticket]]
    return {"ticket": ticket}, f"{ticket} (open, {dice(ticket, 2, 9)} messages)\n" + "\n".join(lines)


def fetch_log(service: str) -> tuple[dict[str, Any], str]:
    """What fetching the log of 14 January asks for and gives: some 20 KB of it."""
    asked = {
        "service": service,
        "from": "2026-01-14T03:11:20Z",
        "to": "2026-01-14T03:20:00Z",
        "lines_max": 186,
    }
    clock, lines = datetime(2026, 1, 14, 3, 11, 20), []
    for n in range(186):
        clock += timedelta(milliseconds=dice(f"log{n}", 300, 2200) if n < 40 else dice(f"log{n}", 900, 4900))
        lines.append(f"{clock:%H:%M:%S}.{clock.microsecond // 1000:03} {log_line(n, clock)}")
    return asked, "186 of 9,412 lines\n" + "\n".join(lines)


def log_line(n: int, clock: datetime) -> str:
    """One line of the night ingest stood still: calm, then a lock, then a full pool."""
    worker, second = f"ingest[{dice(f'w{n}', 1, 4)}]", clock.hour * 3600 + clock.minute * 60 + clock.second
    batch, waited = f"batch {dice(f'batch{n}', 31000, 98000)}", second - 11500
    if n == 12:
        ddl = "ALTER TABLE events ADD COLUMN vessel text NOT NULL DEFAULT ''"
        return f"INFO  migrate[1] 0031_events_vessel.sql: {ddl}"
    if n == 13:
        lock = "AccessExclusiveLock on relation 16841 (events), holder 39977 (monthly report)"
        return f"WARN  postgres[812] process 40212 still waiting for {lock}"
    if second < 11500:
        written = f"{dice(f'r{n}', 40, 260)} events in {dice(f'm{n}', 18, 95)} ms"
        return f"INFO  {worker} {batch} written: {written}, queue {dice(f'q{n}', 0, 90)}, duplicates {n % 5}"
    if second < 11522:
        pool = f"pool {min(40, 18 + waited)}/40 in use"
        return f"WARN  {worker} insert into events waits for lock, {waited} s so far; {pool}, {batch} held"
    return stuck(n, worker, batch, waited)


def stuck(n: int, worker: str, batch: str, waited: int) -> str:
    """One line written while the pool is full."""
    kind, some = dice(f"kind{n}", 0, 4), dice(f"some{n}", 1, 999)
    if kind == 4:
        shown = f"newest event shown is {waited + 9} s old"
        return f"INFO  api[{1 + some % 2}] GET /v1/events 200 in {some} ms; {shown}"
    if kind == 3:
        lock = f"RowExclusiveLock on relation 16841 after {waited * 1000 + some} ms"
        return f"WARN  postgres[812] process {40000 + some} waits for {lock}"
    if kind == 2:
        hold = f"not acknowledged for {waited} s, asking it to hold; oldest event {waited + 4} s"
        return f"WARN  {worker} source edi-gateway-{1 + some % 3} {hold}"
    full = f"pool exhausted: 40/40 in use for {waited - 22} s"
    return f"ERROR {worker} {full}, {batch} requeued, attempt {2 + some % 8}, queue {waited * 77:,}"


TOOLS = {
    "r": read_file, "s": search_code, "b": run_benchmark, "c": estimate_cost,
    "m": query_metrics, "t": read_ticket, "l": fetch_log,
}  # fmt: skip
SECONDS = {"r": (0, 1), "s": (1, 3), "b": (70, 260), "c": (1, 4), "m": (1, 5), "t": (0, 2), "l": (3, 6)}
