"""Writes the golden files of this folder: `PYTHONPATH=. python tests/golden/make_golden.py`.

`format-1.json` holds the log rows of a small session recorded through the public API with a clock
and ids that repeat; `frames-1.json` the rows of its cells as they lie, and one row of each other
form; `kinds-1.json` the bytes of one mutation of each kind; `words-1.json` those of
mutations with words that came later. Run it only when the format is changed
on purpose: once the format is frozen these files are never edited again.

`encrypted-2.json` holds the rows of each form as format 2 has them, and the file of their keys.
`format-0.json` is what format 0 held of the same session, for the test of the upgrade.
"""

from __future__ import annotations

import json
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

import vmstore
from vmstore.cells.cell import ERASED, Cell
from vmstore.cells.storekey import KeyAtHand
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.decision import PromptContest, Why
from vmstore.core.mutation import (
    Alias,
    Annotate,
    Approve,
    Cite,
    Close,
    Compress,
    Configure,
    Create,
    Delete,
    Depth,
    Embed,
    Erase,
    Evict,
    Fact,
    FaultDenied,
    FaultIn,
    Flush,
    GuardTrip,
    Link,
    Mark,
    Message,
    NamespacePolicy,
    Open,
    Pack,
    Pin,
    Prefetch,
    Pressure,
    Promote,
    Recall,
    Redact,
    Reference,
    Reply,
    Revoke,
    Search,
    Segment,
    Settings,
    Share,
    Tag,
    ToolRun,
    Turn,
    Unlink,
    Unpin,
    Update,
    encode,
)
from vmstore.log.commit import Commit
from vmstore.log.frame import Frame, cut, packed, raw
from vmstore.log.frame_encryption import FrameEncryption

FOLDER = Path(__file__).resolve().parent
SESSION = FOLDER / "format-1.json"
FRAMES = FOLDER / "frames-1.json"
KINDS = FOLDER / "kinds-1.json"
WORDS = FOLDER / "words-1.json"
LOCKED = FOLDER / "encrypted-2.json"

Request = dict[str, Any]
SYSTEM = {"role": "system", "content": "Be brief."}
ASK = {"role": "user", "content": "How far is it?"}
CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "measure", "arguments": "{}"}}
]}  # fmt: skip
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "1. twelve miles\n2. fourteen by the road\n" * 4}
SHORT = {"role": "tool", "tool_call_id": "c1", "content": "twelve miles"}
DONE = {"role": "assistant", "content": "Twelve miles."}
NEXT = {"role": "user", "content": "And back?"}


def reply(message: Request, tokens: int) -> Request:
    """A chat-completions answer."""
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": tokens, "completion_tokens": 4}
    return {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


def record(path: Path) -> list[tuple[Commit, list[tuple[bytes, bytes]]]]:
    """Records the golden session into a new store; its commits with salt and content of their cells."""
    clock = ManualClock(1_700_000_000_000_000, 1_000)
    with vmstore.open(path, clock=clock, ids=SeededIds(2026)) as store:
        model = {"model": "m-1", "temperature": 0.1}
        store.record("golden", {**model, "messages": [SYSTEM, ASK]}, reply(CALL, 30), request_id="first")
        store.record(
            "golden", {**model, "messages": [SYSTEM, ASK, CALL, RESULT]}, reply(DONE, 90), latency_us=1_250_000
        )
        last = [SYSTEM, ASK, CALL, SHORT, DONE, NEXT]
        store.record("golden", {"model": "m-2", "messages": last}, None, at_us=1_699_999_999_000_000)
        store.session("golden").fork("golden-b", call=2)
        return [(commit, _cells(store, commit)) for commit in store.admin.log.tail(0, 99)]


def _cells(store: vmstore.Store, commit: Commit) -> list[tuple[bytes, bytes]]:
    numbers = range(commit.cell, commit.cell + commit.cell_count)
    cells = store.admin.log.cells(numbers)
    return [(cells[n].salt, cells[n].content) for n in numbers]


def rows(path: Path) -> list[dict[str, Any]]:
    """The golden session's log as JSON: header columns, body, commitments, hash, cells."""
    records = []
    for commit, cells in record(path):
        header = {
            f: getattr(commit, f) for f in ("ordinal", "session", "first", "count", "at", "lag", "request", "cell")
        }
        hashed = {f: getattr(commit, f).hex() for f in ("body", "commitments", "hash")}
        sealed = [[salt.hex(), content.decode("utf-8")] for salt, content in cells]
        records.append({**header, **hashed, "cells": sealed})
    return records


def lying(path: Path) -> list[list[Any]]:
    """The rows of a closed store's cells, as they lie in the file."""
    db = apsw.Connection(str(path / "default" / "log.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    hexes = [_hex(row) for row in db.execute("SELECT * FROM frames ORDER BY first")]
    db.close()
    return hexes


def _hex(row: Any) -> list[Any]:
    return [*row[:3], *(blob.hex() for blob in row[3:])]


def forms() -> dict[str, Any]:
    """A row of each form, the cells it holds, and a file it names."""
    salts = SeededIds(1)
    cells = [Cell(salts.salt(), content) for content in (b"to be, or not to be " * 9, b"", b"that is the question")]
    cells.insert(1, ERASED)
    plain, long = raw(7, cells), Cell(salts.salt(), b"long " * 13_108)
    rows = {"raw": plain, "packed": packed(plain), "in a file": next(cut(11, [long], dense=False))}
    return {
        **{name: _hex(row) for name, row in rows.items()},
        "cells": [[cell.salt.hex(), cell.content.decode()] for cell in cells],
        "long": [long.salt.hex(), "long ", 13_108],
    }


def locked(folder: Path) -> dict[str, Any]:
    """The same rows, a long cell's file and the file of keys, encrypted with a store key and ids that repeat."""
    ids = SeededIds(5)
    store_key = KeyAtHand(bytes(range(32)), ids)
    Keyring.create(folder / "keys.sqlite", store_key, ids)
    vault = FrameEncryption(Keyring(folder / "keys.sqlite", store_key, ids), ids, lambda _: b"")
    name = vault.keyring.in_use(vault.keyring.name(b"user\0ann"))
    salt, word, count = forms()["long"]
    long = Cell(bytes.fromhex(salt), word.encode() * count)
    closed = {text: _hex(vault.closed(_frame(forms()[text]), name)) for text in ("raw", "packed", "in a file")}
    file = vault.closed_file(long.commitment, long.content, name)
    vault.close()
    db = apsw.Connection(str(folder / "keys.sqlite"))
    keys = [[row[0].hex(), row[1].hex()] for row in db.execute("SELECT id, wrapped FROM keys ORDER BY id")]
    db.close()
    return {"keys": keys, **closed, "file": [len(file), file[:44].hex(), sha256(file).hexdigest()]}


def _frame(row: list[Any]) -> Frame:
    return Frame(*row[:3], *map(bytes.fromhex, row[3:]))


def kinds() -> dict[str, str]:
    """One mutation of each kind, every field set, as the bytes of a body that holds it alone."""
    why = Why(7, 8_000, 7_210, 900, 12, 31, 412_000, ((412_500, 45), (500_000, 20), (-1, 30)))
    examples = [
        Open(b"u" * 16, 0, 1, b"p" * 16, 300, 1, 2, 3, 1, 44),
        Turn(7),
        Configure(1, 1_250_000),
        Mark(1, 70_000, b"d" * 16, 0, (300, 2)),
        Create(2, 4, 3, 12, 1, (300, 1), 4_096, 1_024, 1, ((6, 20), (0, 21)), 2, 750_000),
        Update(12, 3, 0, 5_000, 1_250),
        Annotate(12, 950_000, 2, -1_000_000, 1_700_000_000_000_000, 0, (300, 2), 1),
        Link(30, 12, 0, -1_000_000, 1_700_000_000_000_000),
        Approve(1, 3, 1_700_000_000_000_000, (300, 2), 12, bytes(range(16))),
        Redact(12, 0, 2, 3, 0, ((11, 2, 3),), 1_030, 1_024, 0, 1),
        Compress(12, 3, 3, 2, 1, 0, 18, 5),
        Message(3, 2, 0, 1, 1, 6),
        Reply(6, 1, 1, 174_738, 160_000, 512, 1_234_567_890, 2_500_000, 0),
        Pack(7, 1, 2, 1_030, bytes(range(32)), ((12, 45, 3, 2_048), (30, 30, 0, 4_096)), (20,), 0, ((11, 1),), 2, 2),
        Erase(3, ((12, 0), (300, 2)), 44),
        Segment(3, 44, (300, 2)),
        Settings((300, 1)),
        FaultIn(12, 45, 1, 340, 52, why, 1),
        FaultDenied(12, 52, 2, why),
        Prefetch(12, 45, 2, 90, 52, why),
        Evict(12, 1, 1_250, 412_000, 3, 45, why, 60),
        Pin(12, 3),
        Unpin(12, 4, why),
        Reference(12, 5, 6, 1, 2, 7, 0),
        Cite(12, 44, (300, 2)),
        Search(0, (12, 30), 17),
        Recall(12, 1),
        Pressure(2, 7_210, 8_000),
        Share(2, 0, 3, (300, 1)),
        Revoke(300, 2, 0),
        Close(3, (300, 2)),
        Unlink(30, 12, 0),
        Delete(12),
        Flush(30),
        NamespacePolicy(0, (300, 1), 0),
        Embed(12, 30, (300, 1), 384, 2, ((0, 800), (640, 1_030)), 0),
        Fact(12, 0, 1, (300, 2), 3, 1, 4, 1, -1_000_000, 1_700_000_000_000_000, 4, 900_000, 1_000_000, (300, 1)),
        Tag(12, (300, 1), 1, 0),
        Alias((300, 1), 0),
        Depth(0, 3),
        ToolRun(12, 1, 20, 1_500, 0, 11, (4, 9), (30,), (12,), (300, 1)),
        GuardTrip(0, (300, 1), 3, (9, 12), 30),
        Promote(30, 0, 5, 6, (9, 12)),
    ]
    return {mutation.kind: encode([mutation]).hex() for mutation in examples}


def words() -> dict[str, str]:
    """Mutations with words and fields that came after their kinds had golden bytes, as the bytes of a body."""
    kept = [(12, 45, 3, 2_048), (30, 30, 0, 4_096)]
    examples = {
        "redact by detectors 2": Redact(12, 0, 2, 3, 1, ((11, 2, 3),), 1_030, 1_024, 0, 1),
        "turn with how alike pages are to its message": Turn(7, ((12, 340_000), (30, 1_000_000))),
        "configure with what stands beside the pages": Configure(1, 1_250_000, 640),
        "pack of a live session's request": Pack(
            7, 3, 2, 1_030, bytes(range(32)), tuple(kept), (20,), 0, ((11, 1),), 2, 3, bytes(range(32, 64)), 1_410
        ),
        "pack with what it voids of the request before": Pack(
            7, 3, 2, 1_030, bytes(range(32)), tuple(kept), (20,), 0, ((11, 1),), 2, 3, bytes(range(32, 64)), 1_410, 96
        ),
        "reply with what the provider wrote to its cache": Reply(
            6, 1, 1, 174_738, 160_000, 512, None, None, None, 9_000
        ),
        "search of an assembled prompt with what lost": Search(
            0, (12, 30), 17, 7, 1_200, (PromptContest(7, 2, 9, 410, 1_050, 350_000, ((340_000, 20), (12_000, 45))),)
        ),
        "search with the scores of what it found": Search(0, (12, 30), 17, 1, 1_200, (), (1_000_000, -250_000)),
    }
    return {name: encode([mutation]).hex() for name, mutation in examples.items()}


def main() -> None:
    """Writes the files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.vms"
        SESSION.write_text(json.dumps(rows(path), indent=1, ensure_ascii=False) + "\n")
        FRAMES.write_text(json.dumps({"session": lying(path), **forms()}, indent=1) + "\n")
        LOCKED.write_text(json.dumps(locked(Path(folder)), indent=1) + "\n")
    KINDS.write_text(json.dumps(kinds(), indent=1) + "\n")
    WORDS.write_text(json.dumps(words(), indent=1) + "\n")


if __name__ == "__main__":
    main()
