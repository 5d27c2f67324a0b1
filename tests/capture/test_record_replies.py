"""Recording what came back: whole, streamed, failed or aborted, with what it cost; and gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.capture.words import SHAPES, answer, ask, kinds, model_text, request, spelled, system, user
from tests.refusals import refused
from vmstore.core.clock import ManualClock
from vmstore.errors import ConflictError, InputError, VmstoreError
from vmstore.namespace.results import CallInfo
from vmstore.store.store import memory_store, open_store

ITEMS = [system("Be kind."), user("Hello?")]
CHUNKS: list[Any] = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]},
    {"choices": [{"index": 0, "delta": {"content": "lo."}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
]


def called(response: Any, **fields: Any) -> CallInfo:
    """What the store says of a call that came back like this."""
    with memory_store(clock=ManualClock(10)) as store:
        store.record("s", request(ITEMS), response, **fields)
        return store.session("s").calls()[-1]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_is_a_message_that_no_context_held_yet(shape: str) -> None:
    """The reply's page answers its call, is out of the prompt, and reads as it came."""
    with memory_store() as store:
        store.record("s", request(ITEMS, shape), answer(model_text("Hello."), shape))
        session = store.session("s")
        reply = session.pages()[-1]
        assert (reply.role, reply.tier, session.content(reply.page)) == ("assistant", 2, b"Hello.")
        assert reply.page not in [page.page for page in session.context().pages]
        assert session.calls()[0].status == "ok"


@pytest.mark.parametrize("shape", SHAPES)
def test_reported_tokens_stand_with_their_call(shape: str) -> None:
    """What the provider counted is kept beside our estimate, at the call and at its context."""
    with memory_store() as store:
        store.record("s", request(ITEMS, shape), answer(model_text("Hello."), shape, tokens=77))
        session = store.session("s")
        assert session.calls()[0].tokens_reported == 77
        assert session.context().tokens_reported == 77
        assert session.context().tokens != 77


def test_cached_tokens_cost_and_latency_are_kept() -> None:
    """Usage with cached tokens, what the provider charged and how long it took come back as told."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 64},
        "cost": 0.0125,
    }
    call = called({**answer(model_text("Hi.")), "usage": usage}, latency_us=1_250_000)
    assert (call.tokens_reported, call.tokens_cached, call.tokens_out) == (100, 64, 7)
    assert (call.cost, call.latency_ms) == (0.0125, 1250.0)


def test_anthropic_counts_cached_tokens_apart() -> None:
    """Tokens in include what Anthropic read from and wrote to its cache."""
    body = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi."}]}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 5, "output_tokens": 3}
    with memory_store() as store:
        store.record("s", request(ITEMS, "anthropic"), {**body, "stop_reason": "end_turn", "usage": usage})
        call = store.session("s").calls()[0]
    assert (call.tokens_reported, call.tokens_cached, call.tokens_out) == (95, 80, 3)


def test_a_told_cost_holds_where_the_provider_names_none() -> None:
    """What the caller measured stands where the response is silent."""
    assert called(answer(model_text("Hi.")), cost=0.5).cost == 0.5


def test_a_stream_is_the_answer_it_adds_up_to() -> None:
    """The parts of a stream are recorded as the whole they make."""
    with memory_store() as store:
        store.record("s", request(ITEMS), CHUNKS)
        session = store.session("s")
        call = session.calls()[0]
        assert (call.status, call.tokens_reported) == ("ok", 9)
        assert session.content(session.pages()[-1].page) == b"Hello."


def test_a_broken_stream_keeps_what_arrived() -> None:
    """A stream that raised is a failed call, with the beginning of its answer."""
    with memory_store() as store:
        store.record("s", request(ITEMS), [*CHUNKS[:1], ConnectionError("gone")])
        session = store.session("s")
        assert (session.calls()[0].status, session.calls()[0].error) == ("failed", "gone")
        assert session.content(session.pages()[-1].page) == b"Hel"


def test_a_stream_without_its_end_is_aborted() -> None:
    """A stream that was left before its end says so."""
    assert called(CHUNKS[:2]).status == "aborted"


@pytest.mark.parametrize(
    ("response", "status", "error"),
    [
        (None, "aborted", None),
        (KeyboardInterrupt(), "aborted", "KeyboardInterrupt"),
        (TimeoutError("too slow"), "failed", "too slow"),
        ({"error": {"message": "overloaded"}, "choices": []}, "failed", "overloaded"),
    ],
)
def test_calls_without_an_answer_count(response: Any, status: str, error: str | None) -> None:
    """Failed and aborted calls are calls: numbered, with their context, their status and why."""
    call = called(response)
    assert (call.call, call.status, call.error, call.pages) == (1, status, error, 2)


def test_a_response_that_is_none_is_refused_whole() -> None:
    """What cannot be read as a response is refused with the reason, and not even its request stays."""
    with memory_store() as store:
        store.record("s", request(ITEMS))
        for response in ("text", 5, ["text"], {"choices": [{"message": {"content": float("nan")}}]}):
            with pytest.raises(InputError, match=r"response|stream|finite"):
                store.record("s", request([*ITEMS, user("More?")]), response)
        assert store.session("s").info().calls == 1
        assert kinds(store).count("message") == 2


# ---- gaps


def test_a_gap_is_a_call_that_says_so() -> None:
    """A call that could not be recorded is counted, derived, and carries the reason."""
    with memory_store() as store:
        store.record("s", request(ITEMS), answer(model_text("Hello.")))
        assert store.admin.record_gap("s", "the queue was full").call == 2
        session = store.session("s")
        call = session.calls()[1]
        assert (call.status, call.fidelity, call.error) == ("gap", "derived", "the queue was full")
        assert (session.info().fidelity, session.info().recorded) == ("partly", 1)
        with refused("request-not-logged", VmstoreError):
            session.wire.request(call=2)
        assert session.wire.request(call=1) == request(ITEMS)


def test_a_gap_may_be_the_first_call() -> None:
    """A session may begin with a gap; the next call stands as it was sent."""
    with memory_store() as store:
        store.admin.record_gap("s", "no disk")
        store.record("s", request(ITEMS))
        assert store.session("s").wire.request(call=2) == request(ITEMS)
        assert store.session("s").context(call=1).pages == []
        assert store.verify().ok


def test_what_was_said_during_a_gap_is_found_in_the_next_call() -> None:
    """Messages of a lost call enter with the call after it, and its person's word opens its turn."""
    items = [*ITEMS, model_text("Hello."), user("And now?"), model_text("Now this."), user("Why?")]
    with memory_store() as store:
        store.record("s", request(items[:2]), answer(model_text("Hello.")))
        store.admin.record_gap("s", "lost")
        store.record("s", request(items), answer(model_text("Because.")))
        assert store.session("s").wire.request() == request(items)
        assert store.session("s").info().turns == 3


# ---- request ids


def test_the_same_request_id_again_gives_the_first_answer(store_path: Path) -> None:
    """A retry under its request id writes nothing and returns what the first one did, also after a reopen."""
    with open_store(store_path) as store:
        first = store.record("s", request(ITEMS), answer(model_text("Hello.")), request_id="r1")
        store.record("s", request(ITEMS), answer(model_text("Hello again.")), request_id="r2")
        mutations = store.info().mutations
        assert store.record("s", request(ITEMS), answer(model_text("Hello.")), request_id="r1") == first
        assert store.info().mutations == mutations
    with open_store(store_path) as store:
        assert store.record("s", request(ITEMS), answer(model_text("Hello.")), request_id="r1") == first
        assert store.info().mutations == mutations


@pytest.mark.parametrize("reopened", [False, True])
def test_a_request_id_for_another_call_is_refused(store_path: Path, reopened: bool) -> None:
    """One id stands for one call: another payload under it is a conflict and writes nothing."""
    store = open_store(store_path)
    store.record("s", request(ITEMS), answer(ask("c1")), request_id="r1")
    if reopened:
        store.close()
        store = open_store(store_path)
    with store:
        for body, response in ((request(ITEMS[1:]), answer(ask("c1"))), (request(ITEMS), answer(ask("c2")))):
            with refused("request-id-used", ConflictError, "'r1'"):
                store.record("s", body, response, request_id="r1")
        assert store.session("s").info().calls == 1


def test_a_used_request_id_is_told_at_once(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict that no second try can mend is not tried again with every other writer waiting."""
    with open_store(store_path) as store:
        store.record("s", request(ITEMS), request_id="r1")
        monkeypatch.setattr(store.admin.log, "alone", lambda: pytest.fail("it was tried a second time"))
        with refused("request-id-used", ConflictError, "'r1'"):
            store.record("s", request(ITEMS[1:]), request_id="r1")


def test_a_request_id_is_its_sessions_own() -> None:
    """The same id in another session is another call."""
    with memory_store() as store:
        store.record("a", request(ITEMS), request_id="r1")
        store.record("b", request(ITEMS[1:]), request_id="r1")
        assert spelled(store.session("b").wire.request()) == spelled(request(ITEMS[1:]))


def test_one_request_id_is_no_beginning_of_another() -> None:
    """Ids are compared whole: one that begins like another names another call."""
    with memory_store() as store:
        for name in ("r", "r1", "r10", "r 1", "ä"):
            store.record("s", request([user(name)]), request_id=name)
        assert store.session("s").info().calls == 5
        assert store.record("s", request([user("r1")]), request_id="r1").call == 2


@pytest.mark.parametrize("name", ["a lone \ud800", 5, "x\ny"])
def test_an_impossible_request_id_is_refused_or_kept(name: Any) -> None:
    """A request id is taken, and then answers again, or is refused with the reason: never an accident."""
    with memory_store() as store:
        try:
            first = store.record("s", request(ITEMS), request_id=name)
        except InputError:
            assert store.sessions() == []
        else:
            assert store.record("s", request(ITEMS), request_id=name) == first


def test_a_bad_request_is_refused_the_same_with_a_request_id() -> None:
    """What cannot be recorded is refused with its reason whether or not an id comes with it."""
    deep: Any = "end"
    for _ in range(3000):
        deep = [deep]
    for name in (None, "r1"):
        with memory_store() as store, refused("too-deep", InputError):
            store.record("s", request(ITEMS, metadata=deep), request_id=name)


def test_a_request_id_is_found_among_many(store_path: Path) -> None:
    """Each of many ids answers with its own call, after a reopen too."""
    with open_store(store_path) as store:
        firsts = [store.record("s", request([user(f"q{n}")]), request_id=f"id-{n}") for n in range(30)]
    with open_store(store_path) as store:
        for n in (0, 7, 29):
            assert store.record("s", request([user(f"q{n}")]), request_id=f"id-{n}") == firsts[n]
        assert store.session("s").info().calls == 30
