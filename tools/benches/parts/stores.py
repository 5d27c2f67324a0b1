"""Stores that benches ask of, built once a run through the engine's own gate and shared.

They are built where a flush costs nothing and then moved to the disk. A folder given by the
caller keeps them for later runs, as long as workload and engine are the same.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import vmstore
from benches.parts import doors, story, text
from benches.parts.rounds import Bench

SESSION = "s"
DONE = "built"


def built(bench: Bench, name: str, make: Callable[[Path], None]) -> Path:
    """The path of a store by name, made where this run has none yet."""
    place = bench.stores / f"{name}-{version(make)}"
    if (place / DONE).is_file():
        return place / "agent.vms"
    shutil.rmtree(place, ignore_errors=True)
    beside = bench.memory / f"{name}.vms"
    bench.say(f"building the store {name}")
    make(beside)
    place.mkdir(parents=True)
    shutil.move(beside, place / "agent.vms")
    (place / DONE).touch()
    return place / "agent.vms"


def version(make: Callable[[Path], None]) -> str:
    """What a built store depends on: who makes it, the workload and every line of the engine."""
    digest = hashlib.sha256()
    engine = sorted(Path(vmstore.__file__).parent.rglob("*.py"))
    for file in (make.__code__.co_filename, story.__file__, text.__file__, doors.__file__, *engine):
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:8]


def filled_store(bench: Bench, count: int, sizes: int | Sequence[int], *, content: bool = True, seed: int = 1) -> Path:
    """A store of one session with `count` mutations, commits of `sizes`, its views folded."""
    shape = "-".join(map(str, [sizes] if isinstance(sizes, int) else sizes))
    name = f"story-{count}-by-{shape}{'' if content else '-bare'}-{seed}"
    return built(bench, name, lambda path: tell(path, count, sizes, content=content, seed=seed))


def tell(path: Path, count: int, sizes: int | Iterable[int], *, content: bool = True, seed: int = 1) -> None:
    """Writes the story of a seed into a new store."""
    texts = text.Texts(seed) if content else None
    with doors.opened(path) as store:
        session = store.session(SESSION, create=True)
        for deeds in story.commits(story.Story(seed, texts), count, sizes):
            doors.write(session, deeds)
        store.admin.follow()


def copied(path: Path, to: Path) -> Path:
    """A copy of a closed store that may be changed."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(path, to)
    return to
