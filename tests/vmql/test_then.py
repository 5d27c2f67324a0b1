"""The past answers as it did when it was the present: every column of every relation, whatever came after."""

from __future__ import annotations

from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.author import DEEDS as OTHERS
from tests.engine.author import NUMBER, Author, Deed, engine_over
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.namespace.namespace import Namespace
from vmstore.store.store import Store
from vmstore.views.projection import Projection
from vmstore.vmql.relations import calls
from vmstore.vmql.relations.catalog import RELATIONS

DEEDS = (*OTHERS, "say", "say", "pack", "tool_call", "guard", "promote", "redact")
STORIES = st.lists(st.builds(Deed, st.sampled_from(DEEDS), NUMBER, NUMBER, NUMBER, NUMBER), min_size=12, max_size=40)
ASKED = {name: f"{name} {', '.join(relation.fields)}" for name, relation in RELATIONS.items()}
"""Every relation with all of its columns."""


def store_of(author: Author) -> Store:
    """A store over the log of an author, with views of its own."""
    log = author.engine.log
    projection, clock = Projection(log, apsw.Connection(":memory:")), ManualClock(1_000, 7)
    return Store(Namespace(log, projection, place=None, readonly=False, clock=clock, ids=SeededIds(1)))


def moved(story: list[Deed], cut: int) -> list[str]:
    """What a session answers of a moment of its past otherwise than it did when the story stood there."""
    author = Author(engine_over())
    author.write(story[:cut])
    store = store_of(author)
    ends = {info.session: info.position for info in store.sessions()}
    then: dict[tuple[str, str], Any] = {
        (session, name): store.query(f"{asked} IN SESSION '{session}'").to_dicts()
        for session in ends
        for name, asked in ASKED.items()
    }
    author.write(story[cut:])
    store, changes = store_of(author), []
    for (session, name), rows in then.items():
        text = f"{ASKED[name]} IN SESSION '{session}' AS OF POSITION {ends[session]}"
        now = store.query(text).to_dicts()
        if now != rows:
            other = {key for row, later in zip(rows, now, strict=False) for key in row if row[key] != later[key]}
            changes.append(f"{name} of {session} at {ends[session]}: {len(rows)} and {len(now)} rows, {sorted(other)}")
    return changes


@given(STORIES, st.integers(3, 30))
def test_the_past_answers_as_it_did(story: list[Deed], cut: int) -> None:
    """Each relation as of a position has the rows that it had when the session stood there, in every column."""
    assert moved(story, cut) == []


def test_a_policy_of_a_past_moment_is_that_of_the_moment() -> None:
    """What a session does with secrets is told as it stood then, a fork's as what it left, also by its time."""
    author = Author(engine_over())
    author.write([Deed("redact", b=1), Deed("end"), Deed("fork", a=1), Deed("redact", b=2), Deed("end")])
    store = store_of(author)
    opened = store.session("s1").info().position - 1
    assert list(store.query("SESSIONS redaction IN SESSION 's1'")) == [("refuse",)]
    assert list(store.query(f"SESSIONS redaction IN SESSION 's1' AS OF POSITION {opened}")) == [("mask",)]
    assert list(store.query("SESSIONS redaction IN SESSION 's0' AS OF POSITION 1")) == [("off",)]


def test_a_planted_fault_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that tells the head's value of every moment is found out."""
    assert "redaction" in calls.SESSIONS.fields
    field = calls.SESSIONS.fields["redaction"]
    monkeypatch.setitem(calls.SESSIONS.fields, "redaction", field._replace(sql="s.redaction"))
    story = [Deed("redact", b=1), Deed("end"), Deed("redact", b=2), Deed("end")]
    assert "['redaction']" in str(moved(story, 2))
