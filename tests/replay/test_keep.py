"""A live session is decided again, and a what-if that is kept is a session like any other."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import vmstore
from tests.inner import inner_batch
from tests.refusals import refused
from tests.replay.lives import live
from vmstore.core.mutation import Evict, decode
from vmstore.errors import ConflictError, InputError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store, memory_store


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["default", "lru"])
def test_live_is_replayed(seed: int, policy: str) -> None:
    """Every decision of a live session is decided again as it was, and counted alike live and replayed."""
    store = memory_store()
    session = live(store, seed=seed, policy=policy)
    actual = session.debug.check()
    assert actual.ok, actual.difference
    assert actual.decisions > 50
    recorded = session.debug.replay()
    assert recorded.measures == session.stats()
    assert recorded.measures.invalidated == sum(call.invalidated for call in session.calls()), "as the view says"
    assert recorded.measures.calls == len(session.calls()) and recorded.measures.turns == len(session.turns())


def test_a_log_that_was_decided_otherwise_is_named() -> None:
    """A decision that no kernel took, written through the gate, is the first difference of a check."""
    store = memory_store()
    session = live(store, seed=2)
    page = session.context().pages[-1].page
    with inner_batch(session) as batch:
        position = batch.add(Evict(session.lineage.position_of(page), 0, 1))
    difference = session.debug.check().difference
    assert difference is not None and difference.position == position and difference.expected.startswith("evict (page")
    assert difference.found == "nothing"


def kept(store: Store, session: Live, budget: int = 5_000) -> vmstore.Session:
    """The what-if of a smaller budget, kept."""
    run = session.debug.replay(budget=budget, policy="lru", keep="try")
    assert run.kept is not None and run.kept.session == "try"
    again = session.debug.replay(budget=budget, policy="lru")
    assert msgspec.structs.replace(run, kept=None) == again, "what is kept is what was told"
    return store.session("try")


@pytest.mark.parametrize("seed", range(3))
def test_a_kept_what_if_is_a_session(seed: int) -> None:
    """It verifies, is decided again as it stands, shares the first commit alone, and has every page's exact bytes."""
    store = memory_store()
    session = live(store, seed=seed)
    session.fork("other", call=3)  # a fork of the same past is nothing to it
    child = kept(store, session)
    assert store.verify().ok
    assert child.debug.check().ok
    info = child.info()
    assert info.origin == "fork" and info.parent == "s"
    first = next(commit for commit in store.admin.log.tail(0, 5) if commit.first == 1)
    assert info.fork_position == first.last
    assert len(child.pages()) == len(session.pages())
    for mine, theirs in zip(session.pages(), child.pages(), strict=True):
        assert session.content(mine.page) == child.content(theirs.page)
    assert child.debug.replay().measures.calls_over_budget == 0 < child.debug.replay().measures.l0_peak <= 7_000


def test_vmql_is_answered_on_a_kept_what_if() -> None:
    """Contexts, reasons, faults and relations are asked of it as of any session."""
    store = memory_store()
    session = live(store, seed=1, turns=16)
    child = kept(store, session)
    settings = store.query("MUTATIONS detail WHERE kind = settings IN SESSION try").to_dicts()
    assert settings
    for call in child.calls():
        assert child.context(call=call.call).text().startswith("<VM:CONTEXT>")
        assert child.context(call=call.call).messages()
        assert call.tokens <= (call.budget or 0) * 2
    chosen = "MUTATIONS page WHERE kind = evict AND reason IN ('pressure', 'budget') IN SESSION try"
    gone = {row["page"] for row in store.query(chosen).to_dicts()}
    out = [row["page"] for row in store.query("PAGES page WHERE tier = L2 IN SESSION try").to_dicts()]
    assert len(gone.intersection(out)) > 10, "the policy took pages out"
    last = max(call.position for call in child.calls())
    for page in (page for page in gone.intersection(out) if int(page[1:]) <= last):  # others were in no context yet
        chain = store.query(f"WHY NOT {page} IN CONTEXT IN SESSION try").to_dicts()
        assert any("lru@1" in str(row) for row in chain), chain
    assert store.query("DIFF SESSION s TO try").to_dicts()
    marks = [m for c in store.admin.log.tail(0, 10_000) for m in decode(c.body) if m.kind == "mark"]
    assert len(marks) % 2 == 0, "the child has the parent's marks"


def test_a_mark_of_a_kept_what_if_names_its_own_pages() -> None:
    """What a mark holds is told by the child's own positions, so that it can be restored there."""
    store = memory_store()
    session = store.live_session("s", l0_tokens_max=6_000, system="Be brief.")
    user = session.user("the first thing that is said here")
    session.pack()
    session.mark("then")
    session.user("word " * 9_000)
    session.pack()
    run = session.debug.replay(budget=4_000, keep="try")
    assert run.kept is not None
    child = store.live_session("try", l0_tokens_max=4_000)
    child.evict(child.pages()[1].page)
    (came,) = child.restore("then")
    assert came.granted and came.content == session.content(user[0])


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    """A name that is taken, a budget too small and a session that was never live are refused; nothing is written."""
    with vmstore.open(tmp_path / "a.vms") as store:
        session = live(store, turns=2)
        store.record("plain", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
        before = store.admin.log.ordinal
        with refused("name-taken", ConflictError, "'s'"):
            session.debug.replay(budget=5_000, keep="s")
        pinned = r"500 tokens cannot hold p4, p7, 107 .* pinned, beside [1-9]\d* of rules, .*; give a larger one"
        with pytest.raises(InputError, match=pinned):
            session.debug.replay(budget=500, keep="small")
        with refused("no-budget", InputError):
            store.session("plain").debug.replay(keep="x")
        assert {info.session for info in store.sessions(hidden=True)} == {"s", "plain"}
        assert store.admin.log.ordinal == before


@pytest.mark.parametrize("policy", ["default", "s3fifo", "lfu"])
def test_restarts_change_no_decision(store_path: Path, policy: str) -> None:
    """A session whose process ended after every turn is decided again as one that ran through."""
    for turn in range(10):
        with vmstore.open(store_path) as store:
            session = store.live_session("s", l0_tokens_max=2_500, policy=policy)
            user = session.user(f"Turn {turn}: " + "a fact worth keeping for long " * 40)
            session.pack()
            session.assistant(f"Noted. [ref: {user[0]}]")
            session.page_fault(session.pages()[turn].page, by_model=True)
            session.page_fault(session.pages()[turn // 2].page)
    with vmstore.open(store_path) as store:
        actual = store.session("s").debug.check()
        assert actual.ok, actual.difference
        assert actual.decisions > 30
        assert store.session("s").debug.replay().measures.faults > 5
