"""What a writer asks of its session is answered from what was just written, not by folding views for each commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from tests.store.test_by_hand import MESSAGE, SKELETON, create, pack, store_of
from vmstore.core.address import page_name
from vmstore.core.mutation import Message, Update
from vmstore.engine import engine as gate
from vmstore.store.session import Session
from vmstore.store.store import memory_store

PLAIN = b'{"role":"user","content":{"\\u0000t":0}}'


def write_rounds(session: Session, rounds: int) -> list[tuple[int, int]]:
    """Message by message, a commit each: a page in the commit after, its update in the next, and a pack of it."""
    made, ends = [], len(session.calls())
    for nth in range(rounds):
        with session.batch() as batch:
            message = batch.add(Message(1, 2, batch.cell(PLAIN)))
        with session.batch() as batch:
            page = batch.add(create(batch, b"said %d" % nth, message))
        with session.batch() as batch:
            at = batch.add(Update(page, 2, batch.cell(b"meant %d" % nth), len(b"meant %d" % nth), 1))
        with session.batch() as batch:
            batch.add(pack(batch, [(page, at, 0, 1_024 * (ends + nth + 1))]))
        made.append((message, page))
    return made


def test_commits_by_hand_fold_no_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits that name what the commits before them brought bring no view to the end of the log."""
    with memory_store() as store:
        session = store.session("t", create=True)
        folded = list[int]()
        follow = store._ns.engine.follow
        monkeypatch.setattr(store._ns.engine, "follow", lambda: folded.append(1) or follow())
        before = store._ns.log.ordinal
        write_rounds(session, 20)
        assert store._ns.log.ordinal == before + 80 and len(folded) < 3
        assert len(session.context().shown) == 20
        assert store.verify().ok


def test_pages_that_the_views_hold_are_looked_up_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack beside pages that are no longer at hand asks the views of them without bringing these to the log's end."""
    monkeypatch.setattr(gate, "NEAR_MAX", 1)
    with memory_store() as store:
        session = store.session("t", create=True)
        write_rounds(session, 8)
        stands = store._ns.engine.follow()
        write_rounds(session, 2)
        assert store._ns.projection.ordinal == stands
        assert len(session.context().shown) == 10 and store.verify().ok


def test_a_message_to_a_live_session_folds_no_view() -> None:
    """A session that remembers no other asks no view when somebody says something."""
    with memory_store() as store:
        live = store.live_session("live", l0_tokens_max=4_000)
        live.user("Where is the parser?")
        before = store._ns.projection.ordinal
        live.user("And the printer?")
        assert store._ns.projection.ordinal == before < store._ns.log.ordinal


@pytest.mark.parametrize("kept", [1, 3, 7])
def test_what_lies_before_what_is_at_hand_is_looked_up(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few mutations a head keeps at hand, it says of each page and message what the views say."""
    monkeypatch.setattr(gate, "NEAR_MAX", kept)
    with memory_store() as store:
        session = store.session("t", create=True)
        for _ in range(4):
            made = write_rounds(session, 3)
            session.info()  # the views follow, and the head settles
            head = store._ns.engine.head(session._key)
            for message, page in made:
                assert head.has_message(message) and head.version(page) == 2 and head.version(message) is None
                assert not head.has_message(page) and not head.has_message(head.position + 1)
                row: Any = store.admin.views.execute(
                    "SELECT version, tokens, commitment FROM versions WHERE session = ? AND page = ? AND version = 2",
                    (session._key, page),
                ).fetchone()
                content = head.content(page + 1)
                assert content is not None and (content.version, content.tokens, content.commitment) == row


def test_a_skeleton_that_an_earlier_pack_changed_is_the_one_that_counts() -> None:
    """A hole that a pack of an earlier batch took out of a skeleton is not put back by a later one."""
    with store_of() as store:
        session = store.session("s")
        with session.batch() as batch:
            batch.add(pack(batch, envelopes=((MESSAGE, batch.cell(b'{"role":"user","content":[{"\\u0000t":0}]}')),)))
        with session.batch() as batch, refused("holes_are_fitted"):
            batch.add(pack(batch, envelopes=((MESSAGE, batch.cell(SKELETON)),)))


def test_what_was_erased_is_not_remembered_as_looked_at(tmp_path: Path) -> None:
    """After an erasure the gate remembers nothing of the cells that batches by hand looked at."""
    with vmstore.open(tmp_path / "a.vms") as store:
        session = store.session("t", create=True)
        ((_, page), *_) = write_rounds(session, 2)
        engine = store._ns.engine
        assert engine.known.looked.holes and engine.known.looked.fit
        vmstore.erase(store, page=page_name(page), in_session="t")
        engine.follow()
        assert not engine.known.looked.holes and not engine.known.looked.fit
