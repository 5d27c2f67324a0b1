"""The request of a live session's call, wherever it is asked for: the one that was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.debug.test_export import data_in
from tests.vm.protocol.script import Script
from vmstore.debug import export
from vmstore.debug.api import DebugApi
from vmstore.debug.params import QueryParams
from vmstore.debug.request import request
from vmstore.erasure.erase import erase
from vmstore.shell.main import main
from vmstore.store.reads import sent_request as sent
from vmstore.store.reads.context import Context

CONVERSATION = {"chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}


def talked(store: vmstore.Store, shape: str) -> list[dict[str, Any]]:
    """A session in which a model searches, loads and answers, in a budget that holds a part; what it was sent."""
    session = store.live_session("s", l0_tokens_max=3_500, system="You are brief.", shape=shape, model="m")
    script = Script(
        shape,
        [("search_pages", {"query": "topic 0"}), ("page_fault", {"page_id": "first"})],
        "Topic settled. [ref: first]",
        lambda sent: f"Noted: {len(json.dumps(sent))}. " + "That is agreed. " * 40,
    )
    session.claim("Let us use Postgres for topic 0.", name="first")
    for turn in range(12):
        session.user(f"Question {turn}: " + f"what of topic {turn} and its neighbours? " * 12)
        session.run(script)
    assert any(page.tier != "L0" for page in session.pages()), "not all of it is in the prompt"
    return script.requests


@pytest.mark.parametrize("shape", CONVERSATION)
def test_a_live_request_is_told_as_sent_everywhere(
    shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Session, context, debugger, its file and the command line give each call's request as the model received it."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        sent = talked(store, shape)
        session = store.session("s")
        answers = DebugApi(store, "a.vms", "default")
        handed = data_in(export.exported(store, session, redact=False).content)["requests"]
        assert len(sent) == len(handed) == session.info().calls == 13
        for number in (*range(1, 14), 7, 3):  # back in time, too
            body = json.dumps(sent[number - 1])
            assert json.dumps(session.wire.request(call=number)) == body
            assert json.dumps(request(session, number)["request"]) == body
            assert json.dumps(session.context(call=number).to_dict(messages=True)["request"]) == body
            asked = json.loads(answers.table["/api/request"](QueryParams({"session": "s", "call": str(number)})))
            assert json.dumps(asked["request"]) == json.dumps(handed[str(number)]["request"]) == body
            conversation = sent[number - 1][CONVERSATION[shape]]
            assert session.wire.messages(call=number) == asked["messages"] == conversation
            assert asked["tokens"] == session.context(call=number).tokens <= 3_500
    for number in (2, 13):
        capsys.readouterr()
        assert main(["context", str(path), "s", "--call", str(number), "--messages", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert json.dumps(document["request"]) == json.dumps(sent[number - 1])
        assert main(["context", str(path), "s", "--call", str(number), "--messages"]) == 0
        shown = capsys.readouterr().out
        assert "Question" in shown and "[]" not in shown


def test_the_page_makes_a_request_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page asks of a call, its request and its messages, is folded and written once, live or recorded."""
    with vmstore.open(tmp_path / "a.vms") as store:
        (body, *_) = talked(store, "chat")
        store.record("r", body, None)
        made: list[str] = []
        live, values = sent._written, Context._values

        def written(*arguments: Any) -> Any:
            made.append("live")
            return live(*arguments)

        def filled(*arguments: Any) -> Any:
            made.append("recorded")
            return values(*arguments)

        monkeypatch.setattr(sent, "_written", written)
        monkeypatch.setattr(Context, "_values", filled)
        for name in ("s", "r"):
            told_of = request(store.session(name), 1)
            assert told_of["request"] == body and told_of["messages"] == body["messages"]
        assert made == ["live", "recorded"]


def test_within_a_moment_a_live_request_is_told(tmp_path: Path) -> None:
    """Who asks for many things of one moment is told the requests of its calls too, and of none that came after."""
    with vmstore.open(tmp_path / "a.vms") as store, vmstore.open(tmp_path / "a.vms") as other:
        sent = talked(store, "chat")
        with store._ns.asking():
            later = other.live_session("s", l0_tokens_max=3_500)
            later.user("Something else.")
            later.pack()
            session = store.session("s")
            assert session.info().calls == 13
            assert [session.wire.request(call=number) for number in range(1, 14)] == sent
        assert store.session("s").info().calls == 14


def test_what_is_left_of_an_erased_live_request_is_told(tmp_path: Path) -> None:
    """Where a page was erased, the debugger says why there is no request, and shows the messages that are left."""
    with vmstore.open(tmp_path / "a.vms") as store, vmstore.open(tmp_path / "a.vms") as other:
        talked(store, "chat")
        answers = DebugApi(store, "a.vms", "default")

        def asked(call: int) -> Any:
            return json.loads(answers.table["/api/request"](QueryParams({"session": "s", "call": str(call)})))

        before = asked(3)
        assert "what of topic 1" in json.dumps(before["request"])
        page = next(page.page for page in store.session("s").context(call=3).pages if page.role == "user")
        erase(other, page=page, in_session="s")
        after = asked(3)
        assert after["request"] is None and "so its request cannot be had whole" in after["why"]
        assert len(after["messages"]) == len(before["messages"])
        assert "erased at" in json.dumps(after["messages"])
