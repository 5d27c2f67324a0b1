"""Chores, broken at every step: what seals, copies, restores, packs or exports a store is killed, fails, is cut.

Each chore is done on the same small store, once to count its operations on the disk, then again and
again with one of them the last, or failing, or the last before a power cut. Whatever happens the
store holds what it held; what the chore was to make is not there, or is there whole; and done again
on a well disk it succeeds.
"""

from __future__ import annotations

import os
import random
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw
from campaigns.crew import ended, start
from campaigns.cut import MODES, World, lay
from campaigns.disk import FULL, IO, Event, Fault, disk
from campaigns.held import Broken, ours, patient
from campaigns.power import place
from campaigns.scenes import (
    CHANGING,
    DUE,
    GONE,
    GREW,
    HERS,
    KEPT,
    KEY,
    NEW,
    OTHER,
    PLANTED,
    SECRET,
    Scene,
    holding,
    laid,
    scene,
    tomorrow,
)
from campaigns.script import STORE, Summary, summary

import vmstore
from vmstore.erasure.certificates import beside, certificates
from vmstore.erasure.erase import erase
from vmstore.errors import VmstoreError
from vmstore.maintenance.archive import archive
from vmstore.namespace.signing_keys import read_key
from vmstore.retention import apply
from vmstore.seals.seal import Seal
from vmstore.seals.seals import folder_of, seals_in

POINTS = 24  # of each chore, each way
COPY, AGAIN, BUNDLE = "copy.bak", "again.vms", "bundle.jsonl"
GROWING = ("write", "open", "mkdir", "link", "rename")  # what takes room
CLOSING = ("close", "_closing", "poison")  # functions in which files are closed
WAYS = ("killed", "killed though done", "failed once", "failed for ever", "failed though done", "full", "cut")


class Chore(NamedTuple):
    """What is done in a folder, and what must be there then; `done` says that it was acknowledged."""

    do: Callable[[Path], object]
    look: Callable[[Path, Scene, bool], None]


def batch(seed: int, folder: Path, points: int = POINTS) -> Counter[str]:
    """Breaks every chore in every way at some of its operations; what was done."""
    chance, counts = random.Random(seed), Counter[str]()
    made = scene(seed, folder)
    for name, chore in CHORES.items():
        events, seen = played(made, chore, folder / "left")
        for way in WAYS:
            steps = len(events) if way == "cut" else seen
            for at in sorted(chance.sample(range(1, steps + 1), min(points, steps))):
                try:
                    with patient():
                        counts += BREAK[way](made, chore, folder / "left", at, events, chance)
                except Broken as error:
                    what = f"{name}, operation {at} of {steps} {way}"
                    raise Broken(error.kind, f"{error}; {what}") from error
                counts += Counter({name: 1, way: 1, "points": 1})
    return counts


def played(made: Scene, chore: Chore, left: Path) -> tuple[list[Event], int]:
    """A chore on a well disk: all that was done to the disk, and how many operations could fail."""
    with place(left):
        laid(made, left)
        with disk(left) as well:
            well.fault = fault = Fault(0)
            chore.do(left)
            well.mark("done", True)
        chore.look(left, made, True)
        sound(left, made)
        return well.events, fault.seen


# ---- how a chore is broken


def killed(
    made: Scene, chore: Chore, left: Path, at: int, events: list[Event], chance: random.Random, after: bool = False
) -> Counter[str]:
    """Kills the process that does a chore at an operation."""

    def work() -> None:
        with disk(left) as bad:
            bad.recording, bad.fault = False, Fault(at, after=after)
            chore.do(left)

    with place(left):
        laid(made, left)
        died = ended(os.waitpid(start(work), 0)[1])
        parts = sum(path.name.endswith(".part") for path in left.rglob(".*"))
        looked(made, chore, left, not died)
        return Counter({"left beside": parts})


def failed(
    made: Scene, chore: Chore, left: Path, at: int, events: list[Event], chance: random.Random, fault: Fault
) -> Counter[str]:
    """Does a chore on a disk that fails: it raises an error of ours, or succeeds in spite of it."""
    fault.at, record = at, Counter[str]()
    with place(left):
        laid(made, left)
        done = False
        with disk(left) as bad:
            bad.recording, bad.fault = False, fault
            try:
                with only_ours():
                    chore.do(left)
                done = True
            except VmstoreError:
                record["raised"] += 1
        looked(made, chore, left, done)
    return record


@contextmanager
def only_ours() -> Iterator[None]:
    """Lets errors of ours pass, and what SQLite says as it closes a file, where a VFS in Python cannot keep quiet."""
    try:
        yield
    except VmstoreError:
        raise
    except Exception as error:
        stack = traceback.extract_tb(error.__traceback__)
        frames = [f"{Path(item.filename).stem}.{item.name}" for item in stack if "/vmstore/" in item.filename]
        twice = isinstance(error, SystemError) and isinstance(error.__cause__, apsw.Error)  # in an `__exit__` in C
        if not twice and (not isinstance(error, apsw.Error) or frames[-1].partition(".")[2] not in CLOSING):
            raise Broken("foreign error", f"{type(error).__name__}: {error}, in {frames[-3:]}") from error


def cut(made: Scene, chore: Chore, left: Path, at: int, events: list[Event], chance: random.Random) -> Counter[str]:
    """Cuts the power after an operation; what was not flushed survives as chance has it."""
    with place(left):
        laid(made, left)
        world = World(events, left)
        world.load(left)
    world.advance(at)
    modes = {path: chance.choice(MODES) for path in world.open}
    image = world.image(modes, chance.choice((0, len(world.journal), chance.randint(0, len(world.journal)))), chance)
    with place(left):
        lay(image, left)
        (left / KEY).chmod(0o600)
        looked(made, chore, left, bool(world.marks.get("done")))
    return Counter(modes.values())


Breaking = Callable[[Scene, Chore, Path, int, list[Event], random.Random], Counter[str]]


def failing(**how: bool) -> Breaking:
    """Breaks a chore by an operation that fails."""
    return lambda *arguments: failed(*arguments, Fault(0, IO, **how))


BREAK: dict[str, Breaking] = {
    "killed": killed,
    "killed though done": lambda *arguments: killed(*arguments, after=True),
    "failed once": failing(),
    "failed for ever": failing(forever=True),
    "failed though done": failing(after=True),
    "full": lambda *arguments: failed(
        *arguments, Fault(0, FULL, forever=True, touches=lambda kind, path: kind in GROWING)
    ),
    "cut": cut,
}


# ---- what must hold


def looked(made: Scene, chore: Chore, left: Path, done: bool) -> None:
    """Raises Broken unless what is left is sound, what the chore makes whole or not there, and it can be done again."""
    with ours():
        chore.look(left, made, done)
        sound(left, made)
        if not done:
            for name in (COPY, AGAIN):  # whole, as was just seen
                shutil.rmtree(left / name, ignore_errors=True)
            (left / BUNDLE).unlink(missing_ok=True)
            chore.do(left)
            chore.look(left, made, True)


def sound(left: Path, made: Scene) -> None:
    """Raises Broken unless the store holds what it held, and every hash, rule, view and seal holds."""
    with vmstore.open(left / STORE) as store:
        same(summary(store), made)
        verdict = store.verify(seals=_seals(left))
        if not verdict.ok:
            raise Broken("unsound", f"verify finds {[(p.kind, p.where, p.what) for p in verdict.problems[:3]]}")


def same(fields: Summary, made: Scene) -> None:
    """Raises Broken unless some sessions are those of the scene."""
    fields, right = (
        {name: item for name, item in case.items() if not name.startswith(CHANGING)} for case in (fields, made.held)
    )
    if fields != right:
        raise Broken("lost", f"sessions (turns, calls, messages, pages, position), found: {fields}, right: {right}")


def _seals(left: Path) -> list[Seal]:
    return list(seals_in(folder_of(left / STORE / "default"), "default"))


def _seal(left: Path) -> None:
    with vmstore.open(left / STORE) as store:
        vmstore.seal(store, read_key(left / KEY))


def _look_seals(left: Path, made: Scene, done: bool) -> None:
    """Every seal there is can be read, the earlier one among them; `sound` holds the store against them."""
    there = len(_seals(left))
    if there < made.seals + done:
        raise Broken("lost", f"there are {there} seals, and {made.seals + done} were made")


def _restored(left: Path, made: Scene, done: bool) -> None:
    if not (left / AGAIN).exists():
        if done:
            raise Broken("lost", "a store that was restored is not there")
        return
    with vmstore.open(left / AGAIN) as store:
        same(summary(store), made)
        if not store.verify(seals=_seals(left)).ok:
            raise Broken("torn", "a store that was restored is not sound")


def _copied(left: Path, made: Scene, done: bool) -> None:
    """A backup that is there can be restored."""
    if not (left / COPY).exists():
        if done:
            raise Broken("lost", "a backup that was made is not there")
        return
    vmstore.restore(left / COPY, left / AGAIN)
    _restored(left, made, done)
    shutil.rmtree(left / AGAIN)


def _bundled(left: Path, made: Scene, done: bool) -> None:
    """A bundle that is there can be taken in, exactly."""
    if not (left / BUNDLE).exists():
        if done:
            raise Broken("lost", "a bundle that was written is not there")
        return
    with vmstore.memory_store() as store:
        store.import_file(left / BUNDLE, exact=True)
        same(summary(store), made)


def _with_store(do: Callable[[vmstore.Store], object]) -> Callable[[Path], None]:
    def chore(left: Path) -> None:
        with vmstore.open(left / STORE) as store:
            do(store)

    return chore


def _nothing(left: Path, made: Scene, done: bool) -> None:
    """What changes nothing that is asked has nothing of its own to be looked for."""


def _archive(left: Path) -> None:
    """Moves what the live session holds to a file of its own."""
    with vmstore.open(left / STORE) as store:
        archive(store, "live", grace_s=0)


def _erase(left: Path) -> None:
    """Erases all of a session in which a word was planted."""
    with vmstore.open(left / STORE) as store:  # which finishes what was interrupted
        if SECRET in summary(store):
            erase(store, session=SECRET)


def _retain(left: Path) -> None:
    """States a rule, a day after a session was used, and erases what it takes."""
    with vmstore.open(left / STORE, clock=tomorrow()) as store:
        apply.keep(store, "1h", user=HERS)
        apply.apply(store)


def _erased(name: str, reason: str) -> Callable[[Path, Scene, bool], None]:
    """A session is whole, or no file of the store holds its planted word and certificates name all its cells."""

    def look(left: Path, made: Scene, done: bool) -> None:
        with vmstore.open(left / STORE) as store:  # which finishes what was interrupted
            actual_summary = summary(store)
            if name in actual_summary and (done or actual_summary[name] != made.held[name]):
                raise Broken("not erased" if done else "torn", f"session {name} is there: {actual_summary[name]}")
            if name in actual_summary and PLANTED[name] not in str(store.session(name).wire.request(call=1)):
                raise Broken("torn", f"session {name} is there without its contents")
        if name not in actual_summary:
            _gone(left, made, name, {reason})

    return look


def _gone(left: Path, made: Scene, name: str, reasons: set[str]) -> None:
    """Raises Broken where files of the store hold what was erased, or no certificate says that it was."""
    files = holding(left / STORE, PLANTED[name])
    if files:
        raise Broken("not erased", f"{files} still hold what was erased")
    kept = [certificate for certificate in certificates(beside(left / STORE)) if certificate.reason in reasons]
    named = {cell.commitment for item in kept for erasure in item.erasures for cell in erasure.cells}
    if not made.cells[name] <= named:
        raise Broken("uncertified", f"{len(made.cells[name] - named)} cells of {name} are in no certificate")


def _merged(left: Path, made: Scene, done: bool) -> None:
    """Each session that the other store has more is as it was or as it is there; the other one is as it was."""
    with vmstore.open(left / OTHER, "r") as other:
        if summary(other) != made.grown or not other.verify().ok:
            raise Broken("changed", "the store that was merged is not as it was")
    with vmstore.open(left / STORE) as store:  # which finishes what was interrupted
        actual_summary = summary(store)
    for name in (GREW, NEW):
        if actual_summary.get(name) != made.grown[name] and (done or actual_summary.get(name) != made.held.get(name)):
            raise Broken(
                "lost" if done else "torn", f"session {name}: {actual_summary.get(name)}, there {made.grown[name]}"
            )
    if GONE not in actual_summary:
        _gone(left, made, GONE, {"asked"})
    elif done or actual_summary[GONE] != made.held[GONE]:
        raise Broken("not erased" if done else "torn", f"session {GONE} is there: {actual_summary[GONE]}")


CHORES: dict[str, Chore] = {
    "seal": Chore(_seal, _look_seals),
    "backup": Chore(lambda left: vmstore.backup(left / STORE, left / COPY), _copied),
    "restore": Chore(lambda left: vmstore.restore(left / KEPT, left / AGAIN), _restored),
    "export": Chore(_with_store(lambda store: store.export(store.folder.parent.parent / BUNDLE)), _bundled),
    "compact": Chore(_with_store(lambda store: store.admin.compact()), _nothing),
    "rebuild": Chore(_with_store(lambda store: store.admin.rebuild()), _nothing),
    "archive": Chore(_archive, _nothing),
    "erase": Chore(_erase, _erased(SECRET, "asked")),
    "retain": Chore(_retain, _erased(DUE, "retention")),
    # Agreed to, since the other store erased a session that is here.
    "merge": Chore(lambda left: vmstore.merge(left / STORE, left / OTHER, agreed=True), _merged),
}
NEEDED = {*CHORES, *WAYS, "raised", "left beside"}
