"""Recording: every request comes back equal in every field, whatever became of the conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.words import (
    CLIPPED,
    LONG,
    NOTE,
    SHAPES,
    SHORT,
    Item,
    answer,
    ask,
    kinds,
    model_text,
    request,
    result,
    spelled,
    system,
    user,
)
from vmstore.store.store import memory_store, open_store

HEAD = [system("You look things up."), user("What is in the package?")]
BASE = [*HEAD, ask("c1"), result("c1", LONG), model_text("Sixty lines."), user("And the tests?")]
TALK = [item for n in range(8) for item in (user(f"question {n}"), model_text(f"answer {n}"))]


def with_result(text: str) -> list[Item]:
    """The base conversation with another text as the tool's result."""
    return [*BASE[:3], result("c1", text), *BASE[4:]]


LIVES: dict[str, list[list[Item]]] = {
    "growth": [BASE[:2], BASE[:4], BASE],
    "edited": [BASE, [BASE[0], user("What is in the box?"), *BASE[2:]], [system("Be brief."), *BASE[1:]]],
    "last edited": [BASE, [*BASE[:5], user("And the tests? All of them.")]],
    "deleted": [BASE, [*BASE[:2], *BASE[4:]], [BASE[0], BASE[5]]],
    "all deleted": [BASE, [], BASE],
    "sliding": [[HEAD[0], *TALK[n : n + 5]] for n in range(0, 12, 2)],
    "summary": [BASE, [HEAD[0], user("Summary of the conversation so far: sixty lines."), BASE[5]]],
    "summary unmarked": [BASE, [HEAD[0], user("Sixty lines were seen."), *BASE[4:]]],
    "note": [BASE, with_result(NOTE)],
    "clipped": [BASE, with_result(CLIPPED)],
    "shortened": [BASE, with_result(SHORT)],
    "restored": [BASE, with_result(NOTE), BASE, with_result(CLIPPED), with_result(NOTE), BASE],
    "turned round": [TALK, TALK[::-1], [*TALK[4:], *TALK[:4]]],
    "repeated": [[user("go")], [user("go"), user("go")], [user("go"), model_text("go"), user("go")], [user("go")]],
    "left and back": [BASE, [system("Make a title."), user("of this")], [*BASE, model_text("Here."), user("Thanks.")]],
    "speakers swapped": [TALK[:4], [TALK[0], user("answer 0"), model_text("question 1"), TALK[3]]],
    "said again": [[*TALK[:2], user("b")], [*TALK[:2], user("b"), TALK[1], user("c")], [*TALK[:2], TALK[1]]],
    "asked again": [BASE, [*BASE, ask("c1"), result("c1", "None.")], [*BASE, ask("c1"), result("c1", LONG)]],
    "empty texts": [[user("")], [user(""), model_text(""), user("")], [user("x"), model_text(""), user("")]],
    "calls renamed": [BASE, [*BASE[:2], ask("c9"), result("c9", LONG), *BASE[4:]]],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("life", LIVES)
def test_every_request_comes_back_equal(shape: str, life: str) -> None:
    """Whatever a conversation goes through, each call gives back its request, and the log verifies."""
    with memory_store() as store:
        sent = [request(items, shape) for items in LIVES[life]]
        for number, body in enumerate(sent, 1):
            assert store.record("s", body, answer(model_text(f"reply {number}"), shape)).call == number
        session = store.session("s")
        assert [spelled(session.wire.request(call=n)) for n in range(1, len(sent) + 1)] == [*map(spelled, sent)]
        assert store.verify().ok


@pytest.mark.parametrize("shape", SHAPES)
def test_requests_stay_equal_when_the_store_is_reopened_and_its_views_are_folded_again(
    shape: str, store_path: Path
) -> None:
    """All the lives in one session, one after the other, are given back by a new handle and by new views."""
    sent = [request(items, shape, ("look",), temperature=n) for n, life in enumerate(LIVES.values()) for items in life]
    with open_store(store_path) as store:
        for number, body in enumerate(sent):
            store.record("s", body, answer(model_text(f"reply {number}"), shape))
    with open_store(store_path) as store:
        session = store.session("s")
        assert [spelled(session.wire.request(call=n)) for n in range(1, len(sent) + 1)] == [*map(spelled, sent)]
        store.admin.rebuild()
        assert [spelled(session.wire.request(call=n)) for n in range(1, len(sent) + 1)] == [*map(spelled, sent)]
        assert store.verify().ok


@pytest.mark.parametrize("shape", SHAPES)
def test_a_growing_conversation_makes_each_page_once(shape: str) -> None:
    """Calls that only add messages create one page a message and change none."""
    with memory_store() as store:
        for end in range(1, len(TALK), 2):
            store.record("s", request(TALK[:end], shape), answer(TALK[end], shape))
        made = kinds(store)
        assert made.count("create") == made.count("message") == len(TALK)
        assert {"update", "compress", "link"}.isdisjoint(made)
        assert store.session("s").info().turns == len(TALK) // 2


@pytest.mark.parametrize("shape", SHAPES)
def test_the_reply_sent_back_is_the_page_it_was(shape: str) -> None:
    """An answer in the next request becomes resident under its own page, without new content."""
    with memory_store() as store:
        store.record("s", request(HEAD, shape), answer(ask("c1"), shape))
        end = store.session("s").info().position
        reply = store.session("s").pages()[-1]
        assert reply.role == "assistant" and reply.tier == 2
        store.record("s", request(BASE[:4], shape))
        made = kinds(store, after=end)
        assert made.count("create") == 1  # the tool's result
        context = store.session("s").context()
        assert reply.page in [page.page for page in context.pages]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tool_result_is_caused_by_its_call(shape: str) -> None:
    """The page of a result links to the page of the call it answers."""
    with memory_store() as store:
        store.record("s", request(HEAD, shape), answer(ask("c1"), shape))
        store.record("s", request(BASE[:4], shape))
        asked, row = store.session("s").pages()[-2:]
        links = store.session("s").lineage.ancestors(row.page)
        assert [(link.kind, link.source, link.target) for link in links] == [("caused_by", row.page, asked.page)]
        assert (asked.role, row.type) == ("assistant", "artifact")


@pytest.mark.parametrize("shape", SHAPES)
def test_an_unchanged_call_writes_only_that_it_was_made(shape: str) -> None:
    """The same request again is one pack without content, and a reply."""
    with memory_store() as store:
        store.record("s", request(BASE, shape))
        end = store.session("s").info().position
        store.record("s", request(BASE, shape))
        assert kinds(store, after=end) == ["pack", "reply"]
        pack = [entry.mutation for entry in store.tail() if entry.kind == "pack"][-1]
        assert (pack["entered"], pack["left"], pack["rest"], pack["envelopes"]) == ((), (), None, ())


@pytest.mark.parametrize("shape", SHAPES)
def test_other_tools_change_the_tools_page_only(shape: str) -> None:
    """Changed schemas are another version of one page; the messages stay untouched."""
    with memory_store() as store:
        store.record("s", request(BASE, shape, ("look",)))
        end = store.session("s").info().position
        body = request(BASE, shape, ("look", "write"))
        store.record("s", body)
        assert kinds(store, after=end) == ["update", "pack", "reply"]
        session = store.session("s")
        first = session.page(session.context().pages[0].page)
        assert (first.type, first.version) == ("procedure", 2)
        assert session.wire.request() == body


@pytest.mark.parametrize("shape", SHAPES)
def test_another_model_or_parameter_is_a_new_literal_only(shape: str) -> None:
    """What stands beside the messages is rewritten where it changed; no page is."""
    with memory_store() as store:
        for more in ({}, {"model": "m2"}, {"model": "m2", "temperature": 0.5}, {}):
            store.record("s", request(BASE, shape, **more))
        session = store.session("s")
        assert [call.model for call in session.calls()] == ["m", "m2", "m2", "m"]
        assert session.wire.request(call=3)["temperature"] == 0.5
        assert "temperature" not in session.wire.request(call=4)
        assert kinds(store).count("create") == kinds(store).count("message")
        rests = [entry.mutation["rest"] for entry in store.tail() if entry.kind == "pack"]
        assert all(rest is not None for rest in rests)
