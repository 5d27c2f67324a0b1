"""Mutations of one's own: a session as the backend of somebody else's memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import chat
from tests.refusals import refused
from vmstore.core.mutation import Create, Link, Update
from vmstore.core.page import LinkKind, Modality, PageType, Role
from vmstore.engine.batch import Batch
from vmstore.errors import ConflictError, CorruptError, InputError
from vmstore.store.store import memory_store


def made(batch: Batch, content: bytes) -> int:
    """A claim page that no message holds."""
    return batch.add(
        Create(
            PageType.CLAIM, Modality.TEXT, Role.ASSISTANT, 0, 0, batch.cell(content), len(content), len(content) // 4
        )
    )


def test_a_batch_is_one_commit(store_path: Path) -> None:
    """What a block adds is one commit, durable when it ends, at the time told."""
    with vmstore.open(store_path) as store:
        session = store.session("s", create=True)
        with session.batch(at_us=1_000_000) as batch:
            first, second = made(batch, b"one"), made(batch, b"two")
            batch.add(Link(second, first, LinkKind.DERIVES))
    with vmstore.open(store_path) as store:
        session = store.session("s")
        assert [page.page for page in session.pages()] == [f"p{first}", f"p{second}"]
        assert [r.target for r in session.lineage.ancestors(f"p{second}")] == [f"p{first}"]
        commit = store.admin.log.tail(0, 100)[-1]
        assert (commit.first, commit.count, commit.at) == (first, 3, 1_000_000)
        assert store.verify().ok


def test_a_refused_batch_writes_nothing() -> None:
    """A mutation that breaks a rule is named, and nothing of its block is written."""
    session = memory_store().session("s", create=True)
    with refused("page_exists"), session.batch() as batch:
        made(batch, b"one")
        batch.add(Update(99, 2, batch.cell(b"x"), 1, 1))
    assert session.pages() == [] and session.info().position == 1


def test_an_empty_batch_writes_nothing() -> None:
    """A block that adds nothing leaves the log as it was."""
    session = memory_store().session("s", create=True)
    with session.batch():
        pass
    assert session.info().position == 1


def test_a_batch_that_was_overtaken_conflicts(store_path: Path) -> None:
    """A block during which another handle wrote to the session is refused whole."""
    with vmstore.open(store_path) as store, vmstore.open(store_path) as other:
        session = store.session("s", create=True)
        with pytest.raises(ConflictError), session.batch() as batch:
            made(batch, b"mine")
            with other.session("s").batch() as theirs:
                page = made(theirs, b"theirs")
        assert session.content(f"p{page}") == b"theirs"
        with session.batch() as batch:
            made(batch, b"mine, again")
        assert len(session.pages()) == 2


def test_calls_go_on_after_a_batch() -> None:
    """A conversation is recorded on after a batch wrote to its session, with the batch's pages beside it."""
    store = memory_store()
    store.record("s", chat("hello"))
    session = store.session("s")
    with session.batch() as batch:
        page = made(batch, b"remember this")
    store.record("s", chat("hello", "again"))
    assert session.wire.request(call=2) == chat("hello", "again")
    assert f"p{page}" in [p.page for p in session.pages()]
    assert store.verify().ok


def test_what_cannot_be_written_is_met_at_the_door() -> None:
    """A time no log can hold, content that is no bytes and what is no mutation are named, and nothing is written."""
    session = memory_store().session("s", create=True)
    for at in (2**70, "noon"):
        with refused("not-a-time", InputError), session.batch(at_us=at) as batch:  # type: ignore
            made(batch, b"x")
    with refused("not-bytes", InputError), session.batch() as batch:
        batch.cell("text")  # type: ignore[arg-type]
    with refused("not-a-mutation", InputError), session.batch() as batch:
        batch.add("create")  # type: ignore[arg-type]
    assert session.info().position == 1 and session.pages() == []


def test_a_batch_committed_by_hand_is_not_committed_again(store_path: Path) -> None:
    """A batch that was committed in its block is there once, the store is sound, and the session goes on."""
    with vmstore.open(store_path) as store:
        session = store.session("s", create=True)
        with session.batch() as batch:
            made(batch, b"one")
            batch.commit(1_000_000)
        with session.batch() as batch:
            made(batch, b"two")
        assert len(session.pages()) == 2 and store.verify().ok


def test_a_spent_batch_takes_nothing_more() -> None:
    """After its commit or its block a batch refuses mutations, cells and commits, and says to begin another."""
    session = memory_store().session("s", create=True)
    with session.batch() as batch:
        made(batch, b"one")
        batch.commit(1)
        for act in (lambda: made(batch, b"two"), lambda: batch.cell(b"one"), lambda: batch.commit(1)):
            with refused("batch-ended", ConflictError):
                act()
    with session.batch() as ended:
        pass
    with refused("batch-ended", ConflictError):
        made(ended, b"three")
    assert len(session.pages()) == 1


def test_the_log_refuses_what_follows_nothing(store_path: Path) -> None:
    """A batch that forgets where it began is refused by the log itself, and the store stays whole."""
    with vmstore.open(store_path) as store:
        session = store.session("s", create=True)
        with session.batch() as batch:
            made(batch, b"one")
            batch.commit(1)
            batch._batch._spent = ""
            with refused("overtaken", ConflictError):
                batch.commit(1)
        assert store.verify().ok


def test_views_that_are_wrong_end_no_chain(store_path: Path) -> None:
    """Where the views give another hash for a session than the log, nothing is appended to it."""
    with vmstore.open(store_path) as store, store.session("s", create=True).batch() as batch:
        made(batch, b"one")
    with vmstore.open(store_path) as store:
        assert len(store.session("s").pages()) == 1
        store.admin.views.execute("UPDATE sessions SET hash = zeroblob(32)")
        with refused("other-hash", CorruptError), store.session("s").batch() as batch:
            made(batch, b"two")
        store.admin.rebuild()
        with store.session("s").batch() as batch:
            made(batch, b"two")
        assert store.verify().ok
