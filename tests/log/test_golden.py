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

import pytest

from tests.golden.make_golden import KINDS, SESSION, kinds, rows
from vmstore.core.mutation import Known, Open, decode, encode
from vmstore.log.sqlite import FORMAT

GOLDEN = json.loads(SESSION.read_text(encoding="utf-8"))
GOLDEN_KINDS = json.loads(KINDS.read_text(encoding="utf-8"))


def test_the_golden_session_is_written_the_same(tmp_path: Path) -> None:
    """The same calls at the same times with the same salts give the same log rows, bodies and hashes."""
    found = rows(tmp_path / "golden.vms")
    assert len(found) == len(GOLDEN)
    for row, golden in zip(found, GOLDEN, strict=True):
        assert row == golden


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
    """It has a request id, a fork, a shortened page, a call before its time, and no content to deflate."""
    mutations = [m.kind for row in GOLDEN for m in decode(bytes.fromhex(row["body"]))]
    assert {"open", "turn", "message", "create", "compress", "pack", "reply"} <= set(mutations)
    assert sum(row["request"] >= 0 for row in GOLDEN) == 1
    assert mutations.count("open") == 2
    assert any(row["lag"] > 500_000 for row in GOLDEN)
    assert all(not text.startswith("x\x9c") for row in GOLDEN for _, text in row["cells"])


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_each_kind_has_its_bytes(kind: str) -> None:
    """A mutation of each kind is encoded to the golden bytes, and the golden bytes are read as it."""
    body = bytes.fromhex(GOLDEN_KINDS[kind])
    assert kinds()[kind] == GOLDEN_KINDS[kind]
    assert encode(decode(body)) == body
    assert [m.kind for m in decode(body)] == [kind]


def test_every_kind_has_a_golden_example() -> None:
    """No kind with a struct is missing, and every field of each example is other than its default."""
    assert set(GOLDEN_KINDS) == set(kinds()) == {kind.__name__.lower() for kind in get_args(Known)}
    for kind in get_args(Known):
        found = decode(bytes.fromhex(GOLDEN_KINDS[kind.__name__.lower()]))[0]
        assert len(kind.__struct_fields__) == len(kind.__match_args__)
        assert all(getattr(found, field) not in (None, ()) for field in kind.__struct_fields__)


def test_the_golden_files_are_of_this_format() -> None:
    """A log of this format has golden files under its number."""
    assert SESSION.name == f"format-{FORMAT}.json" and KINDS.name == f"kinds-{FORMAT}.json"
