"""Memory in two calls around somebody's own model call, with text models behind real addresses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError, TextModelError

KEY = "sk-secret-of-the-caller"
NOW = 1_790_000_000_000_000
Reply = tuple[int, Any]


class ModelServer:
    """A text model whose answers a test chooses; it keeps what it was asked, and over how many connections."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = set[Any]()
        self.replies: list[Reply] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append({"path": self.path, **asked})
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                outer.connections.add(self.client_address)
                status, answer = outer.replies.pop(0) if outer.replies else (200, openai("They chose Postgres 17."))
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model on this machine."""
    made = ModelServer()
    yield made
    made.server.shutdown()
    made.server.server_close()


def openai(text: Any, **message: Any) -> dict[str, Any]:
    """An answer as OpenAI's servers give it."""
    return {
        "choices": [{"message": {"role": "assistant", "content": text, **message}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5},
    }


def anthropic(text: str) -> dict[str, Any]:
    """An answer as Anthropic's gives it."""
    return {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": 7, "output_tokens": 3}}


def made(server: ModelServer, kind: str, wait: Callable[[float], object] = lambda seconds: None) -> Any:
    """A client of a kind for the server."""
    if kind == "openai":
        return vmstore.OpenAIModel(f"{server.url}/v1", "small", api_key=KEY, wait=wait)
    return vmstore.AnthropicModel("small", api_key=KEY, base_url=server.url, wait=wait)


@pytest.mark.parametrize(("kind", "answer", "path"), [
    ("openai", openai("So it is."), "/v1/chat/completions"), ("anthropic", anthropic("So it is."), "/v1/messages"),
])  # fmt: skip
def test_a_text_model_answers_over_one_connection(
    server: ModelServer, kind: str, answer: dict[str, Any], path: str
) -> None:
    """Text and the provider's counts come back, system text and key go where the provider wants them."""
    server.replies = [(200, answer), (200, answer)]
    model = made(server, kind)
    replies = [model.complete("Why?", system="Be brief.") for _ in range(2)]
    model.close()
    assert [reply.text for reply in replies] == ["So it is."] * 2
    assert replies[0].usage == ((12, 5) if kind == "openai" else (7, 3))
    assert len(server.connections) == 1 and server.asked[0]["path"] == path
    assert "Be brief." in json.dumps(server.asked[0]) and KEY not in json.dumps(server.asked)
    sent = server.headers[0]
    assert KEY in (sent["authorization"] if kind == "openai" else sent["x-api-key"])


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_failed_server_is_asked_once_more(server: ModelServer, kind: str) -> None:
    """A 5xx is tried once more after a pause; a second one is an error that does not repeat the key."""
    waited: list[float] = []
    answer = openai("Yes.") if kind == "openai" else anthropic("Yes.")
    server.replies = [(503, {"error": "busy"}), (200, answer)]
    model = made(server, kind, waited.append)
    assert model.complete("Why?").text == "Yes." and waited == [0.5]
    server.replies = [(500, f"key {KEY}".encode())] * 2
    with refused("answered-an-error", TextModelError, "500") as raised:
        model.complete("Why?")
    assert KEY not in str(raised.value)
    server.replies = [(400, {"error": "no"})]
    with refused("answered-an-error", TextModelError, "400"):
        model.complete("Why?")
    assert len(server.asked) == 5


@pytest.mark.parametrize("value", [b"prose, not JSON", {"choices": []}, openai(None), {"choices": [{"message": 3}]}])
def test_an_answer_without_text_is_refused(server: ModelServer, value: Any) -> None:
    """What holds no text is an error, and an answer that only reasoned gives its reasoning."""
    model = made(server, "openai")
    server.replies = [(200, value)]
    with pytest.raises(TextModelError):
        model.complete("Why?")
    server.replies = [(200, openai("", reasoning_content="Because."))]
    assert model.complete("Why?").text == "Because."


def engine(**options: Any) -> vmstore.VirtualContextEngine:
    """An engine over a store in memory, with a small window."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 0))
    return vmstore.VirtualContextEngine(store, "talk", **{"window_tokens": 1_200, **options})


def talked(over: vmstore.VirtualContextEngine, turns: int) -> tuple[list[Any], list[vmstore.TurnReport]]:
    """Some turns of a client's own loop: its messages, and what was compacted."""
    messages: list[Any] = []
    reports = []
    for turn in range(turns):
        asked = "We take Postgres 17 for the archive." if turn == 0 else f"And carriage {turn} of the train, its doors?"
        over.on_message_inbound(asked, messages)
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": f"Noted as {turn}. " * 12}]
        report = over.on_turn_complete(messages)
        reports += [report] if report is not None else []
    return messages, reports


def test_nothing_is_added_while_all_fits() -> None:
    """Before anything was compacted the history goes on as it came, and nothing is put before it."""
    over = engine(window_tokens=60_000)
    messages, reports = talked(over, 3)
    context = over.on_message_inbound("Which database?", messages)
    assert context.suppressed and context.prepend_text == "" and reports == []
    assert context.messages == [*messages, {"role": "user", "content": "Which database?"}]


def test_a_long_conversation_is_compacted_and_still_answers() -> None:
    """Past the soft threshold a segment is compacted; what was said first comes back before the system prompt."""
    over = engine(summarizer=lambda text: "They chose Postgres 17 for the archive.")
    messages, reports = talked(over, 24)
    assert reports and all(report.segments_compacted == 1 and report.tokens_freed > 0 for report in reports)
    context = over.on_message_inbound("Which database did we take for the archive?", messages)
    assert not context.suppressed and "Postgres 17" in context.prepend_text
    assert context.tokens <= 1_200 and context.prompt is not None
    assert 2 < len(context.messages) < len(messages)
    assert context.messages[-1] == {"role": "user", "content": "Which database did we take for the archive?"}
    assert context.messages[-3:-1] == messages[-2:]


def test_what_a_client_says_twice_is_taken_in_once() -> None:
    """A history that is sent whole each time, cut at its beginning, or to a reopened session adds what is new alone."""
    over = engine(window_tokens=60_000)
    messages, _ = talked(over, 4)
    turns = over.session.info().turns
    assert over.ingest_history(messages) == 0 and over.ingest_history(messages[4:]) == 0
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    new = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "rows: 3"},
        {"role": "assistant", "content": [{"type": "text", "text": "Three rows."}]},
    ]
    assert over.ingest_history([*messages[2:], *new]) == 4
    assert over.session.info().turns == turns + 1


@pytest.mark.parametrize("summarizer", ["raises", "", "longer"])
def test_a_summarizer_that_fails_costs_nothing(summarizer: str) -> None:
    """Where it raises, says nothing, or says more than it sums up, the session's own key points stand."""

    def fail(text: str) -> str:
        """Fails in one of the ways."""
        if summarizer == "raises":
            raise RuntimeError("the model is gone")
        return text * 2 if summarizer == "longer" else ""

    over = engine(summarizer=fail)
    _, reports = talked(over, 20)
    assert reports and all(report.segments_compacted == 1 for report in reports)
    assert all(bool(report.note) == (summarizer != "longer") for report in reports)
    assert all(over.session.content(page) for report in reports for page in report.summaries)


def test_a_model_behind_an_address_sums_up(server: ModelServer) -> None:
    """What is compacted is summed up by the model that is handed in, asked to keep what is stated exactly."""
    over = engine(summarizer=made(server, "openai"))
    _, reports = talked(over, 20)
    assert over.session.content(reports[0].summaries[0]) == b"They chose Postgres 17."
    assert "exactly as they were stated" in server.asked[0]["messages"][0]["content"]


def test_a_message_is_never_lost() -> None:
    """What the memory cannot take goes on as it came, with the reason; wrong thresholds are refused."""
    over = engine(window_tokens=60)
    history = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello."}]
    context = over.on_message_inbound("Why? " * 400, history)
    assert context.messages == [*history, {"role": "user", "content": "Why? " * 400}]
    assert context.prompt is None and context.note.startswith("sent as it came: a prompt of 60 tokens cannot hold")
    with refused("not-a-share", InputError):
        engine(soft=0.9, hard=0.5)
