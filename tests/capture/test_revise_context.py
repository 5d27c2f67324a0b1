"""Changed contexts: what left, what came back, what a summary took the place of."""

from __future__ import annotations

import pytest

from tests.capture.words import (
    LONG,
    SHAPES,
    Item,
    answer,
    ask,
    entries,
    kinds,
    message,
    model_text,
    request,
    result,
    system,
    texts,
    tool_call,
    user,
)
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

SYSTEM = system("You plan a garden, bed by bed.")
TALK = [item for n in range(10) for item in (user(f"What about bed {n}?"), model_text(f"Bed {n} gets plants."))]
MARKED = "Summary of the conversation so far: the beds 0 to 3 are planned."
UNMARKED = "The beds 0 to 3 are planned: herbs, roses, beans and peas."


def recorded(store: Store, *requests: list[Item], shape: str = "chat") -> Session:
    """A session of these requests, none of them answered."""
    for items in requests:
        store.record("s", request(items, shape))
    return store.session("s")


def names(session: Session, call: int) -> list[str]:
    """The pages a call saw."""
    return [page.page for page in session.context(call=call).pages]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sliding_window_only_lets_go(shape: str) -> None:
    """A window that slides over a conversation writes each message once and changes none."""
    with memory_store() as store:
        windows = [[SYSTEM, *TALK[max(0, end - 5) : end]] for end in range(1, len(TALK), 2)]
        session = recorded(store, *windows, shape=shape)
        assert len(session.pages()) == len({item for window in windows for item in window})
        assert {"update", "compress", "link"}.isdisjoint(kinds(store))
        assert names(session, 9)[1:4] == names(session, 8)[3:6]


@pytest.mark.parametrize("shape", SHAPES)
def test_deleted_messages_leave_and_nothing_else(shape: str) -> None:
    """Messages cut out of the middle leave; the others stay the pages they were, unbroken."""
    with memory_store() as store:
        session = recorded(store, [SYSTEM, *TALK[:7]], [SYSTEM, *TALK[:2], *TALK[4:7]], shape=shape)
        before, after = names(session, 1), names(session, 2)
        assert after == before[:3] + before[5:]
        assert all(page.since_call == 1 for page in session.context().pages)
        gone = session.page(before[3])
        assert (gone.tier, session.content(gone.page)) == (2, TALK[2][1].encode())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("text", [MARKED, UNMARKED])
def test_a_summary_derives_from_all_it_replaced(shape: str, text: str) -> None:
    """Where one message stands for several that left, it is a summary with provenance to each."""
    with memory_store() as store:
        before = [SYSTEM, *TALK[:11]]
        after = [SYSTEM, user(text), *TALK[8:11]]
        session = recorded(store, before, after, shape=shape)
        (summary,) = [page for page in session.pages() if page.type == "summary"]
        gone = set(names(session, 1)) - set(names(session, 2))
        links = session.lineage.ancestors(summary.page)
        assert {link.target for link in links} == gone and len(gone) == 8
        assert {link.kind for link in links} == {"derives"}
        assert session.content(summary.page) == text.encode()
        assert all(session.lineage.descendants(page)[0].source == summary.page for page in gone)


def test_a_summary_at_the_end_is_known_by_its_words() -> None:
    """A compaction that keeps nothing after its note is one where the note says what it is."""
    with memory_store() as store:
        session = recorded(store, [SYSTEM, *TALK[:11]], [SYSTEM, user(f"<summary>{UNMARKED}</summary>")])
        summary = session.pages()[-1]
        assert (summary.type, len(session.lineage.ancestors(summary.page))) == ("summary", 11)


def test_a_summary_of_a_summary_leads_back_to_what_was_said() -> None:
    """Compacted twice, the second note derives from the first, and through it from the first messages."""
    with memory_store() as store:
        session = recorded(
            store,
            [SYSTEM, *TALK[:9]],
            [SYSTEM, user(MARKED), *TALK[8:13]],
            [SYSTEM, user(MARKED.replace("3", "5")), *TALK[12:13]],
        )
        first, second = [page for page in session.pages() if page.type == "summary"]
        walked = session.lineage.ancestors(second.page)
        assert {link.depth for link in walked} == {1, 2}
        assert first.page in {link.target for link in walked if link.depth == 1}
        assert names(session, 1)[1] in {link.target for link in walked if link.depth == 2}


def test_instructions_that_change_with_a_compaction_are_an_edit() -> None:
    """A system message is never the summary: changed in the same call, it is version 2 of itself."""
    other_system = system("You plan a garden, bed by bed, quickly.")
    with memory_store() as store:
        session = recorded(store, [SYSTEM, *TALK[:9]], [other_system, user(MARKED), *TALK[8:9]])
        first, summary, _ = (session.page(name) for name in names(session, 2))
        assert (first.type, first.role, first.version) == ("transcript", "system", 2)
        assert (summary.type, summary.role) == ("summary", "user")
        assert {link.target for link in session.lineage.ancestors(summary.page)} == set(names(session, 1)[1:9])


def test_a_word_put_in_between_is_no_summary() -> None:
    """A message added where none left is a message."""
    with memory_store() as store:
        session = recorded(store, [SYSTEM, *TALK[:5]], [SYSTEM, *TALK[:2], user("By the way."), *TALK[2:5]])
        assert {page.type for page in session.pages()} == {"transcript"}
        assert "link" not in kinds(store)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_new_order_is_no_new_content(shape: str) -> None:
    """Messages in another order are the pages they were, in that order."""
    with memory_store() as store:
        turned = [*TALK[4:8], *TALK[:4]]
        session = recorded(store, [SYSTEM, *TALK[:8]], [SYSTEM, *turned], shape=shape)
        first = names(session, 1)
        assert names(session, 2) == [first[0], *first[5:], *first[1:5]]
        pack = [entry.mutation for entry in entries(store, "s") if entry.kind == "pack"][-1]
        assert len(pack["entered"]) == 4  # those that moved, not all


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_that_moved_is_not_also_another_one(shape: str) -> None:
    """What is found in another place is itself, and no form of what stands where it stood."""
    first = [model_text("Once upon a time.")]
    before = [model_text(LONG), user("And?")]
    after = [*first, model_text("Old answer (omitted)"), user("And?"), model_text(LONG), user("So?")]
    with memory_store() as store:
        session = recorded(store, first, before, after, shape=shape)
        assert session.wire.request() == request(after, shape)
        assert len(set(names(session, 3))) == 5
        assert names(session, 3)[3] == names(session, 2)[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_evicted_comes_back_under_its_identity(shape: str) -> None:
    """Messages that return after a call without them are the same pages, at no cost of content."""
    back = [SYSTEM, *TALK[:6]]
    with memory_store() as store:
        session = recorded(store, [SYSTEM, *TALK[:7]], [SYSTEM, *TALK[6:9]], back, shape=shape)
        assert names(session, 3) == names(session, 1)[:7]
        assert [page.since_call for page in session.context().pages] == [1, 3, 3, 3, 3, 3, 3]
        assert len(session.pages()) == 10


def test_equal_messages_come_back_each_under_its_own_identity() -> None:
    """After a call about something else, messages that say the same are still as many pages as before."""
    talk = [
        user("continue"),
        model_text("one"),
        user("continue"),
        model_text("two"),
        user("continue"),
        model_text("three"),
    ]
    aside = [system("You name things."), user("Name this conversation.")]
    with memory_store() as store:
        session = recorded(store, talk, aside, [*talk, user("stop")])
        assert names(session, 3)[:6] == names(session, 1)
        assert len(session.pages()) == 6 + 2 + 1


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_said_before_may_be_said_again(shape: str) -> None:
    """An answer like an earlier one that still stands is another message, no matter who recorded it."""
    talk = [user("Is bed 1 planned?"), model_text("Yes."), user("Is bed 2?"), model_text("Yes."), user("Is bed 3?")]
    with memory_store() as store:
        session = recorded(store, talk[:3], talk, shape=shape)
        assert session.wire.request() == request(talk, shape)
        assert len(set(names(session, 2))) == 5
        assert names(session, 2)[:3] == names(session, 1)


def test_a_call_id_used_again_is_another_call() -> None:
    """Providers repeat ids: a call under an id seen before is its own message, and its result too."""
    both = {"role": "assistant", "content": "Look:", "tool_calls": [tool_call("a"), tool_call("b")]}
    first = [message(item) for item in (TALK[0], result("a", "1"))]
    first.insert(1, both)
    more = [message(item) for item in (user("Again."), ask("a"), result("a", "2"))]
    with memory_store() as store:
        for messages in (first, first + more):
            store.record("s", {"model": "m", "messages": messages})
        assert store.session("s").wire.request()["messages"] == first + more
        assert store.verify().ok


def test_equal_messages_are_each_a_page() -> None:
    """The same text three times in one request is three pages, and stays three when one goes."""
    with memory_store() as store:
        session = recorded(store, [user("go")] * 3, [user("go")] * 2, [user("go")] * 3)
        assert [len(set(names(session, call))) for call in (1, 2, 3)] == [3, 2, 3]
        assert [len(names(session, call)) for call in (1, 2, 3)] == [3, 2, 3]


def test_two_tracks_in_turn_write_nothing_twice() -> None:
    """Two agents that share a session by turns find their own messages again."""
    doubts = [item for n in range(4) for item in (user(f"Is bed {n} good?"), model_text(f"Bed {n} is not."))]
    planner, critic = [system("You plan."), *TALK], [system("You doubt."), *doubts]
    with memory_store() as store:
        turns = [track[:end] for end in (2, 4, 6, 8) for track in (planner, critic)]
        session = recorded(store, *turns)
        spoken = [page for page in session.pages() if page.role != "system"]
        assert len(spoken) == len({item for items in turns for item in items[1:]})
        assert names(session, 7)[1:6] == names(session, 5)[1:]
        assert names(session, 8)[1:6] == names(session, 6)[1:]


def test_a_result_that_moved_with_its_call_keeps_its_page() -> None:
    """Tool calls and results found in another place are still linked and still one page each."""
    pair = [ask("c1"), result("c1", LONG)]
    with memory_store() as store:
        session = recorded(store, [SYSTEM, TALK[0], *pair, *TALK[1:5]], [SYSTEM, *TALK[:5], *pair])
        (actual_page,) = [page for page in session.pages() if page.type == "artifact"]
        assert (actual_page.version, len(session.lineage.ancestors(actual_page.page))) == (1, 1)


def test_another_calls_result_is_another_page() -> None:
    """An agent that keeps only its last tool call makes a page of each result, none a version."""
    with memory_store() as store:
        for n in range(4):
            pair = [ask(f"c{n}"), result(f"c{n}", f"{LONG} of look {n}")]
            store.record("s", request([SYSTEM, TALK[0], *pair]), answer(ask(f"c{n + 1}")))
        session = store.session("s")
        assert [page.version for page in session.pages() if page.type == "artifact"] == [1, 1, 1, 1]
        assert {"update", "compress"}.isdisjoint(kinds(store))
        assert texts(session.context())[-1] == f"{LONG} of look 3"


def test_since_tells_an_unbroken_stay() -> None:
    """`since_call` is where a page last entered, whatever level it was shown at in between."""
    note = "Old output (omitted)"
    head = [SYSTEM, TALK[0], ask("c1")]
    with memory_store() as store:
        session = recorded(
            store,
            [*head, result("c1", LONG)],
            [*head, result("c1", note), model_text("a")],
            [SYSTEM, TALK[0]],
            [*head, result("c1", note), model_text("a")],
        )
        assert [page.since_call for page in session.context(call=2).pages] == [1, 1, 1, 1, 2]
        assert [page.since_call for page in session.context(call=4).pages] == [1, 1, 4, 4, 4]


def test_the_context_says_what_it_cost() -> None:
    """Tokens of a context are the sum of its pages', and shrink where it was shortened."""
    head = [SYSTEM, TALK[0], ask("c1")]
    with memory_store() as store:
        session = recorded(store, [*head, result("c1", LONG)], [*head, result("c1", "gone (omitted)")])
        full, short = session.context(call=1), session.context(call=2)
        for context in (full, short):
            assert context.tokens == sum(page.tokens for page in context.pages)
        assert short.tokens < full.tokens / 4
