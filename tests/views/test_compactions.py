"""Compactions: summaries that replaced pages of the prompt, in sessions of every origin, as of any moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vmstore
from vmstore.store.store import Store, memory_store

CHAT = [
    {"role": "user", "content": "Where is Kyoto, and how do we get there? " * 5},
    {"role": "assistant", "content": "In Japan. Take the train to the station, platform four. " * 5},
]
AGAIN = {"role": "user", "content": "And Nara?"}


def talked(store: Store, asked: str = "They asked") -> vmstore.Session:
    """A session whose second call has a summary in place of two messages, and whose third has one of them again."""
    summary = {"role": "user", "content": f"<summary>{asked} for Kyoto.</summary>"}
    for messages in ([*CHAT, AGAIN], [summary, AGAIN], [summary, CHAT[1], AGAIN], [summary, AGAIN], [AGAIN]):
        store.record("talk", {"model": "m-1", "messages": messages})
    return store.session("talk")


def test_a_summary_replaces_the_pages_it_was_made_from_that_left_with_its_first_pack() -> None:
    """One compaction is told, at the call that has the summary first, with what left, its tokens and what came back."""
    store = memory_store()
    session = talked(store)
    (made,) = session.lineage.compactions()
    gone = [change for change in session.diff(1, 2).changes if change.change == "left"]
    assert (made.session, made.call, made.left) == ("talk", 2, [change.page for change in gone])
    assert made.tokens == sum(change.tokens_before for change in gone) and made.text.startswith("<summary>")
    assert (made.pages, made.returned) == (2, [made.left[1]])
    assert [call.compacted for call in session.calls()] == [0, 2, 0, 0, 0]
    row = store.query("COMPACTIONS session, call, pages, tokens, summary, returned, left").to_dicts()[0]
    assert tuple(row.values()) == ("talk", 2, 2, made.tokens, made.summary, 1, made.left)
    assert store.query("CALLS sum(compacted)").to_dicts() == [{"sum(compacted)": 2}]


def test_compactions_are_of_the_moment_asked_of() -> None:
    """Before the call there is none, at it nothing has come back, and a fork from before knows of none."""
    store = memory_store()
    session = talked(store)
    assert session.lineage.compactions(call=1) == []
    assert session.lineage.compactions(call=2)[0].returned == []
    assert session.fork("before", call=1).lineage.compactions() == []
    child = session.fork("after", call=2)
    assert child.lineage.compactions() == session.lineage.compactions(call=2)
    assert [row["session"] for row in store.query("COMPACTIONS session ACROSS SESSIONS").to_dicts()] == ["talk"]


def test_a_statement_has_the_compactions_of_its_moments() -> None:
    """COMPACTIONS has none before the call, none come back at it, and none where the question begins after it."""
    store = memory_store()
    talked(store)
    asked = "COMPACTIONS call, returned IN SESSION talk "
    assert store.query(asked + "AS OF CALL 1").to_dicts() == []
    assert store.query(asked + "AS OF CALL 2").to_dicts() == [{"call": 2, "returned": 0}]
    assert store.query(asked + "BETWEEN CALL 1 AND CALL 5").to_dicts() == [{"call": 2, "returned": 1}]
    assert store.query(asked + "BETWEEN CALL 3 AND CALL 5").to_dicts() == []


def test_a_summary_that_no_page_leaves_for_is_no_compaction() -> None:
    """A summary that stands beside what it sums up replaces nothing."""
    store = memory_store()
    session = store.live_session("s", l0_tokens_max=100_000)
    session.user("Tell me of the archive. " * 20)
    session.assistant("About the archive there is much to say. " * 20)
    session.pack()
    session.record(None)
    assert session.lineage.compactions() == []


def test_a_live_session_is_compacted_by_its_segments() -> None:
    """Where a segment was summed up, the next call has its summary in the place of what was said."""
    store = memory_store()
    options: dict[str, Any] = {"l0_tokens_max": 100_000, "tags": "keyword", "compaction": True, "pinned_turns": 1}
    session = store.live_session("s", **options)
    for n, topic in enumerate(("garden fence", "garden fence", "piano lesson", "piano lesson", "garden")):
        session.user(f"What about the {topic}, and what does the {topic} cost?")
        session.pack()
        session.assistant(f"The {topic} costs {100 + n} EUR. " + f"It is a {topic}, like any other. " * 14)
    summaries = session.compact()
    assert session.lineage.compactions() == []
    session.user("And the fence?")
    session.pack()
    made = session.lineage.compactions()
    assert [item.summary for item in made] == summaries and {item.call for item in made} == {6}
    assert sum(item.pages for item in made) == 8 and all(row.tokens > row.summary_tokens for row in made)


def test_erasing_and_rebuilding_keep_what_is_known_of_a_compaction(tmp_path: Path) -> None:
    """An erased summary is told with what left for it and none of its words, also by views that were made again."""
    with vmstore.open(tmp_path / "a.vms") as store:
        before = talked(store).lineage.compactions()
        store.trust.erase(page=before[0].summary, in_session="talk")
    for views in (tmp_path / "a.vms").rglob("views-*"):
        views.unlink()
    with vmstore.open(tmp_path / "a.vms") as store:
        (after,) = store.session("talk").lineage.compactions()
        assert (after.left, after.tokens, after.call) == (before[0].left, before[0].tokens, 2)
        assert "Kyoto" not in after.text and "erased" in after.text
        assert store.verify().ok
