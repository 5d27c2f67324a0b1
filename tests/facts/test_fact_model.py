"""Facts found by a model: what it may answer, what is refused, and what happens where it fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore import OpenAIModel
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError
from vmstore.facts.find import Utterance
from vmstore.facts.parse import parse_facts
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

AT = 20_000 * 86_400_000_000
SAID = "I live in Ghent and pay 940 euros of rent."
HOME = {"subject": "I", "verb": "lives in", "what": "Ghent", "attribute": "home", "fact_type": "biographical"}
SHOWN = [Utterance(4, "Ann", SAID, AT)]


def listed(*rows: dict[str, Any]) -> str:
    """An answer that is as it should be."""
    return json.dumps(rows)


class ModelServer:
    """A server whose answers a test chooses: texts of a model, whole bodies, or nothing for long."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.replies: list[str | bytes | int | None] = []
        self.gate = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.prompts.append(document["messages"][-1]["content"])
                reply = outer.replies.pop(0) if outer.replies else "[]"
                if reply is None:
                    outer.gate.wait(10)
                status, body = (reply, b"no") if isinstance(reply, int) else (200, outer.body(reply or ""))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.model = OpenAIModel(f"http://127.0.0.1:{self.server.server_port}/v1", "small", attempts=1)

    @staticmethod
    def body(reply: str | bytes) -> bytes:
        """What the server sends for a text, or the bytes themselves."""
        fields = {"choices": [{"message": {"content": reply}}]} if isinstance(reply, str) else None
        return json.dumps(fields).encode() if fields is not None else bytes(reply)  # type: ignore[arg-type]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server for one test."""
    made = ModelServer()
    yield made
    made.gate.set()
    made.model.close()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def store() -> Store:
    """A store in memory."""
    return memory_store(clock=ManualClock(AT, 1_000), ids=SeededIds(1))


def talk(store: Store, *other_text: str, name: str = "talk") -> Session:
    """A session in which a person said some things."""
    store.record(name, {"messages": [{"role": "user", "content": text} for text in other_text]})
    return store.session(name)


def answers_in(store: Store, name: str = "talk") -> list[dict[str, Any]]:
    """What models answered of a session's facts, in order."""
    rows = store.query("PAGES text WHERE actor = 'facts-model' ORDER BY position", session=name)
    return [json.loads(row[0]) for row in rows if not row[0].startswith("[erased")]


READ = [
    ("plain", listed(HOME)),
    ("fenced", f"Sure, here it is:\n```json\n{listed(HOME)}\n```\nAnything else?"),
    ("thought", f"<think>[1, 2] maybe {{no}}</think>{listed(HOME)}"),
    ("half a thought", f"so it is a city </think>\n{listed(HOME)}"),
    ("in an object", json.dumps({"facts": [HOME]})),
    ("alone", json.dumps(HOME)),
    ("broken off", listed(HOME, HOME)[:-40]),
    ("by other names", json.dumps([{"subject": "Ann", "verb": "lives in", "object": "Ghent", "attribute": "home"}])),
]


@pytest.mark.parametrize("answer", [item for _, item in READ], ids=[name for name, _ in READ])
def test_what_models_write_around_json_is_read_through(answer: str) -> None:
    """Thoughts, fences, prose and an end that is missing do not keep a fact from being read."""
    parsed = parse_facts(answer, SHOWN, {})
    assert parsed.is_json
    assert {(fact.subject, fact.verb, fact.what, fact.sources) for fact in parsed.facts} == {
        ("Ann", "lives in", "Ghent", (4,))
    }


REFUSED = [
    ("a page that was not shown", {**HOME, "source": "p9"}, "none of the pages that were shown"),
    ("somebody else's page", {**HOME, "sources": ["p4", "other/p2"]}, "none of the pages that were shown"),
    ("words nobody said", {**HOME, "what": "Rotterdam"}, "no word of it was said"),
    ("a number nobody said", {**HOME, "what": "Ghent for 990 euros"}, "nobody said 990"),
    ("no object", {**HOME, "what": ""}, "is no text"),
    ("an object of another kind", {**HOME, "what": ["Ghent"]}, "is no text"),
    ("a share of nothing", {"mood": "fine"}, "is no fact"),
]


@pytest.mark.parametrize(("row", "why"), [(row, why) for _, row, why in REFUSED], ids=[name for name, _, _ in REFUSED])
def test_what_was_made_up_is_refused_with_a_reason(row: dict[str, Any], why: str) -> None:
    """A fact with an invented source, word or number is refused, and the others are taken."""
    parsed = parse_facts(listed(row, HOME), SHOWN, {})
    assert [fact.what for fact in parsed.facts] == ["Ghent"]
    assert len(parsed.refused) == 1 and why in parsed.refused[0]


@pytest.mark.parametrize("answer", ["", "I found nothing.", "[" * 50_000, '{"a":' * 20_000, "{'what': 1}", "\0"])
def test_an_answer_without_json_is_none(answer: str) -> None:
    """Prose, hostile nesting and other notations give no fact and no error."""
    parsed = parse_facts(answer, SHOWN, {})
    assert not parsed.is_json and parsed.facts == ()


def test_a_model_is_asked_once_and_its_answer_stays(server: ModelServer, store: Store) -> None:
    """The raw answer is logged with its facts, which are caused by it; nobody is asked again about the message."""
    session = talk(store, SAID)
    server.replies = [f"<think>hm</think>{listed(HOME)}"]
    pages = session.memory.facts.extract(server.model)
    assert pages == [session.memory.facts.all()[0].page] and len(server.prompts) == 1
    (fact,) = session.memory.facts.query(object_contains="Ghent").facts
    (raw,) = store.query("PAGES page, text WHERE actor = 'facts-model'", session="talk").to_dicts()
    assert json.loads(raw["text"])["answer"].startswith("<think>hm</think>[")
    assert [(link.kind, link.page) for link in fact.links] == [("caused_by", raw["page"])]
    assert session.memory.facts.extract(server.model) == [] and len(server.prompts) == 1
    assert store.verify().ok


WRONG: list[tuple[list[str | bytes | int | None], str]] = [
    (["no idea", "still none"], "no_json"),
    ([b"<html>"], "raised"),
    ([500], "raised"),
    ([b'{"choices": []}'], "raised"),
    ([None], "hung"),
]


@pytest.mark.parametrize(("replies", "outcome"), WRONG, ids=["prose", "html", "500", "empty", "late"])
def test_where_a_model_fails_the_patterns_find_what_they_know(
    server: ModelServer, store: Store, replies: list[str | bytes | int | None], outcome: str
) -> None:
    """The outcome is logged, the message stays, and its facts are those of the patterns."""
    session = talk(store, SAID)
    server.replies = replies
    session.memory.facts.extract(server.model, consolidate=False, timeout_s=0.3 if outcome == "hung" else 5)
    assert "patterns-en@4" in {fact.method for fact in session.memory.facts.all()}
    assert [answer["outcome"] for answer in answers_in(store)] == [outcome]


def test_an_answer_that_is_no_json_is_shown_to_the_model_once(server: ModelServer, store: Store) -> None:
    """A second answer that can be read counts, and the first is in what was asked."""
    server.replies = ["Ghent, I think", listed(HOME)]
    talk(store, SAID).memory.facts.extract(server.model)
    assert [answer["outcome"] for answer in answers_in(store)] == ["answered"] and "Ghent, I think" in server.prompts[1]


def test_facts_are_consolidated_over_what_was_said(server: ModelServer, store: Store) -> None:
    """A second question links facts that are known; links between others are refused."""
    session = talk(store, "I live in Ghent", "My rent there is 940 euros")
    server.replies = [listed(HOME), listed({"subject": "rent", "verb": "is", "what": "940 euros"})]
    home, rent = session.memory.facts.extract(server.model, consolidate=False)
    records = [{"from": rent, "kind": "caused_by", "to": home}, {"from": rent, "kind": "supersedes", "to": home},
            {"from": home, "kind": "part_of", "to": "p999"}, {"page": rent, "status": "completed"}]  # fmt: skip
    server.replies = [listed(*records)]
    assert session.memory.facts.extract(server.model) == []
    assert (len(answers_in(store)[-1]["answer"]), answers_in(store)[-1]["refused"]) == (2, 2)
    edges = session.memory.facts.graph(rent).edges
    assert (rent, home, "caused_by") in {(edge.source, edge.target, edge.kind) for edge in edges}
    assert {fact.page: fact.status for fact in session.memory.facts.all(ever=True)}[rent] == "completed"
    asked = len(server.prompts)
    assert session.memory.facts.extract(server.model) == [] and len(server.prompts) == asked


def test_a_model_replaces_a_fact_only_where_it_is_of_the_same_thing(store: Store) -> None:
    """A stated replacement of the same attribute holds, one of something else is refused."""
    session = talk(store, "I love rowing", "I live in Ghent")
    session.memory.facts.extract()
    rowing, ghent = (fact.page for fact in session.memory.facts.all())
    row = {"subject": "user", "verb": "lives in", "what": "Turin", "attribute": "home"}
    answers = {
        "Ghent now": [],
        "Turin": [{**row, "supersedes": rowing}, {**row, "what": "Turin now", "supersedes": ghent}],
    }
    store.record("talk", {"messages": [{"role": "user", "content": text} for text in
                 ("I love rowing", "I live in Ghent", "Turin now!")]})  # fmt: skip
    session.memory.facts.extract(
        lambda prompt: json.dumps(answers["Turin"] if prompt.endswith("Turin now!") else []), consolidate=False
    )
    known = {fact.what: fact.superseded_by for fact in session.memory.facts.all(ever=True)}
    assert known["rowing"] is None and known["Ghent"] is not None
    refused = answers_in(store)[-1]["refused"]
    assert len(refused) == 1 and rowing in refused[0]


def test_an_answer_goes_with_all_that_it_may_quote(tmp_path: Path) -> None:
    """Erasing a message takes what a model answered of it or was shown it with; facts of other messages stay."""

    def answers(prompt: str) -> str:
        if prompt.endswith(SAID):
            return listed(HOME)
        return listed({"subject": "I", "verb": "loves", "what": "rowing", "thought": "near Ghent, where they live"})

    with vmstore.open(tmp_path / "s.vms") as store:
        session = talk(store, SAID, "I love rowing")
        session.memory.facts.extract(answers, consolidate=False)
        assert ["Ghent" in answer["answer"] for answer in answers_in(store)] == [True, True]
        store.trust.erase(page=session.memory.facts.all()[0].sources[0], in_session="talk")
        assert answers_in(store) == []
        assert [fact.what for fact in session.memory.facts.all()] == ["rowing"] and store.verify().ok
        assert session.memory.facts.extract(lambda prompt: "[]", consolidate=False) == []
        assert [answer["answer"] for answer in answers_in(store)] == ["[]"]


def test_what_cannot_be_asked_is_refused(store: Store) -> None:
    """A model is a function or a text model."""
    with refused("not-a-model", InputError):
        talk(store, SAID).memory.facts.extract("small")  # type: ignore[arg-type]


def test_a_live_session_asks_its_model_and_loses_no_turn(server: ModelServer, store: Store) -> None:
    """After each message the model is asked, at close how facts hang together; where it fails the turn goes on."""
    live = store.live_session("talk", l0_tokens_max=8_000, facts=True, fact_model=server.model, callback_timeout_s=5)
    server.replies = [listed(HOME), 500, listed({"subject": "rowing", "verb": "is", "what": "a love"})]
    live.user("I live in Ghent")
    live.user("I love rowing")
    live.user("I said rowing is a love of mine.")
    known = {fact.what: (fact.page, fact.method) for fact in live.memory.facts.all()}
    assert [method for _, method in known.values()] == ["facts-json@1", "patterns-en@4", "facts-json@1"]
    server.replies = [listed({"from": known["a love"][0], "kind": "related_to", "to": known["rowing"][0]})]
    live.close()
    assert [answer["phase"] for answer in answers_in(store)] == ["signals"] * 3 + ["consolidation"]
    assert "related_to" in {edge.kind for edge in live.memory.facts.graph(known["rowing"][0]).edges}
    assert "facts-model" not in live.pack().text and live.debug.check().ok and store.verify().ok


def test_a_live_session_refuses_what_cannot_be_asked(store: Store) -> None:
    """A name is no model, and nothing is opened."""
    with refused("not-a-model", InputError):
        store.live_session("talk", l0_tokens_max=8_000, facts=True, fact_model="small")  # type: ignore[arg-type]
    assert store.sessions() == []
