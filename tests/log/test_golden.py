"""The bytes of the format are what they were.

`tests/golden/make_golden.py` made the files: it records a small session through the public API
with a clock and ids that repeat, and encodes one mutation of each kind. A difference here means
that logs written before are read otherwise: change the format number, or undo the change.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import get_args

import apsw
import pytest

from tests.golden.make_golden import FRAMES, KINDS, LOCKED, SESSION, WORDS, forms, kinds, lying, rows, words
from tests.golden.make_golden import locked as make_locked
from vmstore.cells.cell import ERASED, Cell
from vmstore.cells.storekey import KeyAtHand
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import SeededIds
from vmstore.core.mutation import LATER_FIELDS, MUTATION_NAMES, Known, Open, decode, encode
from vmstore.log.file import FORMAT
from vmstore.log.frame import FILES, RAW, ZSTD, Frame, opened
from vmstore.log.frame_encryption import FrameEncryption

GOLDEN = json.loads(SESSION.read_text(encoding="utf-8"))
GOLDEN_FRAMES = json.loads(FRAMES.read_text(encoding="utf-8"))
GOLDEN_LOCKED = json.loads(LOCKED.read_text(encoding="utf-8"))
BEYOND = {
    "Configure": {"beside": 0},
    "Pack": {"sent": None, "sent_tokens": 0, "voided": None},
    "Reply": {"tokens_written": None},
    "Search": {"contests": (), "scores": ()},
    "Turn": {"alike": ()},
}  # fields after the golden bytes
GOLDEN_KINDS = json.loads(KINDS.read_text(encoding="utf-8"))


def test_the_golden_session_is_written_the_same(tmp_path: Path) -> None:
    """The same calls at the same times with the same salts give the same rows, bodies, hashes and frames."""
    actual_rows = rows(tmp_path / "golden.vms")
    assert len(actual_rows) == len(GOLDEN)
    for row, golden in zip(actual_rows, GOLDEN, strict=True):
        assert row == golden
    assert lying(tmp_path / "golden.vms") == GOLDEN_FRAMES["session"]


def frame(name: str) -> Frame:
    """A golden row."""
    first, count, form, *blobs = GOLDEN_FRAMES[name]
    return Frame(first, count, form, *map(bytes.fromhex, blobs))


def test_the_golden_frames_are_read() -> None:
    """A row of each form gives its cells, the destroyed one as such, and names the file of a long one."""
    cells = [Cell(bytes.fromhex(salt), text.encode()) for salt, text in GOLDEN_FRAMES["cells"]]
    assert [cell.erased for cell in cells] == [False, True, False, False] and cells[1] == ERASED
    for name, form in (("raw", RAW), ("packed", ZSTD)):
        assert frame(name).form == form
        assert dict(opened(frame(name), range(7, 11), {}.get)) == dict(enumerate(cells, 7))
    salt, word, count = GOLDEN_FRAMES["long"]
    long = Cell(bytes.fromhex(salt), word.encode() * count)
    assert frame("in a file").form == FILES
    assert dict(opened(frame("in a file"), [11], {long.commitment: long.content}.get)) == {11: long}


def locked(folder: Path) -> FrameEncryption:
    """What opens the golden encrypted rows: a file of the golden keys."""
    store_key = KeyAtHand(bytes(range(32)), SeededIds(5))
    Keyring.create(folder / "keys.sqlite", store_key, SeededIds(5))
    db = apsw.Connection(str(folder / "keys.sqlite"))
    db.execute("DELETE FROM keys")
    db.executemany("INSERT INTO keys VALUES(?, ?)", [tuple(map(bytes.fromhex, row)) for row in GOLDEN_LOCKED["keys"]])
    db.close()
    return FrameEncryption(Keyring(folder / "keys.sqlite", store_key, SeededIds(5)), SeededIds(5), lambda _: b"")


def test_the_golden_encrypted_frames_are_read(tmp_path: Path) -> None:
    """With the golden keys each encrypted row gives the plain one back, byte for byte."""
    vault = locked(tmp_path)
    for name in ("raw", "packed", "in a file"):
        first, count, form, *blobs = GOLDEN_LOCKED[name]
        closed = Frame(first, count, form, *map(bytes.fromhex, blobs))
        assert closed.form == frame(name).form + 16 and vault.opened(closed) == frame(name)
    vault.close()


def test_the_golden_encrypted_frames_are_written_the_same(tmp_path: Path) -> None:
    """The same ids give the same keys, nonces, rows and file."""
    made = make_locked(tmp_path)
    assert {n: made[n] for n in ("keys", "raw", "in a file", "file")} == {
        n: GOLDEN_LOCKED[n] for n in ("keys", "raw", "in a file", "file")
    }


def test_the_golden_frames_are_written_the_same() -> None:
    """Rows that hang on no compressor are what they were, and a packed one holds the same in no more room."""
    made = forms()
    assert {name: made[name] for name in ("raw", "in a file")} == {n: GOLDEN_FRAMES[n] for n in ("raw", "in a file")}
    assert made["packed"][:5] == GOLDEN_FRAMES["packed"][:5]
    assert len(made["packed"][5]) <= 2 * len(GOLDEN_FRAMES["packed"][5])


def test_the_golden_frames_follow_from_the_spec() -> None:
    """By the format's own words: sizes of 4 bytes, salts of 16, and the bytes one after the other."""
    first, count, form, sizes, salts, content = GOLDEN_FRAMES["session"][0]
    lengths = struct.unpack(f">{count}I", bytes.fromhex(sizes))
    cells = [(salt, text.encode()) for row in GOLDEN for salt, text in row["cells"]][:count]
    assert (first, form) == (1, 0)
    assert [len(text) for _, text in cells] == list(lengths)
    assert (salts, content) == ("".join(salt for salt, _ in cells), b"".join(text for _, text in cells).hex())


def test_the_golden_hashes_follow_from_the_rows() -> None:
    """By the format's own words: each hash is of the one before, header, body and commitments."""
    ends: dict[tuple[int, int], bytes] = {}
    uids: dict[bytes, int] = {}
    for row in GOLDEN:
        body, commitments = bytes.fromhex(row["body"]), bytes.fromhex(row["commitments"])
        sealed = [hashlib.sha256(bytes.fromhex(salt) + text.encode()).digest() for salt, text in row["cells"]]
        assert b"".join(sealed) == commitments
        first = decode(body)[0]
        previous = ends.get((row["session"], row["first"] - 1), b"")
        if isinstance(first, Open):
            previous = hashlib.sha256(b"vmstore session" + first.uid).digest()
            if first.parent is not None:
                previous = ends[(uids[first.parent], first.parent_position)]
            uids[first.uid] = row["session"]
        header = struct.pack(">QIqqi", row["first"], row["count"], row["at"], row["lag"], row["request"])
        hashed = previous + header + struct.pack(">Q", len(body)) + body + commitments
        assert hashlib.sha256(hashed).hexdigest() == row["hash"]
        ends[(row["session"], row["first"] + row["count"] - 1)] = bytes.fromhex(row["hash"])


def test_the_golden_session_holds_what_matters() -> None:
    """It has a request id, a fork, a shortened page and a call before its time."""
    mutations = [m.kind for row in GOLDEN for m in decode(bytes.fromhex(row["body"]))]
    assert {"open", "turn", "message", "create", "compress", "pack", "reply"} <= set(mutations)
    assert sum(row["request"] >= 0 for row in GOLDEN) == 1
    assert mutations.count("open") == 2
    assert any(row["lag"] > 500_000 for row in GOLDEN)


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_each_kind_has_its_bytes(kind: str) -> None:
    """A mutation of each kind is encoded to the golden bytes, and the golden bytes are read as it."""
    body = bytes.fromhex(GOLDEN_KINDS[kind])
    assert kinds()[kind] == GOLDEN_KINDS[kind]
    assert encode(decode(body)) == body
    assert [m.kind for m in decode(body)] == [kind]


@pytest.mark.parametrize("name", sorted(words()))
def test_each_later_word_has_its_bytes(name: str) -> None:
    """A mutation with a word that came later is encoded to its golden bytes, and differs from its kind's older ones."""
    golden = json.loads(WORDS.read_text(encoding="utf-8"))
    body = bytes.fromhex(golden[name])
    assert words() == golden
    assert encode(decode(body)) == body
    assert golden[name] not in GOLDEN_KINDS.values()


def test_every_kind_has_a_golden_example() -> None:
    """No kind is missing, and each field of each is other than its default in an example, later fields in one apart."""
    assert set(GOLDEN_KINDS) == set(kinds()) == {MUTATION_NAMES[kind.NUMBER] for kind in get_args(Known)}
    later = [decode(bytes.fromhex(body))[0] for body in words().values()]
    for kind in get_args(Known):
        assert len(kind.__struct_fields__) == len(kind.__match_args__)
        first = decode(bytes.fromhex(GOLDEN_KINDS[MUTATION_NAMES[kind.NUMBER]]))[0]
        since = BEYOND.get(kind.__name__, {})
        for field in kind.__struct_fields__:
            if field in since:
                assert getattr(first, field) == since[field] == LATER_FIELDS[kind][field]
                assert any(isinstance(item, kind) and getattr(item, field) != since[field] for item in later)
            else:
                assert getattr(first, field) not in (None, ())


def test_the_golden_files_are_of_this_format() -> None:
    """A log of this format has golden files under its number."""
    assert SESSION.name == f"format-{FORMAT}.json" and KINDS.name == f"kinds-{FORMAT}.json"
    assert FRAMES.name == f"frames-{FORMAT}.json"
