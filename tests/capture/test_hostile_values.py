"""Values that no provider should send and some do: the request stays, what cannot be a count or a time is dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.store.store import memory_store

HALF = "half \ud83d"


@pytest.mark.parametrize("tokens", [2**53, 10**12 + 1, 10**30, -1, 1.5, float("inf"), True])
def test_usage_that_is_none_takes_no_request_along(tokens: Any) -> None:
    """A call whose usage is no count is recorded without it, and the next call goes on."""
    store = memory_store()
    other_answer = answer("yes")
    other_answer["usage"] = {"prompt_tokens": tokens, "completion_tokens": tokens}
    if tokens == float("inf"):
        with refused("not-json", vmstore.InputError):
            store.record("s", chat("one"), other_answer)
        return
    store.record("s", chat("one"), other_answer)
    store.record("s", chat("one", "yes", "two"), answer("well"))
    first = store.session("s").calls()[0]
    assert (first.status, first.tokens_reported) == ("ok", None)
    assert store.session("s").wire.request(call=1) == chat("one") and store.verify().ok


def test_the_largest_usage_there_is_fits_the_log() -> None:
    """The factor that comes of the most tokens a provider may report is one that the log can hold."""
    store = memory_store()
    store.record("s", chat("o"), {**answer("yes"), "usage": {"prompt_tokens": 10**12, "completion_tokens": 1}})
    assert store.session("s").calls()[0].tokens_reported == 10**12 and store.verify().ok


@pytest.mark.parametrize("number", ["NaN", "1e308", "1e400", "-1e308", "Infinity", '"fast"', "9" * 400])
def test_a_latency_that_is_none_ends_no_import(number: str, tmp_path: Path) -> None:
    """A record with such a latency is taken in without it, or kept as it stood; the others are as they were."""
    file = tmp_path / "a.jsonl"
    user, text = '{"role":"user","content":"one"}', '{"role":"assistant","content":"two"'
    file.write_text(f'{user}\n{text},"vm":{{"latency_ms":{number}}}}}\n{user}\n')
    with memory_store() as store:
        store.import_file(file, session="s")
        session = store.session("s")
        assert [call.latency_ms for call in session.calls()] in ([None], [])
        assert sum(page.role == "user" for page in session.pages()) == 2
        assert store.verify().ok


def test_what_no_json_says_is_kept_as_it_stood(tmp_path: Path) -> None:
    """A record with NaN in a message is kept raw, as in a pair, so that each answer stays JSON."""
    file = tmp_path / "a.jsonl"
    file.write_text('{"role":"user","content":"one"}\n{"role":"user","content":"two","score":NaN}\n')
    with memory_store() as store:
        store.import_file(file, session="s")
        session = store.session("s")
        assert [page.type for page in session.pages()].count("raw") == 1
        json.dumps(
            [session.context(call=call.call).to_dict(messages=True) for call in session.calls()], allow_nan=False
        )


def test_half_an_emoji_is_told_everywhere() -> None:
    """A lone surrogate in a message, a model's name or a stop reason stops no question of VMQL, before or after it."""
    store = memory_store()
    request = {"model": "m", "messages": [{"role": "user", "content": HALF}]}
    fields = {"choices": [{"message": {"role": "assistant", "content": HALF}, "finish_reason": "stop"}]}
    for _ in range(2):
        store.record("s", request, fields)
    store.record("s", request, {"error": {"message": HALF}})
    store.record("s", request, ValueError(HALF))
    for call in range(1, 5):
        (other_row,) = store.query(f"CONTEXT AT CALL {call} MESSAGES", session="s").to_dicts()
        assert json.loads(other_row["message"]) if isinstance(other_row["message"], str) else other_row["message"] == {
            "role": "user", "content": HALF,
        }  # fmt: skip
    rows = store.query("CALLS call, stop, error", session="s").to_dicts()
    assert [row["stop"] for row in rows] == ["stop", "stop", None, None]
    assert [row["error"] for row in rows] == [None, None, "half ?", "half ?"]
    assert store.session("s").wire.request(call=1) == request and store.verify().ok
