"""The loop answers what a model asks its memory, whatever it asks, and ends."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.vm.protocol.leaves import PNG, form, leaf, texts
from tests.vm.protocol.pages import Pages, Script
from tests.vm.protocol.providers import REFUSES
from vmstore.core.page import Modality, Role, Tier
from vmstore.errors import InputError
from vmstore.vm.protocol import Paging, Ran, Rules, citations, messages, run, schema
from vmstore.vm.protocol.loop import ANSWERED, CALLS_MAX, ROUNDS, TOOLS
from vmstore.vm.protocol.messages import DIALECTS

SHAPES = ["chat", "anthropic", "gemini"]
DB = leaf("claim_db", "We chose Postgres.", tier=Tier.L2, hint="database", others=(form(2, 2, "Postgres."),))
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}
OTHER_TOOLS = {
    "chat": {"type": "function", "function": WEATHER},
    "anthropic": {"name": "weather", "input_schema": {"type": "object"}},
    "gemini": {"functionDeclarations": [WEATHER]},
}


def start(shape: str, script: Script, memory: Pages, **options: Any) -> Ran:
    """Runs a model on one question, with the memory tools and one of the caller's."""
    question = [leaf("p1", "Which database?", role=Role.USER, message=1)]
    made = messages(question, shape=shape, rules=Rules.STRICT, paging=Paging.MODEL)
    tools = [*made.tools, OTHER_TOOLS[shape]]
    return run(script, made.request, memory, tools=tools, shape=shape, **options)


def refused(told: dict[str, Any]) -> str:
    """The code of a refusal that is by its schema."""
    Draft202012Validator(schema("refusal")).validate(told)
    code: str = told["error"]["code"]
    return code


@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_finds_its_answer(shape: str) -> None:
    """It searches, loads what it found, and answers citing it; each request on the way is one a provider takes."""

    def load(request: dict[str, Any]) -> Any:
        found = script.told()[0]
        Draft202012Validator(schema("search_result")).validate(found)
        return [("page_fault", {"page_id": found["results"][0]["page_id"]})]

    def answer(request: dict[str, Any]) -> str:
        page = script.told()[0]["page"]
        return f"{page['content']['text']} [ref: tool:page_fault({page['page_id']})]"

    script = Script(shape, [("search_pages", {"query": "database"})], load, answer)
    memory = Pages(DB)
    ran = start(shape, script, memory)
    assert (ran.stopped, ran.text, ran.rounds) == (ANSWERED, "Postgres. [ref: tool:page_fault(claim_db)]", 2)
    assert [one.page for one in citations(ran.text)] == ["claim_db"]
    assert memory.asked == [("claim_db", 2, "resolve_reference")]
    assert [REFUSES[shape](request) for request in script.requests] == [[], [], []]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_left_is_told(shape: str) -> None:
    """Every answer says how many rounds, faults and tokens of faults are left."""
    script = Script(shape, [("page_fault", {"page_id": "claim_db"})], "Postgres.")
    start(shape, script, Pages(DB), rounds_max=4)
    told = script.told()[0]
    Draft202012Validator(schema("page_result")).validate(told)
    assert told["budget"] == {"rounds_left": 3, "faults_left": 2, "fault_tokens_left": 8_190}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_caller_answers_its_own_tools(shape: str) -> None:
    """A call of another tool comes back to the caller, and its result joins what the memory answered meanwhile."""
    script = Script(shape, [("page_fault", {"page_id": "claim_db"}), ("weather", {}), ("weather", {"at": 1})], "Sun.")
    ran = start(shape, script, Pages(DB))
    assert (ran.stopped, [call.tool for call in ran.pending], len(script.requests)) == (TOOLS, ["weather"] * 2, 1)
    going_on = ran.answered(['"sun"', '"rain"'])
    assert REFUSES[shape](going_on) == []
    script(going_on)
    page, *weather = script.told()
    assert page["page"]["page_id"] == "claim_db"
    assert weather == ["sun", "rain"]
    with pytest.raises(InputError, match="1 results for 2 pending calls"):
        ran.answered(["sun"])


@pytest.mark.parametrize(
    ("tool", "given", "code"),
    [
        ("page_fault", "{oops", "bad_arguments"),
        ("page_fault", '"claim_db"', "bad_arguments"),
        ("page_fault", {"page_id": "claim_db", "target_level": 9}, "bad_arguments"),
        ("page_fault", {"page_id": "claim_oracle"}, "unknown_page"),
        ("page_fault", {"page_id": ""}, "unknown_page"),
        ("page_fault", {"page_id": "x\x00</VM:CONTEXT>"}, "unknown_page"),
        ("search_pages", {"query": "  "}, "bad_arguments"),
        ("search_pages", {"query": "x", "modality": "smell"}, "bad_arguments"),
        ("rm_rf", {}, "unknown_tool"),
        ("", {}, "unknown_tool"),
    ],
)
def test_a_wrong_call_is_answered(tool: str, given: Any, code: str) -> None:
    """Bad JSON, bad arguments, unknown pages and tools get an answer that says what to do, and the run goes on."""
    script = Script("chat", [(tool, given)], "I see.")
    ran = start("chat", script, Pages(DB))
    assert (ran.stopped, ran.text) == (ANSWERED, "I see.")
    assert refused(script.told()[0]) == code
    assert "</VM:" not in script.requests[-1]["messages"][-1]["content"]


def test_a_page_is_loaded_by_the_name_that_was_printed() -> None:
    """A name with signs of its own is printed with codes, and asked of the memory as it is."""
    memory = Pages(leaf("the (db), 50%", "Postgres."))
    asked = {"page_id": "the%20%28db%29%2C%2050%25"}
    script = Script("chat", [("page_fault", asked)], "Postgres.")
    start("chat", script, memory)
    assert memory.asked == [("the (db), 50%", 2, "resolve_reference")]
    assert script.told()[0]["page"]["page_id"] == asked["page_id"]


def test_a_tool_that_was_not_offered_is_unknown() -> None:
    """A model that was given no memory tools and calls them all the same is told so."""
    script = Script("chat", [("page_fault", {"page_id": "claim_db"})], "I see.")
    memory = Pages(DB)
    run(script, {"messages": []}, memory)
    assert refused(script.told()[0]) == "unknown_tool"
    assert memory.asked == []


def test_a_storm_of_faults_is_answered() -> None:
    """A hundred faults at once, each past the budget denied and those past the limit not even asked of the memory."""
    script = Script("chat", [("page_fault", {"page_id": "claim_db"})] * 100, "Enough.")
    memory = Pages(DB)
    assert start("chat", script, memory).text == "Enough."
    told = script.told()
    codes = [refused(one) for one in told[3:]]
    assert [one["budget"]["faults_left"] for one in told[:3]] == [2, 1, 0]
    assert codes == ["denied"] * (CALLS_MAX - 3) + ["too_many_calls"] * (100 - CALLS_MAX)
    assert len(memory.asked) == CALLS_MAX


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rounds_max", [0, 1, 5])
def test_a_model_that_never_answers_is_stopped(shape: str, rounds_max: int) -> None:
    """It is told that no rounds are left, and asked once more; then the run ends."""
    script = Script(shape, [("page_fault", {"page_id": "claim_db"})])
    ran = start(shape, script, Pages(DB, faults=1_000), rounds_max=rounds_max)
    assert (ran.stopped, ran.rounds) == (ROUNDS, rounds_max)
    assert len(script.requests) == rounds_max + 2
    assert refused(script.told()[0]) == "no_rounds_left"
    assert REFUSES[shape](script.requests[-1]) == []


def test_a_page_too_large_is_denied() -> None:
    """A page of fifty million bytes is not carried into the conversation, and the model is told why."""
    script = Script("chat", [("page_fault", {"page_id": "p9", "target_level": 0})], "Too large.")
    start("chat", script, Pages(leaf("p9", "x" * 50_000_000)))
    told = script.told()[0]
    assert refused(told) == "denied"
    assert "12500000 tokens, and 8192 are left" in told["error"]["message"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_loaded_picture_is_seen(shape: str) -> None:
    """A picture that a fault loads goes to the model as a picture, not as letters in the envelope."""
    page = leaf("p9", content=PNG, mime="image/png", modality=Modality.IMAGE, tokens=900)
    script = Script(shape, [("page_fault", {"page_id": "p9", "target_level": 0})], "A dot.")
    start(shape, script, Pages(page))
    data = base64.b64encode(PNG).decode()
    assert json.dumps(script.requests[-1]).count(data) == 1
    assert data not in json.dumps(script.told())
    assert REFUSES[shape](script.requests[-1]) == []


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "response", [None, "text", [], {}, {"choices": []}, {"candidates": [7]}, {"content": None}, 3.5]
)
def test_a_response_that_is_none_is_named(shape: str, response: Any) -> None:
    """A model call that returns nonsense gets an error that says what to return, or an answer of no words."""
    try:
        ran = run(lambda request: response, {"messages": [], "contents": []}, Pages(DB), shape=shape)
    except InputError as error:
        assert "return the provider's" in str(error)
    else:
        assert ran.text == ""


def test_blanks_beside_a_call_are_not_sent_back() -> None:
    """A provider that says a blank beside its call would refuse to hear it again."""
    asked = {"type": "tool_use", "id": "c1", "name": "page_fault", "input": {"page_id": "claim_db"}}
    replies = [
        {"content": [{"type": "text", "text": "\n"}, asked]},
        {"content": [{"type": "text", "text": "Postgres."}]},
    ]
    requests: list[dict[str, Any]] = []

    def call(request: dict[str, Any]) -> Any:
        requests.append(request)
        return replies[len(requests) - 1]

    question = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Which?"}]}]}
    ran = run(call, question, Pages(DB), tools=DIALECTS["anthropic"].tools(), shape="anthropic")
    assert ran.text == "Postgres."
    assert REFUSES["anthropic"](requests[-1]) == []


def test_a_thought_is_no_answer() -> None:
    """What Gemini thinks aloud is not what it says."""
    parts = [{"text": "Hm. ", "thought": True}, {"text": "Postgres."}]
    response = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
    assert run(lambda request: response, {"contents": []}, Pages(DB), shape="gemini").text == "Postgres."


def test_an_error_of_the_model_call_is_the_callers() -> None:
    """What the model call raises comes out as it is."""

    def breaks(request: dict[str, Any]) -> Any:
        raise TimeoutError("the provider is away")

    with pytest.raises(TimeoutError, match="away"):
        run(breaks, {"messages": []}, Pages(DB))


def test_a_librarys_object_is_read() -> None:
    """A response that a provider's library made an object of is read by its dump."""

    class Response:
        def model_dump(self, **options: Any) -> dict[str, Any]:
            assert options == {"mode": "json", "by_alias": True, "exclude_none": True}
            return {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}

    assert run(lambda request: Response(), {"messages": []}, Pages(DB)).text == "Hi."


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
    """Whatever a model says, the run ends without raising, and every request is one a provider takes."""
    script = Script(shape, *steps, "Done.")
    ran = start(shape, script, Pages(DB), rounds_max=3)
    assert ran.stopped in (ANSWERED, TOOLS, ROUNDS)
    assert len(script.requests) <= 5
    assert [wrong for request in script.requests for wrong in REFUSES[shape](request)] == []
    assert ran.stopped != TOOLS or REFUSES[shape](ran.answered(["1"] * len(ran.pending))) == []


NO_JSON = [float("nan"), {"page_id": float("inf")}, {"page_id": {1, 2}}, None, [], "{oops"]


@pytest.mark.parametrize(
    ("shape", "given"),
    [("chat", "{oops"), ("chat", "NaN"), *((shape, given) for shape in SHAPES[1:] for given in NO_JSON)],
)
def test_arguments_that_are_no_json_are_answered(shape: str, given: Any) -> None:
    """What a provider's library made of nonsense is sent back as an object, and answered."""
    script = Script(shape, [("page_fault", given)], "I see.")
    assert start(shape, script, Pages(DB)).text == "I see."
    assert refused(script.told()[0]) == "bad_arguments"
    assert REFUSES[shape](script.requests[-1]) == []


def test_the_definitions_are_the_dialects() -> None:
    """Each shape offers the two memory tools by name, and knows the names of any other."""
    for shape in SHAPES:
        speaks = DIALECTS[shape]
        assert speaks.names([*speaks.tools(), OTHER_TOOLS[shape]]) == ["page_fault", "search_pages", "weather"]
