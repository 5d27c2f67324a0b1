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
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import apsw
import zstandard
from campaigns.crew import ended, start
from campaigns.cut import MODES, Image, World, lay
from campaigns.disk import FULL, IO, Event, Fault, disk
from campaigns.held import Broken, ours, patient
from campaigns.power import place
from campaigns.script import SOURCE, STORE, Player, Summary, script, summary, write_source

import vmstore
from vmstore.engine.seal import Seal
from vmstore.errors import VmstoreError
from vmstore.store.keys import read_key
from vmstore.store.seals import folder_of, seals_in

STEPS = 10
POINTS = 24  # of each chore, each way
KEY, COPY, KEPT, AGAIN, BUNDLE = "seal.key", "copy.bak", "kept.bak", "again.vms", "bundle.jsonl"
GROWING = ("write", "open", "mkdir", "link", "rename")  # what takes room
CLOSING = ("close", "_closing", "poison")  # functions in which files are closed
SECRET, GOING = "secret", ("secret", "erased-")  # a session that is erased, and what its name becomes
PLANTED, ZSTD = "Quartzfeather", b"\x28\xb5\x2f\xfd"
WAYS = ("killed", "killed though done", "failed once", "failed for ever", "failed though done", "full", "cut")


class Scene(NamedTuple):
    """A folder with a store, a key, a seal and a backup, and what all of it holds."""

    image: Image
    held: Summary
    seals: int


class Chore(NamedTuple):
    """What is done in a folder, and what must be there then; `done` says that it was acknowledged."""

    do: Callable[[Path], object]
    look: Callable[[Path, Scene, bool], None]


def batch(seed: int, folder: Path, points: int = POINTS) -> Counter[str]:
    """Breaks every chore in every way at some of its operations; what was done."""
    chance, found = random.Random(seed), Counter[str]()
    made = scene(seed, folder)
    for name, chore in CHORES.items():
        events, seen = played(made, chore, folder / "left")
        for way in WAYS:
            steps = len(events) if way == "cut" else seen
            for at in sorted(chance.sample(range(1, steps + 1), min(points, steps))):
                try:
                    with patient():
                        found += BREAK[way](made, chore, folder / "left", at, events, chance)
                except Broken as error:
                    what = f"{name}, operation {at} of {steps} {way}"
                    raise Broken(error.kind, f"{error}; {what}") from error
                found += Counter({name: 1, way: 1, "points": 1})
    return found


def scene(seed: int, folder: Path) -> Scene:
    """The folder before any chore."""
    root = folder / "scene"
    root.mkdir()
    write_source(folder, random.Random(seed))
    player = Player(root, folder / SOURCE, seed)
    for step in script(seed, STEPS):
        player.play(step)
    player.close()
    with vmstore.open(root / STORE) as store:
        live = store.session("live", l0_tokens_max=3_000, system="You keep a harbour.", user="ann")
        live.user("Where is the crane? " + "It was by the sluice. " * 20)
        live.pack()
        live.assistant("By the tide.")
        store.record(SECRET, {"model": "m", "messages": [{"role": "user", "content": f"It is {PLANTED}. " * 9}]})
        vmstore.seal(store, vmstore.new_key(root / KEY))
        vmstore.backup(root / STORE, root / KEPT)
        held = summary(store)
    return Scene(taken(root), held, 1)


def taken(root: Path) -> Image:
    """All that lies in a folder."""
    return {str(p.relative_to(root)): None if p.is_dir() else p.read_bytes() for p in sorted(root.rglob("*"))}


def laid(made: Scene, left: Path) -> None:
    """Puts a scene into a folder; the key is its owner's alone."""
    lay(made.image, left)
    (left / KEY).chmod(0o600)


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
        parts = sum(one.name.endswith(".part") for one in left.rglob(".*"))
        looked(made, chore, left, not died)
        return Counter({"left beside": parts})


def failed(
    made: Scene, chore: Chore, left: Path, at: int, events: list[Event], chance: random.Random, fault: Fault
) -> Counter[str]:
    """Does a chore on a disk that fails: it raises an error of ours, or succeeds in spite of it."""
    fault.at, found = at, Counter[str]()
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
                found["raised"] += 1
        looked(made, chore, left, done)
    return found


@contextmanager
def only_ours() -> Iterator[None]:
    """Lets errors of ours pass, and what SQLite says as it closes a file, where a VFS in Python cannot keep quiet."""
    try:
        yield
    except VmstoreError:
        raise
    except Exception as error:
        stack = traceback.extract_tb(error.__traceback__)
        frames = [f"{Path(one.filename).stem}.{one.name}" for one in stack if "/vmstore/" in one.filename]
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
    return lambda *told: failed(*told, Fault(0, IO, **how))


BREAK: dict[str, Breaking] = {
    "killed": killed,
    "killed though done": lambda *told: killed(*told, after=True),
    "failed once": failing(),
    "failed for ever": failing(forever=True),
    "failed though done": failing(after=True),
    "full": lambda *told: failed(*told, Fault(0, FULL, forever=True, touches=lambda kind, path: kind in GROWING)),
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


def same(found: Summary, made: Scene) -> None:
    """Raises Broken unless some sessions are those of the scene."""
    found, right = (
        {name: told for name, told in one.items() if not name.startswith(GOING)} for one in (found, made.held)
    )
    if found != right:
        raise Broken("lost", f"sessions (turns, calls, messages, pages, position), found: {found}, right: {right}")


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
        import_module("vmstore.store.archiving").archive(store, "live", grace=0)


def _erase(left: Path) -> None:
    """Erases all of a session in which a word was planted."""
    with vmstore.open(left / STORE) as store:  # which finishes what was interrupted
        if SECRET in summary(store):
            import_module("vmstore.store.erasing").erase(store, session=SECRET)


def _look_erased(left: Path, made: Scene, done: bool) -> None:
    """No file of the store holds the planted word once its erasure was acknowledged."""
    with vmstore.open(left / STORE) as store:  # which finishes what was interrupted
        store.sessions()
    holding = [str(file.relative_to(left)) for file in (left / STORE).rglob("*") if file.is_file() and _holds(file)]
    if done and holding:
        raise Broken("not erased", f"{holding} still hold what was erased")


def _holds(file: Path) -> bool:
    """Whether a file holds the planted word, packed or not."""
    content = file.read_bytes()
    parts = [content]
    at = content.find(ZSTD)
    while at >= 0:
        with suppress(zstandard.ZstdError):
            parts.append(zstandard.ZstdDecompressor().decompressobj().decompress(content[at:]))
        at = content.find(ZSTD, at + 1)
    return any(PLANTED.encode() in part for part in parts)


CHORES: dict[str, Chore] = {
    "seal": Chore(_seal, _look_seals),
    "backup": Chore(lambda left: vmstore.backup(left / STORE, left / COPY), _copied),
    "restore": Chore(lambda left: vmstore.restore(left / KEPT, left / AGAIN), _restored),
    "export": Chore(_with_store(lambda store: store.export(store.folder.parent.parent / BUNDLE)), _bundled),
    "compact": Chore(_with_store(lambda store: store.compact()), _nothing),
    "rebuild": Chore(_with_store(lambda store: store.rebuild()), _nothing),
}
if find_spec("vmstore.store.archiving"):
    CHORES["archive"] = Chore(_archive, _nothing)
if find_spec("vmstore.store.erasing"):
    CHORES["erase"] = Chore(_erase, _look_erased)
NEEDED = {*CHORES, *WAYS, "raised", "left beside"}
