"""A cold start equals a warm one: a handle that knows nothing yet writes what one that saw all would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.capture.test_record import LIVES
from tests.capture.words import (
    CLIPPED,
    LONG,
    NOTE,
    SHAPES,
    Item,
    answer,
    ask,
    entries,
    model_text,
    request,
    result,
    spelled,
    system,
    tool_call,
    user,
)
from vmstore.core.clock import ManualClock
from vmstore.store.store import Store, memory_store, open_store

Exchange = tuple[dict[str, Any], Any]
CELLS = {"uid", "name", "envelope", "content", "rest", "aside", "labels", "envelopes", "root", "meta", "key"}
HEAD = [system("You look things up."), user("What is in the package?")]


def mutations_of(store: Store) -> list[tuple[str, dict[str, Any]]]:
    """A session's mutations, but for what hangs on salts and on which cell was at hand."""
    rows = []
    for entry in entries(store, "s"):
        fields = {key: value for key, value in entry.mutation.items() if key not in CELLS}
        fields["cells"] = sorted(key for key in CELLS if entry.mutation.get(key) is not None)
        rows.append((entry.kind, fields))
    return rows


def cold_and_warm(path: Path, exchanges: list[Exchange]) -> None:
    """Records the same calls with one handle and with one for each call, and compares all there is to see."""
    with memory_store(clock=ManualClock()) as warm:
        for body, response in exchanges:
            warm.record("s", body, response, at_us=1)
        for body, response in exchanges:
            with open_store(path) as cold:
                cold.record("s", body, response, at_us=1)
        with open_store(path) as cold:
            assert mutations_of(cold) == mutations_of(warm)
            for number, (body, _) in enumerate(exchanges, 1):
                first, other = (store.session("s").context(call=number) for store in (cold, warm))
                assert spelled(first.request()) == spelled(other.request()) == spelled(body)
                assert first.pages == other.pages
            assert cold.verify().ok


def exchanges_of(requests: list[list[Item]], shape: str = "chat", **more: Any) -> list[Exchange]:
    """Requests each answered in words."""
    return [
        (request(items, shape, **more), answer(model_text(f"reply {n}"), shape)) for n, items in enumerate(requests)
    ]


@pytest.mark.parametrize("life", LIVES)
def test_any_life_is_told_the_same(life: str, store_path: Path) -> None:
    """Growth, edits, deletions, compactions, returns: a reopened store goes on as if it had never closed."""
    cold_and_warm(store_path, exchanges_of(LIVES[life]))


@pytest.mark.parametrize("shape", SHAPES)
def test_tool_calls_are_told_the_same_in_every_shape(shape: str, store_path: Path) -> None:
    """Which call a result answers is read back from what was written, also where two results change places."""
    first, two = [ask("c1"), result("c1", LONG)], [ask("c2"), result("c2", LONG[::-1])]
    talk = [*HEAD, *first, *two, model_text("Both."), user("And?")]
    swapped = [*HEAD, ask("c1"), result("c1", NOTE), ask("c2"), result("c2", CLIPPED), model_text("Both."), user("So?")]
    exchanges = [
        (request(HEAD, shape), answer(ask("c1"), shape)),
        (request(talk[:4], shape), answer(ask("c2"), shape)),
        (request(talk, shape), answer(model_text("Done."), shape, tokens=900)),
        (request(swapped, shape), answer(model_text("Done."), shape, tokens=80)),
    ]
    cold_and_warm(store_path, exchanges)


@pytest.mark.parametrize("shape", SHAPES)
def test_who_answered_which_call_is_known_again(shape: str, store_path: Path) -> None:
    """What stands in the place of a tool's result is told from it after a reopen as before, in every shape."""
    bodies = [[*HEAD, item] for item in (result("c1", CLIPPED), user(NOTE), result("c2", NOTE), result("c1", NOTE))]
    cold_and_warm(store_path, [(request(items, shape), None) for items in bodies])


@pytest.mark.parametrize("shape", ["chat", "anthropic"])
def test_results_of_several_parts_are_told_the_same(shape: str, store_path: Path) -> None:
    """A tool result of two texts, shortened later, is settled alike by both."""

    def told_in(parts: list[str]) -> dict[str, Any]:
        texts = [{"type": "text", "text": part} for part in parts]
        body = request([*HEAD, ask("c1"), result("c1", ""), model_text("Well."), user("And?")], shape)
        spoken = body["messages"][-3]
        if shape == "chat":
            spoken["content"] = texts
        else:
            spoken["content"] = [{"type": "tool_result", "tool_use_id": "c1", "content": texts}]
        return body

    bodies = [told_in([LONG, LONG.upper()]), told_in([NOTE, "(60 lines omitted)"]), told_in([LONG, LONG.upper()])]
    cold_and_warm(store_path, [(body, None) for body in bodies])


@pytest.mark.parametrize(
    "text", ["{not json", '{"id": "c1"}', '{"call_id": 5}', "{}", "[1]", '"x"', "\x00", "\ud800", "{\ud800"]
)
def test_an_answer_that_looks_like_json_is_words(text: str, store_path: Path) -> None:
    """What the model says may be JSON, or begin like it; a tool's result is caused by the call alone."""
    talk = [*HEAD, model_text(text), user("Look."), ask("c1"), result("c1", "x"), model_text("Seen.")]
    exchanges: list[Exchange] = [
        (request(talk[:2]), answer(talk[2])),
        (request(talk[:4]), answer(talk[4])),
        (request(talk[:6]), answer(talk[6])),
        (request(talk), None),
    ]
    cold_and_warm(store_path, exchanges)


def test_a_page_back_at_full_is_known_by_its_full_text(store_path: Path) -> None:
    """A result shown short, then full, then evicted, comes back full under its identity."""
    shown = [[*HEAD, ask("c1"), result("c1", text), model_text("Seen.")] for text in (LONG, NOTE, LONG)]
    cold_and_warm(store_path, exchanges_of([*shown, [HEAD[0], user("Something else?")], shown[0]]))


def test_a_page_evicted_short_comes_back_short(store_path: Path) -> None:
    """A result evicted as a note comes back as that note, and as its full text too."""
    shown = [[*HEAD, ask("c1"), result("c1", text), model_text("Seen.")] for text in (LONG, NOTE)]
    other = [HEAD[0], user("Something else?")]
    cold_and_warm(store_path, exchanges_of([*shown, other, shown[1], other, shown[0]]))


def test_a_reply_without_its_thinking_is_known_long_after(store_path: Path) -> None:
    """A reply that was sent back in part, evicted and sent again, is the message it was."""
    parts = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Sixty."}]
    body = {"type": "message", "role": "assistant", "content": parts, "stop_reason": "end_turn"}
    kept = [*HEAD, model_text("Sixty."), user("Sure?")]
    others = [[system("You wait."), user(f"wait {n}")] for n in range(10)]
    back = [[*kept, model_text("reply 1"), user("Again?")]]
    rest = [(request(items, "anthropic"), answer(model_text(f"r{n}"), "anthropic")) for n, items in enumerate(others)]
    cold_and_warm(
        store_path,
        [
            (request(HEAD, "anthropic"), body),
            (request(kept, "anthropic"), answer(model_text("reply 1"), "anthropic")),
            *rest,
            *[(request(items, "anthropic"), None) for items in back],
        ],
    )


def test_turns_are_told_the_same(store_path: Path) -> None:
    """Whether the next word opens a turn is known after a reopen: after answers, failures, gaps and aborts."""
    talk = [user("a"), model_text("b"), user("c"), model_text("d"), user("e"), model_text("f"), user("g")]
    responses = [answer(model_text("b")), TimeoutError("slow"), None, answer(model_text("d")), answer(model_text("f"))]
    bodies = [request(talk[:end]) for end in (1, 3, 3, 3, 5)]
    cold_and_warm(store_path, [*zip(bodies, responses, strict=True), (request(talk), None)])


@pytest.mark.parametrize("last", [model_text("b"), ask("c1")])
def test_an_answer_first_seen_in_a_request_is_remembered(last: Item, store_path: Path) -> None:
    """Whether the model had its last word in a request is known after a reopen: the next word opens a turn."""
    talk = [user("a"), last, user("c")]
    cold_and_warm(store_path, [(request(talk[:2]), None), (request(talk), None)])


def test_an_answer_first_seen_in_a_request_ends_what_asked_before(store_path: Path) -> None:
    """A call that asked for a tool, then words the agent puts in itself: the next word opens a turn for both."""
    talk = [user("a"), model_text("Never mind the tool."), user("c")]
    cold_and_warm(
        store_path, [(request(talk[:1]), answer(ask("c1"))), (request(talk[:2]), None), (request(talk), None)]
    )


def test_usage_and_literals_are_told_the_same(store_path: Path) -> None:
    """The token factor, the model, the tools and the other fields go on where they stood."""
    exchanges = []
    for n in range(6):
        items = [*HEAD, *[user(f"{LONG} {k}") for k in range(n)]]
        body = request(items, tools=("look", "write")[: 1 + n // 3], temperature=n // 2, model=f"m{n // 4}")
        exchanges.append((body, answer(model_text(f"r{n}"), tokens=500 * (n + 1))))
    cold_and_warm(store_path, exchanges)


def test_calls_of_several_tools_are_told_the_same(store_path: Path) -> None:
    """Parallel calls and their results, one renamed, one repeated, are linked alike."""
    asked = {"role": "assistant", "content": "Look:", "tool_calls": [tool_call("a"), tool_call("b", "write")]}
    body = request([*HEAD, result("a", "x"), result("b", "x")])
    body["messages"].insert(2, asked)
    again = request([*HEAD, result("a", "x"), result("b", "x"), user("Again."), ask("a"), result("a", "y")])
    again["messages"].insert(2, asked)
    response = {"choices": [{"message": asked, "finish_reason": "tool_calls"}]}
    cold_and_warm(store_path, [(request(HEAD), response), (body, answer(model_text("ok"))), (again, None)])
