"""Damage by hand: any value in any column of any table of a store, rows out of order, files that are spoiled."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

import vmstore
from vmstore.errors import VmstoreError
from vmstore.log.archive.file import ArchiveLog
from vmstore.maintenance.backup import backup
from vmstore.maintenance.doctor import doctor

EDGES = (0, 1, -1, 2, 255, 65_536, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, -(2**63))
WORDS = ("", "x", "\0", "\ud83d".encode("utf-8", "surrogatepass").decode("latin-1"), "99", "1e999", "[]", "{" * 50)


def value(chance: random.Random, old: object) -> object:
    """Something to stand where something else stood: near it, of another type, or at an edge."""
    near: list[object] = [
        None,
        chance.choice(EDGES),
        chance.choice(WORDS),
        chance.random() * 1e12,
        chance.randbytes(40),
    ]
    if isinstance(old, int):
        near += [old + 1, old - 1, max(-(2**63), min(old * 2, 2**63 - 1)), float(old), str(old)] * 2
    if isinstance(old, bytes) and old:
        at = chance.randrange(len(old))
        flipped = old[:at] + bytes([old[at] ^ (1 << chance.randrange(8))]) + old[at + 1 :]
        near += [flipped, old[:at], old + b"\0", old[::-1], bytes(len(old)), b"", b"\xff" * len(old), old * 2] * 2
    if isinstance(old, str):
        near += [old + "x", old[:-1], old.encode(), old.upper()] * 2
    return chance.choice(near)


def tables(file: Path) -> list[str]:
    """The tables of a database."""
    db = apsw.Connection(str(file))
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    db.close()
    return names


def edit_row(file: Path, chance: random.Random) -> str:
    """Changes one column of one row, or moves or deletes or doubles a row; what was done."""
    table = chance.choice(tables(file))
    db = apsw.Connection(str(file))
    try:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        rows = db.execute(f"SELECT * FROM {table}").fetchall()
        if not rows:
            return f"{table} is empty"
        row, column = chance.choice(rows), chance.randrange(len(columns))
        where = " AND ".join(f"{name} IS ?" for name in columns)
        if chance.random() < 0.1:
            db.execute(f"DELETE FROM {table} WHERE {where}", row)
            return f"{table} {row[0]!r:.30} deleted"
        new = chance.choice(rows)[column] if chance.random() < 0.2 else value(chance, row[column])
        with suppress(apsw.ConstraintError, apsw.MismatchError):
            db.execute(f"UPDATE OR REPLACE {table} SET {columns[column]} = ? WHERE {where}", (new, *row))
        return f"{table}.{columns[column]} of {row[0]!r:.30}: {row[column]!r:.40} to {new!r:.40}"
    finally:
        db.close()


def out_of_order(file: Path, chance: random.Random) -> str:
    """Exchanges two rows within a page of a table, which no SQL does."""
    db = apsw.Connection(str(file))
    db.execute("PRAGMA journal_mode = DELETE").fetchall()
    size, pages = db.execute("PRAGMA page_size").get, db.execute("PRAGMA page_count").get
    db.close()
    data = bytearray(file.read_bytes())
    leaves = [
        number
        for number in range(1, pages)
        if data[number * size] == 13 and int.from_bytes(data[number * size + 3 :][:2], "big") > 1
    ]
    if not leaves:
        return "no page has two rows"
    page = chance.choice(leaves) * size
    count = int.from_bytes(data[page + 3 :][:2], "big")
    first, second = sorted(chance.sample(range(count), 2))
    places = [page + 8 + 2 * at for at in (first, second)]
    values = [bytes(data[at : at + 2]) for at in places]
    for at, value in zip(places, reversed(values), strict=True):
        data[at : at + 2] = value
    file.write_bytes(data)
    return f"rows {first} and {second} of page {page // size + 1} of {count} rows exchanged"


def spoil_file(file: Path, chance: random.Random) -> str:
    """Cuts, fills, replaces or removes a file."""
    content = file.read_bytes()
    how = chance.randrange(6)
    if how == 0:
        file.write_bytes(content[: chance.randrange(len(content) + 1)])
    elif how == 1:
        file.unlink()
        file.mkdir()
    elif how == 2:
        file.unlink()
    elif how == 3:
        file.write_bytes(chance.randbytes(len(content)))
    elif how == 4 and content:
        at = chance.randrange(len(content))
        file.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
    else:
        file.write_bytes(content + struct.pack(">Q", chance.getrandbits(64)))
    return f"{file.name} spoiled, way {how}"


def damage(store: Path, chance: random.Random) -> str:
    """Damages a closed store somewhere; what was done, and where."""
    files = sorted(file for file in store.rglob("*") if file.is_file() and not file.name.endswith((".lock", ".queue")))
    weighty = [file for file in files if file.name == "log.sqlite"] * (len(files) // 2)
    file = chance.choice(files + weighty)
    database = file.read_bytes()[:15] == b"SQLite format 3"
    how: Callable[[Path, random.Random], str] = spoil_file
    if database:
        how = chance.choices((edit_row, out_of_order), (8, 2))[0]
    return f"{file.relative_to(store)}: {how(file, chance)}"


class Doors:
    """What came of asking a damaged store through every door: whether it was noticed, what was raised not of ours."""

    def __init__(self, store: Path, beside: Path) -> None:
        self.noticed = False
        self.foreign: dict[str, str] = {}
        self.verdict: list[Any] = []
        self._try("doctor", lambda: doctor(store, full=True))
        for mode in ("r", "rw"):
            opened = self._try(f"open {mode}", lambda mode=mode: vmstore.open(store, mode))
            if opened is None:
                continue
            self._try(f"ask {mode}", lambda opened=opened: ask(opened))
            verdict = self._try(f"verify {mode}", opened.verify)
            if verdict is not None:
                self.noticed |= not verdict.ok
                self.verdict += verdict.problems
            if mode == "rw":
                self._try("search", lambda opened=opened: opened.search("North"))
                self._try("compact", opened.admin.compact)
                self._try("record", lambda opened=opened: opened.record("new", MESSAGES))
                self._try("collect garbage", opened.admin.collect_garbage)
            self._try(f"close {mode}", opened.close)
        self._try("backup", lambda: backup(store, beside / "bak"))
        for file in store.glob("*/archive/*.archive"):
            self._try("archive", lambda file=file: ArchiveLog(file).close())

    def _try(self, name: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except VmstoreError:
            self.noticed = True
        except BaseException as error:  # a Rust panic is no Exception
            self.foreign[name] = f"{type(error).__name__}: {error}"[:200]
        return None


MESSAGES = {"model": "m", "messages": [{"role": "user", "content": "new"}]}


def ask(store: vmstore.Store) -> None:
    """Asks a store everything."""
    for info in store.sessions():
        session = store.session(info.session)
        with suppress(VmstoreError):
            for page in session.pages():
                with suppress(VmstoreError):
                    session.content(page.page)
        with suppress(VmstoreError):
            for call in session.calls():
                with suppress(VmstoreError):
                    session.wire.messages(call=call.call)
    list(store.tail())


def copied(store: Path, to: Path) -> Path:
    """A copy of a store."""
    return Path(shutil.copytree(store, to))
