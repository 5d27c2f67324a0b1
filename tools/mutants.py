"""Changes one line of the engine, the log or the cells at a time, and asks the tests whether they notice.

    python tools/mutants.py --room engine/rules --seed 1 --sample 100

A mutant is killed where a test fails, timed out where one hangs, and survives where all that reach
it pass, as many as --budget has room for; then a claim is missing, or the line is. Mutants that
nothing could tell from the code are listed in tools/mutation/equivalent.txt, each with its reason.
What became of each is remembered until its room or, for survivors, a test changes. Exit code 1
where fewer than --goal percent are killed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mutation.change import Mutant, mutants_of
from mutation.trial import FREED, IMPORT, Order, Outcome, Reach, Trials, forked, imported, reach

ROOT = Path(__file__).resolve().parent.parent
MEMORY = Path("/dev/shm")  # a store that need not outlive the machine flushes a hundred times faster there
EQUIVALENT = Path(__file__).parent / "mutation" / "equivalent.txt"
GOAL = 85
ROOMS = (
    *("cells/cell", "cells/merkle", "cells/verify_proof"),
    *("log/commit", "log/frame", "log/rows", "log/port", "log/compaction", "log/sqlite"),
    *(
        "engine/engine",
        "engine/batch",
        "engine/rules/rules",
        "engine/rules/rules_by_kind",
        "engine/rules/field_types",
        "engine/head",
    ),
    *(
        "engine/verify/chain",
        "engine/verify/verify",
        "engine/verify/history_tree",
        "seals/seal",
        "seals/consistency_proof",
        "engine/transfer/ingest",
        "engine/transfer/rewrite",
    ),
)
"""Where a wrong line would break a law and nothing else would show it: what is hashed, ordered, refused, proven."""
TESTS = (
    *("tests/cells", "tests/log", "tests/engine"),
    *("tests/transfer/test_intake.py", "tests/transfer/test_bundle.py", "tests/store/test_seals.py"),
    *("tests/disasters/test_power_cut.py", "tests/disasters/test_full_disk.py"),
)
STATUSES = ("killed", "timed out", "survived", "equivalent")


def main(arguments: Sequence[str]) -> int:
    """Tries the mutants that were asked for and says what became of them."""
    input_arguments = parsed(arguments)
    os.chdir(input_arguments.root)
    sys.path.insert(0, str(input_arguments.root))
    os.environ["PYTHONPATH"] = str(input_arguments.root)
    place = Path(tempfile.mkdtemp(prefix="vmstore-mutants-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        mutants = drawn(input_arguments)
        reached = reached_by(input_arguments, place)
        run = Run(input_arguments, mutants, reached)
        run.all(at_import(input_arguments, mutants, place), place / "trial")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return run.close()


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; rooms and tests as paths below the root."""
    parser = argparse.ArgumentParser(
        prog="mutants.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--room", action="append", metavar="ROOM", help="only this one, like engine/rules (may be given again)")
    add("--seed", type=int, default=1, metavar="N", help="of the sample and of the order (default 1)")
    add("--sample", type=int, metavar="N", help="so many of the mutants, drawn by the seed (default all)")
    add("--budget", type=float, default=2, metavar="S", help="CPU seconds of tests for one mutant (default 2)")
    add("--goal", type=float, default=GOAL, metavar="PERCENT", help=f"that must be killed (default {GOAL})")
    add("--tests", action="append", metavar="PATH", help="files or folders of tests (default: those of the rooms)")
    add("--listed", action="store_true", help="try the mutants listed as equivalent too: none may be killed")
    add("--again", action="store_true", help="forget what is remembered of the mutants that are tried")
    add("--state", type=Path, metavar="DIR", help="where it is remembered (default .mutants in the root)")
    add("--equivalent", type=Path, default=EQUIVALENT, metavar="FILE", help="the list of equivalent mutants")
    add("--root", type=Path, default=ROOT, metavar="DIR", help="the checkout (default: this one)")
    add("--json", action="store_true", help="print one JSON object at the end and nothing else")
    input_arguments = parser.parse_args(arguments)
    input_arguments.root = input_arguments.root.resolve()
    input_arguments.state = (input_arguments.state or input_arguments.root / ".mutants").resolve()
    input_arguments.equivalent = input_arguments.equivalent.resolve()
    input_arguments.rooms = [path_of(input_arguments.root, room) for room in input_arguments.room or ROOMS]
    missing = [room for room in input_arguments.rooms if not (input_arguments.root / room).is_file()]
    if missing:
        parser.error(
            f"there is no room {missing[0]}; the rooms are {', '.join(ROOMS)}, or any path below {input_arguments.root}"
        )
    input_arguments.files = files_of(input_arguments.root, input_arguments.tests or TESTS)
    if not input_arguments.files:
        parser.error(
            f"there are no tests in {', '.join(input_arguments.tests or TESTS)}; name files or folders of test_*.py"
        )
    return input_arguments


def path_of(root: Path, room: str) -> str:
    """A room's path below the root, from its short name or its path."""
    path = room if room.endswith(".py") else f"{room}.py"
    return path if (root / path).is_file() else f"vmstore/{path}"


def files_of(root: Path, places: Iterable[str]) -> list[str]:
    """The files of tests in some places, as paths below the root."""
    paths = [
        path
        for place in places
        for path in ([root / place] if place.endswith(".py") else (root / place).rglob("test_*.py"))
    ]
    return sorted(str(path.relative_to(root)) for path in paths if path.is_file())


def drawn(arguments: argparse.Namespace) -> list[Mutant]:
    """The mutants of the rooms, or as many as are wanted, in the order of their lines."""
    mutants = [mutant for room in arguments.rooms for mutant in mutants_of(arguments.root, room)]
    if arguments.sample is None or arguments.sample >= len(mutants):
        return mutants
    return [mutants[at] for at in sorted(random.Random(arguments.seed).sample(range(len(mutants)), arguments.sample))]


def equivalents(path: Path) -> dict[str, str]:
    """The listed mutants with their reasons: a mutant a line, its reason indented below it."""
    fields: dict[str, str] = {}
    name = ""
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("    "):
            fields[name] = f"{fields[name]} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            name = line
            fields[name] = ""
    for name, reason in fields.items():
        if not reason:
            raise SystemExit(f"mutants.py: {path.name} gives no reason for {name}; write it below, indented")
    return fields


def digest(root: Path, paths: Iterable[str]) -> str:
    """What some files hold, in a few digits."""
    actual_digest = hashlib.sha256()
    for path in sorted(set(paths)):
        actual_digest.update(path.encode() + b"\0" + hashlib.sha256((root / path).read_bytes()).digest())
    return actual_digest.hexdigest()[:16]


def reached_by(arguments: argparse.Namespace, place: Path) -> dict[str, Reach]:
    """What each test takes and reaches; asked again of the files of tests that changed, of all where a room did."""
    kept = arguments.state / "reached.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    rooms = sorted({*arguments.rooms, *(path_of(arguments.root, room) for room in ROOMS if arguments.root == ROOT)})
    beside = [str(path.relative_to(arguments.root)) for path in (arguments.root / "tests").rglob("*.py")]
    common = [*rooms, *(path for path in beside if not Path(path).name.startswith("test_"))]
    keys = {file: digest(arguments.root, [*common, file]) for file in arguments.files}
    for number, file in enumerate(file for file in arguments.files if known.get(file, {}).get("key") != keys[file]):
        say(arguments, f"looking which lines {file} reaches")
        other_place = place / f"reach-{number}.json"
        code, _ = forked(lambda file=file, value=other_place: reach(arguments.root, rooms, [file], place, value))
        document = json.loads(other_place.read_text()) if other_place.exists() else {}
        if code != FREED:
            why = f"{document['failed']} fails" if document else f"{file} cannot be run"
            raise SystemExit(f"mutants.py: {why} without any mutant; mend it first, it would kill them all")
        known[file] = {"key": keys[file], "tests": document}
        arguments.state.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known))
    return {name: Reach(*item) for file in arguments.files for name, item in known[file]["tests"].items()}


def at_import(arguments: argparse.Namespace, mutants: Iterable[Mutant], place: Path) -> list[Mutant]:
    """The mutants, marked `fresh` where an import runs their lines."""
    other_place = place / "imported.json"
    code, _ = forked(lambda: imported(arguments.root, arguments.rooms, other_place))
    if code != FREED:
        raise SystemExit(
            f"mutants.py: {', '.join(arguments.rooms)} cannot be imported; see why with python -c 'import …'"
        )
    ran = {room: set(lines) for room, lines in json.loads(other_place.read_text()).items()}
    return [m._replace(fresh=m.fresh or not ran.get(m.room, set()).isdisjoint(m.span)) for m in mutants]


def say(arguments: argparse.Namespace, text: str, end: str = "\n") -> None:
    """Tells the process that waits."""
    if not arguments.json:
        print(text, end=end, file=sys.stderr, flush=True)


class Run:
    """One run: what became of its mutants, remembered as it comes."""

    def __init__(self, arguments: argparse.Namespace, mutants: Sequence[Mutant], reached: Mapping[str, Reach]) -> None:
        self._given = arguments
        self._mutants = mutants
        self._order = Order(reached, arguments.budget)
        self._equal = equivalents(arguments.equivalent)
        self._kept = arguments.state / "told.jsonl"
        self._keys = {room: digest(arguments.root, [room]) for room in arguments.rooms}
        self._tests = {room: self._seeing(room, reached) for room in arguments.rooms}
        self._became: dict[str, Outcome] = {}
        self._started = time.monotonic()
        self._reached = reached
        if arguments.again:
            self._forget()
        self._remember()

    def _seeing(self, room: str, reached: Mapping[str, Reach]) -> str:
        """What the tests hold that reach a room, and how long they may take."""
        files = {name.partition("::")[0] for name, reach in reached.items() if room in reach.lines}
        return f"{digest(self._given.root, files)} {self._given.budget:g}"

    def _forget(self) -> None:
        """Leaves what is remembered of other mutants."""
        names = {mutant.name for mutant in self._mutants}
        kept = self._kept.read_text().splitlines(keepends=True) if self._kept.exists() else []
        self._kept.write_text("".join(line for line in kept if json.loads(line)["name"] not in names))

    def _remember(self) -> None:
        wanted = {mutant.name: mutant for mutant in self._mutants}
        for line in self._kept.read_text().splitlines() if self._kept.exists() else ():
            document = json.loads(line)
            mutant = wanted.get(document["name"])
            if mutant is None or document["key"] != self._keys[mutant.room]:
                continue
            outcome = Outcome(document["status"], document["test"], document["cpu_s"])
            seen = outcome.test in self._reached
            self._order.note(mutant, outcome.test if seen else None)
            if (
                seen
                or outcome.test == IMPORT
                or (outcome.status == "survived" and document["tests"] == self._tests[mutant.room])
            ):
                self._became[mutant.name] = outcome
            else:
                self._became.pop(mutant.name, None)

    def all(self, mutants: Sequence[Mutant], place: Path) -> None:
        """Tries those that are not remembered."""
        left = [m for m in mutants if m.name not in self._became and (self._given.listed or m.name not in self._equal)]
        trials = Trials(self._given.root, place, self._order, self._record)
        swapped = [mutant for mutant in left if not mutant.fresh]
        if swapped and (child := os.fork()):  # a process of its own: this one has imported nothing, and shall not
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != FREED:
                raise SystemExit("mutants.py: the tests cannot be collected; run them with pytest to see why")
            self._remember()
        elif swapped:
            code = 1
            try:
                code = trials.swapped(swapped, self._given.files)
            finally:
                os._exit(code)
        # With them what could not be exchanged alone, such as a function that lost its `super()`.
        trials.fresh([mutant for mutant in left if mutant.name not in self._became])

    def _record(self, mutant: Mutant, outcome: Outcome) -> None:
        self._became[mutant.name] = outcome
        fields = {"name": mutant.name, "key": self._keys[mutant.room], "tests": self._tests[mutant.room]}
        with self._kept.open("a") as kept:
            kept.write(json.dumps({**fields, **outcome._asdict()}) + "\n")
        done, of = len(self._became), len(self._mutants)
        bar = "#" * (20 * done // of)
        counts = Counter(item.status for item in self._became.values())
        words = ", ".join(f"{counts[status]} {status}" for status in STATUSES[:3])
        if sys.stderr.isatty() or done % 100 == 0:
            say(self._given, f"[{bar:<20}] {done}/{of}: {words}", "\r" if sys.stderr.isatty() else "\n")

    def close(self) -> int:
        """Says what became of all; 1 where too few were killed or the list of equivalents is wrong."""
        rooms: dict[str, Counter[str]] = defaultdict(Counter)
        for mutant in self._mutants:
            rooms[mutant.room][self._status(mutant)] += 1
        total = sum(rooms.values(), Counter[str]())
        survivors = [mutant for mutant in self._mutants if self._status(mutant) == "survived"]
        wrong = self._wrongly_listed()
        share = percent(total)
        if self._given.json:
            print(json.dumps(self._object(rooms, total, survivors, wrong)))
        else:
            print(table(rooms, total))
            for mutant in survivors:
                print(f"\n{mutant.room}:{mutant.line}: survived\n    {mutant.name}", end="")
            print("".join(f"\n{line}" for line in wrong))
        return 1 if wrong or share < self._given.goal else 0

    def _status(self, mutant: Mutant) -> str:
        if mutant.name in self._equal:
            return "equivalent"
        return self._became[mutant.name].status

    def _wrongly_listed(self) -> list[str]:
        """What the list of equivalents says that is not so."""
        there = {mutant.name for mutant in self._mutants}
        texts = []
        for name in self._equal:
            outcome = self._became.get(name)
            if outcome is not None and outcome.status != "survived":
                texts.append(f"listed as equivalent, and {outcome.status} by {outcome.test}: {name}")
            if name.partition(" ")[0] in self._given.rooms and self._given.sample is None and name not in there:
                texts.append(f"listed as equivalent, and there is no such mutant: {name}")
        return texts

    def _object(
        self, rooms: Mapping[str, Counter[str]], total: Counter[str], survivors: Sequence[Mutant], wrong: Sequence[str]
    ) -> dict[str, Any]:
        return {
            "seed": self._given.seed,
            "sample": self._given.sample,
            "rooms": {room: dict(counts) for room, counts in rooms.items()},
            "total": dict(total),
            "killed_percent": round(percent(total), 1),
            "survivors": [{"room": m.room, "line": m.line, "name": m.name} for m in survivors],
            "wrongly_listed": list(wrong),
            "cpu_s": round(sum(item.cpu_s for item in self._became.values()), 1),
            "seconds": round(time.monotonic() - self._started, 1),
        }


def percent(counts: Mapping[str, int]) -> float:
    """The share of mutants that the tests noticed, of those that can be noticed."""
    noticed = counts["killed"] + counts["timed out"]
    return 100 * noticed / max(noticed + counts["survived"], 1)


def table(rooms: Mapping[str, Counter[str]], total: Counter[str]) -> str:
    """The table for specs/reliability.md."""
    lines = [f"| room | mutants | {' | '.join(STATUSES)} | noticed |", f"|{'---|' * (len(STATUSES) + 3)}"]
    for room, counts in [*rooms.items(), ("all", total)]:
        text = " | ".join(str(counts[status]) for status in STATUSES)
        name = room if room == "all" else f"`{room.removeprefix('vmstore/').removesuffix('.py')}`"
        lines.append(f"| {name} | {counts.total()} | {text} | {percent(counts):.1f} % |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
