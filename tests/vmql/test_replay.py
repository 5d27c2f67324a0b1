"""REPLAY asks what another policy or budget would have done."""

from __future__ import annotations

import pytest

from tests.engine.author import Author, Deed, engine_over
from tests.refusals import refused
from tests.replay.lives import live
from tests.vmql.test_then import store_of
from vmstore.core.decision import Settings
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store, memory_store
from vmstore.vm.metrics.metrics import Metrics
from vmstore.vmql.diagnostics.complete import completions
from vmstore.vmql.syntax.errors import QueryError


@pytest.fixture(scope="module")
def store() -> Store:
    """A live session and one that was recorded."""
    made = memory_store()
    live(made, turns=8, policy="lru")
    made.record("plain", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    return made


def test_replay_tells_both_runs(store: Store) -> None:
    """A row for the run as it was recorded and one for the other, with the numbers of Session.replay."""
    ordinal = store.admin.log.ordinal
    result = store.query("REPLAY SESSION s WITH policy = 'lfu', budget = 5_000".replace("_", ""))
    recorded, other = result.to_dicts()
    right = store.session("s").debug.replay(policy="lfu", budget=5_000)
    assert (recorded["run"], recorded["policy"], recorded["found"]) == ("recorded", "lru@1", None)
    assert (other["run"], other["policy"], other["budget"]) == ("what if", "lfu@1", 5_000)
    for name in ("faults", "fault_tokens", "fault_rate", "evictions", "prefix_voided", "utilisation", "l0_peak"):
        assert other[name] == getattr(right.measures, name)
        assert recorded[name] == getattr(store.session("s").debug.replay().measures, name)
    assert right.divergence is not None
    assert (other["position"], other["found"]) == (right.divergence.position, right.divergence.found)
    assert store.admin.log.ordinal == ordinal, "asking never writes"


def test_replay_takes_any_setting(store: Store) -> None:
    """Values are quoted, bare or handed in; without any there is the recorded run alone."""
    (alone,) = store.query("REPLAY", session="s").to_dicts()
    assert alone["run"] == "recorded"
    bare = store.query("REPLAY WITH policy = lfu, compress = FALSE", session="s").to_dicts()
    handed = store.query(
        "REPLAY WITH policy = $p, compress = $c, returned_tokens_max = $r", session="s", p="lfu", c=False, r=100_000
    ).to_dicts()
    assert bare == handed and bare[1]["policy"] == "lfu@1"
    right = store.session("s").debug.replay(policy="lfu", compress=False).measures
    assert (bare[1]["compressions"], bare[1]["evictions"]) == (right.compressions, right.evictions)


@pytest.mark.parametrize(
    ("text", "other_text"),
    [
        ("REPLAY SESSION plain", "never had a budget"),
        ("REPLAY SESSION s WITH polcy = lru", "there is no setting 'polcy'"),
        ("REPLAY SESSION s WITH policy = lur", "there is no policy 'lur'"),
        ("REPLAY SESSION s WITH budget = 300", "a budget of 300 tokens cannot hold p"),
        ("REPLAY SESSION s WITH budget = 9000, KEEP = 'x'", "a query keeps no session"),
        ("EXPLAIN ANALYZE REPLAY SESSION s WITH keep = 'x'", "a query keeps no session"),
        ("REPLAY SESSION s WITH budget = 'much'", "l0_tokens_max"),
    ],
)
def test_what_cannot_be_replayed_is_refused(store: Store, text: str, other_text: str) -> None:
    """A session that was never live and a setting there is none of are named, at the statement."""
    with pytest.raises(QueryError) as caught:
        store.query(text)
    assert caught.value.code == "not-replayed" and other_text in str(caught.value)


def test_what_follows_replay_is_offered() -> None:
    """SESSION and WITH are offered, then a setting's name, then its value."""
    assert set(completions("REPLAY ").keywords) == {"SESSION", "WITH"}
    assert completions("REPLAY WITH ").names == ("choice",)
    assert completions("REPLAY WITH policy = ").column == "policy"


@pytest.mark.parametrize("text", ["REPLAY SESSION s", "REPLAY SESSION s WITH budget = 5000", "METRICS IN SESSION s"])
def test_who_no_longer_waits_ends_it(store: Store, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A replay, or a measuring, that somebody interrupts ends at the next commit, and the store answers on."""
    folded: list[int] = []
    whole = Metrics.begin

    def begin(self: Metrics, at: int) -> None:
        whole(self, at)
        folded.append(at)
        if len(folded) == 5:
            store.admin.interrupt()

    with monkeypatch.context() as patch:
        patch.setattr(Metrics, "begin", begin)
        with pytest.raises(QueryError) as error:
            store.query(text).to_dicts()
    assert error.value.code == "cancelled" and len(folded) == 5
    assert len(store.query("REPLAY SESSION s").to_dicts()) == 1


def test_metrics_are_the_sessions_numbers(store: Store) -> None:
    """METRICS has each number of Session.stats with its target, of live sessions alone, as of any moment."""
    session = store.session("s")
    assert isinstance(session, Live)
    stats = session.stats()
    rows = store.query("METRICS").to_dicts()
    assert {row["session"] for row in rows} == {"s"} and {row["policy"] for row in rows} == {"lru@1"}
    other_rows = {row["metric"]: row for row in rows}
    for name in ("turns", "faults", "fault_rate", "evictions", "utilisation", "overhead", "evictions_a_minute"):
        assert other_rows[name]["value"] == getattr(stats, name), name
    for name, met in stats.targets.items():
        assert other_rows[name]["met"] == met and other_rows[name]["target"]
    assert [row["flag"] for row in rows if row["flag"]] == stats.flags
    then = store.query("METRICS value IN SESSION s AS OF TURN 3 WHERE metric = 'turns'").to_dicts()
    assert then == [{"value": 3}]
    with refused("clause-unused", QueryError):
        store.query("METRICS IN SESSION s SINCE TURN 2")
    assert store.query("METRICS IN SESSION plain").to_dicts() == []


@pytest.mark.parametrize(
    "content", [b'{"l0_tokens_max":0}', b'{"l0_tokens_max":0,"mark_soft":7,"rules":"none","zone":5}']
)
def test_settings_that_no_session_takes_are_measured(content: bytes) -> None:
    """A log by other hands may hold a budget of nothing and impossible values: METRICS tells the first as it is."""
    author = Author(engine_over())
    author.do_say(Deed("say", d=2))
    author.batch.add(Settings(author.batch.cell(content)))
    for what in ("say", "pack", "evict", "fault", "end"):
        getattr(author, f"do_{what}")(Deed(what, d=3))
    author.commit()
    store = store_of(author)
    numbers = {row["metric"]: row for row in store.query("METRICS").to_dicts()}
    assert numbers["calls"]["value"] == 1 and numbers["l0_available"]["value"] == 0
    assert {row["budget"] for row in numbers.values()} == {0}
    assert list(store.sql("SELECT budget FROM sessions")) == [(0,)]
