"""Random power cuts: random scripts, a random operation, and any survivors among what was not flushed."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from campaigns.cut import MODES, Image, World, lay
from campaigns.disk import Disk, Event, Fault, disk
from campaigns.held import Attempt, Broken, Demand, LogContents, check_log, check_store, pick, read_log
from campaigns.script import SOURCE, STORE, Player, Step, Summary, script, summary, write_source

from vmstore.errors import VmstoreError
from vmstore.log.commit import Commit
from vmstore.log.port import Append
from vmstore.log.sqlite import SqliteLog

STEPS = 22
POINTS = 1000  # crash points drawn from each script
WHOLE = 100  # one in so many is asked everything, the store opened and the step under way retried
AGAIN = 60  # at one in so many the power is cut again while the store opens
NEEDED = {*MODES, "whole", "again", "made"}  # each must come, or the campaign is deaf


class PlayedScript(NamedTuple):
    """A script as it was played: what the disk was told, what the log held in the end, each step's outcome."""

    root: Path
    source: Path
    seed: int
    steps: list[Step]
    events: list[Event]
    whole: LogContents
    after: list[Summary]


@contextmanager
def told_appends(made: Disk) -> Iterator[None]:
    """Has every append marked on the disk: the commits asked for, the last one acknowledged.

    One that raised is unknown: its commits may be there until the next is acknowledged.
    """
    right = SqliteLog.together
    attempts: tuple[Attempt, ...] = ()

    def together(self: SqliteLog, appends: Sequence[Append]) -> list[list[Commit] | Exception]:
        nonlocal attempts
        asked = [item._replace(commits=list(item.commits)) for item in appends]
        attempts = (*attempts, *(tuple(commit.hash for commit in item.commits) for item in asked))
        made.mark("asked", attempts)
        row = right(self, asked)
        stored = [commit for item in row if not isinstance(item, Exception) for commit in item]
        if stored:
            attempts = ()
            made.mark("acked", stored[-1].ordinal)
        return row

    SqliteLog.together = together  # type: ignore[method-assign]
    try:
        yield
    finally:
        SqliteLog.together = right  # type: ignore[method-assign]


def play(seed: int, folder: Path, count: int = STEPS, fault: Fault | None = None) -> PlayedScript:
    """Plays the script of a seed on a disk that writes everything down; a step that raises is tried again."""
    root = folder / "played"
    root.mkdir()
    write_source(folder, random.Random(seed))
    steps, after = script(seed, count), []
    player = Player(root, folder / SOURCE, seed)
    with disk(root) as made, told_appends(made):
        made.fault = fault
        for number, step in enumerate(steps):
            try:
                player.play(step)
            except VmstoreError:
                if fault is None:
                    raise
                player.play(step)
            made.mark("step", number + 1)
            after.append(summary(player.store))
        player.close()
    return PlayedScript(root, folder / SOURCE, seed, steps, made.events, read_log(root / STORE), after)


def demand(world: World) -> Demand:
    """What a log must and may hold at this moment of a trace."""
    return Demand(world.marks.get("acked", 0), world.marks.get("asked", ()))


def of_the_log(path: str) -> bool:
    """Whether a file of a store is the log's, and not a view's."""
    return "/views-" not in path


def batch(seed: int, folder: Path, points: int = POINTS) -> Counter[str]:
    """Plays one script, cuts the power at random moments of it, and checks what is left; what was done."""
    chance = random.Random(seed)
    other_world = play(seed, folder)
    counts = Counter(scripts=1)
    if not other_world.events:
        return counts  # the disk heard nothing, and the runner says so
    counts += cuts(other_world, sorted(chance.choices(moments(other_world.events), k=points)), folder / "left", chance)
    anywhere = sorted(chance.choices(range(1, len(other_world.events) + 1), k=max(1, points // WHOLE)))
    world = World(other_world.events, other_world.root)
    for moment in anywhere:
        world.advance(moment)
        counts += whole(world, other_world, folder / "left", chance)
    return counts


def moments(events: Sequence[Event]) -> list[int]:
    """The moments at which something was just done to the log, or acknowledged."""
    return [n for n, e in enumerate(events, 1) if (e.path == "acked" if e.kind == "mark" else of_the_log(e.path))]


def cuts(value: PlayedScript, at: Sequence[int], left: Path, chance: random.Random) -> Counter[str]:
    """Cuts the power at some moments, each with survivors of its own, and checks the log."""
    world = World(value.events, value.root)
    seen: set[int] = set()
    counts: Counter[str] = Counter()
    for moment in at:
        world.advance(moment)
        modes = {path: chance.choice(MODES) for path in world.open if of_the_log(path)}
        image = world.image(modes, named(world, chance), chance, of_the_log)
        wanted = demand(world)
        same = hash((wanted, *image.items()))
        if same in seen:
            counts["alike"] += 1
            continue
        seen.add(same)
        counts += Counter(modes.values())
        counts["points"] += 1
        counts["made"] += any(".new/" in path for path in image)
        with place(left):
            lay(image, left)
            named_by(world, modes, lambda wanted=wanted: check_log(left / STORE, value.whole, wanted))
        if pick(chance, AGAIN):
            counts += again(image, value, left, wanted, chance)
    return counts


def named(world: World, chance: random.Random) -> int:
    """How many of the changes of names not yet flushed are kept."""
    return chance.choice((0, len(world.journal), chance.randint(0, len(world.journal))))


def whole(world: World, value: PlayedScript, left: Path, chance: random.Random) -> Counter[str]:
    """Cuts the power of log and views, opens the store and asks it everything."""
    modes = {path: chance.choice(MODES) for path in world.open}
    image = world.image(modes, named(world, chance), chance)
    with place(left):
        lay(image, left)
        named_by(world, modes, lambda: check_end(left, value, world.marks.get("step", 0)))
    return Counter(whole=1, points=1)


def check_end(left: Path, value: PlayedScript, done: int) -> None:
    """Opens a store that a crash left and tries again what was under way."""
    after = value.after[min(done, len(value.after) - 1)]
    check_store(left, value.source, value.steps, done, after, value.seed + 1)


def again(image: Image, value: PlayedScript, left: Path, wanted: Demand, chance: random.Random) -> Counter[str]:
    """Opens what is left, and cuts the power again at some operations of that."""
    counts: Counter[str] = Counter()
    with place(left):
        lay(image, left)
        world_of = World([], left)
        world_of.load(left)
        with disk(left) as made:
            check_log(left / STORE, value.whole, wanted)
        world_of.events = made.events
    for moment in range(1, len(made.events) + 1):
        world_of.advance(moment)
        if not world_of.open:
            continue
        modes = {path: chance.choice(MODES) for path in world_of.open}
        second = world_of.image(modes, len(world_of.journal), chance)
        with place(left):
            lay(second, left)
            named_by(world_of, modes, lambda: check_log(left / STORE, value.whole, wanted))
        counts["again"] += 1
        counts["points"] += 1
    return counts


@contextmanager
def place(folder: Path) -> Iterator[None]:
    """An empty folder for what a crash left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    yield


def named_by(world: World, modes: dict[str, str], check: Callable[[], None]) -> None:
    """Says at which operation the power was cut where a check fails."""
    try:
        check()
    except Broken as error:
        event = world.events[world.done - 1]
        where = f"power cut after operation {world.done}, {event.kind} of {event.path} at {event.offset}"
        other_modes = {Path(path).name: mode for path, mode in modes.items()}
        raise Broken(error.kind, f"{error}; {where}; unflushed writes: {other_modes}") from error
