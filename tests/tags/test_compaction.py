"""Compaction: segments end where the topic changes, and are summed up by themselves as the prompt fills."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.mutation import Segment
from vmstore.core.tags import TagMethod
from vmstore.errors import InputError
from vmstore.tags.exact import APPENDED_CHARS_MAX, completed, missing
from vmstore.tags.segment_cut import SITTING_US, ends
from vmstore.tags.tagger import FoundTag
from vmstore.testing.live_laws import live_is_replayed, mutations, repeated_run
from vmstore.testing.simulate_live import LiveRun

ON: dict[str, Any] = {
    "l0_tokens_max": 3_000,
    "tags": "keyword",
    "compaction": True,
    "pinned_turns": 2,
    "rules": "short",
}
TOPICS = ("database index", "garden fence", "piano lesson")


def talk(session: vmstore.Live, turns: int, since: int = 0, length: int = 12) -> None:
    """Turns of three topics, four turns each, with long answers that have a number of their own."""
    for n in range(since, since + turns):
        topic = TOPICS[n // 4 % 3]
        session.user(f"What about the {topic}, number {n}, of the {topic}?")
        session.pack()
        session.assistant(
            f"The {topic} costs {1000 + n} EUR at Miller and Sons. " + f"It is a {topic} like any other. " * length
        )


@pytest.fixture
def store() -> vmstore.Store:
    """A store in memory."""
    return vmstore.memory_store()


def test_segments_end_where_the_topic_changes(store: vmstore.Store) -> None:
    """Each run of turns about one thing is a segment; its end is told before the turn that begins the next."""
    session = store.live_session("s", **{**ON, "l0_tokens_max": 100_000})
    talk(session, 12)
    ended = [mutation for _, mutation in mutations(session) if isinstance(mutation, Segment)]
    assert [(m.number, m.summary) for m in ended] == [(1, None), (2, None)]
    segments = {}
    for page in session.pages():
        managed = session.runtime().state.pages[page.position]
        if managed.message and managed.role:
            segments.setdefault(managed.segment, set()).add(managed.created)
    assert {k: v - {0} for k, v in segments.items()} == {0: {1, 2, 3, 4}, 1: {5, 6, 7, 8}, 2: {9, 10, 11, 12}}
    assert session.pages(type="summary") == [], "there was room for all of it"


def test_a_session_compacts_by_itself_in_order(store: vmstore.Store) -> None:
    """As the prompt fills, what ended is summed up oldest first, and no call is over its budget."""
    session = store.live_session("s", **ON)
    talk(session, 24)
    summaries = session.pages(type="summary")
    assert len(summaries) >= 3
    firsts = [min(int(link.target[1:]) for link in session.lineage.ancestors(page.page, depth=1)) for page in summaries]
    assert firsts == sorted(firsts)
    covered = [link.target for page in summaries for link in session.lineage.ancestors(page.page, depth=1)]
    assert len(covered) == len(set(covered)), "a page stands in one summary"
    assert all(call.tokens <= 3_000 for call in session.calls())
    assert session.debug.check().ok and store.verify().ok


def test_exact_numbers_survive(store: vmstore.Store) -> None:
    """Every price of the first segment stands in its summary, though the summary is shorter than the segment."""
    session = store.live_session("s", **ON)
    talk(session, 24)
    first = session.pages(type="summary")[0]
    text = session.content(first.page).decode()
    sources = [int(link.target[1:]) for link in session.lineage.ancestors(first.page, depth=1)]
    other_text = "".join(session.content(page).decode() for page in sources)
    wanted = [str(1000 + n) for n in range(24) if f"costs {1000 + n} EUR" in other_text]
    assert wanted and all(number in text for number in wanted) and len(text) < len(other_text)


def test_compact_by_hand_leaves_the_last_turns(store: vmstore.Store) -> None:
    """All but the last turns is summed up, a segment at a time; a second time there is nothing to do."""
    session = store.live_session("s", **{**ON, "l0_tokens_max": 100_000, "compaction": False})
    talk(session, 6)
    assert session.pages(type="summary") == []
    made = session.compact()
    assert len(made) == 1 and session.compact() == []
    assert "summary_1" in session.pack().pages and session.page("summary_1").page == made[0]
    assert session.debug.check().ok


def test_a_tool_chain_is_never_cut(store: vmstore.Store) -> None:
    """A turn that calls tools leaves with all its calls and results, or stays with all of them."""
    session = store.live_session("s", **ON)
    for n in range(12):
        session.user(f"Look at the {TOPICS[n % 3]} again, the {TOPICS[n % 3]}.")
        for call in range(2):
            session.pack()
            name = f"c{n}_{call}"
            function = {"name": "look", "arguments": "{}"}
            session.assistant(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": name, "type": "function", "function": function}],
                }
            )
            session.tool(name, f"It stands there, {n}. " * 20)
        session.pack()
        session.assistant("Seen.")
    state = session.runtime().state
    for summary in session.pages(type="summary"):
        sources = {int(link.target[1:]) for link in session.lineage.ancestors(summary.page, depth=1)}
        turns = {state.pages[page].created for page in sources}
        whole = {p.page for p in state.pages.values() if p.created in turns and p.message and p.role and not p.pinned}
        assert sources == whole
    assert session.pages(type="summary") and session.debug.check().ok


def test_marks_that_contradict_are_refused(store: vmstore.Store) -> None:
    """A soft mark over the hard one is refused with both."""
    with refused("not-a-setting", InputError):
        store.live_session("s", **{**ON, "compact_soft": 0.9, "compact_hard": 0.8})


def test_the_laws_hold_with_compaction() -> None:
    """A session that compacts is replayed to what lived, and writes the same after each death."""
    settings = {"tags": "keyword", "compaction": True, "compact_soft": 0.2, "compact_hard": 0.3}
    steps = [(act, n, n % 5) for n, act in enumerate(["user", "pack", "model"] * 12)]
    run = LiveRun(calm=True, **settings)
    for step in steps:
        run.play(step)
    assert run.session.pages(type="summary")
    live_is_replayed(run)
    assert run.session.debug.check().ok
    run.close()
    repeated_run([("configure", 8, 0), *steps])


def test_what_is_missing_of_the_exact_is_appended() -> None:
    """Numbers, names, symbols and states that a summary lost are added at its end, in their order, within a bound."""
    paid = "We pay $1,250 to Anna Berg by 2026-03-02."
    texts = [f"{paid} The migration is still blocked; see retry_budget in src/db/pool.py."]
    lost = ["$1,250", "2026-03-02", "Anna Berg", "retry_budget", "src/db/pool.py", "The migration is still blocked"]
    assert sorted(missing(texts, "We pay somebody.")) == sorted(lost)
    whole = completed(texts, "We pay somebody.")
    assert whole.startswith("We pay somebody.\nAlso: ") and "blocked" in whole
    assert completed(texts, whole) == whole, "nothing is added twice"
    many = [" ".join(f"{n}{n} ms" for n in range(10, 900))]
    assert len(completed(many, "Short.")) <= len("Short.\nAlso: ") + APPENDED_CHARS_MAX


def test_a_message_begins_another_segment_or_not() -> None:
    """A new topic and a long pause do; what is inherited, or about nothing, does not."""
    own, taken = [FoundTag("fence", TagMethod.KEYWORD)], [FoundTag("fence", TagMethod.INHERITED)]
    assert ends({"database"}, own, 0) and not ends({"fence"}, own, 0) and not ends(set(), own, 0)
    assert not ends({"database"}, taken, 0) and ends({"fence"}, taken, SITTING_US)
    assert not ends({"database"}, [FoundTag("_general", TagMethod.KEYWORD)], 0)
