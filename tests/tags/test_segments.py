"""Segments as rows: of any moment, on forks, after a rewind and a rebuild, and what came before and after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vmstore
from tests.refusals import refused
from vmstore.errors import InputError, UnknownError

ON: dict[str, Any] = {"l0_tokens_max": 100_000, "tags": "keyword", "compaction": True, "pinned_turns": 1}
TOPICS = ("garden fence", "piano lesson", "database index")


def talk(session: vmstore.Live, turns: int, since: int = 0) -> None:
    """Turns of three topics, two turns each."""
    for n in range(since, since + turns):
        topic = TOPICS[n // 2 % 3]
        session.user(f"What about the {topic}, and what does the {topic} cost?")
        session.pack()
        session.assistant(f"The {topic} costs {100 + n} EUR. " + f"It is a {topic}, like any other. " * 14)


def rows(store: vmstore.Store, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in store.query(query).to_dicts()]


STANDING = "number, layer, first_turn, last_turn, state"


def test_segments_are_rows_as_of_any_moment() -> None:
    """Each segment tells its turns, tags, tokens and summary, and what it told at an earlier turn it tells still."""
    store = vmstore.memory_store()
    session = store.live_session("s", **ON)
    talk(session, 6)
    text = f"SEGMENTS {STANDING} WHERE session = 's'"
    assert rows(store, text) == [(1, 0, 1, 2, "ended"), (2, 0, 3, 4, "ended"), (3, 0, 5, 6, "open")]
    summaries = session.compact()
    assert rows(store, text) == [(1, 1, 1, 2, "fresh"), (2, 1, 3, 4, "fresh"), (3, 1, 5, 6, "stale")]
    row = session.memory.segments.all()
    assert [segment.summary for segment in row] == summaries
    assert all(segment.tokens_after < segment.tokens_before for segment in row)
    assert row[0].tags == ["fence", "garden"] and row[0].title == "garden, fence" and row[0].pages == 4
    at_turn_3 = [(1, 0, 1, 2, "ended"), (2, 0, 3, 3, "open")]
    assert rows(store, f"SEGMENTS {STANDING} AS OF TURN 3 WHERE session = 's'") == at_turn_3
    child = session.fork("child", turn=3)
    assert [segment.last_turn for segment in child.memory.segments.all()] == [2, 3]


def test_what_is_said_after_a_summary_makes_its_segment_stale_until_the_next() -> None:
    """A segment whose last turn stands in no summary is stale, and fresh once a further summary has it."""
    store = vmstore.memory_store()
    session = store.live_session("s", **ON)
    talk(session, 4)
    session.compact()
    assert [segment.state for segment in session.memory.segments.all()] == ["fresh", "stale"]
    talk(session, 1, 4)
    (further,) = session.compact()
    second = session.memory.segments.all()[1]
    assert (second.state, second.summary) == ("fresh", further)
    assert second.tokens_after < second.tokens_before


def test_a_rebuild_gives_the_same_segments(tmp_path: Path) -> None:
    """Segments are folded from the log: a store whose views were deleted tells the same, and verifies."""
    with vmstore.open(tmp_path / "a.vms") as store:
        session = store.live_session("s", **ON)
        talk(session, 6)
        session.compact()
        before = session.memory.segments.all()
    for views in (tmp_path / "a.vms").rglob("views-*"):
        views.unlink()
    with vmstore.open(tmp_path / "a.vms") as store:
        assert store.session("s").memory.segments.all() == before
        assert store.verify().ok


def test_what_was_undone_is_in_no_segment() -> None:
    """After a rewind the segments are those of the moment it went back to, and what is said next goes on with them."""
    store = vmstore.memory_store()
    session = store.live_session("s", **ON)
    talk(session, 2)
    before = session.memory.segments.all()
    session.mark("here")
    talk(session, 3, 2)
    session.rewind("here")
    assert session.memory.segments.all() == before
    talk(session, 2, 2)
    assert [segment.number for segment in session.memory.segments.all()] == [1, 2]


def test_segments_before_and_after_one_cross_sessions() -> None:
    """The segments before one lead back to earlier sessions that it goes on from, those after it on to forks."""
    store = vmstore.memory_store()
    session = store.live_session("s", **ON)
    talk(session, 6)
    memory = session.memory
    assert [segment.number for segment in memory.segments.ancestors()] == [1, 2]
    assert [segment.number for segment in memory.segments.ancestors(2)] == [1]
    assert [segment.number for segment in memory.segments.descendants(1)] == [2, 3]
    child = session.fork("child", turn=4)
    assert [segment.number for segment in child.memory.segments.ancestors(2)] == [1]
    with refused("unknown", UnknownError):
        memory.segments.ancestors(9)


def test_a_tag_is_expanded_and_collapsed() -> None:
    """How deep a tag is shown stays so until it is said otherwise, is asked as of any moment, and is said once."""
    store = vmstore.memory_store()
    session = store.live_session("s", **ON)
    talk(session, 2)
    memory, before = session.memory, session.info().mutations
    memory.tags.alias("paling", "fence")
    memory.tags.expand("paling")
    memory.tags.expand("fence")
    depth = {tag.tag: tag.depth for tag in memory.tags.all()}
    assert depth["fence"] == "full" and depth["garden"] == "summary"
    assert session.info().mutations == before + 2, "the second expand changes nothing"
    memory.tags.collapse("fence", "none")
    assert {tag.tag: tag.depth for tag in memory.tags.all()}["fence"] == "none"
    assert {tag.tag: tag.depth for tag in memory.tags.all(position=session.info().position - 1)}["fence"] == "full"
    with refused("input", InputError):
        memory.tags.expand("fence", "wide")
    with refused("unknown", UnknownError):
        memory.tags.expand("opera")


def test_a_rewind_restores_tags_names_and_depths() -> None:
    """What names count as, how deep tags are shown and the tags of older pages are after a rewind as they were."""
    store = vmstore.memory_store()
    session = store.live_session("s", **ON)
    talk(session, 2)
    memory = session.memory
    memory.tags.alias("paling", "fence")
    memory.tags.expand("fence", "segments")
    session.mark("here")
    before = memory.tags.all()
    memory.tags.alias("paling", "garden")
    memory.tags.alias("plot", "garden")
    memory.tags.expand("fence")
    memory.tags.collapse("garden", "none")
    page = next(page.page for page in session.pages() if page.type == "transcript")
    memory.tags.give(page, "barn", remove=["fence"])
    assert memory.tags.all() != before
    session.rewind("here")
    after = [tag for tag in memory.tags.all() if tag.pages]
    assert after == [tag for tag in before if tag.pages]
    spoken = session.runtime().spoken
    assert spoken.aliases["paling"] == "fence" and spoken.aliases["plot"] is None
    assert not any("barn" in tags for tags in spoken.tags.values())
    assert session.debug.check().ok and store.verify().ok


def test_closing_ends_the_segment_under_way() -> None:
    """With compaction a closed session has no open segment and is summed up; taken up again it begins another."""
    store = vmstore.memory_store()
    session = store.live_session("s", **ON)
    talk(session, 4)
    assert session.close().status == "completed"
    assert [segment.state for segment in session.memory.segments.all()] == ["fresh", "stale"]
    assert session.info().status == "completed"
    session.user("One more thing about the piano lesson?")
    assert [segment.number for segment in session.memory.segments.all()] == [1, 2, 3]
    without = store.live_session("plain", l0_tokens_max=100_000)
    talk(without, 1)
    written = without.info().mutations
    without.close()
    assert without.info().mutations == written + 1, "without compaction nothing else is written"
    assert session.debug.check().ok and store.verify().ok
