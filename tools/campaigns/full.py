"""Disks that are full, and flushes that fail.

A script is played on a disk too small for it, in a user namespace of its own: what raises must
have left the store readable, and must succeed on the same handle once there is room. And each
flush of the log in turn fails, with what it was to flush gone for good; the power is cut
afterwards, and what was acknowledged after the failure must be there.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from collections import Counter
from pathlib import Path

from campaigns.crew import ended, start
from campaigns.disk import IO, Fault
from campaigns.held import Broken, check_whole, ours
from campaigns.power import cuts, moments, play
from campaigns.script import SOURCE, STORE, Player, Step, Summary, script, summary, write_source

import vmstore
from vmstore.errors import VmstoreError

STEPS = 14
FLUSHES = 4  # scripts with a failing flush in a batch
POINTS = 150
DISKS = 4  # small disks in a batch
GROWN = "size=64m"
NEEDED = {"full", "recovered", "flush failed", "flush failed though done", "points"}
NEWUSER, NEWNS, REMOUNT = 0x10000000, 0x00020000, 32


def batch(seed: int, folder: Path, flushes: int = FLUSHES, disks: int = DISKS) -> Counter[str]:
    """Plays a script on small disks, and with failing flushes."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for number in range(flushes):
        place = folder / f"flush-{number}"
        place.mkdir()
        counts += failed_flush(seed, place, chance, after=bool(number % 2))
    for number in range(disks):
        place = folder / f"small-{number}"
        place.mkdir()
        counts += small_disk(seed, place, chance.randrange(150, 900))
    return counts


# ---- flushes that fail


def failed_flush(seed: int, folder: Path, chance: random.Random, *, after: bool) -> Counter[str]:
    """Lets one flush of the log fail, tries again, goes on, and cuts the power."""
    fault = Fault(chance.randrange(1, 16), IO, touches=of_the_log, after=after)
    value = play(seed, folder, STEPS, fault)
    counts = Counter({"flush failed though done" if after else "flush failed": fault.fired["sync"]})
    try:
        at = sorted(chance.choices(moments(value.events), k=POINTS))
        return counts + cuts(value, at, folder / "left", chance)
    except Broken as error:
        raise Broken(error.kind, f"{error}; flush {fault.at} of the log failed, done: {after}") from error


def of_the_log(kind: str, path: str) -> bool:
    """Whether an operation flushes the log."""
    return kind == "sync" and "/log" in path


# ---- disks that are full


def small_disk(seed: int, folder: Path, kilobytes: int) -> Counter[str]:
    """Plays a script on a disk of a size, which grows each time it is full; in a process that may mount."""
    plenty = folder / "plenty"
    plenty.mkdir()
    write_source(folder, random.Random(seed))
    steps = script(seed, STEPS)
    after = reference(plenty, folder / SOURCE, steps, seed)
    value, teller = os.pipe()

    def work() -> None:
        reason = may_mount()
        if reason is None:
            count = fill(folder, steps, after, seed, kilobytes)
            os.write(teller, f"full {count}".encode())
        else:
            os.write(teller, f"skipped {reason}".encode())

    pid = start(work)
    os.close(teller)
    ended(os.waitpid(pid, 0)[1])
    word, _, rest = os.read(value, 1000).decode().partition(" ")
    os.close(value)
    if word == "skipped":
        print(f"no small disk can be mounted here: {rest}", file=sys.stderr)
        return Counter({"skipped full": 1, "skipped recovered": 1})
    return Counter(full=int(rest), recovered=int(rest), disks=1)


def reference(root: Path, source: Path, steps: list[Step], seed: int) -> list[Summary]:
    """What the sessions count after each step where nothing fails."""
    player = Player(root, source, seed)
    after = []
    for step in steps:
        player.play(step)
        after.append(summary(player.store))
    player.close()
    return after


def may_mount() -> str | None:
    """Moves this process where it may mount; the reason where the kernel says no."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(NEWUSER | NEWNS):
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError as error:
        return f"user namespace: {error.strerror}"
    return None


def mount(place: Path, options: str, flags: int = 0) -> None:
    """Mounts a file system in memory, or changes its size."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", bytes(place), b"tmpfs", flags, options.encode()):
        raise Broken("crashed", f"mount -o {options}: {os.strerror(ctypes.get_errno())}")


def fill(folder: Path, steps: list[Step], after: list[Summary], seed: int, kilobytes: int) -> int:
    """Plays steps on a small disk; each that finds it full is tried again on one a little larger. How many did."""
    small = folder / "small"
    small.mkdir()
    mount(small, f"size={kilobytes}k")
    player, count = Player(small, folder / SOURCE, seed), 0
    with ours():
        for number, step in enumerate(steps):
            while not attempt(player, step):
                count += 1
                readable(small, after[:number], after[number])
                kilobytes += 60 if count < 40 else 4000
                mount(small, f"size={kilobytes}k", REMOUNT)
        mount(small, GROWN, REMOUNT)
        check_whole(player.store, steps, after[-1])
        player.close()
    return count


def attempt(player: Player, step: Step) -> bool:
    """Whether a step succeeds; an error of ours says that it did not."""
    try:
        player.play(step)
    except VmstoreError:
        return False
    return True


def readable(small: Path, before: list[Summary], now: Summary) -> None:
    """Raises Broken unless a reader finds what the steps before left, or already what this one does."""
    if not (small / STORE).is_dir():
        return
    with vmstore.open(small / STORE, "r") as store:
        actual_summary = summary(store)
    right = before[-1] if before else {}
    if actual_summary not in (right, now) and any(
        actual_summary.get(name, (0,)) < counts for name, counts in right.items()
    ):
        raise Broken("lost", f"on the full disk sessions count {actual_summary}, before it was full {right}")
