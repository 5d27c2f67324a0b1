"""What a kernel decided, in VMQL: WHY and WHY NOT with the contests, FAULTS, MUTATIONS, RESIDENCIES, CALLS."""

from __future__ import annotations

from typing import Any

import pytest

from tests.decided import Live
from tests.inner import inner_batch
from vmstore.core.decision import Holder
from vmstore.core.mutation import Evict, Pack, Pin, Unpin
from vmstore.store.store import Store, memory_store
from vmstore.vmql.execution import why

LiveStore = tuple[Store, Live]


@pytest.fixture
def contest() -> LiveStore:
    """A store with a live session."""
    store = memory_store()
    return store, Live(store)


def rows(store: Store, text: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    return list(store.query(text).to_dicts())


def test_why_not_names_policy_score_winner_and_losers(contest: LiveStore) -> None:
    """A page that gave way is told with the policy, its score, the cutoff, whom it was for and the nearest others."""
    store, live = contest
    last = rows(store, f"WHY NOT p{live.a} IN CONTEXT AT CALL 3")[0]
    assert last["event"] == "out"
    for words in ("before call 3, pressure", "1st of 2 to go by lru@1", "140 of 100", "40 needed for p13"):
        assert words in last["reason"]
    assert "denied" not in last["reason"], "nobody had asked by then"
    store.session("live").fork("asked", position=live.denied)
    with inner_batch(store.session("asked")) as batch:
        batch.add(Pack(4, 0, *batch.head.totals))
    asked = rows(store, f"WHY NOT p{live.a} IN CONTEXT IN SESSION asked")[0]["reason"]
    assert asked.endswith(f"; asked for since, and denied at position {live.denied}, no_room")
    assert f"next to go p{live.b}" in last["reason"] and "score" not in last["reason"]
    assert last["contest"] == {
        "policy": "lru@1", "budget": 100, "used": 140, "need": 40, "winner": f"p{live.c}", "candidates": 2,
        "cutoff": 40, "losers": [{"page": f"p{live.b}", "score": 55}], "score": 40,
    }  # fmt: skip


def test_why_says_what_let_a_page_in(contest: LiveStore) -> None:
    """The pack that shows a page is told with the decision behind it: asked for, fetched, or new."""
    store, live = contest
    live.wished()
    entered = [row for row in rows(store, f"WHY p{live.a} IN CONTEXT") if row["event"] in ("enter", "leave")]
    assert [row["reason"].partition("; ")[2] for row in entered] == [
        f"new since position {live.a}",
        f"evict at position {live.evicted}, pressure",
        f"fault_in at position {live.came}, resolve_reference",
    ]
    fetched = [row for row in rows(store, f"WHY p{live.b} IN CONTEXT") if row["event"] == "enter"][-1]
    assert "prefetch at position" in fetched["reason"] and fetched["reason"].endswith("topic")
    shown = [row for row in rows(store, f"WHY p{live.c} IN CONTEXT AT CALL 4") if row["event"] == "shown"]
    assert shown[0]["reason"].endswith(f"evict at position {live.shortened}, fault")


def test_why_says_what_keeps_a_page(contest: LiveStore) -> None:
    """A page that stays is told with who holds it, and how near it was when pages last gave way."""
    store, live = contest
    last = rows(store, f"WHY p{live.b} IN CONTEXT AT CALL 4")[0]
    assert "nobody holds it" in last["reason"] and "it was the 2nd of those next to go" in last["reason"]
    assert last["contest"]["score"] == 90 and last["contest"]["cutoff"] == 12
    assert "they went for it" in rows(store, f"WHY p{live.a} IN CONTEXT AT CALL 4")[0]["reason"]
    assert "was not there when" in rows(store, f"WHY p{live.b} IN CONTEXT AT CALL {_wished(live)}")[0]["reason"]
    live.write(Pin(live.a, Holder.HAND), Pin(live.a, Holder.PLAN))
    live.call()
    assert "held by hand, plan" in rows(store, f"WHY p{live.a} IN CONTEXT")[0]["reason"]
    assert "no page had to be evicted yet" in rows(store, f"WHY p{live.a} IN CONTEXT AT CALL 2")[0]["reason"]


def _wished(live: Live) -> int:
    live.wished()
    return live.session.calls()[-1].call


def test_the_first_tells_the_contest_of_all(contest: LiveStore) -> None:
    """A page that went with others is told with the contest that the first of them carries, and its own score."""
    store, live = contest
    live.wished()
    last = rows(store, f"WHY NOT p{live.d} IN CONTEXT")[0]
    assert last["contest"]["cutoff"] == 5 and last["contest"]["score"] == 5
    assert "next to go p5" in last["reason"]


def test_where_nothing_was_decided_it_says_so(contest: LiveStore) -> None:
    """A page that left or came back without a decision is told as one that nobody decided about."""
    store, live = contest
    del live.shown[live.d]
    live.call()
    left = rows(store, f"WHY NOT p{live.d} IN CONTEXT")
    assert [row["event"] for row in left[-2:]] == ["enter", "leave"] and why.UNDECIDED in left[-1]["reason"]
    assert left[0]["event"] == "out" and left[0]["contest"] is None
    live.shown[live.d] = (live.d, 0)
    live.call()
    assert why.UNDECIDED in rows(store, f"WHY p{live.d} IN CONTEXT")[-1]["reason"]


def test_a_fork_is_told_by_its_own_past(contest: LiveStore) -> None:
    """WHY in a fork has the parent's decisions up to the fork, and none of those after."""
    store, live = contest
    live.session.fork("child", call=3)
    child = rows(store, f"WHY NOT p{live.a} IN CONTEXT IN SESSION child")
    assert child == rows(store, f"WHY NOT p{live.a} IN CONTEXT AT CALL 3 IN SESSION live")


def test_mutations_tell_what_was_decided(contest: LiveStore) -> None:
    """MUTATIONS has page, cause, tiers, level, reason and tokens of every decision."""
    store, live = contest
    live.wished()
    asked = "MUTATIONS position, kind, page, cause, tier_before, tier_after, level, reason, tokens"
    actual_rows = {row["position"]: tuple(row.values())[1:] for row in rows(store, asked)}
    a, b, c = (f"p{page}" for page in (live.a, live.b, live.c))
    assert actual_rows[live.evicted] == ("evict", a, None, 0, 2, None, "pressure", 60)
    assert actual_rows[live.shortened] == ("evict", c, None, 0, 0, 2, "fault", 46)
    assert actual_rows[live.denied] == ("fault_denied", a, live.asked, None, None, None, "no_room", None)
    assert actual_rows[live.came] == ("fault_in", a, live.again, 2, 0, 0, "resolve_reference", 60)
    assert actual_rows[live.pinned] == ("pin", b, None, None, None, None, "plan", None)
    assert actual_rows[live.together + 1][2] == live.together
    since = rows(store, f"MUTATIONS kind, reason SINCE POSITION {live.came - 1} UNTIL POSITION {live.came}")
    assert since == [{"kind": "fault_in", "reason": "resolve_reference"}], "the reference stands before what is asked"


def test_residencies_tell_why_and_who(contest: LiveStore) -> None:
    """RESIDENCIES has what let a page in or showed it so, and whether somebody held it meanwhile."""
    store, live = contest
    values = {(r["page"], r["from_call"]): (r["pinned"], r["reason"]) for r in rows(store, "RESIDENCIES")}
    assert values[f"p{live.a}", 1] == (False, None)
    assert values[f"p{live.a}", 4] == (False, "fault_in: resolve_reference")
    assert values[f"p{live.c}", 4] == (False, "evict: fault")
    assert values[f"p{live.b}", 2] == (True, None)


def test_pinned_pages_are_found(contest: LiveStore) -> None:
    """PAGES WHERE pinned finds who is held at the moment asked of, in a session and across them."""
    store, live = contest
    assert rows(store, "PAGES page WHERE pinned") == []
    records = [{"page": f"p{live.b}"}]
    assert rows(store, f"PAGES page AS OF POSITION {live.pinned} WHERE pinned") == records
    live.write(Pin(live.b))
    assert rows(store, "PAGES page WHERE pinned") == rows(store, "PAGES page ACROSS SESSIONS WHERE pinned") == records


def test_calls_tell_budget_and_what_they_voided(contest: LiveStore) -> None:
    """CALLS has the budget and the tokens invalidated, as Session.calls does, in a session and across them."""
    store, live = contest
    wanted = [(call.call, call.budget, call.invalidated) for call in live.session.calls()]
    for scope in ("", " ACROSS SESSIONS"):
        records = rows(store, f"CALLS call, budget, invalidated{scope}")
        assert [tuple(row.values()) for row in records] == wanted
    assert rows(store, "CALLS sum(invalidated)") == [{"sum(invalidated)": 170}]


def test_faults_tell_what_was_asked(contest: LiveStore) -> None:
    """FAULTS has what Session.faults has, granted and denied alike."""
    store, live = contest
    wanted = [
        (
            fault.page,
            fault.position,
            fault.reason,
            fault.level_asked,
            fault.level_served,
            fault.from_tier,
            fault.granted,
        )
        for fault in live.session.debug.faults()
    ]
    asked = "FAULTS page, position, reason, level_asked, level_served, from_tier, granted"
    assert [tuple(row.values()) for row in rows(store, asked)] == wanted
    assert rows(store, "FAULTS count(*) BY granted") == [
        {"granted": False, "count(*)": 1},
        {"granted": True, "count(*)": 1},
    ]


def test_by_hand_there_is_no_contest(contest: LiveStore) -> None:
    """A page that somebody asked to have put out is told so, without a contest."""
    store, live = contest
    at = live.write(Evict(live.a, 5, 60))
    del live.shown[live.a]
    live.call()
    last = rows(store, f"WHY NOT p{live.a} IN CONTEXT")[0]
    assert last["reason"].endswith("evicted before call 5, asked") and at and last["contest"] is None


def test_the_last_turns_hold_their_pages(contest: LiveStore) -> None:
    """Where the settings hold the pages of the last turns, WHY says so, and that they had to yield."""
    store, live = contest
    live.settings(pinned_turns=1)
    live.call()
    assert "held by the last 1 turns;" in rows(store, f"WHY p{live.d} IN CONTEXT")[0]["reason"]
    assert "nobody holds it" in rows(store, f"WHY p{live.b} IN CONTEXT")[0]["reason"]
    live.write(Unpin(live.d, Holder.TURNS, live.room))
    live.call()
    assert "which yielded before call 6" in rows(store, f"WHY p{live.d} IN CONTEXT")[0]["reason"]


def test_sessions_tell_their_settings(contest: LiveStore) -> None:
    """SESSIONS has budget and policy of a live session as of the moment asked of, and of another none."""
    store, live = contest
    store.record("plain", {"messages": [{"role": "user", "content": "hello"}]})
    live.settings(policy="lfu")
    live.session.fork("child", call=4)
    assert rows(store, "SESSIONS session, budget, policy") == [
        {"session": "child", "budget": 100, "policy": "lru"},
        {"session": "live", "budget": 100, "policy": "lfu"},
        {"session": "plain", "budget": None, "policy": None},
    ]
