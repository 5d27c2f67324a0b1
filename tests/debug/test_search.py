"""The debugger's search: lines with the words marked, who said each and when, and why it was found."""

from __future__ import annotations

import json
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.debug.api import DebugApi
from vmstore.debug.json_bytes import masked
from vmstore.debug.params import QueryParams

SECRET = "AKIAQ3EGRWVZ5XKJ" + "2M4T"


def asked(api: DebugApi, **text: str) -> Any:
    """What a search is answered."""
    return json.loads(api.table["/api/search"](QueryParams(text)))


@pytest.fixture
def store() -> vmstore.Store:
    """A store of two sessions; the first has two calls."""
    actual_store = vmstore.memory_store()
    first = [{"role": "user", "content": "When does the museum close?"}]
    reply = {"choices": [{"message": {"role": "assistant", "content": "It closes at six."}, "finish_reason": "stop"}]}
    actual_store.record("s1", {"model": "m", "messages": first}, reply)
    items = [*first, reply["choices"][0]["message"], {"role": "user", "content": "And the other museum?"}]
    actual_store.record("s1", {"model": "m", "messages": items}, None)
    actual_store.record("s2", {"model": "m", "messages": [{"role": "user", "content": "No museum at all."}]}, None)
    return actual_store


def test_hits_are_those_of_python(store: vmstore.Store) -> None:
    """A hit has the page, score, marks, features and words that Python is told, with role, turn, call and time."""
    record = asked(DebugApi(store, "a.vms", "default"), session="s1", q="museum closed")
    hits = store.session("s1").search("museum closed", explain=True)
    assert [hit["page"] for hit in record["hits"]] == [hit.page for hit in hits]
    for each_hit, hit in zip(record["hits"], hits, strict=True):
        page = store.session("s1").page(hit.page)
        assert (each_hit["score"], each_hit["text"], each_hit["marks"]) == (
            hit.score,
            hit.text,
            [[*mark] for mark in hit.marks],
        )
        assert each_hit["features"].keys() == hit.features.keys() and len(each_hit["words"]) == len(hit.words)
        place = (page.role, page.type, page.created_turn, page.created_call, page.created_at)
        assert (each_hit["role"], each_hit["type"], each_hit["turn"], each_hit["call"], each_hit["at"]) == place
    assert hits.explanation is not None and record["explanation"]["texts"] == hits.explanation.texts == 3


def test_a_search_holds_at_a_call_or_in_all_sessions(store: vmstore.Store) -> None:
    """As of a call later pages are not found; of all sessions each page is found under who wrote it."""
    api = DebugApi(store, "a.vms", "default")
    assert len(asked(api, session="s1", q="museum")["hits"]) == 2
    assert len(asked(api, session="s1", q="museum", call="1")["hits"]) == 1
    everywhere = asked(api, session="s1", q="museum", all="1")["hits"]
    assert {(hit["session"], hit["text"]) for hit in everywhere} == {
        ("s1", "When does the museum close?"),
        ("s1", "And the other museum?"),
        ("s2", "No museum at all."),
    }


def test_a_search_of_a_live_session_writes_nothing() -> None:
    """Who looks at a session recalls nothing: its log stays as it was."""
    store = vmstore.memory_store()
    live = store.live_session("live", l0_tokens_max=4_000)
    live.user("The museum closes at six.")
    before = store.admin.log.ordinal
    assert asked(DebugApi(store, "a.vms", "default"), session="live", q="museum")["hits"]
    assert store.admin.log.ordinal == before


def test_a_masked_search_shows_no_part_of_a_secret() -> None:
    """Where texts are masked no line holds half a secret, and no term of a text is told, also not through VMQL."""
    store = vmstore.memory_store()
    text = "The key is " + "x" * 95 + f" {SECRET} and the museum is near."
    store.record("s", {"model": "m", "messages": [{"role": "user", "content": text}]}, None)
    api = DebugApi(store, "a.vms", "default", masked)
    for query in ("museum", "AKIA*", "key"):
        other_text = str(asked(api, session="s", q=query)).lower()
        assert all(SECRET[at : at + 5].lower() not in other_text for at in range(len(SECRET) - 4))
    for statement in ("EXPLAIN SEARCH 'AKIA*'", "SEARCH 'AKIA*' page, words", "SEARCH 'AKIA*' page WHERE words.x = 1"):
        with refused("not-here", vmstore.QueryError):
            api.table["/api/vmql"](QueryParams({"session": "s", "q": statement}))
    assert b"p4" in api.table["/api/vmql"](QueryParams({"session": "s", "q": "SEARCH 'museum' page, score"}))
