"""Assembled prompts in the log: what each was chosen of, with its losers, asked by WHY, in every kind of session."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.store.test_assemble import DAY, NOW
from vmstore.core.clock import ManualClock
from vmstore.core.decision import PromptContest, Search
from vmstore.replay.position_map import PositionMap
from vmstore.store.recall.assembly.results import PartChoice

QUESTION = "Which Postgres partitions for the red archive?"


def exchange(turn: int) -> tuple[str, str]:
    """A turn about one of the archives, a third of them red."""
    colour = "blue" if turn % 3 else "red"
    asked = f"We take Postgres {turn} for archive {turn}, its partitions and the {colour} carriage."
    return asked, "Because of partitions, agreed. " + "It has wheels. " * 5


def recorded(store: vmstore.Store, turns: int = 40) -> vmstore.Session:
    """A recorded session in which more was said about the question than a small prompt holds."""
    session = store.session("trip", create=True)
    messages: list[dict[str, str]] = []
    for turn in range(turns):
        asked, answered = exchange(turn)
        messages.append({"role": "user", "content": asked})
        reply = {"role": "assistant", "content": answered}
        session.record({"model": "m-1", "messages": list(messages)}, {"choices": [{"message": reply}]}, at_us=NOW - DAY)
        messages.append(reply)
    return session


def live(store: vmstore.Store, turns: int = 40) -> vmstore.Live:
    """The same in a session that manages its memory."""
    session = store.live_session("trip", l0_tokens_max=50_000)
    for turn in range(turns):
        asked, answered = exchange(turn)
        session.user(asked)
        session.pack()
        session.assistant(answered)
    return session


def lost(prompt: vmstore.AssembledPrompt) -> PartChoice:
    """The choice of what was recalled, which had losers."""
    (choice,) = [contest for contest in prompt.contests if contest.part == "recalled"]
    assert choice.losers, "more was said than fits"
    return choice


def searches(store: vmstore.Store, page: str, tail: str = "") -> list[dict[str, Any]]:
    """The rows of WHY that tell what assembled prompts made of a page."""
    rows = store.query(f"WHY {page} IN CONTEXT {tail}").to_dicts()
    return [row for row in rows if row["event"] == "search"]


@pytest.mark.parametrize("made", [recorded, live])
def test_why_tells_what_was_chosen_and_who_lost(made: Any) -> None:
    """A page that an assembled prompt shows is told with the nearest that lost, and a loser with its own score."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    prompt = made(store).memory.assemble(QUESTION, tokens=900)
    choice = lost(prompt)
    shown = next(item for item in prompt.chosen if item.part == "recalled").pages[0]
    (row,) = searches(store, shown, "IN SESSION trip")
    assert row["contest"]["shown"] and row["contest"]["part"] == "recalled"
    assert [loser["page"] for loser in row["contest"]["losers"]] == [page for page, _ in choice.losers]
    assert row["contest"]["candidates"] == choice.candidates and row["contest"]["budget"] == 900
    for page, score in choice.losers:
        (row,) = searches(store, page, "IN SESSION trip")
        assert not row["contest"]["shown"] and f"score {score:.3f}" in row["reason"]


def test_a_prompt_of_a_recorded_session_is_logged() -> None:
    """Assembling a prompt of a recorded session logs one search with what it brought back; of the past it logs none."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    session = recorded(store)
    session.memory.assemble(QUESTION, tokens=900, turn=20)
    assert not store.query("RECALLS").to_dicts()
    prompt = session.memory.assemble(QUESTION, tokens=900)
    rows = store.query("RECALLS").to_dicts()
    assert {(row["recaller"], row["query"]) for row in rows} == {("assemble", QUESTION)}
    pages = [page for candidate in prompt.chosen if candidate.part == "recalled" for page in candidate.pages]
    assert {row["page"] for row in rows} == set(pages)


def test_other_questions_to_a_recorded_session_stay_unlogged() -> None:
    """Recall, search and quotes of a recorded session leave its log as it was."""
    session = recorded(vmstore.memory_store(clock=ManualClock(NOW, 0)), 3)
    before = session.info().position
    session.memory.recall("Postgres")
    session.memory.search_pages("Postgres")
    session.memory.find_quote("Postgres")
    assert session.info().position == before


def test_a_fork_inherits_what_was_chosen_and_the_past_knows_nothing_of_it() -> None:
    """WHY in a fork tells the prompts before it, and as of a call before the prompt nobody tells of it."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    session = recorded(store)
    loser, _ = lost(session.memory.assemble(QUESTION, tokens=900)).losers[0]
    session.fork("child")
    assert searches(store, loser, "IN SESSION child") == searches(store, loser, "IN SESSION trip")
    assert searches(store, loser, "AT CALL 40 IN SESSION trip") == []


def test_what_was_chosen_survives_rebuild_and_a_reader_logs_nothing(tmp_path: Any) -> None:
    """After a rebuild WHY says the same, VERIFY is sound, and who may only read gets a prompt and writes nothing."""
    with vmstore.open(tmp_path / "s.vms", clock=ManualClock(NOW, 0)) as store:
        loser, _ = lost(recorded(store).memory.assemble(QUESTION, tokens=900)).losers[0]
        before = searches(store, loser, "IN SESSION trip")
        store.admin.rebuild()
        assert searches(store, loser, "IN SESSION trip") == before != []
        assert store.verify().ok
        end = store.session("trip").info().position
    with vmstore.open(tmp_path / "s.vms", mode="r") as reader:
        assert lost(reader.session("trip").memory.assemble(QUESTION, tokens=900)).losers
        assert reader.session("trip").info().position == end


def test_a_session_driven_again_maps_the_losers() -> None:
    """Replayed under other settings, where positions move, a logged prompt names the pages of the run."""
    places = PositionMap()
    places.put(4, 9)
    places.put(5, 12)
    contest = PromptContest(7, 1, 2, 10, 100, 0, ((3, 5),))
    moved = places.moved(Search(0, (4,), contests=(contest,)))
    assert isinstance(moved, Search)
    assert moved.found == (9,) and moved.contests[0].losers == ((3, 12),)
