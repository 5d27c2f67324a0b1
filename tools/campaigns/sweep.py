"""The I/O sweep: each operation of a script in turn fails once, fails from there on, or is the last before a cut.

At each operation the power is cut with unflushed writes lost, kept, torn after each of their
sectors, reordered and full of noise; what is left is opened, and the power is cut again at the
operations of that. And each step is played with each of its operations failing, tried again on
the same handle, and must come out as if nothing had happened.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from campaigns.cut import Image, World, lay
from campaigns.disk import IO, Disk, Fault, disk
from campaigns.held import Broken, check_log, check_whole, ours
from campaigns.power import PlayedScript, again, demand, moments, named_by, of_the_log, place, play
from campaigns.script import SOURCE, STORE, Player, Step, Summary, script, summary, write_source

from vmstore.errors import VmstoreError

STEPS = 12
AGAIN = 25  # what is left by one cut in so many is cut again while it opens
TORN = tuple(f"torn {sectors}" for sectors in range(1, 8))
SWEPT = ("dropped", "kept", *TORN, "reordered", "noise")
FAILING = {"once": {}, "for ever": {"forever": True}, "though done": {"after": True}}
NEEDED = {"dropped", "kept", "torn", "reordered", "noise", "again", *FAILING, "raised", "retried", "write", "sync"}


def batch(seed: int, folder: Path, steps: int = STEPS, every: int = 1) -> Counter[str]:
    """Sweeps one script; `every` tries one operation in so many. What was done."""
    value = play(seed, folder, steps)
    counts = Counter(scripts=1) + cuts(value, folder / "left", random.Random(seed), every)
    return counts + failures(seed, folder, steps, every)


def cuts(value: PlayedScript, left: Path, chance: random.Random, every: int) -> Counter[str]:
    """Cuts the power after each operation, in each way."""
    world, seen = World(value.events, value.root), set[int]()
    counts: Counter[str] = Counter()
    for moment in moments(value.events)[::every]:
        world.advance(moment)
        wanted = demand(world)
        for mode, image in ways(world, chance):
            same = hash((wanted, *image.items()))
            if same in seen:
                continue
            seen.add(same)
            counts += Counter({mode.partition(" ")[0]: 1, "points": 1})
            with place(left):
                lay(image, left)
                modes = dict.fromkeys(world.open, mode)
                named_by(world, modes, lambda wanted=wanted: check_log(left / STORE, value.whole, wanted))
            if counts["points"] % AGAIN == 0:
                counts += again(image, value, left, wanted, chance)
    return counts


def ways(world: World, chance: random.Random) -> Iterator[tuple[str, Image]]:
    """What each way of a cut leaves: of the bytes, and of the names."""
    for mode in SWEPT:
        modes = dict.fromkeys(world.open, mode)
        for names in sorted({0, len(world.journal)}):
            yield mode, world.image(modes, names, chance, of_the_log)


# ---- operations that fail


class Scene(NamedTuple):
    """A store before a step, and what its sessions count after it."""

    image: Image
    steps: list[Step]  # the last one is still to be played
    after: Summary


def failures(seed: int, folder: Path, steps: int, every: int) -> Counter[str]:
    """Plays each step with each of its operations failing."""
    counts: Counter[str] = Counter()
    for scene in scenes(seed, folder, steps):
        for name, how in FAILING.items():
            fault = Fault(0)
            trial(scene, folder, seed, fault, Counter())  # nothing fails, everything is counted
            for at in range(1, fault.seen + 1, every):
                counts += Counter({name: 1, "points": 1})
                fault = Fault(at, IO, **how)
                try:
                    trial(scene, folder, seed, fault, counts)
                except Broken as error:
                    what = f"step {len(scene.steps)} ({scene.steps[-1].kind}), operation {at} failed {name}"
                    raise Broken(error.kind, f"{error}; {what}: {dict(fault.fired)}") from error
                counts.update(fault.fired.keys())
    return counts


def scenes(seed: int, folder: Path, count: int) -> Iterator[Scene]:
    """The store before each step of a script, closed."""
    root = folder / "scenes"
    root.mkdir()
    write_source(folder, random.Random(seed))
    steps = script(seed, count)
    player = Player(root, folder / SOURCE, seed)
    for number, step in enumerate(steps, 1):
        image: Image = {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
        player.play(step)
        after = summary(player.store)
        player.close()
        yield Scene(image, steps[:number], after)


def trial(scene: Scene, folder: Path, seed: int, fault: Fault, counts: Counter[str]) -> None:
    """Plays a step with a fault; where it raises, plays it again on a well disk, same handle; then checks all."""
    left = folder / "left"
    with place(left):
        lay(scene.image, left)
        with disk(left) as made:
            made.recording, made.fault = False, fault
            player = Player(left, folder / SOURCE, seed + 1)
            try:
                with ours():
                    attempt(player, scene.steps[-1], made, counts)
                    check_whole(player.store, scene.steps, scene.after)
            finally:
                made.fault = None
                player.close()


def attempt(player: Player, step: Step, made: Disk, counts: Counter[str]) -> None:
    """Plays a step, and again where it raised an error of ours."""
    try:
        player.play(step)
        made.fault = None
    except VmstoreError:
        made.fault = None
        counts["raised"] += 1
        player.play(step)
        counts["retried"] += 1
