"""The branches of all sessions at once: what a search of a store looks at, without a question for each session."""

from __future__ import annotations

from functools import partial
from typing import Any

import vmstore
from vmstore.views.branch import Branch, each_alone


def test_each_branch_is_as_it_is_by_itself() -> None:
    """Of sessions, forks and forks of forks the branches made at once are those made one by one, without the rest."""
    store = vmstore.memory_store()
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    for name in ("a", "b"):
        for _ in range(3):
            store.record(name, request)
    store.session("a").fork("c", call=2).fork("d", call=1)
    views = store.admin.views
    made = list(each_alone(views))
    assert {name for name, _, _ in made} == {"a", "b", "c", "d"}
    for name, lane, position in made:
        other = Branch(views, lane.session).alone()
        assert (lane.stretches, lane._lows) == (other.stretches, other._lows)
        assert position == store.session(name).info().position


def test_a_search_of_a_store_asks_for_no_branch_of_its_own() -> None:
    """The statements that a search of all sessions runs do not grow with how many there are."""
    counts = []
    for sessions in (5, 50):
        store = vmstore.memory_store()
        for number in range(sessions):
            store.record(f"s{number}", {"model": "m", "messages": [{"role": "user", "content": f"word {number}"}]})
        store.search("word", limit=3)
        ran: list[str] = []
        store.admin.views.exec_trace = partial(_noted, ran)
        store.search("word", limit=3)
        store.admin.views.exec_trace = None
        counts.append(len(ran))
    assert counts[0] == counts[1] > 0


def _noted(ran: list[str], cursor: Any, sql: str, values: Any) -> bool:
    ran.append(sql)
    return True
