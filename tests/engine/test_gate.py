"""The gate writes a batch whole, knows what it sealed, and yields to another writer."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.engine.author import engine_over
from tests.refusals import refused
from vmstore.core.mutation import Configure, Mark, Message, Open, decode
from vmstore.core.page import Origin
from vmstore.engine import engine as gate
from vmstore.engine.batch import Batch
from vmstore.engine.engine import HEADS_MAX, Engine
from vmstore.engine.head import NewSession
from vmstore.errors import ConflictError, RefusedError, UnknownError
from vmstore.log.commit import genesis, relink
from vmstore.log.memory import MemoryLog
from vmstore.log.sqlite import SqliteLog
from vmstore.views.branch import Branch


def opened(engine: Engine, name: str = "s") -> int:
    """Opens a session with one message; its key."""
    batch = engine.begin(NewSession(name), 0)
    batch.add(Message(0, 0, batch.cell(b'"hello %s"' % name.encode())))
    return batch.commit(0)[-1].session


def say(batch: Batch, text: bytes) -> int:
    """Adds a message to a batch."""
    return batch.add(Message(0, 0, batch.cell(b'"%s"' % text)))


def two_engines(folder: Path) -> tuple[Engine, Engine]:
    """Two writers on one log file, as two processes would be."""
    SqliteLog.create(folder / "log.sqlite")
    first, second = (SqliteLog(folder / "log.sqlite") for _ in range(2))
    return engine_over(first, seed=1), engine_over(second, seed=2)


# ---- all or nothing


def test_a_batch_not_committed_writes_nothing() -> None:
    """What a batch took in and ended is not in the log before it is committed."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    say(batch, b"one")
    batch.end(0)
    say(batch, b"two")
    assert (engine.log.ordinal, engine.log.cells([3])) == (1, {})
    assert [c.count for c in batch.commit(0)] == [1, 1]
    assert engine.log.ordinal == 3


def test_an_empty_batch_is_refused() -> None:
    """A commit holds at least one mutation, and ending nothing makes none."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    batch.end(0)
    assert batch.empty
    with refused("empty-batch", ConflictError):
        batch.commit(0)
    assert engine.log.ordinal == 1


def test_commits_are_linked_and_sealed() -> None:
    """Each commit's hash follows from the one before, the first from the session's uid."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    for text in (b"one", b"two", b"three"):
        say(batch, text)
        batch.end(len(text))
    batch.commit(0)
    opening = decode(engine.log.tail(0, 1)[0].body)[0]
    assert isinstance(opening, Open)
    previous = genesis(opening.uid)
    for commit in engine.log.tail(0, 9):
        assert relink(previous, commit) == commit.hash
        previous = commit.hash
    assert engine.head(key).hash == previous


def test_both_clocks_are_logged() -> None:
    """A commit holds when it happened and how much later, by the engine's clock, it was logged."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    batch.add(Configure(1, 2))
    before = engine.clock.now()
    commit = batch.commit(at=-500)[0]
    assert (commit.at, commit.logged_at) == (-500, before + 7)


# ---- cells


def test_content_is_sealed_once_a_session() -> None:
    """The same bytes again are named where they lie: in the commit, an earlier one, one of the batch."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    assert (batch.cell(b'"a"'), batch.cell(b"b"), batch.cell(b'"a"')) == (0, 1, 0)
    first = say(batch, b"a")
    batch.end(0)
    assert batch.cell(b'"a"') == (first, 0)
    say(batch, b"a")
    batch.commit(0)
    again = engine.batch(key)
    assert (again.cell(b'"a"'), again.cell(b"c")) == ((first, 0), 0)
    assert engine.log.ordinal == 3 and len(engine.log.cells(range(99))) == 2 + 2


def test_content_is_not_shared_between_sessions() -> None:
    """Another session seals the same bytes again, under another salt (law 10)."""
    engine = engine_over()
    first, two = opened(engine, "one"), opened(engine, "two")
    commitments = []
    for key in (first, two):
        batch = engine.batch(key)
        assert batch.cell(b"the same") == 0
        say(batch, b"the same")
        commitments.append(batch.commit(0)[0].commitment(0))
    assert commitments[0] != commitments[1]


def test_content_of_a_refused_batch_is_not_named() -> None:
    """Bytes that were sealed for a batch nobody committed are written when they come again."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    say(batch, b"lost")
    again = engine.batch(key)
    assert again.cell(b"lost") == 0
    say(again, b"lost")
    stored = again.commit(0)[0]
    assert engine.log.cells([stored.cell])[stored.cell].content == b"lost"


def test_a_request_id_lies_in_a_cell() -> None:
    """A request id and the digest of what was asked are a cell of their commit, found by the header."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    batch.request("r-1", b"\xab")
    batch.add(Mark(0))
    stored = batch.commit(0)[0]
    assert engine.log.cells([stored.cell + stored.request])[stored.cell].content == b"r-1\nab"
    engine.follow()
    sql = "SELECT request FROM commits WHERE last = ?"
    assert engine.projection.db.execute(sql, (stored.last,)).get == "r-1\nab"


# ---- forks


def test_a_fork_is_one_commit_of_one_mutation() -> None:
    """Forking costs one `open`, linked to its parent's hash at the fork point."""
    engine = engine_over()
    key = opened(engine)
    parent = engine.log.tail(0, 1)[0]
    for n in range(50):
        batch = engine.batch(key)
        say(batch, b"%d" % n)
        batch.commit(0)
    before = engine.log.ordinal
    child = engine.fork(key, parent.last, "f", 0)
    commit = engine.log.tail(before, 9)[0]
    assert (commit.session, commit.first, commit.count) == (child, parent.last + 1, 1)
    assert relink(parent.hash, commit) == commit.hash
    assert len(commit.body) < 60


def test_a_fork_may_stand_on_inherited_ground() -> None:
    """A fork of a fork at a position of the first session starts from that session's hash."""
    engine = engine_over()
    key = opened(engine)
    low = engine.head(key).position
    batch = engine.batch(key)
    say(batch, b"more")
    batch.commit(0)
    child = engine.fork(key, engine.head(key).position, "f", 0)
    grandchild = engine.fork(child, low, "g", 0)
    assert engine.head(grandchild).position == low + 1
    assert Branch(engine.projection.db, grandchild).owner(low) == key


def test_parent_and_child_go_their_ways() -> None:
    """After a fork each writes the same positions, and neither sees the other's (law 7)."""
    engine = engine_over()
    key = opened(engine)
    end = engine.head(key).position
    child = engine.fork(key, end, "f", 0)
    for session, text in ((key, b"parent's"), (child, b"child's")):
        batch = engine.batch(session)
        say(batch, text)
        batch.commit(0)
    engine.follow()
    assert engine.head(key).has_message(end + 1) and not engine.head(key).has_message(end + 2)
    assert engine.head(child).has_message(end + 2) and not engine.head(child).has_message(end + 1)


# ---- other writers


def test_the_second_of_two_batches_conflicts() -> None:
    """Of two batches begun on one position the second writes nothing, reads again and then fits."""
    engine = engine_over()
    key = opened(engine)
    first, second = engine.batch(key), engine.batch(key)
    say(first, b"first")
    say(second, b"second")
    first.commit(0)
    with refused("overtaken", ConflictError):
        second.commit(0)
    assert engine.log.ordinal == 2
    again = engine.batch(key)
    assert say(again, b"second") == 4
    again.commit(0)
    assert engine.head(key).position == 4


def test_another_writer_moves_the_head(tmp_path: Path) -> None:
    """A writer whose session another one moved conflicts once, then decides on what was added."""
    first, two = two_engines(tmp_path)
    key = opened(first)
    two.follow()
    theirs = two.batch(key)
    mine = first.batch(key)
    say(theirs, b"theirs")
    theirs.commit(0)
    say(mine, b"mine")
    with pytest.raises(ConflictError):
        mine.commit(0)
    assert first.head(key).has_message(3)
    again = first.batch(key)
    say(again, b"mine")
    again.commit(0)
    two.follow()
    assert [two.head(1).position, two.log.tail(1, 9)[1].last] == [4, 4]


def test_two_writers_cannot_open_one_name(tmp_path: Path) -> None:
    """Of two writers that open a session of one name the second is refused, or a name would mean two."""
    each_first, two = two_engines(tmp_path)
    first, second = each_first.begin(NewSession("s"), 0), two.begin(NewSession("s"), 0)
    first.commit(0)
    with pytest.raises(RefusedError):
        second.commit(0)
    assert each_first.log.ordinal == 1


def test_opening_sessions_waits_for_no_view(tmp_path: Path) -> None:
    """Who opens sessions alone folds no view, knows the names all the same, and looks again once another opened one."""
    first, two = two_engines(tmp_path)
    keys = [opened(first, f"s{n}") for n in range(5)]
    assert first.projection.ordinal == 0
    assert [first.opened(f"s{n}") for n in range(6)] == [*keys, None]
    with refused("name_is_free"):
        first.begin(NewSession("s3"), 0)
    opened(two, "t")
    with refused("name_is_free"):
        first.begin(NewSession("t"), 0)
    assert (first.projection.ordinal, first.opened("s3")) == (6, None)
    batch = first.batch(keys[3])
    assert say(batch, b"more") == 3
    batch.commit(0)


def test_a_hidden_session_has_a_name_and_no_key(tmp_path: Path) -> None:
    """The name of an import under way is taken, and nobody is handed its session by it."""
    engine = two_engines(tmp_path)[0]
    engine.begin(NewSession("s", hidden=True), 0).commit(0)
    assert engine.opened("s") is None
    with refused("name_is_free"):
        engine.begin(NewSession("s"), 0)


def test_the_views_follow_a_writer_that_never_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past a bound of mutations that no view holds each call folds a piece, until the head can forget them."""
    monkeypatch.setattr(gate, "UNSETTLED_MAX", 20)
    monkeypatch.setattr(gate, "FOLDED_MIN", 5)
    engine = engine_over()
    key = opened(engine)
    ordinals, remembered = [], []
    for n in range(40):
        batch = engine.batch(key)
        say(batch, b"%d" % n)
        batch.commit(0)
        ordinals.append(engine.projection.ordinal)
        remembered.append(len(engine.head(key).recent.mutations))
        assert engine.head(key).has_message(2) and engine.head(key).has_message(n + 3)
        assert not engine.head(key).has_message(n + 4)
    pieces = [later - before for before, later in pairwise(ordinals) if later > before]
    assert len(pieces) > 4 and max(pieces) < 10
    assert max(remembered) < 40 and 0 in remembered


def test_what_held_views_do_not_hold_is_remembered() -> None:
    """While a question holds the views where they are, the gate forgets no name and no mutation they have not seen."""
    engine = engine_over()
    key = opened(engine)
    engine.follow()
    with engine.projection.moment_held():
        batch = engine.batch(key)
        number = say(batch, b"while they are held")
        batch.commit(0)
        later = opened(engine, "t")
        engine.follow()
        assert engine.head(key).has_message(number) and engine.opened("t") == later
        with refused("name_is_free"):
            engine.begin(NewSession("t"), 0)
    engine.follow()
    assert engine.head(key).has_message(number) and not engine.head(key).recent.mutations


def test_a_failed_append_is_unknown_not_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an append that stored and then failed, the engine reads what the log really holds."""
    engine = engine_over()
    key = opened(engine)
    batch = engine.batch(key)
    say(batch, b"stored")
    append = MemoryLog.append

    def failing(*arguments: object, **more: object) -> None:
        append(*arguments, **more)  # type: ignore[arg-type]
        raise OSError("the cable was pulled")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryLog, "append", failing)
        with pytest.raises(OSError, match="cable"):
            batch.commit(0)
    assert engine.head(key).position == 3
    assert say(engine.batch(key), b"next") == 4


# ---- heads


def test_an_unknown_session_is_an_error() -> None:
    """A key the log does not hold is named."""
    with refused("no-session", UnknownError, "session 7"):
        engine_over().head(7)


def test_forgotten_heads_come_back() -> None:
    """More sessions than heads are kept can be written in turn, and no more are kept than the bound."""
    engine = engine_over()
    keys = [opened(engine, f"s{n}") for n in range(HEADS_MAX + 3)]
    assert len(engine._heads) == HEADS_MAX
    for key in keys:
        batch = engine.batch(key)
        assert say(batch, b"again") == 3
        batch.commit(0)
    assert [engine.head(key).position for key in keys] == [3] * len(keys)
    assert len(engine._heads) == HEADS_MAX and keys[-1] in engine._heads


def test_an_opening_tells_everything() -> None:
    """Origin, meta, source, key, parent and hiding of an opening stand in the first mutation."""
    engine = engine_over()
    parent = opened(engine, "parent")
    session = NewSession("s", {"user": "u"}, Origin.SPAWN, parent, 2, "file", b"k" * 16, True, 2)
    commit = engine.begin(session, 5).commit(5)[0]
    opening = decode(commit.body)[0]
    assert isinstance(opening, Open)
    cells = engine.log.cells(range(commit.cell, commit.cell + commit.cell_count))
    texts = {
        ref: cells[commit.cell + ref].content
        for ref in (opening.name, opening.meta, opening.source, opening.key)  # type: ignore[operator]
    }
    assert sorted(texts.values()) == [b"file", b"k" * 16, b"s", b'{"user":"u"}']
    assert (
        opening.origin,
        opening.parent_position,
        opening.hidden,
        opening.spawned_by,
    ) == (Origin.SPAWN, 2, 1, 2)
    assert opening.parent == engine.head(parent).uid
