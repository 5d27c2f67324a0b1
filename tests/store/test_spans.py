"""Calls as spans of OpenTelemetry: what leaves is what the importer of traces reads, and each call is posted once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.capture.importers.formats.otlp_value import attributes, spans_of
from vmstore.errors import InputError, SpanExportError
from vmstore.store.spans.exporter import SpanExporter

Json = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"path":"a.md"}'}}
ASKED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]},
]  # fmt: skip
ANSWERED = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "a"},
]


def answer(message: Json, stop: str = "stop") -> Json:
    """A completion with usage."""
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 10}}
    choice = {"message": {"role": "assistant", **message}, "finish_reason": stop}
    return {"id": "r-1", "model": "m-1", "choices": [choice], "usage": usage}


def asked(store: vmstore.Store) -> None:
    """Three calls: one that asks a tool, one of a component that costs, one that fails."""
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    first = {"model": "m-1", "temperature": 0.5, "messages": ASKED, "tools": tools}
    store.record("talk", first, answer({"content": None, "tool_calls": [CALL]}, "tool_calls"), latency_us=2_500)
    later = {"model": "m-1", "messages": [*ASKED, *ANSWERED], "tools": tools}
    store.record("talk", later, answer({"content": "A file."}), cost=0.25, beside={"component": "tool_loop"})
    store.record("talk", later, RuntimeError("it broke"))


def test_calls_that_were_exported_are_imported_as_the_same_calls(tmp_path: Path) -> None:
    """Messages, tools, answers, usage, cost, component, times and how each ended come back."""
    path = tmp_path / "talk.otlp.jsonl"
    with vmstore.memory_store() as store, vmstore.memory_store() as other:
        asked(store)
        store.export(path, format="otlp")
        other.import_file(path)
        talk, copy = store.session("talk"), other.session("talk")
        for call, again in zip(talk.calls(), copy.calls(), strict=True):
            assert copy.wire.messages(call=call.call) == talk.wire.messages(call=call.call)
            kept = (
                "at",
                "status",
                "tokens_reported",
                "tokens_cached",
                "tokens_out",
                "cost",
                "component",
                "stop",
                "error",
            )
            assert [getattr(again, name) for name in kept] == [getattr(call, name) for name in kept]
            assert copy.wire.response(call=call.call).messages == talk.wire.response(call=call.call).messages
        assert copy.calls()[0].latency_ms == 2.5
        tools = "PAGES page WHERE type = procedure IN SESSION talk"
        assert len(other.query(tools).to_dicts()) == len(store.query(tools).to_dicts()) == 1


@pytest.mark.parametrize("shape", ["anthropic", "responses", "gemini"])
def test_each_provider_s_calls_say_who_spoke_and_what_was_called(tmp_path: Path, shape: str) -> None:
    """Instructions, a call, its result and the answer stand in the conventions' parts, whatever the provider."""
    requests: Json = {
        "anthropic": {"model": "claude-x", "max_tokens": 9, "system": "Be brief.", "messages": [
            {"role": "user", "content": "What?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"n": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a"}]},
        ]},
        "responses": {"model": "m", "instructions": "Be brief.", "input": [
            {"role": "user", "content": "What?"},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"n": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "a"},
        ]},
        "gemini": {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
            {"role": "user", "parts": [{"text": "What?"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {"n": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"r": "a"}}}]},
        ]},
    }  # fmt: skip
    with vmstore.memory_store() as store:
        store.record("s", requests[shape], None)
        store.export(tmp_path / "s.otlp.jsonl", format="otlp")
    ((span, _),) = spans_of(json.loads((tmp_path / "s.otlp.jsonl").read_text()))
    fields = attributes(span)
    assert json.loads(fields["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    kinds = [
        (part["type"], part.get("name")) for m in json.loads(fields["gen_ai.input.messages"]) for part in m["parts"]
    ]
    assert kinds == [("text", None), ("tool_call", "look"), ("tool_call_response", None)]
    assert '"arguments":{"n":1}' in fields["gen_ai.input.messages"]
    assert fields["error.type"] == "aborted"


class Collector(ThreadingHTTPServer):
    """A collector on the loopback; `status` is what it answers, `bodies` what it took."""

    status = 200
    reply = b"{}"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), CollectorHandler)
        self.bodies: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    @property
    def calls(self) -> list[int]:
        """The numbers of the calls it took, in order."""
        return [attributes(span)["vmstore.call"] for body in self.bodies for span, _ in spans_of(body)]


class CollectorHandler(BaseHTTPRequestHandler):
    """Takes exports."""

    server: Collector

    def do_POST(self) -> None:
        """Takes one."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.status == 200 and self.path == "/v1/traces":
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.reply)

    def log_message(self, *words: Any) -> None:
        """Says nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector until the end of the block."""
    server = Collector()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def test_each_call_is_posted_once() -> None:
    """A second export posts what ended since; headers go along."""
    with collecting() as collector, vmstore.memory_store() as store:
        asked(store)
        exporter = SpanExporter(store, collector.url, headers={"x-team": "memory"})
        assert (exporter.export(), exporter.export()) == (3, 0)
        store.record("talk", {"model": "m-1", "messages": ASKED}, answer({"content": "Yes."}))
        assert exporter.export(["talk"]) == 1
        assert collector.calls == [1, 2, 3, 4]
        assert collector.headers[0]["x-team"] == "memory"


def test_what_a_collector_refuses_is_posted_again() -> None:
    """Its words are in the error, and the next export posts the same calls."""
    with collecting() as collector, vmstore.memory_store() as store:
        asked(store)
        exporter = SpanExporter(store, collector.url)
        collector.status, collector.reply = 400, b"no such tenant"
        with refused("answered-an-error", SpanExportError, "no such tenant"):
            exporter.export()
        collector.status, collector.reply = 200, b""
        assert exporter.export() == 3


def test_a_collector_that_takes_only_some_says_so() -> None:
    """A partial success is an error, with its message, and is not posted again."""
    with collecting() as collector, vmstore.memory_store() as store:
        asked(store)
        collector.reply = b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}'
        exporter = SpanExporter(store, collector.url)
        with refused("taken-in-part", SpanExportError, "2", "too old"):
            exporter.export()
        assert (exporter.export(), exporter.posted) == (0, 3)


def test_secrets_are_masked_and_content_can_stay_here() -> None:
    """A key is masked unless redaction is off; without content no message leaves at all."""
    key = "sk-proj-Zk3vQ8xW1bT7yR5nLm2oP9"
    with collecting() as collector, vmstore.memory_store() as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": f"api_key={key}"}]}, None)
        SpanExporter(store, collector.url).export()
        SpanExporter(store, collector.url, content=False).export()
        SpanExporter(store, collector.url, redact=False).export()
        texts = [json.dumps(body) for body in collector.bodies]
    assert [key in text for text in texts] == [False, False, True]
    assert ["gen_ai.input.messages" in text for text in texts] == [True, False, True]


def test_a_component_s_calls_are_told_apart() -> None:
    """A column of CALLS and the figures of the server have what each part asked and cost."""
    from vmstore.debug.overview import metrics

    with vmstore.memory_store() as store:
        asked(store)
        rows = store.query("CALLS component, count(*), sum(cost) BY component IN SESSION talk").to_dicts()
        assert sorted(map(str, rows)) == [
            "{'component': 'tool_loop', 'count(*)': 1, 'sum(cost)': 0.25}",
            "{'component': None, 'count(*)': 2, 'sum(cost)': None}",
        ]
        figures = metrics(store).splitlines()
        assert 'vmstore_component_calls_total{component="agent"} 2' in figures
        assert 'vmstore_component_cost_dollars_total{component="tool_loop"} 0.25' in figures
        with refused("not-a-name", InputError):
            store.record("talk", {"messages": ASKED}, None, beside={"component": "Ann's"})
