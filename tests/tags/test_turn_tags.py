"""Tags of whole sessions: live as they go, recorded ones after the fact, re-driven ones, and what replays."""

from __future__ import annotations

from typing import Any

import vmstore
from tests.refusals import refused
from vmstore.live.recall.topic_ledger import TopicLedger
from vmstore.live.runtime import Runtime
from vmstore.testing.live_laws import live_is_replayed, repeated_run
from vmstore.testing.simulate_live import LiveRun

TURNS = [
    ("The database index makes the database slow, can we drop the index?", "Dropping the index helps writes."),
    ("Yes, do that.", "Done."),
    ("Which paint should I buy for the garden fence, and does the fence need primer?", "Oil paint."),
    ("And then?", "Two coats for the fence."),
    ("How about lunch in Lisbon?", "Sure, fish."),
]


def live(store: vmstore.Store, name: str, turns: list[tuple[str, str]] = TURNS, **settings: Any) -> vmstore.Live:
    """A live session of some turns."""
    session = store.live_session(name, l0_tokens_max=8_000, **settings)
    for asked, answered in turns:
        session.user(asked)
        session.pack()
        session.assistant(answered)
    return session


def recorded(store: vmstore.Store, name: str, turns: list[tuple[str, str]] = TURNS, since: int = 0) -> vmstore.Session:
    """The same talk as somebody else's calls, from one turn on."""
    messages: list[dict[str, Any]] = []
    for at, (asked, answered) in enumerate(turns):
        messages.append({"role": "user", "content": asked})
        fields = {"role": "assistant", "content": answered}
        answer = {"choices": [{"message": fields, "finish_reason": "stop"}]}
        if at >= since:
            store.record(name, {"model": "m", "messages": list(messages)}, answer)
        messages.append(fields)
    return store.session(name)


def by_turn(session: vmstore.Session) -> list[tuple[str, int | None, int | None, int, list[str]]]:
    """The tags with where they stand and how they were found."""
    return [
        (tag.canonical, tag.first_turn, tag.last_turn, tag.turns, tag.methods)
        for tag in session.memory.tags.all()
        if tag.tag == tag.canonical
    ]


def test_live_recorded_and_redriven_sessions_are_tagged_alike() -> None:
    """One talk gets the same tags as it happens, after the fact, and told again to a session that tags."""
    with vmstore.memory_store() as store:
        talk = live(store, "live", tags="keyword")
        other = recorded(store, "recorded")
        assert other.memory.turns.tag() == len(TURNS)
        again = store.admin.redrive("recorded", "again", l0_tokens_max=8_000, tags="keyword")
        assert by_turn(talk) == by_turn(other) == by_turn(store.session("again")), again
        assert by_turn(talk)[0] == ("database", 1, 2, 2, ["inherited", "keyword"])
        assert ("fence", 3, 4, 2, ["inherited", "keyword"]) in by_turn(talk)


def test_tagging_twice_tags_nothing_more() -> None:
    """Turns that have tags keep them: a second run writes nothing, and a later one tags the new turns alone."""
    with vmstore.memory_store() as store:
        session = recorded(store, "s", TURNS[:3])
        assert session.memory.turns.tag() == 3
        written = session.info().position
        assert session.memory.turns.tag() == 0 and session.info().position == written
        recorded(store, "s", since=3)
        assert session.memory.turns.tag() == 2
        whole = recorded(store, "whole")
        whole.memory.turns.tag()
        assert by_turn(session) == by_turn(whole)


def test_what_somebody_said_goes_before_the_rule() -> None:
    """A turn that was tagged by hand is not tagged again, and its tag is known from then on."""
    with vmstore.memory_store() as store:
        session = recorded(store, "s")
        session.memory.tags.give(session.pages()[0].page, "fence")
        assert session.memory.turns.tag() == len(TURNS) - 1
        tags = {tag.tag: tag for tag in session.memory.tags.all()}
        assert "database" not in tags and tags["fence"].first_turn == 1


def test_a_session_without_the_setting_has_no_tags() -> None:
    """Tags are off where nobody turned them on, and on from the turn on in which somebody did."""
    with vmstore.memory_store() as store:
        session = live(store, "s", TURNS[:2])
        assert session.memory.tags.all() == []
        session.configure(tags="keyword")
        session.user(TURNS[2][0])
        session.pack()
        session.assistant(TURNS[2][1])
        assert [tag.tag for tag in session.memory.tags.all()] == ["fence", "paint"]
        with refused("not-a-setting", vmstore.InputError):
            session.configure(tags="magic")  # type: ignore[arg-type]


def test_a_broad_tag_is_split_as_the_talk_goes_on() -> None:
    """The fifteenth turn of a tag splits it, live and after the fact alike; the old name counts as the largest part."""
    parts = ["index", "backup", "replica"]
    turns = [(f"The database {parts[at % 3]} of the database is slow, host {at}", "ok") for at in range(15)]
    with vmstore.memory_store() as store:
        talk, other = live(store, "live", turns, tags="keyword"), recorded(store, "recorded", turns)
        assert other.memory.turns.tag() == 15
        assert by_turn(talk) == by_turn(other)
        tags = {tag.tag: tag for tag in talk.memory.tags.all()}
        assert {"database-index", "database-backup", "database-replica"} <= tags.keys()
        assert tags["database"].canonical.startswith("database-") and tags["database"].pages == 0
        assert tags["database-index"].methods == ["split"]


def test_the_laws_hold_with_tags() -> None:
    """A session that tags is replayed to what lived, and writes the same after each death."""
    steps = [(act, n, n % 5) for n, act in enumerate(["user", "pack", "model", "call"] * 6)]
    run = LiveRun(calm=True, tags="keyword")
    for step in steps:
        run.play(step)
    assert run.session.memory.tags.all()
    live_is_replayed(run)
    assert run.session.debug.check().difference is None
    run.close()
    repeated_run([("configure", 8, 0), *steps])


def ledgers(talk: vmstore.Live) -> tuple[list[Any], list[Any]]:
    """What a session keeps of its topics from act to act, and the same made from its state alone."""

    def states(runtime: Runtime) -> tuple[list[Any], list[Any]]:
        kept, fresh = runtime.ledger().follow(), TopicLedger(runtime.state, runtime.spoken).follow()
        return tuple(
            [
                ledger.pages,
                ledger.aliases,
                sorted(ledger.narrowed),
                {turn: ledger.history.of(turn) for turn in ledger.pages},
            ]
            for ledger in (kept, fresh)
        )

    return talk.look(states)


def test_what_is_kept_of_topics_follows_from_the_session() -> None:
    """A split, tags taken away by hand, other names and a rewind leave the ledger as one built from the state."""
    parts = ["index", "backup", "replica"]
    turns = [(f"The database {parts[at % 3]} of the database is slow, host {at}", "ok") for at in range(15)]
    with vmstore.memory_store() as store:
        talk = live(store, "live", turns, tags="keyword")
        kept, fresh = ledgers(talk)
        assert kept == fresh and kept[2], "a tag was split"
        narrow = kept[2][0]
        talk.checkpoint("split")
        for page in [page.page for page in talk.pages() if narrow in page.tags]:
            talk.memory.tags.give(page, remove=[narrow])
        kept, fresh = ledgers(talk)
        assert kept == fresh and narrow not in kept[2]
        talk.memory.tags.alias("host", "server")
        talk.rewind("split")
        kept, fresh = ledgers(talk)
        assert kept == fresh and narrow in kept[2]
