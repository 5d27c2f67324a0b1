"""What a soak measures while it runs, and what it makes of that: bounds that hold, or the words for what grew."""

from __future__ import annotations

import math
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from campaigns.load import EVENT, KINDS
from campaigns.script import STORE

from vmstore.log.compaction import SHRINK_PAGES
from vmstore.log.file import FRAME_BYTES, WAL_BYTES

MIB = 1 << 20
# What there is between two checkpoints, and the one transaction that is longer: pages that packing moves, each
# with one that points to it.
WAL_LOG_MAX = WAL_BYTES + 2 * SHRINK_PAGES * FRAME_BYTES
WAL_VIEWS_MAX = 32 * MIB  # a question, or a batch that is folded, may hold it for a while
MEMORY_MAX = 24 * MIB  # that a process may grow over three quarters of a run; its caches are full by then
WARM_S, MEMORY_COLD_MAX = 1200.0, 96 * MIB  # of a run so short that they are not
FLAT_MAX = 1.5  # what the last quarter's p99 may be of the first's, beside the machine's own
FLAT_COLD_MAX = 4.0  # of CPU, in a run so short that its quarters have some dozens of times: their medians are held
BEYOND = 5  # so many times at least lie beyond a quantile; of fewer times it is a lower one
JUDGED = ("call", "turn", "ask", "search", "watch")  # a wide question's work grows with the store, and is told only
JUDGED_COLD = tuple(kind for kind in JUDGED if kind != "search")  # its index is begun in the first minutes
GRAIN = math.log(1.01)

Times = Counter[int]  # how often something took so long, in steps of one percent


class Sample(NamedTuple):
    """What was measured in one interval, or at its end."""

    seconds: float
    sizes: dict[str, int]  # bytes of files; of WALs the most there was
    memory: dict[str, int]  # bytes of each process that are its own
    wall: dict[str, Times]
    cpu: dict[str, Times]


# ---- measuring


class Events:
    """The times that processes note, read as they come."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: Counter[str] = Counter()

    def take(self) -> tuple[dict[str, Times], dict[str, Times]]:
        """What was noted since, by kind: on the wall's clock, and of the thread's CPU."""
        wall, cpu = ({kind: Times() for kind in KINDS} for _ in range(2))
        for path in sorted(self._folder.iterdir()):
            with path.open("rb") as file:
                file.seek(self._read[path.name])
                noted = file.read()
            noted = noted[: len(noted) // EVENT.size * EVENT.size]
            self._read[path.name] += len(noted)
            for kind, took, worked in EVENT.iter_unpack(noted):
                wall[KINDS[kind]][step(took)] += 1
                cpu[KINDS[kind]][step(worked)] += 1
        return wall, cpu


def step(microseconds: int) -> int:
    """Which step a time falls on."""
    return round(math.log(max(microseconds, 1)) / GRAIN)


def quantile(times: Times, share: float) -> float:
    """A quantile in microseconds; 0 where there is none."""
    left = math.ceil(share * sum(times.values()))
    for at in sorted(times):
        left -= times[at]
        if left <= 0:
            return math.exp(at * GRAIN)
    return 0.0


def private(pid: int) -> int:
    """The bytes in memory that a process shares with no file."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def worked(pid: int) -> float:
    """How many seconds of CPU a process and its ended children used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def wals(folder: Path) -> dict[str, int]:
    """The length of each WAL of the store, by the first word of its file's name."""
    paths = (folder / STORE / "default").glob("*-wal")
    return {f"{path.name.partition('.')[0].partition('-')[0]} wal": _size(path) for path in paths}


def sizes(folder: Path) -> dict[str, int]:
    """The length of everything in the store, by the first word of its name."""
    counts: Counter[str] = Counter()
    for path in (folder / STORE / "default").rglob("*"):
        if path.is_file() and not path.name.endswith(("-wal", "-shm")):
            part = path.relative_to(folder / STORE / "default").parts[0]
            counts[part.partition(".")[0].partition("-")[0]] += _size(path)
    return dict(counts)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it was a file for a moment
        return 0


# ---- judging


def pooled(samples: Iterable[Sample], kind: str, cpu: bool = False) -> Times:
    """All times of a kind."""
    return sum(((sample.cpu if cpu else sample.wall)[kind] for sample in samples), Times())


def quarter(samples: Sequence[Sample], number: int) -> Sequence[Sample]:
    """One of the four parts of a run, from 0."""
    return samples[len(samples) * number // 4 : len(samples) * (number + 1) // 4]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much is more a second: the median over all pairs, which no single sample can move."""
    actual = [(b[1] - a[1]) / (b[0] - a[0]) for n, a in enumerate(points) for b in points[n + 1 :] if b[0] > a[0]]
    return statistics.median(actual) if actual else 0.0


def growth(samples: Sequence[Sample], process: str) -> float:
    """The bytes that a process grew over the last three quarters."""
    late = [sample for sample in samples[len(samples) // 4 :] if process in sample.memory]
    if len(late) < 2:
        return 0.0
    return slope([(sample.seconds, sample.memory[process]) for sample in late]) * (late[-1].seconds - late[0].seconds)


def is_warm(samples: Sequence[Sample]) -> bool:
    """Whether a run was long enough for its caches to fill, and its quarters to have many times."""
    return samples[-1].seconds >= WARM_S


def memory_max(samples: Sequence[Sample]) -> int:
    """What a process may grow in the last three quarters of a run."""
    return MEMORY_MAX if is_warm(samples) else MEMORY_COLD_MAX


def held_share(samples: Sequence[Sample]) -> float:
    """Which quantile is held to stay as it was."""
    return 0.99 if is_warm(samples) else 0.5


class Flat(NamedTuple):
    """A quantile of one kind in the first and the last quarter, in microseconds, and what may be of their ratio."""

    kind: str
    clock: str
    first: float
    last: float
    bound: float

    @property
    def ratio(self) -> float:
        """The last quarter's over the first's."""
        return self.last / self.first if self.first else 1.0


def flats(samples: Sequence[Sample], share: float = 0.99) -> list[Flat]:
    """Each kind's quantile, on both clocks; the wall's is held against what the probes say of the machine."""
    first, last = quarter(samples, 0), quarter(samples, 3)
    made = []
    for kind in KINDS:
        for cpu in (False, True):
            other_times = pooled(first, kind, cpu), pooled(last, kind, cpu)
            beyond = 1 - BEYOND / max(BEYOND, min(sum(times.values()) for times in other_times))
            made.append(
                Flat(kind, "CPU" if cpu else "wall", *(quantile(t, min(share, beyond)) for t in other_times), math.inf)
            )
    warm = is_warm(samples)
    most, judged = (FLAT_MAX, JUDGED) if warm else (FLAT_COLD_MAX, JUDGED_COLD)
    noise = max(1.0, *(row.ratio for row in made if row.kind in ("probe", "spin") and row.clock == "wall"))
    work = max(1.0, *(row.ratio for row in made if row.kind == "spin" and row.clock == "CPU"))
    # A neighbour that came in the last quarter of a short run is all that the wall's clock tells of it.
    bounds = {"CPU": most * work, "wall": most * noise if warm else math.inf}
    return [item._replace(bound=bounds[item.clock]) if item.kind in judged else item for item in made]


def broken(samples: Sequence[Sample]) -> list[tuple[str, str]]:
    """The bounds that do not hold: a word for each, and what about it."""
    rows = []
    for name, bound in (("log wal", WAL_LOG_MAX), ("views wal", WAL_VIEWS_MAX)):
        most = max((sample.sizes.get(name, 0) for sample in samples), default=0)
        if most > bound:
            rows.append(("wal", f"the {name} grew to {most / MIB:.1f} MiB; its bound is {bound / MIB:.1f}"))
    for process in processes(samples):
        more = growth(samples, process)
        if more > memory_max(samples):
            rows.append(("leak", f"{process} grew by {more / MIB:.0f} MiB in the last three quarters"))
    share = held_share(samples)
    for row in flats(samples, share):
        if row.ratio > row.bound:
            rows.append(
                (
                    "slow",
                    f"p{share * 100:.0f} of a {row.kind} on the {row.clock} clock: {row.last / 1e3:.1f} ms in the last "
                    f"quarter, {row.first / 1e3:.1f} in the first; {row.ratio:.2f} times, and {row.bound:.2f} may be",
                )
            )
    return rows


def figures(samples: Sequence[Sample]) -> Counter[str]:
    """The figures of the table as whole numbers, by name."""
    counts: Counter[str] = Counter()
    for row in flats(samples):
        counts[f"p99 us of a {row.kind}, {row.clock}, first quarter"] = round(row.first)
        counts[f"p99 us of a {row.kind}, {row.clock}, last quarter"] = round(row.last)
    for name in processes(samples):
        counts[f"bytes {name} grew"] = round(growth(samples, name))
    for name in sorted({name for sample in samples for name in sample.sizes}):
        counts[f"bytes of {name}"] = max(sample.sizes.get(name, 0) for sample in samples)
    return counts


def processes(samples: Sequence[Sample]) -> list[str]:
    """All that were measured, in the order they began."""
    return list(dict.fromkeys(name for sample in samples for name in sample.memory))


# ---- telling


def line(sample: Sample) -> str:
    """One interval."""
    times = ", ".join(
        f"{kind} {quantile(sample.wall[kind], 0.5) / 1e3:.1f}/{quantile(sample.wall[kind], 0.99) / 1e3:.1f}"
        for kind in KINDS
        if sample.wall[kind]
    )
    text = " ".join(f"{size / MIB:.0f}" for size in sample.memory.values())
    files = ", ".join(f"{name} {size / MIB:.1f}" for name, size in sorted(sample.sizes.items()))
    return f"{sample.seconds:6,.0f} s · ms p50/p99: {times} · MiB: {files} · memory {text}"


def table(samples: Sequence[Sample]) -> list[str]:
    """The run, as rows of Markdown."""
    rows = ["| what | first quarter | last quarter | ratio | bound |", "|---|---|---|---|---|"]
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        for row in flats(samples, share):
            bound = f"{row.bound:.2f}" if share == held_share(samples) and row.bound < math.inf else ""
            rows.append(
                f"| {name} of a {row.kind}, {row.clock}, ms | {row.first / 1e3:.2f} | {row.last / 1e3:.2f} "
                f"| {row.ratio:.2f} | {bound} |"
            )
    rows += [
        "",
        "| process | MiB at a quarter | at the end | grown since, by its slope | bound |",
        "|---|---|---|---|---|",
    ]
    for name in processes(samples):
        used = [sample.memory[name] for sample in samples[len(samples) // 4 :] if name in sample.memory]
        if used:
            more = growth(samples, name) / MIB
            rows.append(
                f"| {name} | {used[0] / MIB:.1f} | {used[-1] / MIB:.1f} | {more:+.1f} | {memory_max(samples) // MIB} |"
            )
    rows += ["", "| file | MiB at a quarter | at the end | most | bound |", "|---|---|---|---|---|"]
    bounds = {"log wal": WAL_LOG_MAX, "views wal": WAL_VIEWS_MAX}
    for name in sorted({name for sample in samples for name in sample.sizes}):
        sizes = [sample.sizes.get(name, 0) / MIB for sample in samples]
        bound = f"{bounds[name] / MIB:.1f}" if name in bounds else ""
        rows.append(f"| {name} | {sizes[len(sizes) // 4]:.1f} | {sizes[-1]:.1f} | {max(sizes):.1f} | {bound} |")
    return rows
