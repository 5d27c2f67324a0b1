"""The loop answers what a model asks, whatever it asks, ends, and sends nothing that the log does not hold."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import vmstore
from tests import refusals
from tests.vm.protocol.leaves import PNG, texts
from tests.vm.protocol.providers import REFUSES
from tests.vm.protocol.script import Script
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError, RefusedError
from vmstore.store.live.live_session import Live
from vmstore.vm.protocol import citations, schema
from vmstore.vm.protocol.loop import ANSWERED, CALLS_MAX, ROUNDS, TOOLS
from vmstore.vm.protocol.messages import DIALECTS

SHAPES = ["chat", "responses", "anthropic", "gemini"]
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}
OTHER_TOOLS = {
    "chat": {"type": "function", "function": WEATHER},
    "responses": {"type": "function", **WEATHER},
    "anthropic": {"name": "weather", "input_schema": {"type": "object"}},
    "gemini": {"functionDeclarations": [WEATHER]},
}


def asked(shape: str, **settings: Any) -> Live:
    """A session in which a claim is known and out of the prompt, and a question was just asked."""
    store = vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))
    fields = {"l0_tokens_max": 20_000, "paging": "model", "tools": [OTHER_TOOLS[shape]], "shape": shape, **settings}
    session = store.live_session("s", **fields)
    session.claim("We chose Postgres.", name="claim_db")
    session.evict("claim_db")
    session.user("Which database?")
    return session


def sent_is_logged(session: Live, script: Script) -> None:
    """Every request the model saw is the one that its call is known by, in every field and their order."""
    for number, request in enumerate(script.requests, 1):
        assert json.dumps(session.wire.request(call=number)) == json.dumps(request)
    assert session.info().calls == len(script.requests)


def refused(fields: dict[str, Any]) -> str:
    """The code of a refusal that is by its schema."""
    Draft202012Validator(schema("refusal")).validate(fields)
    code: str = fields["error"]["code"]
    return code


@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_finds_its_answer(shape: str) -> None:
    """It searches, loads what it found, and answers citing it; each request is one a provider takes, and logged."""

    def load(request: dict[str, Any]) -> Any:
        part = script.tool_answers()[0]
        Draft202012Validator(schema("search_result")).validate(part)
        return [("page_fault", {"page_id": part["results"][0]["page_id"]})]

    def answer(request: dict[str, Any]) -> str:
        page = script.tool_answers()[0]["page"]
        assert 'C (claim_db): \\"We chose Postgres.\\"' in json.dumps(request)
        return f"Postgres. [ref: tool:page_fault({page['page_id']})]"

    script = Script(shape, [("search_pages", {"query": "postgres"})], load, answer)
    session = asked(shape)
    ran = session.run(script)
    assert (ran.stopped, ran.text, ran.rounds) == (ANSWERED, "Postgres. [ref: tool:page_fault(claim_db)]", 2)
    assert [citation.page for citation in citations(ran.text)] == ["claim_db"]
    assert [REFUSES[shape](request) for request in script.requests] == [[], [], []]
    sent_is_logged(session, script)
    assert session.debug.check().ok


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_left_is_told(shape: str) -> None:
    """Every answer says how many rounds, faults and tokens of faults are left."""
    script = Script(shape, [("page_fault", {"page_id": "claim_db"})], "Postgres.")
    asked(shape).run(script, rounds_max=4)
    part = script.tool_answers()[0]
    Draft202012Validator(schema("page_result")).validate(part)
    assert part["budget"] == {"rounds_left": 3, "faults_left": 2, "fault_tokens_left": 8_187}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_host_answers_its_own_tools(shape: str) -> None:
    """A call of a tool given by its schema ends the run; its results are handed in, and the next run goes on."""
    script = Script(shape, [("page_fault", {"page_id": "claim_db"}), ("weather", {}), ("weather", {"at": 1})], "Sun.")
    session = asked(shape)
    ran = session.run(script)
    assert (ran.stopped, [call.tool for call in ran.pending], len(script.requests)) == (TOOLS, ["weather"] * 2, 1)
    for call, text in zip(ran.pending, ('"sun"', '"rain"'), strict=True):
        session.tool(call.id, text)
    assert session.run(script).text == "Sun."
    assert REFUSES[shape](script.requests[-1]) == []
    assert '\\"rain\\"' in json.dumps(script.requests[-1])
    sent_is_logged(session, script)


@pytest.mark.parametrize("shape", SHAPES)
def test_functions_are_called(shape: str) -> None:
    """A function given by name is offered by its signature and called with the model's arguments; its error is told."""

    def weather(place: str, days: int = 1) -> dict[str, Any]:
        """Says the weather of a place."""
        if place == "nowhere":
            raise KeyError(place)
        return {"place": place, "days": days}

    calls = [("weather", {"place": "Nara"}), ("weather", {"place": "nowhere"}), ("weather", {"at": 1})]
    script = Script(shape, calls, "Sun.")
    session = asked(shape, tools=None)
    ran = session.run(script, tools={"weather": weather})
    assert (ran.stopped, ran.text, ran.rounds) == (ANSWERED, "Sun.", 1)
    offered = json.dumps(script.requests[0]["tools"])
    assert "Says the weather of a place." in offered and '"required": ["place"]' in offered
    written = json.dumps(script.requests[-1])
    for part in ('{\\\\\\"place\\\\\\": \\\\\\"Nara\\\\\\", ', "KeyError", "TypeError"):
        assert json.loads(f'"{part}"') in json.dumps(json.loads(written), ensure_ascii=False) or part in written
    sent_is_logged(session, script)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("page_fault", "{oops", "bad_arguments"),
        ("page_fault", '"claim_db"', "bad_arguments"),
        ("page_fault", {"page_id": "claim_db", "target_level": 9}, "bad_arguments"),
        ("page_fault", {"page_id": "claim_oracle"}, "unknown_page"),
        ("page_fault", {"page_id": ""}, "unknown_page"),
        ("page_fault", {"page_id": "x\x00</VM:CONTEXT>"}, "unknown_page"),
        ("page_fault", '{"page_id": "claim_db", "x": 1e400, "target_level": 1e999}', "bad_arguments"),
        ("search_pages", {"query": "  "}, "bad_arguments"),
        ("search_pages", {"query": "x", "modality": "smell"}, "bad_arguments"),
        ("rm_rf", {}, "unknown_tool"),
        ("", {}, "unknown_tool"),
    ],
)
def test_a_wrong_call_is_answered(tool: str, arguments: Any, code: str) -> None:
    """Bad JSON, bad arguments, unknown pages and tools get an answer that says what to do, and the run goes on."""
    script = Script("chat", [(tool, arguments)], "I see.")
    session = asked("chat")
    ran = session.run(script)
    assert (ran.stopped, ran.text) == (ANSWERED, "I see.")
    assert refused(script.tool_answers()[0]) == code
    assert "</VM:" not in script.requests[-1]["messages"][-1]["content"]
    sent_is_logged(session, script)


def test_a_page_is_loaded_by_the_name_that_was_printed() -> None:
    """A name with signs of its own is printed with codes, and asked of the memory as it is."""
    fields = {"page_id": "the%20%28db%29%2C%2050%25"}
    script = Script("chat", [("page_fault", fields)], "Postgres.")
    session = asked("chat")
    session.attach(b"Postgres.", "text/plain", name="the (db), 50%")
    session.run(script)
    assert script.tool_answers()[0]["page"]["page_id"] == fields["page_id"]


def test_a_tool_that_was_not_offered_is_unknown() -> None:
    """A model that was given no memory tools and calls them all the same is told so."""
    script = Script("chat", [("page_fault", {"page_id": "claim_db"})], "I see.")
    session = asked("chat", paging="runtime", tools=None)
    session.run(script)
    assert refused(script.tool_answers()[0]) == "unknown_tool"
    assert session.stats().model_faults == 0


def test_a_storm_of_faults_is_answered() -> None:
    """A hundred faults at once, each past the budget denied and those past the limit not even asked of the memory."""
    script = Script("chat", [("page_fault", {"page_id": f"fact_{n}"}) for n in range(100)], "Enough.")
    session = asked("chat")
    for n in range(100):
        session.claim(f"Fact {n}.", name=f"fact_{n}")
        session.evict(f"fact_{n}")
    assert session.run(script).text == "Enough."
    row = script.tool_answers()
    codes = [refused(item) for item in row[3:]]
    assert [record["budget"]["faults_left"] for record in row[:3]] == [2, 1, 0]
    assert codes == ["denied"] * (CALLS_MAX - 3) + ["too_many_calls"] * (100 - CALLS_MAX)
    assert session.stats().model_faults == CALLS_MAX


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rounds_max", [0, 1, 5])
def test_a_model_that_never_answers_is_stopped(shape: str, rounds_max: int) -> None:
    """It is told that no rounds are left, and asked once more; then the run ends."""
    script = Script(shape, [("page_fault", {"page_id": "claim_db"})])
    session = asked(shape)
    ran = session.run(script, rounds_max=rounds_max)
    assert (ran.stopped, ran.rounds) == (ROUNDS, rounds_max)
    assert len(script.requests) == rounds_max + 2
    assert refused(script.tool_answers()[0]) == "no_rounds_left"
    assert REFUSES[shape](script.requests[-1]) == []
    sent_is_logged(session, script)


def test_a_page_too_large_is_denied() -> None:
    """A page that no turn may load is not carried into the conversation, and the model is told why."""
    session = asked("chat")
    page = session.attach(b"A line of a long file. " * 3_000, "text/plain")
    session.evict(page)
    script = Script("chat", [("page_fault", {"page_id": page, "target_level": 0})], "Too large.")
    session.run(script)
    reply = script.tool_answers()[0]
    assert reply.get("error", {}).get("code") == "denied" or reply["page"]["level"] > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_loaded_picture_is_seen(shape: str) -> None:
    """A picture that a fault loads goes to the model as a picture, not as letters in the envelope."""
    session = asked(shape)
    page = session.attach(PNG, "image/png")
    session.evict(page)
    script = Script(shape, [("page_fault", {"page_id": page, "target_level": 0})], "A dot.")
    session.run(script)
    data = base64.b64encode(PNG).decode()
    assert json.dumps(script.requests[-1]).count(data) == 1
    assert data not in json.dumps(script.tool_answers())
    assert REFUSES[shape](script.requests[-1]) == []


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "response", [None, "text", [], {}, {"choices": []}, {"candidates": [7]}, {"content": None}, 3.5]
)
def test_a_response_that_is_none_is_named(shape: str, response: Any) -> None:
    """A model call that returns nonsense gets an error that says what to return, or an answer of no words."""
    try:
        ran = asked(shape).run(lambda request: response)
    except InputError as error:
        assert "provider's" in str(error)
    else:
        assert ran.text == ""


def test_blanks_beside_a_call_are_not_sent_back() -> None:
    """A provider that says a blank beside its call would refuse to hear it again."""
    call = {"type": "tool_use", "id": "c1", "name": "page_fault", "input": {"page_id": "claim_db"}}
    replies = [
        {"role": "assistant", "content": [{"type": "text", "text": "\n"}, call]},
        {"role": "assistant", "content": [{"type": "text", "text": "Postgres."}]},
    ]
    requests: list[dict[str, Any]] = []

    def model(request: dict[str, Any]) -> Any:
        requests.append(request)
        return replies[len(requests) - 1]

    assert asked("anthropic", rules="short").run(model).text == "Postgres."
    assert REFUSES["anthropic"](requests[-1]) == []


def test_a_thought_is_no_answer() -> None:
    """What Gemini thinks aloud is not what it says."""
    parts = [{"text": "Hm. ", "thought": True}, {"text": "Postgres."}]
    response = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
    assert asked("gemini").run(lambda request: response).text == "Postgres."


def test_an_error_of_the_model_call_is_the_hosts() -> None:
    """What the model call raises comes out as it is, and the session can be run again."""

    def breaks(request: dict[str, Any]) -> Any:
        raise TimeoutError("the provider is away")

    session = asked("chat")
    with pytest.raises(TimeoutError, match="away"):
        session.run(breaks)
    assert session.run(Script("chat", "Postgres.")).text == "Postgres."


def test_a_run_within_a_run_is_refused() -> None:
    """A second run of a session under way is refused by name; the first goes on."""
    session = asked("chat")
    inner = Script("chat", "Inner.")

    def model(request: dict[str, Any]) -> Any:
        with refusals.refused("running-already", RefusedError, "'s'"):
            session.run(inner)
        return inner(request)

    assert session.run(model).text == "Inner."
    assert session.info().calls == 1


def test_a_librarys_object_is_read() -> None:
    """A response that a provider's library made an object of is read by its dump."""

    class Response:
        def model_dump(self, **options: Any) -> dict[str, Any]:
            assert options == {"mode": "json", "by_alias": True, "exclude_none": True}
            return {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}

    assert asked("chat").run(lambda request: Response()).text == "Hi."


def test_usage_is_logged() -> None:
    """What the provider says of a call of the loop (model, tokens, cached ones, stop reason) stands in its call."""
    usage = {"prompt_tokens": 900, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 640}}
    answer = {"message": {"role": "assistant", "content": "Postgres."}, "finish_reason": "stop"}
    session = asked("chat")
    session.run(lambda request: {"model": "m-2", "choices": [answer], "usage": usage})
    (call,) = session.calls()
    assert (call.tokens_reported, call.tokens_cached, call.tokens_out, call.status) == (900, 640, 7, "ok")


keys = st.sampled_from(["page_id", "target_level", "query", "limit"])
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner)),
    max_leaves=6,
)
calls = st.tuples(st.sampled_from(["page_fault", "search_pages", "weather", "rm", ""]), anything)


@pytest.mark.parametrize("shape", SHAPES)
@given(steps=st.lists(st.one_of(texts, st.lists(calls, max_size=4)), max_size=5))
def test_no_model_breaks_the_loop(shape: str, steps: list[Any]) -> None:
    """Whatever a model says, the run ends without raising; every request is one a provider takes, and is logged."""
    script = Script(shape, *steps, "Done.")
    session = asked(shape)
    ran = session.run(script, rounds_max=3)
    assert ran.stopped in (ANSWERED, TOOLS, ROUNDS)
    assert len(script.requests) <= 5
    assert [wrong for request in script.requests for wrong in REFUSES[shape](request)] == []
    sent_is_logged(session, script)


NO_JSON = [float("nan"), {"page_id": float("inf")}, None, [], "{oops"]


@pytest.mark.parametrize(
    ("shape", "arguments"),
    [("chat", "{oops"), ("chat", "NaN"), *((shape, arguments) for shape in SHAPES[2:] for arguments in NO_JSON)],
)
def test_arguments_that_are_no_json_are_answered(shape: str, arguments: Any) -> None:
    """What a provider's library made of nonsense is sent back as an object, and answered."""
    script = Script(shape, [("page_fault", arguments)], "I see.")
    assert asked(shape).run(script).text == "I see."
    assert refused(script.tool_answers()[0]) in ("bad_arguments", "unknown_page")
    assert REFUSES[shape](script.requests[-1]) == []


def test_the_definitions_are_the_dialects() -> None:
    """Each shape offers the two memory tools by name, and knows the names of any other."""
    for shape in SHAPES:
        speaks = DIALECTS[shape]
        assert speaks.names([*speaks.tools(), OTHER_TOOLS[shape]]) == ["page_fault", "search_pages", "weather"]
