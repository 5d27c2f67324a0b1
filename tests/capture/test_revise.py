"""Changed messages: an edit is another version, a shorter form another level of the same page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.capture.words import (
    CLIPPED,
    LONG,
    NOTE,
    SHAPES,
    SHORT,
    answer,
    ask,
    entries,
    kinds,
    message,
    model_text,
    request,
    result,
    system,
    tool_call,
    user,
)
from vmstore.core.page import Level, Method
from vmstore.namespace.results import Page
from vmstore.store.store import Store, memory_store, open_store

HEAD = [system("You look things up in packages."), user("What is in the package?")]


def looked(text: str) -> list[Any]:
    """A conversation in which a tool answered with this text."""
    return [*HEAD, ask("c1"), result("c1", text), model_text("Sixty lines."), user("And the tests?")]


def artifact(store: Store) -> Page:
    """The page of the one tool result."""
    (page,) = [page for page in store.session("s").pages() if page.type == "artifact"]
    return page


SHORTER = [
    (NOTE, Level.REFERENCE, Method.REPLACED),
    ("[Old tool result content cleared]", Level.REFERENCE, Method.REPLACED),
    ("All fine.", Level.REFERENCE, Method.REPLACED),
    (CLIPPED, Level.REDUCED, Method.CLIPPED),
    (LONG[:400], Level.REDUCED, Method.CLIPPED),
    (LONG[-400:], Level.REDUCED, Method.CLIPPED),
    (SHORT, Level.ABSTRACT, Method.SHORTENED),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("text", "level", "method"), SHORTER)
def test_a_shorter_form_is_a_level_of_the_same_page(shape: str, text: str, level: Level, method: Method) -> None:
    """A tool result shown shorter is compressed, by the method that shows, and its full text stays."""
    with memory_store() as store:
        store.record("s", request(looked(LONG), shape))
        before = artifact(store)
        end = store.session("s").info().position
        store.record("s", request(looked(text), shape))
        assert kinds(store, after=end) == ["compress", "pack", "reply"]
        page, session = artifact(store), store.session("s")
        assert (page.page, page.level, page.version) == (before.page, level, 1)
        assert page.tokens < before.tokens
        assert session.content(page.page) == LONG.encode()
        assert session.content(page.page, level=level) == text.encode()
        (event,) = [event for event in session.lineage.history(page.page) if event.event == "compress"]
        assert (event.level, event.method) == (level, method.word)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_full_text_back_is_level_0_of_the_same_page(shape: str) -> None:
    """Restoring a compressed result writes no content: the page shows its first bytes again."""
    with memory_store() as store:
        for text in (LONG, NOTE, LONG, CLIPPED, LONG):
            store.record("s", request(looked(text), shape))
        made = kinds(store)
        assert made.count("compress") == 2 and "update" not in made
        assert made.count("create") == len(store.session("s").pages())
        assert (artifact(store).level, artifact(store).version) == (0, 1)
        shown = [store.session("s").page(artifact(store).page, call=n).level for n in range(1, 6)]
        assert shown == [0, 3, 0, 1, 0]


def test_a_form_shown_before_is_not_written_again() -> None:
    """The same note a second time names the representation there is."""
    with memory_store() as store:
        for text in (LONG, NOTE, LONG, NOTE):
            store.record("s", request(looked(text)))
        assert kinds(store).count("compress") == 1
        assert artifact(store).level == Level.REFERENCE


def test_a_forms_form_is_one_of_the_full_text() -> None:
    """Shortened in steps, each step is a level of the page, and the full bytes stay at level 0."""
    with memory_store() as store:
        for text in (LONG, CLIPPED, SHORT, NOTE):
            store.record("s", request(looked(text)))
        session, page = store.session("s"), artifact(store)
        assert [session.page(page.page, call=n).level for n in (1, 2, 3, 4)] == [0, 1, 2, 3]
        for level, text in enumerate((LONG, CLIPPED, SHORT, NOTE)):
            assert session.content(page.page, level=level) == text.encode()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_an_edit_is_another_version(shape: str, place: int) -> None:
    """A message that says something else of its size in the same place is version 2 of its page."""
    edited = looked(LONG)
    text = edited[place][-1].replace("package", "module").replace("line 7 ", "line seven ")
    edited[place] = (*edited[place][:-1], text)
    with memory_store() as store:
        store.record("s", request(looked(LONG), shape))
        end = store.session("s").info().position
        store.record("s", request(edited, shape))
        assert kinds(store, after=end) == ["update", "pack", "reply"]
        session = store.session("s")
        update = entries(store, "s")[end].mutation
        page = session.page(int(update["page"]))
        assert (page.version, page.level) == (2, 0)
        assert session.content(page.page) == text.encode()
        assert session.content(page.page, call=1) != text.encode()
        assert session.page(page.page, call=1).version == 1


def test_the_last_word_edited_is_an_edit_where_it_resembles() -> None:
    """A question sent again with a correction is its next version, and opens no turn."""
    asked = "What is in the package, and which of its modules are tested?"
    with memory_store() as store:
        store.record("s", request([HEAD[0], user(asked)]), None)
        store.record("s", request([HEAD[0], user(asked.replace("tested", "tried"))]), None)
        page = store.session("s").pages()[-1]
        assert (page.version, store.session("s").info().turns) == (2, 1)


def test_a_new_version_forgets_the_forms_of_the_old() -> None:
    """After an edit a level means a form of the new text; the old one's stay with the old version."""
    other = LONG.replace("output", "listing")
    with memory_store() as store:
        for text in (LONG, NOTE, other, NOTE):
            store.record("s", request(looked(text)))
        made = [(e.mutation["version"], e.kind) for e in entries(store, "s") if e.kind in ("update", "compress")]
        assert made == [(1, "compress"), (2, "update"), (2, "compress")]
        assert store.session("s").content(artifact(store).page) == other.encode()


# ---- replies sent back


def test_thinking_left_out_is_a_page_that_leaves() -> None:
    """A reply sent back without its thinking keeps its pages; the thinking leaves the prompt, unharmed."""
    thought = {"type": "thinking", "thinking": "Hm, sixty.", "signature": "sig"}
    spoken = {"type": "text", "text": "Sixty lines."}
    body = {"type": "message", "role": "assistant", "content": [thought, spoken], "stop_reason": "end_turn"}
    items = [*HEAD, model_text("Sixty lines."), user("Sure?")]
    with memory_store() as store:
        store.record("s", request(HEAD, "anthropic"), body)
        end = store.session("s").info().position
        thinking, text = store.session("s").pages()[-2:]
        store.record("s", request(items, "anthropic"))
        session = store.session("s")
        assert kinds(store, after=end).count("create") == 1  # what the person said
        shown = [page.page for page in session.context().pages]
        assert text.page in shown and thinking.page not in shown
        assert session.content(thinking.page) == b"Hm, sixty."
        assert session.wire.request() == request(items, "anthropic")


def test_thinking_kept_is_no_new_page() -> None:
    """A reply sent back whole becomes resident as it is."""
    thought = {"type": "thinking", "thinking": "Hm, sixty.", "signature": "sig"}
    parts = [thought, {"type": "text", "text": "Sixty lines."}]
    body = {"type": "message", "role": "assistant", "content": parts, "stop_reason": "end_turn"}
    sent = request([*HEAD, user("Sure?")], "anthropic")
    sent["messages"].insert(1, {"role": "assistant", "content": parts})
    with memory_store() as store:
        store.record("s", request(HEAD, "anthropic"), body)
        pages = store.session("s").info().pages
        store.record("s", sent)
        assert store.session("s").info().pages == pages + 1
        assert store.session("s").wire.request() == sent


def test_a_reply_may_come_back_in_other_fields() -> None:
    """Extra or missing fields change the message's envelope, not its pages."""
    replied: dict[str, Any] = {"role": "assistant", "content": "Sixty.", "refusal": None, "annotations": []}
    sent = [message(item) for item in HEAD] + [
        {"role": "assistant", "content": [{"type": "text", "text": "Sixty."}], "name": "bot"},
        message(user("Sure?")),
    ]
    with memory_store() as store:
        store.record("s", request(HEAD), {"choices": [{"message": replied, "finish_reason": "stop"}]})
        end = store.session("s").info().position
        store.record("s", {"model": "m", "messages": sent})
        made = kinds(store, after=end)
        assert (made.count("create"), made.count("message"), made.count("update")) == (1, 1, 0)
        assert store.session("s").wire.request()["messages"] == sent


def test_a_tool_call_may_come_back_with_its_keys_in_another_order() -> None:
    """The same call written in another order is the same page."""
    replied = {"role": "assistant", "content": None, "tool_calls": [tool_call("c1", arguments='{"a":1}')]}
    turned = {"function": {"arguments": '{"a":1}', "name": "look"}, "type": "function", "id": "c1"}
    sent = request([*HEAD, result("c1", "x")])
    sent["messages"].insert(2, {"role": "assistant", "content": "", "tool_calls": [turned]})
    with memory_store() as store:
        store.record("s", request(HEAD), {"choices": [{"message": replied, "finish_reason": "tool_calls"}]})
        pages = store.session("s").info().pages
        store.record("s", sent)
        assert store.session("s").info().pages == pages + 1
        assert store.session("s").wire.request() == sent


# ---- envelopes


def test_a_moved_cache_mark_is_neither_version_nor_page() -> None:
    """`cache_control` wanders with the end of the prompt; only envelopes follow it."""
    marked: dict[str, Any] = {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}}
    with memory_store() as store:
        sent = []
        spoken: list[Any] = []
        for n in range(5):
            bare = [{"role": m["role"], "content": [{**m["content"][0]}]} for m in spoken]
            for old in bare:
                old["content"][0].pop("cache_control", None)
            spoken = [*bare, {"role": "user", "content": [{**marked, "text": f"And {n}?"}]}]
            sent.append({**request([], "anthropic"), "system": [marked], "messages": spoken})
            store.record("s", sent[-1])
        session = store.session("s")
        assert [session.wire.request(call=n) for n in range(1, 6)] == sent
        assert session.info().pages == 6
        assert {"update", "compress"}.isdisjoint(kinds(store))
        assert [page.version for page in session.pages()] == [1] * 6


@pytest.mark.parametrize("role", ["developer", "user"])
def test_the_same_text_of_another_role_keeps_its_request_equal(role: str) -> None:
    """Instructions moved to another role come back as they were sent, each time."""
    changed = [{"role": role, "content": HEAD[0][1]}, message(HEAD[1])]
    with memory_store() as store:
        for messages in ([message(item) for item in HEAD], changed, [message(item) for item in HEAD]):
            store.record("s", {"model": "m", "messages": messages})
            assert store.session("s").wire.request()["messages"] == messages


def test_another_speaker_in_the_same_place_is_no_version_of_the_one_before() -> None:
    """What the model says where a person spoke is a message of its own, under the model's role."""
    talk = [HEAD[0], user("first question"), model_text("middle"), user("last question")]
    swapped = [HEAD[0], model_text("an opening of mine"), *talk[2:]]
    with memory_store() as store:
        store.record("s", request(talk))
        store.record("s", request(swapped))
        session = store.session("s")
        shown = session.context().pages[1]
        assert (shown.role, session.page(shown.page).version) == ("assistant", 1)
        assert session.wire.request() == request(swapped)


def test_parts_added_and_dropped_leave_the_others_alone() -> None:
    """Of a message with several parts only the one that changed is written."""
    parts = [{"type": "text", "text": f"part {n} of the question"} for n in range(4)]
    tail = [message(model_text("Well.")), message(user("Go on."))]
    versions = [parts, [*parts[:1], *parts[2:]], parts, [*parts, {"type": "text", "text": "one more"}]]
    with memory_store() as store:
        for chosen in versions:
            store.record("s", {"model": "m", "messages": [{"role": "user", "content": chosen}, *tail]})
        session = store.session("s")
        assert [len(session.context(call=n).pages) for n in (1, 2, 3, 4)] == [6, 5, 6, 7]
        assert session.info().messages == 3
        assert session.wire.request(call=4)["messages"][0]["content"] == versions[3]


@pytest.mark.parametrize("reopened", [False, True])
def test_levels_are_kept_over_a_reopen(store_path: Path, reopened: bool) -> None:
    """A store opened again goes on with the forms it has: back to full is no new page, nor is the note."""
    store = open_store(store_path)
    for text in (LONG, NOTE):
        store.record("s", request(looked(text)))
    if reopened:
        store.close()
        store = open_store(store_path)
    with store:
        end = store.session("s").info().position
        for text in (LONG, NOTE):
            store.record("s", request(looked(text)))
        assert kinds(store, after=end) == ["pack", "reply"] * 2
        assert artifact(store).level == Level.REFERENCE


def test_answers_are_said_of_the_call_they_came_for() -> None:
    """Reply messages name their call, and a message of a request names none."""
    with memory_store() as store:
        store.record("s", request(HEAD), answer(ask("c1")))
        store.record("s", request(looked(LONG)[:4]), answer(model_text("Sixty lines.")))
        replies = [entry.mutation["reply_to"] for entry in entries(store, "s") if entry.kind == "message"]
        assert replies == [None, None, 1, None, 2]


def messages(*contents: Any) -> dict[str, Any]:
    """A request in Anthropic's form, user and assistant in turns."""
    records = [{"role": ("user", "assistant")[i % 2], "content": content} for i, content in enumerate(contents)]
    return {"model": "claude-x", "max_tokens": 9, "messages": records}


def test_a_result_of_another_call_is_another_page() -> None:
    """Where a message shows another call's result in the place of one, the page of the first is left as it is."""
    calls = [{"type": "tool_use", "id": c, "name": "look", "input": {}} for c in ("c1", "c2")]

    def tool_results(*names: str, text: str) -> list[dict[str, Any]]:
        return [{"type": "tool_result", "tool_use_id": c, "content": f"{c} {text}"} for c in names]

    with memory_store() as store:
        for results in (tool_results("c1", "c2", text=LONG), tool_results("c2", "c1", text=LONG.upper())):
            store.record("s", messages("Look twice.", calls, results, "Both are there.", "Go on."))
        session = store.session("s")
        shown = [page for page in session.context().pages if page.type == "artifact"]
        assert len(shown) == 2
        for page in shown:
            (link,) = session.lineage.ancestors(page.page, depth=1, kinds=["caused_by"])
            assert f'"{session.content(page.page).decode()[:2]}"' in session.content(link.target).decode()


def test_a_part_of_another_modality_is_another_page() -> None:
    """A picture in the place of a text is a new page: no text becomes a picture."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    with memory_store() as store:
        for part in ({"type": "text", "text": LONG}, picture):
            store.record("s", messages([part], "I see.", "Go on."))
        first, *_, last = store.session("s").pages()
        assert (first.modality, first.version, last.modality, last.version) == ("text", 1, "image", 1)
        assert store.session("s").context().text()
