"""Where an answer may have come from, where nobody logged it: ranked, with what both share, and never a link."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.page import Role
from vmstore.errors import InputError
from vmstore.store.store import Store, memory_store
from vmstore.vm.recall.evidence import SeenPage, ranked
from vmstore.vmql.syntax.errors import QueryError


def called(name: str, arguments: str) -> dict[str, Any]:
    """A message that calls a tool."""
    call = {"id": f"c-{name}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def result(name: str, text: str) -> dict[str, Any]:
    """What a tool answered."""
    return {"role": "tool", "tool_call_id": f"c-{name}", "content": text}


TALK = [
    {"role": "system", "content": "You book trains to Kyoto and Osaka."},
    {"role": "user", "content": "Which trains are there to Kyoto, and which to Osaka?"},
    called("trains", '{"to": "Kyoto"}'),
    result("trains", "train KX-1204 to Kyoto leaves at 10:15 from platform four"),
    called("more", '{"to": "Osaka"}'),
    result("more", "no train to Osaka today"),
]
ANSWER = {"role": "assistant", "content": "To Kyoto you take train KX-1204, leaves at 10:15 from platform four."}


@pytest.fixture
def store() -> Store:
    """A recorded session whose answer repeats the first of two results, of which the second is new to its call."""
    made = memory_store()
    for upto in (2, 4, 6):
        answer = {"choices": [{"message": TALK[upto] if upto < 6 else ANSWER}]}
        made.record("s", {"model": "m-1", "messages": TALK[:upto]}, answer)
    return made


def pages(session: vmstore.Session) -> dict[str, str]:
    """The pages of a session by how they begin."""
    return {session.content(page.page)[:12].decode(): page.page for page in session.pages()}


def test_what_an_answer_repeats_ranks_with_what_was_new(store: Store) -> None:
    """The result that the answer repeats and the one that just came are the first two, each with why."""
    session = store.session("s")
    named = pages(session)
    first, second, *_ = session.lineage.evidence(named["To Kyoto you"])
    fields = {case.page: case for case in (first, second)}
    assert fields.keys() == {named["train KX-120"], named["no train to "]}
    repeated = fields[named["train KX-120"]]
    assert not repeated.new and "kx-1204" in repeated.shared and repeated.call == 3 and repeated.role == "tool"
    assert fields[named["no train to "]].new


def test_evidence_is_never_a_link(store: Store) -> None:
    """Walks have nothing of it, VMQL answers it by its own name alone, and WHY says that it is none."""
    session = store.session("s")
    answer = pages(session)["To Kyoto you"]
    assert session.lineage.ancestors(answer) == [] == store.query(f"SOURCES OF {answer}").to_dicts()
    rows = store.query(f"SOURCES OF {answer} VIA evidence LIMIT 2").to_dicts()
    evidence = session.lineage.evidence(answer, limit=2)
    assert [(row["page"], row["new"], row["shared"]) for row in rows] == [(e.page, e.new, e.shared) for e in evidence]
    why = [row for row in store.query(f"WHY NOT {answer} IN CONTEXT").to_dicts() if row["event"] == "evidence"]
    assert [row["page"] for row in why][:2] == [row.page for row in evidence]
    assert all("no link was logged" in row["reason"] for row in why)
    for mixed in (f"SOURCES OF {answer} VIA derives, evidence", f"DERIVED FROM {answer} VIA evidence"):
        with refused("clause-unused", QueryError):
            store.query(mixed)


def test_what_the_model_did_not_say_has_no_evidence(store: Store) -> None:
    """A person's words and a tool's result come from no page of the prompt; a limit is a number from 1."""
    session = store.session("s")
    named = pages(session)
    assert session.lineage.evidence(named["Which trains"]) == [] == session.lineage.evidence(named["no train to "])
    with refused("not-a-limit", InputError):
        session.lineage.evidence(named["To Kyoto you"], limit=0)


def test_evidence_of_a_fork_and_of_what_was_erased(store: Store) -> None:
    """A fork has that of its past, and an erased page shares no word any more."""
    session = store.session("s")
    named = pages(session)
    answer, source = named["To Kyoto you"], named["train KX-120"]
    child = store.session("s").fork("child", position=session.info().position)
    assert child.lineage.evidence(answer) == session.lineage.evidence(answer)
    store.trust.erase(page=source, in_session="s")
    assert all(
        "kx-1204" not in affinity.shared and "KX" not in affinity.text for affinity in session.lineage.evidence(answer)
    )


def test_the_rarest_of_what_both_have_is_told_first() -> None:
    """A page that has what no other has goes before one that has what all have, at the same age."""
    seen = [SeenPage(n, text, Role.ASSISTANT, False, False) for n, text in enumerate(("common word", "common rare"), 1)]
    first, second = ranked("a common rare thing", seen)
    assert (first.page, first.shared[0]) == (2, "rare") and second.shared == ("common",)
    assert ranked("nothing at all", []) == []
