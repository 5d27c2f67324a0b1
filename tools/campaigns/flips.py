"""Damage at rest: bits flip and files are cut, in every file of a store, one damage at a time.

A damage is noticed when opening, reading or verify names a problem. One that nobody names must
have changed nothing that can be read. The blobs in the log's tables are what hashes cover (bodies,
hashes, commitments, salts, contents); flips among them are counted as `hashed`.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import apsw
from campaigns.cut import lay
from campaigns.held import Broken, LogContents, check_goes_on, patient, pick, prefix, read_log
from campaigns.power import place
from campaigns.script import SOURCE, STORE, Player, script, summary, write_source

import vmstore
from vmstore.errors import VmstoreError

FLIPS = 400  # of one store
STEPS = 12  # of the script that makes it
ASKED = 10  # after one damage in so many that nobody named, everything is asked
CHUNK = 64  # bytes of a blob that are looked for in the file at once; a page may end between two
PAGE = 4096
NEEDED = {"hashed", "log", "wal", "views", "cut", "zeroed", "swapped", "noticed", "slack", "asked"}


class Sound(NamedTuple):
    """A store before it is damaged: its files, what its log holds, what it answers, where hashed bytes lie."""

    files: dict[str, bytes]
    held: LogContents
    answers: dict[str, Any]
    hashed: dict[str, list[int]]


def batch(seed: int, folder: Path, flips: int = FLIPS) -> Counter[str]:
    """Damages one store in many ways, one at a time; what was noticed."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter(stores=1)
    logging.getLogger("vmstore").addHandler(ear := Ear())
    try:
        sound = made(seed, folder, closed=bool(seed % 3))
        for _ in range(flips):
            counts += try_damage(sound, damage(sound, chance), folder / "left", chance, ear)
    finally:
        logging.getLogger("vmstore").removeHandler(ear)
    return counts


class Ear(logging.Handler):
    """Hears what a store says aloud."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps what was said."""
        self.heard.append(record.getMessage())


def made(seed: int, folder: Path, *, closed: bool) -> Sound:
    """A store of a script of this seed, closed, or as it lies while it is open: with its WAL."""
    root = folder / "sound"
    root.mkdir()
    write_source(folder, random.Random(seed))
    player = Player(root, folder / SOURCE, seed)
    for step in script(seed, STEPS)[:-1]:  # the last one reopens it
        player.play(step)
    player.store.record("a", {"model": "m", "messages": [{"role": "user", "content": "in the WAL"}]})
    answers = answered(player.store)
    if closed:
        player.close()
    files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    files = {path: content for path, content in files.items() if content and not path.endswith("-shm")}
    whole = read_log(root / STORE)
    hashed = {path: hashed_bytes(root / path, content) for path, content in files.items() if of_the_log(path)}
    player.close()
    return Sound(files, whole, answers, {path: places for path, places in hashed.items() if places})


def of_the_log(path: str) -> bool:
    """Whether a file is the truth itself, and nothing that can be rebuilt."""
    return "/blobs/" in path or Path(path).name.startswith("log.sqlite")


def hashed_bytes(path: Path, content: bytes) -> list[int]:
    """Where in a file of the log bytes lie that hashes cover: the blobs of its tables, a file of its own whole."""
    if not path.name.startswith("log.sqlite"):
        return list(range(len(content)))
    numbers: set[int] = set()
    db = apsw.Connection(str(path).removesuffix("-wal"), flags=apsw.SQLITE_OPEN_READONLY)
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        for row in db.execute(f"SELECT * FROM {table}"):
            for blob in (value for value in row if isinstance(value, bytes) and len(value) >= 16):
                for start in range(0, len(blob), CHUNK):
                    part = blob[start : start + CHUNK]
                    at = content.rfind(part) if len(part) >= 16 else -1  # a page that was split keeps stale copies
                    numbers.update(range(at, at + len(part)) if at >= 0 else ())
    db.close()
    return sorted(numbers)


class Damage(NamedTuple):
    """What becomes of one file."""

    kind: str
    path: str
    content: bytes
    hashed: bool


def damage(sound: Sound, chance: random.Random) -> Damage:
    """Draws a damage: mostly a bit among hashed bytes, else any byte of any file, a cut, a page."""
    kind = chance.choices(("hashed", "anywhere", "cut", "zeroed", "swapped"), (80, 14, 2, 2, 2))[0]
    path = chance.choice(sorted(sound.hashed if kind == "hashed" else sound.files))
    content = bytearray(sound.files[path])
    if kind in ("hashed", "anywhere"):
        at = chance.choice(sound.hashed[path]) if kind == "hashed" else chance.randrange(len(content))
        content[at] ^= 1 << chance.randrange(8)
        return Damage("flip", path, bytes(content), kind == "hashed")
    pages = len(content) // PAGE
    each_first, other = chance.randrange(max(1, pages)) * PAGE, chance.randrange(max(1, pages)) * PAGE
    if kind == "cut":
        del content[chance.randrange(len(content)) :]
    elif kind == "zeroed":
        content[each_first : each_first + PAGE] = bytes(len(content[each_first : each_first + PAGE]))
    else:
        first, second = content[each_first : each_first + PAGE], content[other : other + PAGE]
        content[each_first : each_first + PAGE], content[other : other + PAGE] = second, first
    return Damage(kind, path, bytes(content), False)


def try_damage(sound: Sound, hurt: Damage, left: Path, chance: random.Random, ear: Ear) -> Counter[str]:
    """Lays a damaged store, opens and verifies it, and checks that what nobody named changed nothing."""
    counts = Counter([kind_of(hurt.path), "damages", *([] if hurt.kind == "flip" else [hurt.kind])])
    if hurt.content == sound.files[hurt.path]:
        return Counter(alike=1)
    ear.heard.clear()
    with place(left):
        lay(dict[str, bytes | None](sound.files) | {hurt.path: hurt.content}, left)
        try:
            noticed, value = named(left, sound, pick(chance, ASKED), of_the_log(hurt.path))
            if noticed or ear.heard:
                counts["noticed" if noticed else "said"] += 1
                counts["hashed"] += hurt.hashed
                return counts
            shorter = of_the_log(hurt.path) and same(left, sound, cut=hurt.path.endswith("-wal"))
        except Broken as error:
            raise Broken(error.kind, f"{error}; {difference(sound.files[hurt.path], hurt)}") from error
    if value is not None:
        counts["asked"] += 1
        if value != sound.answers and not shorter:
            raise Broken("changed", f"a store answers otherwise after a {difference(sound.files[hurt.path], hurt)}")
    counts["cut short" if shorter else "slack"] += 1
    return counts


def kind_of(path: str) -> str:
    """The word a file's damages are counted under."""
    name = Path(path).name
    if of_the_log(path):
        return "blobs" if "/blobs/" in path else "wal" if name.endswith("-wal") else "log"
    return "views" if name.startswith("views-") else "others"


def named(left: Path, sound: Sound, asking: bool, of_log: bool) -> tuple[bool, Any]:
    """Whether opening, verify or a question names a problem, and what was answered where it was asked.

    A store whose log is sound must go on. Raises Broken where an error is not ours.
    """
    try:
        with patient(), vmstore.open(left / STORE) as store:
            if not store.verify().ok:
                return True, None
            fields = answered(store) if asking else None
            if asking and not of_log:
                messages = max(sound.answers["a"][1], key=len)
                check_goes_on(store, summary(store), {"a": {"model": "m", "messages": messages}})
            return False, fields
    except VmstoreError:
        return True, None
    except Exception as error:
        raise Broken("foreign error", f"{type(error).__name__}: {error}") from error


def same(left: Path, sound: Sound, *, cut: bool) -> bool:
    """Raises Broken unless a log that nobody complained of reads as it did; whether it ends early, as `cut` allows.

    SQLite takes a WAL up to its first bad frame, as after a power cut: what follows there was never
    folded into the file, and nothing that is left can tell.
    """
    try:
        actual = read_log(left / STORE)
    except VmstoreError as error:
        raise Broken("unnoticed", f"verify was content with a log that cannot be read: {error}") from error
    if actual == sound.held:
        return False
    shorter = actual == prefix(sound.held, len(actual.commits))
    if not (shorter and cut):
        raise Broken("unnoticed", "the log ends early" if shorter else "the log reads otherwise")
    return True


def answered(store: vmstore.Store) -> dict[str, Any]:
    """What a store answers about every session."""
    fields: dict[str, Any] = dict(summary(store))
    for name in list(fields):
        session = store.session(name)
        fields[name] = fields[name], [session.wire.messages(call=call.call) for call in session.calls()]
    return fields


def difference(before: bytes, hurt: Damage) -> str:
    """Where a damaged file differs first."""
    at = next((i for i, (a, b) in enumerate(zip(before, hurt.content, strict=False)) if a != b), len(hurt.content))
    now = hurt.content[at] if at < len(hurt.content) else None
    return f"{hurt.kind} of {hurt.path} at byte {at} ({before[at]} is now {now})"
