"""Columns that say what was before: how long a page had been away, which value an attribute had, how a call differs."""

from __future__ import annotations

import itertools

import vmstore


def test_calls_that_a_page_was_away_are_counted() -> None:
    """A page that left and came back had been away for the calls between, in MOVES, FAULTS and RESIDENCIES alike."""
    first, second = ({"role": "user", "content": text} for text in ("The first.", "The second."))
    with vmstore.memory_store() as store:
        for messages in ([first], [first, second], [second], [second], [first, second], [first, second]):
            store.record("s", {"model": f"m{len(messages)}", "messages": messages}, None)
        (page,) = (row[0] for row in store.query("PAGES page WHERE text = 'The first.'"))
        results = [
            list(store.query(f"{relation} page, away_calls WHERE away_calls IS NOT NULL"))
            for relation in ("MOVES", "FAULTS", "RESIDENCIES")
        ]
        assert results == [[(page, 2)]] * 3
        assert list(store.query("MOVES away_calls AS OF CALL 4 WHERE away_calls IS NOT NULL")) == []
        rows = list(store.query("CALLS call, tokens - tokens_before, model_before"))
        tokens = [row[0] for row in store.query("CALLS tokens")]
        assert [row[1] for row in rows] == [None, *(b - a for a, b in itertools.pairwise(tokens))]
        assert [row[2] for row in rows] == [None, "m1", "m2", "m1", "m1", "m2"]


def test_a_fact_has_the_value_before() -> None:
    """A fact that gives an attribute another value says which it had, one that says it again says none."""
    with vmstore.memory_store() as store:
        live = store.live_session("s", l0_tokens_max=4_000)
        for home in ("Nara", "Kyoto", "Kyoto", "Uji"):
            live.memory.facts.state("user", "lives in", home, attribute="home", one=True)
        fields = dict(store.query("FACTS what, was ALL WHERE was IS NOT NULL"))
        assert fields == {"Kyoto": "Nara", "Uji": "Kyoto"}


def test_derivation_is_the_longest_way_down() -> None:
    """A page is as many steps from what it was made from as the longest way has, and uses are counted by its links."""
    with vmstore.memory_store() as store:
        live = store.live_session("s", l0_tokens_max=4_000)
        live.user("One.")
        (base,) = (row[0] for row in store.query("PAGES page WHERE text = 'One.'"))
        middle = live.memory.facts.state("user", "has", "a cat", sources=[base])
        top = live.memory.facts.state("user", "feeds", "a cat", sources=[base, middle])
        rows = {page: row for page, *row in store.query("PAGES page, derivation, uses")}
        assert [rows[page] for page in (base, middle, top)] == [[0, 2], [1, 1], [2, 0]]
        ends = "LINKS source_type, source_tool, target_role WHERE kind = derives AND source = $top"
        assert list(store.query(ends, params={"top": top})) == [("claim", None, "user"), ("claim", None, "assistant")]
