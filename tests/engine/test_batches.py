"""What a batch takes in and how it is written: nothing that was not told, nothing that is not bytes, in one piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.author import engine_over
from tests.engine.test_gate import opened, say, two_engines
from vmstore.core.mutation import Open, decode
from vmstore.core.page import Origin
from vmstore.engine import engine as gate
from vmstore.engine.head import NewSession
from vmstore.errors import InputError
from vmstore.log.frame import RAW, ZSTD
from vmstore.log.sqlite import SqliteLog


def test_an_opening_told_nothing_says_nothing() -> None:
    """A session that is only named has no parent, no source and no key, is not hidden and was spawned by nothing."""
    engine = engine_over()
    actual = decode(engine.begin(NewSession("s"), 5).commit(5)[0].body)[0]
    assert isinstance(actual, Open)
    assert actual == Open(uid=actual.uid, name=0, origin=Origin.NEW)
    assert (actual.parent, actual.parent_position, actual.hidden, actual.spawned_by) == (None, 0, 0, None)


def test_a_source_with_half_a_character_is_kept_as_far_as_it_goes() -> None:
    """Where a file's name is no text, what is no text in it is replaced, and the session opens."""
    engine = engine_over()
    commit = engine.begin(NewSession("s", source="caf\u00e9 \udce9.jsonl"), 0).commit(0)[0]
    assert engine.log.cells([commit.cell + 1])[commit.cell + 1].content == "caf\u00e9 ?.jsonl".encode()


def test_sessions_that_open_together_are_one_append() -> None:
    """Batches of new sessions begun at one end of the log are written with one flush, each as its own session."""
    engine = engine_over()
    opened(engine, "before")
    batches = [engine.begin(NewSession(name), 0) for name in "abc"]
    say(batches[1], b"more")
    value = engine.append([batch for batch in batches if not batch.close(0)])
    assert [[commit.session for commit in item] for item in value if isinstance(item, list)] == [[2], [3], [4]]
    assert [engine.opened(name) for name in "abc"] == [2, 3, 4]
    assert [engine.head(session).position for session in (2, 3, 4)] == [1, 2, 1]


@pytest.mark.parametrize("content", ["text", 7, None, bytearray(b"x")])
def test_only_bytes_are_sealed(content: object) -> None:
    """What is not bytes is refused by name before anything of it is remembered."""
    engine = engine_over()
    batch = engine.batch(opened(engine))
    with pytest.raises(InputError, match=f"of type {type(content).__name__}; pass bytes"):
        batch.cell(content)  # type: ignore[arg-type]
    assert batch.empty


def test_only_what_nobody_waits_for_is_packed_at_once(tmp_path: Path) -> None:
    """Contents lie raw as they were appended, unless the writer says that time may be spent on space."""
    engine, text = two_engines(tmp_path)[0], b"the same words " * 99
    key = opened(engine)
    for dense, more in ((None, {}), (False, {"dense": False}), (True, {"dense": True})):
        batch = engine.batch(key)
        say(batch, text + repr(dense).encode())
        batch.commit(0, **more)
    batch = engine.batch(key)
    say(batch, text)
    batch.close(0)
    engine.append([batch])
    with SqliteLog(tmp_path / "log.sqlite").file as db:
        forms = [form for (form,) in db.execute("SELECT form FROM frames ORDER BY first")]
    assert forms == [RAW, RAW, RAW, ZSTD, RAW]


def test_a_long_call_folds_twice_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece is as many commits as hold twice the mutations of the call, so that no writer is ahead for ever."""
    monkeypatch.setattr(gate, "FOLDED_MIN", 5)
    engine = engine_over()
    key = opened(engine)
    for n in range(60):
        batch = engine.batch(key)
        say(batch, b"%d" % n)
        batch.commit(0)
    assert engine.projection.ordinal == 0
    monkeypatch.setattr(gate, "UNSETTLED_MAX", 20)
    batch = engine.batch(key)
    for n in range(10):
        say(batch, b"%d" % n)
    batch.commit(0)
    mutations, commits = 2 + 60 + 10, 62
    assert engine.projection.ordinal == 1 + commits * 2 * 10 // mutations
    say(batch := engine.batch(key), b"a short one")
    before = engine.projection.ordinal
    batch.commit(0)
    assert engine.projection.ordinal == before + 1 + (commits + 1) * 5 // (mutations + 1)
