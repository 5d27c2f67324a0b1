"""What calls cost by a list of prices: which price fits, what is priced, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.debug.session_data import film
from vmstore.errors import InputError
from vmstore.prices.price_list import HOSTS, Price, PriceList, published

ONE = PriceList([Price("m-*", 2, 8, cached=0.5, written=3, input_max=1_000)])


def test_each_kind_of_token_has_its_price() -> None:
    """Input that was read from a cache and written to it is taken out of what costs as input does."""
    assert ONE.estimate("m-1", 1_000, 300, 200, 100) == (500 * 2 + 300 * 0.5 + 200 * 3 + 100 * 8) / 1e6
    assert PriceList([Price("m", 2, 8)]).estimate("m", 100, None, 40, 0) == 200 / 1e6, "written costs as input"


@pytest.mark.parametrize(
    "call",
    [
        ("other", 10, 0, 0, 1),
        (None, 10, 0, 0, 1),
        ("m-1", None, 0, 0, 1),
        ("m-1", 10, 0, 0, None),
        ("m-1", 1_001, 0, 0, 1),
    ],
)
def test_what_is_not_known_is_not_estimated(call: Any) -> None:
    """No model, no price, no count, or a prompt beyond what the price is for: there is no estimate."""
    assert ONE.estimate(*call) is None
    assert PriceList([Price("m-1", 2, 8)]).estimate("m-1", 10, 5, 0, 1) is None, "what a cache costs is not known"


def test_a_later_model_of_a_family_has_no_price() -> None:
    """The published list prices what it names and what stands before it, and guesses at no model."""
    listed = published()
    for model in ("claude-opus-4-5", "gpt-4o", "claude-3-5-sonnet-20241022", "claude-sonnet-4-20250514"):
        actual = listed.of(model)
        assert actual is not None and actual.known and all(listed.of(host + model) == actual for host in HOSTS)
    for model in ("claude-opus-4-9", "claude-sonnet-5", "gpt-4o-audio-preview", "gpt-6", "o3-pro", "llama-3"):
        assert listed.of(model) is None


def test_a_file_goes_before_the_published_prices(tmp_path: Path) -> None:
    """A file's prices hold for its models, the published ones for others; what is no price is refused with its name."""
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"dated": "2026-01", "models": [{"model": "gpt-4o", "input": 1, "output": 2}]}))
    store = vmstore.memory_store(prices=file)
    assert store.prices.dated == "2026-01" and store.prices.of("gpt-4o") == Price("gpt-4o", 1, 2)
    assert store.prices.of("gpt-4.1") == published().of("gpt-4.1")
    for wrong in (
        '{"models": [{"model": "x", "input": -1, "output": 2}]}',
        '{"models": [{"model": "x", "cost": 2}]}',
        "{",
    ):
        file.write_text(wrong)
        with refused("not-prices", InputError):
            store.prices = file
    with refused("not-prices", InputError):
        store.prices = 7
    with refused("unreadable-file", InputError):
        vmstore.memory_store(prices=tmp_path / "none.json")
    assert store.prices.dated == "2026-01", "what was refused changed nothing"


def test_estimates_and_records_are_never_mixed() -> None:
    """A call that was recorded with a cost has no estimate, and sums of the two stand side by side everywhere."""
    store = vmstore.memory_store()
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100}
    answer = {"choices": [{"message": {"role": "assistant", "content": "Hi."}}], "usage": usage}
    for n, (model, cost) in enumerate((("gpt-4o", None), ("gpt-4o", 0.25), ("unheard-of", None))):
        store.record("s", {"model": model, "messages": [{"role": "user", "content": f"{n}"}]}, answer, cost=cost)
    session = store.session("s")
    wanted = [(None, 0.0035), (0.25, None), (None, None)]
    assert [(call.cost, call.cost_estimated) for call in session.calls()] == wanted
    assert [tuple(row.values()) for row in store.query("CALLS cost, cost_estimated").to_dicts()] == wanted
    calls = film(store, session).calls
    assert list(zip(calls.cost, calls.cost_estimated, strict=True)) == wanted
    (total,) = store.query("SESSIONS cost, cost_estimated").to_dicts()
    (value,) = store.catalog.overview()
    assert (
        total
        == {"cost": 0.25, "cost_estimated": 0.0035}
        == {"cost": value.cost, "cost_estimated": value.cost_estimated}
    )
    turns = store.query("TURNS turn, cost, cost_estimated").to_dicts()
    assert [(row["cost"], row["cost_estimated"]) for row in turns] == wanted
    by_model = {share.of: (share.cost, share.cost_estimated, share.unpriced) for share in session.wire.costs("model")}
    assert by_model == {"gpt-4o": (0.25, 0.0035, 0), "unheard-of": (None, None, 1)}
    child = session.fork("child", call=1)
    assert store.query("SESSIONS cost_estimated IN SESSION child").to_dicts() == [{"cost_estimated": None}]
    assert child.calls()[0].cost_estimated is None, "the answer came after the fork"
    session.fork("late", call=2)
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": "later"}]}
    store.record("late", asked, answer)
    spent = {row.session: (row.cost, row.cost_estimated) for row in store.catalog.overview()}
    assert spent["late"] == (None, 0.0035), "what its parent spent is the parent's"
    assert store.query("SESSIONS cost_estimated IN SESSION late").to_dicts() == [{"cost_estimated": 0.0035}]
    with refused("unknown-order", InputError):
        session.wire.costs("week")


def test_costs_are_of_the_moment_asked_of() -> None:
    """A session's cost as of an earlier moment counts the replies that had come by then."""
    store = vmstore.memory_store()
    answer = {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}
    for n in range(2):
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": f"{n}"}]}, answer, cost=1.0 + n)
    at = store.session("s").calls()[1].position
    assert store.query(f"SESSIONS cost AS OF POSITION {at} IN SESSION s").to_dicts() == [{"cost": 1.0}]
    assert store.query("SESSIONS cost").to_dicts() == [{"cost": 3.0}]
    assert store.query(f"TURNS cost AS OF POSITION {at} IN SESSION s").to_dicts() == [{"cost": 1.0}, {"cost": None}]
    assert store.query("TURNS session, sum(cost) BY session ACROSS SESSIONS").to_dicts() == [
        {"session": "s", "sum(cost)": 3.0}
    ]


def test_a_recorded_session_is_estimated_as_it_was_charged(data: Path) -> None:
    """Every call of a real session whose cost its agent wrote down is estimated at that cost."""
    with vmstore.memory_store() as store:
        store.import_file(data / "pi" / "before-compaction.jsonl", session="pi")
        calls = [call for call in store.session("pi").calls() if call.cost is not None and call.tokens_reported]
        assert len(calls) > 400 and any(call.tokens_written for call in calls)
        for call in calls:
            counts = (call.tokens_reported, call.tokens_cached, call.tokens_written, call.tokens_out)
            assert call.cost == pytest.approx(store.prices.estimate(call.model, *counts), abs=1e-9)
