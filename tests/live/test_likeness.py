"""How alike pages are to a turn: logged as it opens, weighed by the policy, and read again by a replay."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Turn, decode
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

TRAINS, BREAD = "The night train to Kyoto leaves platform nine. ", "The baker kneads rye dough before dawn. "


def store_of() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


def talk_of_trains(store: Store, **settings: Any) -> Live:
    """A session of turns about trains, then bread, which comes back to trains where the prompt is full."""
    fields = {
        "l0_tokens_max": 2_000,
        "reserve_faults_tokens": 0,
        "rules": "short",
        "pinned_turns": 1,
        "prefetch": False,
    }
    session = store.live_session("s", paging="runtime", **{**fields, **settings})
    assert isinstance(session, Live)
    for n, text in enumerate((TRAINS, BREAD, BREAD, BREAD)):
        session.user(text * 8 + f"Note {n}.")
        session.pack()
        session.assistant("Noted.")
    session.user("Which platform does the night train to Kyoto leave from?")
    session.pack()
    session.assistant("Nine.")
    return session


def turns(store: Store) -> list[Turn]:
    """The turns that were logged."""
    return [item for commit in store.admin.log.tail(0, 999) for item in decode(commit.body) if isinstance(item, Turn)]


def test_a_turn_says_which_pages_are_like_it() -> None:
    """Under `recency@2` the pages in the prompt that share the message's terms stand in its turn, each by how much."""
    store = store_of()
    session = talk_of_trains(store, policy="recency")
    assert session.settings.policy == "recency@2"
    trains = session.pages(role="user")[0].position
    last = dict(turns(store)[-1].alike)
    assert last[trains] > 300_000
    others = [page.position for page in session.pages(role="user")[1:-1]]
    assert all(last.get(page, 0) < last[trains] // 2 for page in others)
    assert store.verify().ok and session.debug.check().ok


@pytest.mark.parametrize("policy", ["recency@1", "lru", "demand"])
def test_others_log_nothing_of_it(policy: str) -> None:
    """A policy that does not weigh likeness has turns as they were."""
    store = store_of()
    session = talk_of_trains(store, policy=policy)
    assert {turn.alike for turn in turns(store)} == {()} and session.debug.check().ok


def test_what_is_like_the_turn_stays() -> None:
    """Where the prompt is too full the page that the turn is about outlives those used after it; by recency it goes."""
    stays = {}
    full: dict[str, Any] = {"compress": False, "batches": False, "mark_soft": 0.8, "mark_hard": 0.9}
    for policy in ("recency@1", "recency@2"):
        session = talk_of_trains(store_of(), policy=policy, l0_tokens_max=600, **full)
        for n in range(4):
            call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            session.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
            session.tool(f"c{n}", f"Line {n} of the oven. " * 10)
        here = session.runtime().state.here
        stays[policy] = session.pages(role="user")[0].position in here
        assert session.debug.check().ok
    assert stays == {"recency@1": False, "recency@2": True}


def test_anchors_weigh() -> None:
    """A page with values by name, or a claim, has the strength of its importance; `recency@1` knows of none."""
    store = store_of()
    session = talk_of_trains(store, policy="recency")
    page = session.pages(role="user")[1]
    claim = session.claim("The train leaves at nine.", importance=0.8)
    session.annotate(page.page, importance=0.9, anchors={"baker.name": "Ada"})
    runtime = session.runtime()
    runtime.current()
    pages = runtime.state.pages
    assert (pages[page.position].anchor, pages[session.lineage.position_of(claim)].anchor) == (900_000, 800_000)
    assert pages[session.pages(role="user")[2].position].anchor == 0
    again = session.debug.replay()
    assert again is not None and session.debug.check().ok


def test_an_anchor_that_is_taken_away_weighs_no_more() -> None:
    """A page keeps the strength of its anchors until the last of them is taken away; going back gives it again."""
    store = store_of()
    session = talk_of_trains(store, policy="recency")
    page = session.pages(role="user")[1]
    session.annotate(page.page, importance=0.9, anchors={"baker.name": "Ada", "town": "Nara"})
    before = session.checkpoint("before")
    weights = []
    for name in ("town", "baker.name", "nobody"):
        session.annotate(page.page, anchors={name: None})
        weights.append(session.look(lambda runtime: runtime.state.pages[page.position].anchor))
    session.rewind(before)
    weights.append(session.look(lambda runtime: runtime.state.pages[page.position].anchor))
    assert weights == [900_000, 0, 0, 900_000]
    assert store.verify().ok and session.debug.check().ok


def test_a_replay_reads_it_from_the_log() -> None:
    """Decided again under another policy, or a smaller budget, the turns keep what was measured when it happened."""
    store = store_of()
    session = talk_of_trains(store, policy="recency")
    session.debug.replay(policy="lru", keep="other")
    session.debug.replay(budget=1_500, keep="small")
    counts = [len(turn.alike) for turn in turns(store)]
    per = len(counts) // 3
    assert counts[:per] == counts[per : 2 * per] == counts[2 * per :] and any(counts)
    assert store.verify().ok
