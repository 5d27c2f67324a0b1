"""Layers of what was said: segments by sittings, summaries of tags, and how deep a prompt shows them."""

from __future__ import annotations

import pytest

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.live.recall.topic_ledger import TopicLedger
from vmstore.store.live.live_session import Live
from vmstore.tags.cover import covering
from vmstore.tags.history import TagHistory
from vmstore.tags.segment_cut import SITTING_US, session_date
from vmstore.views.reads.tags import turns_of_tags
from vmstore.views.reads.turn_topics import tagged_turns

DAY = 86_400_000_000
ON = {"l0_tokens_max": 100_000, "tags": "keyword", "compaction": True, "pinned_turns": 1}
TOPICS = ("garden fence", "piano lesson")


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands at a day in 2024."""
    return ManualClock(20_000 * DAY, 1_000)


@pytest.fixture
def store(clock: ManualClock) -> vmstore.Store:
    """A store in memory."""
    return vmstore.memory_store(clock=clock, ids=SeededIds(1))


def talk(live: Live, topics: list[str], first: int = 0) -> None:
    """Says something of each topic, a turn each."""
    for number, topic in enumerate(topics, first):
        live.user(f"What about the {topic}, and what does the {topic} cost?")
        live.pack()
        live.assistant(f"The {topic} costs {100 + number} EUR at Miller. " + f"It is a {topic}, like others. " * 14)


def layered(store: vmstore.Store) -> Live:
    """A session whose two topics came up twice each, summed up."""
    live = store.live_session("layers", **ON)
    talk(live, [TOPICS[0], TOPICS[0], TOPICS[1], TOPICS[1], TOPICS[0], TOPICS[1], "bread oven"])
    live.compact()
    return live


def test_tags_cover_every_turn_and_no_more_than_needed() -> None:
    """The tag of most turns comes first, one whose turns are covered never, and what is about nothing last."""
    assert covering({"a": {1, 2, 3}, "b": {3}, "c": {4}, "_general": {4, 5}}) == ["a", "c", "_general"]
    assert covering({}) == []


def test_a_tag_with_several_segments_is_summed_up_once_and_again_when_stale(store: vmstore.Store) -> None:
    """Layer 2 has a page for a covering tag with two segments; it is written again only after a further segment."""
    live = layered(store)
    rows = [(row.layer, row.tags, row.state) for row in live.memory.segments.all() if row.layer == 2]
    assert [tags[0] for _, tags, _ in rows] and {state for *_, state in rows} == {"fresh"}
    written = len(live.pages(type="summary"))
    live.compact()
    assert len(live.pages(type="summary")) == written, "nothing new, nothing written"
    talk(live, [TOPICS[0], "bread oven", "bread oven"], 20)
    live.compact()
    names = [page.hint for page in live.pages(type="summary") if (page.hint or "").startswith("topic_")]
    assert len(names) > len(set(names)), "the tag with a further segment was summed up again"
    assert live.debug.check().ok and store.verify().ok


@pytest.mark.parametrize("how", ["pause", "date"])
def test_another_sitting_begins_another_segment(store: vmstore.Store, clock: ManualClock, how: str) -> None:
    """A long pause, or another date at the head of a message, ends the segment though the topic goes on."""
    live = store.live_session("sittings", **ON)
    talk(live, [TOPICS[0]])
    clock.advance(SITTING_US if how == "pause" else 1)
    head = "[Session from 2026/03/17] " if how == "date" else ""
    live.user(f"{head}And the garden fence, is the garden fence done?")
    assert [segment.number for segment in live.memory.segments.all()] == [1, 2]
    live.pack()
    live.assistant("The garden fence is done.")
    live.user(f"{head}And the garden fence, how high is the garden fence?")
    assert [segment.number for segment in live.memory.segments.all()] == [1, 2], "the sitting goes on"
    assert session_date(head) == ("2026/03/17" if head else "")
    assert live.debug.check().ok


def test_a_prompt_shows_a_tag_as_deep_as_it_was_expanded(store: vmstore.Store) -> None:
    """Full brings all that was said, segments their summaries, summary one for all, none nothing; it stays so."""
    live = layered(store)
    tag = next(row.tags[0] for row in live.memory.segments.all() if row.layer == 2)

    def shown() -> tuple[str, dict[str, int]]:
        prompt = live.memory.assemble("Hello?", tokens=3_000, rules=[])
        return prompt.prepend, prompt.breakdown

    live.memory.tags.expand(tag)
    full, parts = shown()
    assert "user: What about" in full and parts["expanded"] > 0
    live.memory.tags.expand(tag, "segments")
    segments, parts = shown()
    assert "user: What about" not in segments and segments.count("[Session: ") >= 2 and parts["expanded"] > 0
    live.memory.tags.collapse(tag)
    summary, parts = shown()
    assert parts["expanded"] == 0 and summary.count("[Session: ") < segments.count("[Session: ")
    live.memory.tags.collapse(tag, "none")
    assert len(shown()[0]) < len(summary)
    assert live.debug.check().ok


def test_summaries_stand_under_the_time_of_what_they_sum_up(store: vmstore.Store, clock: ManualClock) -> None:
    """The head of a summary says when that was said, not when it was written."""
    live = store.live_session("heads", **ON)
    talk(live, [TOPICS[0], TOPICS[0]])
    clock.advance(40 * DAY)
    talk(live, ["bread oven"] * 8, 5)
    live.compact()
    prompt = live.memory.assemble("Hello?", tokens=1_400, rules=[])
    assert "[Session: 2024-10-04" in prompt.prepend


def test_a_turn_costs_what_came_since_the_last(store: vmstore.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that are looked at for tags are as many as were said, and not once more for every turn."""
    looked: list[int] = []
    act = TopicLedger._is_said
    monkeypatch.setattr(TopicLedger, "_is_said", lambda self, page: looked.append(page.page) or act(self, page))
    live = store.live_session("long", l0_tokens_max=100_000, tags="keyword", compaction=True)
    talk(live, [TOPICS[number // 5 % 2] for number in range(24)])
    assert len(looked) == len(set(looked))


def test_tags_of_turns_are_counted_as_they_change() -> None:
    """A turn's tags are replaced, taken away and renamed, and the counts follow."""
    history = TagHistory()
    history.put(1, ["a", "b", "a"])
    history.put(2, ["a"])
    history.rename({"b": "a"})
    assert (history.counts, history.turns_of("a"), history.of(1)) == ({"a": 2}, [1, 2], ("a",))
    history.put(1, [])
    assert (history.counts, history.last(5), len(history)) == ({"a": 1}, [2], 1)


def test_a_rewound_session_counts_as_it_did(store: vmstore.Store) -> None:
    """What was tagged after the moment a session is set back to counts no more."""
    live = store.live_session("back", l0_tokens_max=50_000, tags="keyword")
    talk(live, [TOPICS[0]])
    live.checkpoint("here")
    talk(live, [TOPICS[1]], 1)
    live.rewind("here")
    talk(live, [TOPICS[1]], 2)
    assert [(tag.tag, tag.turns) for tag in live.memory.tags.all() if tag.turns and "fence" in tag.tag] == [
        ("fence", 1)
    ]
    assert live.debug.check().ok


def test_the_tags_of_turns_that_are_kept_are_those_that_stand_in_the_views(store: vmstore.Store) -> None:
    """Asked again after more was tagged, renamed and taken away, of now and of before, they are what the views say."""
    live = store.live_session("kept", l0_tokens_max=50_000, tags="keyword")
    lane = live._lane()

    def same(position: int) -> None:
        history, _ = tagged_turns(lane, position, 0)
        wanted = {turn: set(tags) for turn, tags in turns_of_tags(lane, position).items()}
        assert {turn: set(history.of(turn)) for turn in history.last(99)} == wanted

    moments = []
    for number in range(6):
        talk(live, [TOPICS[number % 2]], number)
        moments.append(live.info().position)
        same(moments[-1])
    live.memory.tags.alias("piano", "keyboard")
    live.memory.tags.give(live.pages(type="transcript")[0].page, "roof", remove=["fence"])
    same(live.info().position)
    for position in moments[::-1]:
        same(position)
    same(live.info().position)
