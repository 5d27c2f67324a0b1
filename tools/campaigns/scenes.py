"""What chores are done on: a small store with a key, a seal, a backup, and another store that went on from it.

Sessions whose names begin with `secret` are those that chores change; in some a word is planted that
an erasure takes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import zstandard
from campaigns.cut import Image, lay
from campaigns.script import SOURCE, STORE, Player, Summary, script, summary, write_source

import vmstore
from vmstore.core.clock import ManualClock, SystemClock
from vmstore.engine.verify.verify import commits_of

STEPS = 10
KEY, KEPT, OTHER = "seal.key", "kept.bak", "other.vms"
SECRET = "secret"  # a session that is erased
DUE, HERS = "secret-due", "bob"  # one that a rule takes, and whose it is
GREW, NEW, GONE = "secret-grew", "secret-new", "secret-gone"  # what became of sessions in the other store
CHANGING = ("secret", "erased-")
PLANTED = {SECRET: "Quartzfeather", DUE: "Ambermilkweed", GONE: "Pewterlantern"}
ZSTD = b"\x28\xb5\x2f\xfd"
DAY_US = 86_400_000_000


class Scene(NamedTuple):
    """A folder with a store, a key, a seal, a backup and another store, and what all of it holds."""

    image: Image
    held: Summary
    grown: Summary  # of the other store
    cells: dict[str, set[str]]  # what was sealed in the sessions that hold planted words
    seals: int


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
        live = store.live_session("live", l0_tokens_max=3_000, system="You keep a harbour.", user="ann")
        live.user("Where is the crane? " + "It was by the sluice. " * 20)
        live.pack()
        live.assistant("By the tide.")
        store.session(DUE, create=True, user=HERS)
        for name, word in PLANTED.items():
            store.record(name, request_of(f"It is {word}. " * 9))
        store.record(GREW, request_of("The tide is out."))
        vmstore.seal(store, vmstore.new_key(root / KEY))
        vmstore.backup(root / STORE, root / KEPT)
        actual_summary = summary(store)
        cells = {name: sealed(store, name) for name in PLANTED}
    grown = went_on(root)
    return Scene(taken(root), actual_summary, grown, cells, 1)


def went_on(root: Path) -> Summary:
    """Makes a copy of the store in which a session grew, one is new and one was erased; what it holds."""
    vmstore.restore(root / KEPT, root / OTHER)
    with vmstore.open(root / OTHER) as store:
        store.record(GREW, request_of("The tide is in."))
        store.record(NEW, request_of("The crane is painted."))
        vmstore.erase(store, session=GONE)
        return summary(store)


def request_of(text: str) -> dict[str, object]:
    """A request that says something."""
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def sealed(store: vmstore.Store, name: str) -> set[str]:
    """The commitments of all that was sealed in a session."""
    key = store._ns.key(name)
    commits = [commit for commit in commits_of(store.admin.log) if commit.session == key]
    return {commit.commitment(at).hex() for commit in commits for at in range(commit.cell_count)}


def taken(root: Path) -> Image:
    """All that lies in a folder."""
    return {str(p.relative_to(root)): None if p.is_dir() else p.read_bytes() for p in sorted(root.rglob("*"))}


def laid(made: Scene, left: Path) -> None:
    """Puts a scene into a folder; the key is its owner's alone."""
    lay(made.image, left)
    (left / KEY).chmod(0o600)


def tomorrow() -> ManualClock:
    """A clock for a process that comes a day later."""
    return ManualClock(SystemClock().now() + DAY_US)


def holding(store: Path, word: str) -> list[str]:
    """The files of a store that hold a word, packed or not."""
    files = [file for file in sorted(store.rglob("*")) if file.is_file()]
    return [str(file.relative_to(store)) for file in files if any(word.encode() in part for part in parts(file))]


def parts(file: Path) -> Iterator[bytes]:
    """A file's bytes, and those of every packed frame in them."""
    content = file.read_bytes()
    yield content
    at = content.find(ZSTD)
    while at >= 0:
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(content[at:])
        at = content.find(ZSTD, at + 1)
