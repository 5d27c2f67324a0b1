"""Bundles: what leaves a store comes back as it was, and what was touched on the way is refused."""

from __future__ import annotations

import base64
import io
import json
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import vmstore
from tests import refusals
from tests.lanes import spread
from tests.transfer.moved import bundle, chains, filled_in_memory, take, taken, views
from vmstore.cells.cell import ERASED, Cell
from vmstore.core.mutation import Turn, encode
from vmstore.errors import ConflictError, InputError, RefusedError, UnknownError
from vmstore.log.commit import seal
from vmstore.store.store import memory_store
from vmstore.testing.simulate import play
from vmstore.testing.strategies import Life, lives
from vmstore.transfer.bundle import VERSION, BundledSession, Reader, Writer

GOLDEN = Path(__file__).parents[1] / "golden" / f"bundle-{VERSION}.jsonl"


def read(content: bytes) -> int:
    """Reads a bundle to its end; how many commits it holds."""
    return len(list(Reader(io.BytesIO(content), "it").commits()))


def forged(content: bytes, change: Any) -> bytes:
    """A bundle whose lines were changed by somebody who also wrote a new last line."""
    lines = [json.loads(line) for line in content.splitlines()]
    change(lines)
    *other_lines, end = lines
    body = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in other_lines).encode()
    commits = [line for line in other_lines if line["kind"] == "commit"]
    end |= {"commits": len(commits), "mutations": sum(line["count"] for line in commits)}
    end |= {"cells": sum(len(line["cells"]) for line in commits)}
    end["digest"] = base64.b64encode(sha256(body).digest()).decode()
    return body + json.dumps(end, separators=(",", ":")).encode() + b"\n"


# ---- the round trip


@settings(max_examples=25)
@given(life=lives(steps_max=16))
def test_a_life_comes_back_as_it_was(life: Life) -> None:
    """Exported and imported exactly into a fresh store, every hash, salt, content and view row is the same."""
    with tempfile.TemporaryDirectory() as folder:
        player = play(life, Path(folder))
        if not player.store.sessions():
            return
        actual_bundle = bundle(player.store)
        with taken(Path(folder), actual_bundle, exact=True) as store:
            assert chains(store) == chains(player.store)
            assert views(store) == views(player.store)
            assert store.verify().ok
            assert bundle(store) == actual_bundle
        player.close()


def test_views_have_the_same_digests_where_the_log_has_the_same_order(tmp_path: Path) -> None:
    """Once sessions stand one after the other, an export and exact import gives each view the same digest."""
    with taken(tmp_path, bundle(filled_in_memory()), exact=True) as value:
        with taken(tmp_path, bundle(value), exact=True) as other:
            names = value.info().positions
            digests = [[s._ns.projection.digest(name) for name in names] for s in (value, other)]
            assert digests[0] == digests[1] and value.info() == other.info()


def test_the_golden_bundle_is_read_and_written_the_same(tmp_path: Path) -> None:
    """The golden bundle is taken in exactly and, exported again, is what it was, byte for byte."""
    golden = GOLDEN.read_bytes()
    with taken(tmp_path, golden, exact=True) as store:
        assert bundle(store) == golden
        assert len(store.sessions()) == 4 and store.verify().ok
        kinds = {entry.kind for entry in store.tail()}
        assert {"open", "turn", "message", "create", "compress", "pack", "reply"} <= kinds


def test_a_bundle_keeps_to_the_format(tmp_path: Path) -> None:
    """By the words of the spec: each line is what it says, text is text, and the last line seals the rest."""
    actual_bundle = bundle(filled_in_memory())
    first, *commits, last = [json.loads(line) for line in actual_bundle.decode().split("\n")[:-1]]
    assert (first["kind"], first["version"]) == ("bundle", VERSION)
    assert [session["name"] for session in first["sessions"]] == ["s", "odd one", "s.child", "s.grandchild"]
    assert (last["kind"], last["commits"]) == ("end", len(commits))
    sofar = actual_bundle[: actual_bundle.rindex(b"\n", 0, -1) + 1]
    assert base64.b64decode(last["digest"]) == sha256(sofar).digest()
    for line in commits:
        assert len(line["mutations"]) == line["count"]
        for cell in line["cells"]:
            content = cell["text"].encode() if "text" in cell else base64.b64decode(cell["base64"])
            assert ("text" in cell) == _utf8(content)
            assert sha256(base64.b64decode(cell["salt"]) + content).digest() == base64.b64decode(cell["commitment"])


def _utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


# ---- damage


def test_a_flipped_bit_anywhere_is_refused() -> None:
    """One bit changed in any byte of a bundle, its last line included, and it is refused as damaged."""
    actual_bundle = bundle(filled_in_memory())
    assert read(actual_bundle) > 5
    for at in spread(len(actual_bundle), 400):
        flipped = bytearray(actual_bundle)
        flipped[at] ^= 1 << (at * 5 % 8)
        with pytest.raises(InputError):
            read(bytes(flipped))


def test_a_cut_bundle_is_refused() -> None:
    """A bundle cut at any line, or a byte before its end, or with a byte more, is refused."""
    actual_bundle = bundle(filled_in_memory())
    cuts = [at for at, byte in enumerate(actual_bundle) if byte == ord("\n")]
    for at in (0, *cuts, *(cut + 1 for cut in cuts[:-1]), len(actual_bundle) - 2):
        with pytest.raises(InputError):
            read(actual_bundle[:at])
    with refusals.refused("bundle-damaged", InputError):
        read(actual_bundle + b"\n")


FORGERIES = {
    "a content": lambda lines: lines[2]["cells"][0].update(text="other"),
    "a salt": lambda lines: lines[2]["cells"][0].update(salt=base64.b64encode(bytes(16)).decode()),
    "a time": lambda lines: lines[3].update(at=5),
    "a hash": lambda lines: lines[3].update(hash=base64.b64encode(bytes(32)).decode()),
    "what is read": lambda lines: lines[3]["mutations"][0].update(kind="other"),
    "a commit gone": lambda lines: lines.pop(3),
    "two commits exchanged": lambda lines: lines.insert(3, lines.pop(4)),
    "a session's name": lambda lines: lines[0]["sessions"][0].update(name="other"),
    "the last commits gone": lambda lines: lines.__delitem__(slice(-4, -1)),
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_bundle_is_refused_whole(tmp_path: Path, change: Any, exact: bool) -> None:
    """What somebody changed and sealed again does not match the chain, and nothing of it is written."""
    actual_bundle = bundle(filled_in_memory())
    assert read(forged(actual_bundle, lambda lines: None)) == read(actual_bundle)
    with memory_store() as store:
        with refusals.refused("bundle-damaged", InputError):
            take(store, tmp_path, forged(actual_bundle, change), exact=exact)
        assert store.admin.log.ordinal == 0


def test_a_broken_rule_is_refused(tmp_path: Path) -> None:
    """A bundle whose chain is sound but whose session does what no gate lets through is refused by the rule's name."""
    store = filled_in_memory()
    info = store.session("odd one").info()
    last = [c for _, c in Reader(io.BytesIO(bundle(store, "odd one")), "it").commits()][-1]
    added = seal(last.hash, info.position + 1, 1, 0, 0, encode([Turn(99)]), (), -1)
    inside = BundledSession("odd one", json_uid(bundle(store, "odd one")), added.last, True)
    writer = Writer([inside])
    lines = [writer.beginning()]
    lines += [writer.commit(name, c) for name, c in Reader(io.BytesIO(bundle(store, "odd one")), "it").commits()]
    lines += [writer.commit("odd one", added), writer.ending()]
    for exact in (True, False):
        with memory_store() as other:
            with refusals.refused("bundle-damaged", InputError, "turn_is_next"):
                take(other, tmp_path, b"".join(lines), exact=exact)
            assert other.admin.log.ordinal == 0


def json_uid(content: bytes) -> bytes:
    """The uid of the first session of a bundle."""
    return base64.b64decode(json.loads(content.splitlines()[0])["sessions"][0]["uid"])


def test_a_destroyed_content_leaves_its_commitment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell whose salt and content are gone leaves the store as a commitment alone, and the chain still holds."""
    store = filled_in_memory()
    whole, kept = bundle(store, "odd one"), store.admin.log.cells

    def cells(numbers: Any) -> dict[int, Cell]:
        """The log's cells, those with a snowman destroyed."""
        return {n: ERASED if "☃".encode() in cell.content else cell for n, cell in kept(numbers).items()}

    monkeypatch.setattr(store.admin.log, "cells", cells)
    fields = kept(range(1, store.admin.log.last_cell + 1))
    monkeypatch.setattr(store.admin.log, "erased", {n: 1 for n, cell in fields.items() if "☃".encode() in cell.content})
    actual_bundle = bundle(store, "odd one")
    content = base64.b64encode("é☃ \ud800 \u2028 \0".encode("utf-8", "surrogatepass"))
    assert content in whole and content not in actual_bundle
    before, after = ([c for _, c in Reader(io.BytesIO(case), "it").commits()] for case in (whole, actual_bundle))
    assert [(c.hash, c.commitments) for c in before] == [(c.hash, c.commitments) for c in after]
    assert sum(cell == ERASED for c in after for cell in c.cells) == 1


def test_a_later_version_is_refused_with_the_remedy() -> None:
    """A bundle of another version names both versions and what to do."""
    text = bundle(filled_in_memory()).replace(b'"version":1', b'"version":7', 1)
    with refusals.refused("newer-format", InputError, "version 7", "version 1"):
        read(text)
    with refusals.refused("not-a-bundle", InputError):
        read(b'{"messages": []}\n')


# ---- what is chosen


def test_a_fork_brings_its_past() -> None:
    """The bundle of a grandchild holds its ancestors up to the fork points, and says they were not asked for."""
    store = filled_in_memory()
    first = json.loads(bundle(store, "s.grandchild").splitlines()[0])
    point = store.session("s.child").info().fork_position
    assert [(session["name"], session["asked"]) for session in first["sessions"]] == [
        ("s", False),
        ("s.child", False),
        ("s.grandchild", True),
    ]
    assert first["sessions"][0]["upto"] == point


def test_a_moment_ends_the_bundle(tmp_path: Path) -> None:
    """Exported as of a call a session ends there, and answers as it did then."""
    store = filled_in_memory()
    with taken(tmp_path, bundle(store, "s", call=2), exact=True) as other:
        assert other.session("s").info().calls == 2
        assert other.session("s").wire.request(call=2) == store.session("s").wire.request(call=2)
        assert other.session("s").pages() == store.session("s").pages(call=2)


def test_what_cannot_be_chosen_is_refused() -> None:
    """An unknown session, a moment within a commit or before a fork's own beginning names what can be."""
    store = filled_in_memory()
    with refusals.refused("no-session", UnknownError, "'sx'"):
        bundle(store, "sx")
    with refusals.refused("within-a-commit", RefusedError, "position 3", "'s'"):
        bundle(store, "s", position=3)
    with refusals.refused("of-its-parent"):
        bundle(store, "s.child", call=1)
    with refusals.refused("nothing-to-export", UnknownError):
        bundle(memory_store())
    with refusals.refused("no-format", InputError, "'xml'"):
        store.export(io.BytesIO(), format="xml")


def test_a_log_that_refuses_for_ever_is_not_asked_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exact import that is refused although nobody wrote meanwhile raises what the log said."""
    actual_bundle = bundle(filled_in_memory())
    tries = list[int]()

    def refused(*arguments: Any, **more: Any) -> Any:
        tries.append(1)
        raise ConflictError("it stands elsewhere")

    with vmstore.open(tmp_path / "other.vms") as other:
        monkeypatch.setattr(other._ns.log, "append", refused)
        with pytest.raises(ConflictError, match="it stands elsewhere"):
            take(other, tmp_path, actual_bundle, exact=True)
        assert tries == [1] and other.sessions() == []
