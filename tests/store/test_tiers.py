"""What of a session is hot, warm and cold, by numbers, as of any moment."""

from __future__ import annotations

import math
from typing import Any

import pytest

import vmstore
from tests.store.test_memory import DAY, NOW, filled
from vmstore.core.clock import ManualClock

HOUR = DAY // 24


def talk_of(turns: int, words: int = 20, gap: int = 60_000_000, store: vmstore.Store | None = None) -> vmstore.Live:
    """A live session of some turns, each of about so many words, the last one just before now."""
    store = store or vmstore.memory_store(clock=ManualClock(NOW, 0))
    session = store.live_session("s", user="ada", l0_tokens_max=200_000, rules="passive")
    for turn in range(1, turns + 1):
        at = NOW - (turns - turn) * gap
        session.user(f"Carriage {turn}: " + "wheel " * words, at_us=at)
        session.pack(at_us=at)
        session.assistant(f"Noted {turn}.", at_us=at)
    return session


def numbers(turns: list[vmstore.NearTurn]) -> list[int]:
    """The turns by number."""
    return [turn.turn for turn in turns]


def test_the_last_five_turns_are_hot() -> None:
    """Five turns, newest first, with their words and tokens; as of an earlier turn those before it."""
    memory = talk_of(9).memory
    assert numbers(memory.turns.hot()) == [9, 8, 7, 6, 5]
    first = memory.turns.hot()[0]
    assert first.user.startswith("Carriage 9:") and first.reply == "Noted 9." and first.tier == "hot"
    assert first.total_tokens == first.user_tokens + first.reply_tokens
    assert numbers(memory.turns.hot(turn=4)) == [4, 3, 2, 1]


def test_hot_keeps_its_tokens() -> None:
    """No more than 1,500 tokens are hot, and with the current message no more than 2,000."""
    memory = talk_of(9, words=300).memory
    kept = memory.turns.hot()
    assert (
        sum(turn.total_tokens for turn in kept)
        <= 1_500
        < sum(turn.total_tokens for turn in talk_of(9, 300).memory.turns.hot()) * 2
    )
    assert len(kept) == 3
    assert len(memory.turns.hot(current="word " * 1_000)) == 1


def test_nothing_of_a_session_over_is_hot() -> None:
    """A day after its last turn, and once it was closed, a session has warm turns alone."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    session = filled("old", "ada", store)
    assert session.memory.turns.hot() == [] and len(session.memory.turns.warm()) == 5
    closed = talk_of(3)
    assert len(closed.memory.turns.hot()) == 3
    closed.close()
    assert closed.memory.turns.hot() == [] and numbers(closed.memory.turns.warm()) == [3, 2, 1]


def test_the_fifty_turns_before_are_warm() -> None:
    """Fifty turns before the hot ones, less where they take over 15,000 tokens; those with a word of a query first."""
    memory = talk_of(70).memory
    assert numbers(memory.turns.warm()) == [*range(65, 15, -1)]
    assert numbers(memory.turns.warm("carriage 30"))[0] == 65  # each has the word
    assert numbers(memory.turns.warm("and what of 30?"))[0] == 30
    long = talk_of(70, words=500).memory
    assert sum(turn.total_tokens for turn in long.turns.warm()) <= 15_000
    assert len(long.turns.warm()) == len(numbers(long.turns.warm())) < 50


def test_a_reference_brings_an_older_turn_near() -> None:
    """A turn that was searched for is warm, as promoted, for three turns, and then far again."""
    session = talk_of(70)
    session.memory.recall("Noted 4")
    (actual_turn, *_) = [turn for turn in session.memory.turns.warm() if turn.promoted]
    assert actual_turn.turn < 16
    for turn in range(71, 75):
        session.user(f"Carriage {turn}.", at_us=NOW)
        session.pack(at_us=NOW)
        session.assistant("Noted.", at_us=NOW)
    assert [turn for turn in session.memory.turns.warm() if turn.promoted] == []


def test_vmql_has_the_same_tiers() -> None:
    """TURNS gives each turn the tier and tokens of hot and warm, now and as of the past; SESSIONS the nearest."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    session = talk_of(90, store=store)
    session.memory.recall("Noted 4", tokens=60)
    (page,) = session.user("My name is Alex.", at_us=NOW)
    session.memory.facts.state("user", "is called", "Alex", attribute="name", strength=1.0, sources=[page])

    def agree(at: str = "", **moment: Any) -> set[str]:
        near = [*session.memory.turns.hot(**moment), *session.memory.turns.warm(**moment)]
        wanted = {turn.turn: (turn.total_tokens, turn.tier, turn.is_identity_critical) for turn in near}
        rows = store.query(f"TURNS turn, total_tokens, memory_tier, is_identity_critical IN SESSION s {at}").to_dicts()
        actual_rows = {row.pop("turn"): tuple(row.values()) for row in rows}
        assert {turn: row for turn, row in actual_rows.items() if row[1] != "cold"} == wanted
        assert {turn for turn, row in actual_rows.items() if row[2]} == {1, 91} & actual_rows.keys()
        ((total, tier),) = store.query(f"SESSIONS total_tokens, memory_tier IN SESSION s {at}")
        assert total == sum(row[0] for row in actual_rows.values()) and tier == actual_rows[max(actual_rows)][1]
        return {row[1] for row in actual_rows.values()}

    assert agree() == {"hot", "warm", "cold"}
    assert agree("AS OF TURN 30", turn=30) == {"hot", "warm"}
    session.close()
    assert agree() == {"warm", "cold"}
    fork = store.session("s").fork("f", turn=3)
    assert [turn.tier for turn in fork.memory.turns.warm()] + [turn.tier for turn in fork.memory.turns.hot()]
    same = "turn, total_tokens, memory_tier"
    assert list(store.query(f"TURNS {same} IN SESSION f")) == list(
        store.query(f"TURNS {same} IN SESSION f AS OF TURN 3")
    )
    across = list(store.query(f"TURNS session, {same} ACROSS SESSIONS"))
    assert [row[1:] for row in across if row[0] == "s"] == list(store.query(f"TURNS {same} IN SESSION s"))


def test_cold_is_scored_by_age_likeness_and_anchor() -> None:
    """Each page tells the values of its score, over the user's sessions, the newer first of two alike."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    filled("old", "ada", store)
    new = filled("new", "ada", store)
    pages = new.memory.turns.cold("the deploy failed with a timeout", limit=4)
    assert {page.session for page in pages} == {"old", "new"}
    for page in pages:
        score = 0.5 * page.recency + 0.3 * page.similarity + 0.2 * page.anchor
        assert page.score == pytest.approx(score, abs=1e-5)
        assert page.recency == pytest.approx(math.exp(-0.1 * (NOW - page.at_us) / DAY), abs=1e-5)
    assert [page.score for page in pages] == sorted((page.score for page in pages), reverse=True)


def test_critical_turns_are_marked() -> None:
    """The first turn and one that an anchor of the user was taken from are kept to the word, and say so."""
    session = talk_of(8)
    memory: Any = session.memory
    (page,) = session.user("My name is Alex.", at_us=NOW)
    memory.facts.state("user", "is called", "Alex", attribute="name", strength=1.0, sources=[page])
    critical = {turn.turn for turn in [*memory.turns.hot(), *memory.turns.warm()] if turn.is_identity_critical}
    assert critical == {1, 9}
