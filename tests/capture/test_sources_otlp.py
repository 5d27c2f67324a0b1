"""Traces of OpenTelemetry: spans by the GenAI conventions become calls, and say that they are derived."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import vmstore
from tests.refusals import refused
from vmstore.errors import UnknownError

Json = dict[str, Any]
S = 1_700_000_000_000_000_000  # nanoseconds since 1970


def otel(value: Any) -> Json:
    """A value as OTLP writes it in JSON."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otel(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": otel(item)} for key, item in value.items()]}}
    return {"stringValue": value}


def attributes(fields: Json) -> list[Json]:
    """Attributes as OTLP writes them."""
    return [{"key": key, "value": otel(value)} for key, value in fields.items()]


def span(n: int, fields: Json, **more: Any) -> Json:
    """A span that took half a second."""
    began = S + n * 1_000_000_000
    times = {"startTimeUnixNano": str(began), "endTimeUnixNano": str(began + 500_000_000)}
    known = {"traceId": "t1", "spanId": f"s{n}", "name": "chat m", "kind": 3, **times}
    return {**known, "attributes": attributes(fields), **more}


def export(*spans: Json) -> Json:
    """An export of spans, as the collector writes it to a file."""
    resource = {"attributes": attributes({"service.name": "planner"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def message_of(role: str, *parts: Json) -> Json:
    """A message of the conventions."""
    return {"role": role, "parts": list(parts)}


def text(content: str) -> Json:
    """A part of text."""
    return {"type": "text", "content": content}


def asked(n: int, messages: list[Json], answer: Json | None, **more: Any) -> Json:
    """A span that asked a model, its messages as JSON text."""
    fields: Json = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1-0613",
        "gen_ai.usage.input_tokens": 20 + n,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.input.messages": json.dumps(messages),
        **({} if answer is None else {"gen_ai.output.messages": json.dumps([{**answer, "finish_reason": "stop"}])}),
        **more.pop("fields", {}),
    }
    return span(n, fields, **more)


def written(path: Path, *exports: Json) -> Path:
    """A file of exports, one a line."""
    path.write_text("".join(json.dumps(export) + "\n" for export in exports))
    return path


WHERE = message_of("user", text("Where is Kyoto?"))
LOOK = message_of("assistant", {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"at": "Kyoto"}})
FOUND = message_of("tool", {"type": "tool_call_response", "id": "c1", "response": "It is in Japan."})
JAPAN = message_of("assistant", {"type": "reasoning", "content": "Easy."}, text("In Japan."))


def test_a_conversation_is_read_with_its_tools(tmp_path: Path) -> None:
    """Calls see what their spans name, answers and results keep their pages, turns and usage are as they were."""
    calls = [asked(1, [WHERE], LOOK), asked(2, [WHERE, LOOK, FOUND], JAPAN)]
    calls.append(
        asked(
            3, [WHERE, LOOK, FOUND, JAPAN, message_of("user", text("Thanks"))], message_of("assistant", text("Enjoy."))
        )
    )
    with vmstore.memory_store() as store:
        (session,) = store.import_file(written(tmp_path / "trace.jsonl", *map(export, calls))).sessions
        assert (session.session, session.format, session.fidelity) == ("t1", "otlp", "derived")
        trip = store.session("t1")
        assert [(c.call, c.turn, c.status, c.tokens_reported) for c in trip.calls()] == [
            (1, 1, "ok", 21), (2, 1, "ok", 22), (3, 2, "ok", 23)
        ]  # fmt: skip
        messages = trip.context(call=3).messages()
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
        assert messages[1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at":"Kyoto"}'}
        assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "It is in Japan."}
        assert messages[3]["reasoning_content"] == "Easy."
        assert len(trip.pages()) == 7


def test_a_request_is_never_given_back_as_recorded(tmp_path: Path) -> None:
    """The messages are the instrumentation's account, so the request itself is refused."""
    with vmstore.memory_store() as store:
        store.import_file(written(tmp_path / "trace.jsonl", export(asked(1, [WHERE], JAPAN))))
        with refused("request-not-logged", UnknownError, "derived"):
            store.session("t1").wire.request(call=1)
        assert store.session("t1").context(call=1).fidelity == "derived"


def test_a_file_that_grows_adds_to_its_session(tmp_path: Path) -> None:
    """Exports that are appended are new records of the session they belong to; the same again adds none."""
    first, two = (
        export(asked(1, [WHERE], JAPAN)),
        export(asked(2, [WHERE, JAPAN, message_of("user", text("And?"))], JAPAN)),
    )
    with vmstore.memory_store() as store:
        assert store.import_file(written(tmp_path / "trace.jsonl", first)).new == 1
        assert store.import_file(written(tmp_path / "trace.jsonl", first, two)).new == 1
        assert store.import_file(written(tmp_path / "trace.jsonl", first, two)).new == 0
        assert len(store.session("t1").calls()) == 2


def test_structured_attributes_and_events_are_read_as_their_json(tmp_path: Path) -> None:
    """Messages may be structures, or stand in the event of the details; instructions and tools come first."""
    tools = [{"type": "function", "name": "look", "parameters": {}}]
    details = {
        "gen_ai.input.messages": [WHERE],
        "gen_ai.output.messages": [{**JAPAN, "finish_reason": "stop"}],
        "gen_ai.system_instructions": [text("Be brief.")],
        "gen_ai.tool.definitions": tools,
    }
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": attributes(details)}
    fields = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", "gen_ai.conversation.id": "talk-7"}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(export(span(1, fields, events=[event])), indent=2))
    with vmstore.memory_store() as store:
        store.import_file(path)
        context = store.session("talk-7").context(call=1)
        assert [message["content"] for message in context.messages()] == ["Be brief.", "Where is Kyoto?"]
        assert len(context.pages) == 3


def test_agents_of_a_trace_have_sessions_of_their_own(tmp_path: Path) -> None:
    """A call belongs to the agent it names, or to the next span above that names one."""
    fields = {"gen_ai.operation.name": "invoke_agent"}
    spans = [
        asked(1, [message_of("user", text("Plan."))], JAPAN, parentSpanId="s8"),
        asked(2, [message_of("user", text("Search."))], JAPAN, parentSpanId="s3"),
        span(3, {"other": 1}, parentSpanId="s9"),
        span(8, {**fields, "gen_ai.agent.name": "planner"}),
        span(9, {**fields, "gen_ai.agent.name": "searcher"}, parentSpanId="s8"),
    ]
    with vmstore.memory_store() as store:
        store.import_file(written(tmp_path / "trace.jsonl", *map(export, spans)))
        assert {i.session: len(store.session(i.session).calls()) for i in store.sessions()} == {
            "t1": 1, "t1-searcher": 1
        }  # fmt: skip


def test_failed_calls_and_calls_without_content_are_calls(tmp_path: Path) -> None:
    """A span with an error failed with its reason; one whose content was not captured has its usage."""
    failed = asked(1, [WHERE], None, status={"code": 2, "message": "rate limited"})
    bare = span(2, {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 40, "gen_ai.request.model": "m-1"})
    with vmstore.memory_store() as store:
        store.import_file(written(tmp_path / "trace.jsonl", export(failed, bare)))
        calls = store.session("t1").calls()
        assert [(call.status, call.error, call.tokens_reported) for call in calls] == [
            ("failed", "rate limited", 21), ("ok", None, 40)
        ]  # fmt: skip


def test_what_cannot_be_read_is_kept_and_named(tmp_path: Path) -> None:
    """Lines that are no export are counted as problems; values that are none do no harm."""
    odd = span(1, {"gen_ai.operation.name": "chat"}, startTimeUnixNano="soon", status="bad", events=[3, {}])
    odd["attributes"] += [{"key": "gen_ai.input.messages", "value": {"stringValue": "[1, {half"}}, 7, {"key": "x"}]
    path = tmp_path / "trace.jsonl"
    path.write_text(
        json.dumps(export(odd)) + "\n{half}\n[]\n" + json.dumps({"resourceSpans": [1, {"scopeSpans": 3}]}) + "\n"
    )
    with vmstore.memory_store() as store:
        report = store.import_file(path)
        assert [problem.line for problem in report.problems] == [2, 3]
        assert len(store.session("t1").calls()) == 1


def test_spans_of_nobody_s_model_are_nothing_of_ours(tmp_path: Path) -> None:
    """A trace without a call to a model is an empty session of its file, and its spans are left out."""
    with vmstore.memory_store() as store:
        (session,) = store.import_file(written(tmp_path / "web.jsonl", export(span(1, {"http.route": "/"})))).sessions
        assert (session.calls, session.pages) == (0, 0)


def test_a_time_that_no_clock_shows_is_none(tmp_path: Path) -> None:
    """A span far outside of any calendar is a call like others, at the time of its import."""
    odd = [{"startTimeUnixNano": "9" * 30}, {"startTimeUnixNano": "-5"}, {"startTimeUnixNano": 1e308}]
    spans = [{**asked(n, [message_of("user", text("Where?"))], None), **times} for n, times in enumerate(odd)]
    with vmstore.memory_store() as store:
        (taken,) = store.import_file(written(tmp_path / "odd.json", export(*spans))).sessions
        assert [call.latency_ms for call in store.session(taken.session).calls()] == [None] * 3
