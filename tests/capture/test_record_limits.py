"""Recording strange requests: kept to the last bit, or refused with the reason, never half."""

from __future__ import annotations

import base64
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from tests import refusals
from tests.capture.words import SHAPES, answer, kinds, message, model_text, request, spelled, user
from vmstore.errors import InputError, VmstoreError
from vmstore.store.store import memory_store, open_store

FORGED = [
    {"\x00t": 0},
    {"\x00j": 1},
    {"\x00b": 0, "\x00t": 0},
    {"\x00l": 2},
    {"\x00v": 0},
    "\x00t",
    [{"\x00t": 99}],
]
PICTURE = base64.b64encode(random.Random(5).randbytes(3000)).decode()


def circular() -> dict[str, Any]:
    """A value that holds itself."""
    value: dict[str, Any] = {}
    value["again"] = value
    return value


STRANGE: dict[str, Any] = {
    "no messages": {"messages": []},
    "no content": {"messages": [{"role": "user", "content": None}, {"role": "user"}]},
    "no parts": {"messages": [{"role": "user", "content": []}, {"role": "assistant", "content": "", "tool_calls": []}]},
    "no role": {"messages": [{"content": "who?"}, {"role": "wizard", "content": "I"}, {"role": 5, "content": "V"}]},
    "no object": {"messages": ["text", 5, None, True, ["list"]]},
    "unknown parts": {"messages": [{"role": "user", "content": [{"type": "hologram", "data": [1, 2]}, 7, "x"]}]},
    "orphan result": {"messages": [message(("result", "nobody", "asked"))]},
    "surrogates": {"messages": [message(user("a \ud83d lone \udc00 one")), message(user("\ud83d\ude00"))]},
    "surrogate keys": {"messages": [{"role": "user", "content": "x", "\ud800": "\udfff"}], "\ud801": 1},
    "escapes": {"messages": [message(user('"\\\b\f\n\r\t\x00\x1f\x7f\u2028\u2029\ufeff'))]},
    "numbers": {"messages": [{"role": "user", "content": "x", "n": [0, -0.0, 1e308, 2**63, 0.1, 1e-320]}]},
    "images": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}],
            },
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,%%"}}]},
        ]
    },
    "extras": {"messages": [{"role": "user", "content": "x", "name": "Ann", "weight": 0}], "n": 2, "stop": None},
    **{f"forged {n}": {"messages": [{"role": "user", "content": [value]}]} for n, value in enumerate(FORGED)},
    "forged fields": {"messages": [message(user("x"))], "metadata": {"\x00l": 2, "\x00v": 2}, "\x00t": "\x00"},
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_requests_come_back_equal(name: str) -> None:
    """What can be recorded at all comes back equal in every field, alone, repeated and grown."""
    body = {"model": "m", **STRANGE[name]}
    grown = {**body, "messages": [*body["messages"], message(user("more"))]}
    with memory_store() as store:
        for sent in (body, body, grown, body):
            store.record("s", sent, answer(model_text("ok")))
        session = store.session("s")
        assert [spelled(session.wire.request(call=n)) for n in (1, 2, 3, 4)] == [
            *map(spelled, (body, body, grown, body))
        ]
        assert store.verify().ok


@pytest.mark.parametrize("name", STRANGE)
def test_strange_requests_are_picked_up_again(name: str, store_path: Path) -> None:
    """A handle opened later finds the strange messages again and writes none of them again."""
    body = {"model": "m", **STRANGE[name]}
    with open_store(store_path) as store:
        store.record("s", body)
        end = store.session("s").info().position
    with open_store(store_path) as store:
        store.record("s", body)
        assert kinds(store, after=end) == ["pack", "reply"]
        assert spelled(store.session("s").wire.request()) == spelled(body)


@pytest.mark.parametrize("values", [(1, True, 1.0), (0, False, 0.0), ("1", 1), (None, "null", [])])
def test_values_that_only_seem_equal_are_told_apart(values: tuple[Any, ...]) -> None:
    """1, True and 1.0 are three values, in a message, in a part and beside the messages."""
    with memory_store() as store:
        sent = []
        for value in values:
            part = {"type": "text", "text": "x", "flag": value}
            spoken = {"role": "user", "content": [part], "index": value}
            sent.append({"model": "m", "messages": [spoken], "seed": value})
            store.record("s", sent[-1])
        session = store.session("s")
        assert [spelled(session.wire.request(call=n)) for n in range(1, len(sent) + 1)] == [*map(spelled, sent)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("text", "a request is a str"),
        ([message(user("x"))], "a request is a list"),
        ({}, "no key that holds its messages"),
        ({"messages": "text"}, "`messages` is of type str"),
        ({"messages": {"role": "user"}}, "`messages` is of type dict"),
        ({"messages": None}, "`messages` is of type NoneType"),
        ({"messages": [{"role": "user", "content": b"bytes"}]}, "type bytes"),
        ({"messages": [{"role": "user", "content": "x", "n": {1: 2}}]}, "keys are strings"),
        ({"messages": [{"role": "user", "content": float("nan")}]}, "JSON cannot say"),
        ({"messages": [message(user("x"))], "temperature": float("inf")}, "JSON cannot say"),
        ({"messages": [circular()]}, "nested"),
        ({"messages": [message(user("x"))], "tool": object()}, "type object"),
    ],
)
def test_what_is_no_request_is_refused_whole(body: Any, reason: str) -> None:
    """A request that cannot be recorded is refused with the reason; no session and no commit is left."""
    with memory_store() as store:
        with pytest.raises(InputError, match=reason):
            store.record("s", body)
        assert (store.sessions(), store.info().commits) == ([], 0)
        store.record("s", request([user("x")]))
        with pytest.raises(InputError, match=reason):
            store.record("s", body)
        store.record("s", request([user("x"), model_text("y"), user("z")]))
        assert store.session("s").wire.request(call=2) == request([user("x"), model_text("y"), user("z")])
        assert store.verify().ok


def test_fifty_megabytes_are_kept_to_the_bit(store_path: Path) -> None:
    """A request with 50 MB of base64 is recorded, given back equal and not written twice."""
    data = base64.b64encode(random.Random(1).randbytes(37_500_000)).decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    body = request([user("x")])
    body["messages"][0]["content"] = [{"type": "text", "text": "see"}, picture]
    with open_store(store_path) as store:
        store.record("s", body)
        store.record("s", body)
        size, files = store.info().bytes_log, store.info().bytes_blobs
        store.record("s", body)
        assert store.info().bytes_log < size + 100_000
        assert store.info().bytes_blobs == files < 1.01 * len(data)
        assert store.session("s").wire.request() == body
        assert [page.modality for page in store.session("s").pages()] == ["text", "image"]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_the_caller_changes_later_is_not_changed_here(shape: str) -> None:
    """The agent may grow and edit its own list in place; each call keeps what was sent."""
    body = request([user("a"), model_text("b"), user("c")], shape)
    key = next(key for key in ("messages", "input", "contents") if key in body)
    sent = []
    with memory_store() as store:
        for n in range(4):
            store.record("s", body)
            sent.append(spelled(body))
            body[key].append(message(user(f"more {n}"), shape))
            body[key][0].update(message(user(f"edited {n}"), shape))
        session = store.session("s")
        assert [spelled(session.wire.request(call=n)) for n in range(1, 5)] == sent


@pytest.mark.parametrize("name", ["zoë", "会话", "🐙 arm", "a b/c@d#e", "x" * 500, "p17", "vm://x"])
def test_sessions_may_be_named_in_any_script(name: str, store_path: Path) -> None:
    """Any printable name up to 500 characters opens a session that is found again under it."""
    with open_store(store_path) as store:
        store.record(name, request([user("x")]))
    with open_store(store_path, "r") as store:
        assert [info.session for info in store.sessions()] == [name]
        assert store.session(name).wire.request() == request([user("x")])


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "x" * 501, "\ud800", None, 7])
def test_names_nobody_could_type_are_refused(name: Any) -> None:
    """A name that terminals and files cannot carry is refused before anything is written."""
    with memory_store() as store:
        for refused in (store.record, lambda n, r: store.session(n, create=True)):
            with refusals.refused("not-a-name", VmstoreError):
                refused(name, request([user("x")]))
        assert store.info().commits == 0


def test_threads_may_record_into_several_sessions_at_once(store_path: Path) -> None:
    """Six threads, three sessions each: every call is there once, and every request equal."""
    sent: dict[tuple[str, int], str] = {}
    problems: list[BaseException] = []

    def work(store: Any, thread: int) -> None:
        try:
            for n in range(12):
                body = request([user(f"{thread} says {n}"), model_text("well"), user(f"and {thread}")])
                done = store.record(f"s{n % 3}", body, answer(model_text(f"{n}")))
                sent[done.session, done.call] = spelled(body)
        except BaseException as error:
            problems.append(error)

    with open_store(store_path) as store:
        threads = [threading.Thread(target=work, args=(store, n)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert len(sent) == 72
        assert all(spelled(store.session(name).wire.request(call=call)) == body for (name, call), body in sent.items())
        assert store.verify().ok
