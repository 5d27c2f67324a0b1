"""The harness reads files of LongMemEval's shape, finds their evidence, and spends no more than it may.

The file is made here: the dataset itself is on no machine that runs the tests.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import longmemeval
import pytest
from benches.parts.haystack import DatasetError, contenders, haystacks
from bootstrap import RefusedError

THINGS = ("kayak", "violin", "greenhouse", "telescope")
PLACES = ("Ghent", "Turku", "Porto", "Graz")
CALLBACKS = """
asked = []
def read(question, context, date):
    asked.append(("read", question))
    return {"text": context, "cost": 0.25}
def judge(question, answer, response, abstains):
    asked.append(("judge", question))
    return {"correct": answer in response, "cost": 0.25}
def fails(question, context, date):
    raise ConnectionError("nobody there")
def dear(question, context, date):
    return {"text": "", "cost": 9.0}
"""


def talk(*pairs: tuple[str, str], answers: bool = False) -> list[dict[str, Any]]:
    """A talk of user and assistant; with `answers` its first turn is marked."""
    turns: list[dict[str, Any]] = []
    for expected, reply in pairs:
        turns += [{"role": "user", "content": expected}, {"role": "assistant", "content": reply}]
    return [{**turns[0], "has_answer": True}, *turns[1:]] if answers else turns


def made(path: Path) -> Path:
    """A file of four questions and one that its talks do not answer, each with five talks out of order."""
    questions = []
    for number, (thing, place) in enumerate(zip(THINGS, PLACES, strict=True)):
        fillers = [
            talk(*((f"Tell me about soup {n} for day {day}.", "Peel, boil, season. " * 12) for n in range(6)))
            for day in range(4)
        ]
        wanted = talk((f"My new {thing} is kept in {place}.", "Good to know."), answers=True)
        questions.append(
            {
                "question_id": f"q{number}",
                "question_type": "single-session-user" if number % 2 else "multi-session",
                "question": f"Where do I keep my {thing}?",
                "answer": place,
                "question_date": "2023/05/20 (Sat) 02:36",
                "haystack_session_ids": ["s4", "answer", "s1", "s2", "s3"],
                "haystack_dates": [
                    "2023/05/04 (Thu) 10:00", "2023/04/02 (Sun) 09:15", "2023/05/01 (Mon) 10:00",
                    "2023/05/02 (Tue) 10:00", "2023/05/03 (Wed) 10:00",
                ],
                "haystack_sessions": [fillers[3], wanted, *fillers[:3]],
                "answer_session_ids": ["answer"],
            }
        )  # fmt: skip
    questions.append({**questions[0], "question_id": "q9_abs", "question": "Where is my boat?", "answer": "no boat"})
    path.write_text(json.dumps(questions), "utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The made file."""
    return made(tmp_path / "made.json")


@pytest.fixture
def callbacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the user's with readers and judges."""
    import importlib
    import sys

    (tmp_path / "callbacks_made.py").write_text(CALLBACKS, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("callbacks_made")
    sys.modules.pop("callbacks_made", None)


@pytest.fixture
def provider() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A real server on this machine that answers chat completions, with the requests it got."""
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            prompt = body["messages"][0]["content"]
            seen.append({**body, "path": self.path, "key": self.headers["authorization"]})
            judges = "Answer yes or no" in prompt
            other_place = next((place for place in PLACES if place in prompt), "cannot tell")
            right = prompt.count(other_place) > 1 or "does not" in prompt
            text = ("Yes." if right else "No.") if judges else other_place
            usage = {"prompt_tokens": 1_000, "completion_tokens": 10}
            answer = json.dumps({"choices": [{"message": {"content": text}}], "usage": usage}).encode()
            self.send_response(503 if "Where is my boat" in prompt else 200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1", seen
    server.shutdown()
    server.server_close()


def outcome(file: Path) -> dict[str, Any]:
    """What is kept of a run."""
    read: dict[str, Any] = json.loads(file.with_suffix(".outcome.json").read_text("utf-8"))
    return read


def test_evidence_is_found_by_kind(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Evidence older than a window is found by words, as turn and as talk, in a budget; all talks hold it anyway."""
    assert longmemeval.main([str(file), "--budget", "100"]) == 0
    tables = capsys.readouterr().out
    record = outcome(file)["questions"]["q1"]["found"]
    for name in ("vmstore", "bm25"):
        assert record[name]["turns@5"] == record[name]["sessions@1"] == record[name]["turns in 100"] == 1, name
    assert record["window"]["turns in 100"] == record["window"]["sessions@3"] == 0
    assert record["full"]["turns in 100"] == 1 and record["full"]["tokens of 100"] > 1_000
    assert record["vmstore"]["tokens of 100"] <= 200  # a reader also sees each turn's date and role
    abstains = outcome(file)["questions"]["q9_abs"]["found"]["vmstore"]
    assert list(abstains) == ["tokens of 100"]
    assert "multi-session" in tables and "single-session-user" in tables and "5 of 5 questions" in tables


@pytest.mark.parametrize(("date", "talks"), [("2023/04/20 (Thu) 08:00", {0}), ("2023/04/01", set())])
def test_only_what_was_said_by_then_is_found(file: Path, date: str, talks: set[int]) -> None:
    """Talks after the question's date are neither recalled nor in a window."""
    questions = json.loads(file.read_text("utf-8"))
    questions[0]["question_date"] = date
    file.write_text(json.dumps(questions[:1]), "utf-8")
    (haystack,) = haystacks(file)
    first = [number for number, turn in enumerate(haystack.turns) if turn.session in talks]
    for name, turns in contenders(haystack):
        assert set(turns.ranked) <= set(first) and set(turns.within(9_000)[0]) <= set(first), name


def test_a_run_stops_before_the_cap_and_goes_on(file: Path, callbacks: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """No call is made that might exceed the cap; with a higher one nothing is asked twice."""
    command = [str(file), "--reader", "callbacks_made:read", "--judge", "callbacks_made:judge"]
    assert longmemeval.main([*command, "--call-cost-max", "0.3", "--cost-cap", "1.1"]) == longmemeval.STOPPED
    assert "the next call may cost $0.3" in capsys.readouterr().err
    assert outcome(file)["spent"] == 1.0 and len(callbacks.asked) == 4
    assert longmemeval.main([*command, "--call-cost-max", "0.3", "--cost-cap", "9"]) == 0
    assert len(callbacks.asked) == len(set(callbacks.asked)) == 10
    assert outcome(file)["spent"] == 2.5 and outcome(file)["stopped"] is None
    right = {name: question["answers"]["vmstore"]["correct"] for name, question in outcome(file)["questions"].items()}
    assert right == {"q0": True, "q1": True, "q2": True, "q3": True, "q9_abs": False}
    with pytest.raises(RefusedError, match="of another file or other settings"):
        longmemeval.main([*command, "--cost-cap", "9", "--budget", "7"])


def test_failed_and_dear_calls_end_a_run(file: Path, callbacks: Any) -> None:
    """A call that failed counts as its most; one that cost more than it may ends the run."""
    assert callbacks.asked == []
    command = [str(file), "--judge", "callbacks_made:judge", "--call-cost-max", "0.5", "--cost-cap", "9"]
    assert longmemeval.main([*command, "--reader", "callbacks_made:fails"]) == longmemeval.STOPPED
    assert outcome(file)["spent"] == 2.5
    assert "5 calls failed one after the other" in outcome(file)["stopped"]
    assert outcome(file)["questions"]["q0"]["answers"]["vmstore"] == {
        "error": "callbacks_made:fails: ConnectionError: nobody there"
    }
    file.with_suffix(".outcome.json").unlink()
    assert longmemeval.main([*command, "--reader", "callbacks_made:dear"]) == longmemeval.STOPPED
    assert (outcome(file)["spent"], list(outcome(file)["questions"])) == (9.0, ["q0"])


def test_an_address_reads_and_judges(
    file: Path, provider: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an address takes is reckoned by its usage; a failure of its own is counted as the most, and told."""
    url, seen = provider
    monkeypatch.setenv("MADE_KEY", "sesame")
    command = [str(file), "--reader", url, "--judge", url, "--model", "m-1", "--price", "10", "100"]
    assert longmemeval.main([*command, "--key-variable", "MADE_KEY", "--cost-cap", "20"]) == 0
    assert {(record["path"], record["model"], record["key"]) for record in seen} == {
        ("/v1/chat/completions", "m-1", "Bearer sesame")
    }
    answers = {name: question["answers"]["vmstore"] for name, question in outcome(file)["questions"].items()}
    assert [answers[f"q{number}"] for number in range(4)] == [{"response": place, "correct": True} for place in PLACES]
    assert answers["q9_abs"] == {"error": "the address answers 503"}
    usage = 8 * (1_000 * 10 + 10 * 100) / 1e6
    assert usage < outcome(file)["spent"] < usage + 0.2
    asked = len(seen)
    assert longmemeval.main([*command, "--cost-cap", "0.0001"]) == longmemeval.STOPPED
    assert len(seen) == asked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"haystack_dates": []}, "5 sessions, 0 dates"),
        ({"question_date": "soon"}, "'soon' is no date"),
        ({"haystack_sessions": [[{"role": "tool", "content": ""}]] * 5}, "no role"),
    ],
)
def test_other_shapes_are_refused(file: Path, change: dict[str, Any], words: str) -> None:
    """A file that is not of the shape is refused with the question and what is wrong."""
    questions = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps([{**questions[0], **change}]), "utf-8")
    with pytest.raises(DatasetError, match=f"q0.*{words}"):
        haystacks(file)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--reader", "m:f"], "go together"),
        (["--reader", "m:f", "--judge", "m:g"], "needs --cost-cap"),
        (["--reader", "http://h", "--judge", "m:g", "--cost-cap", "1"], "needs --model and --price"),
        (["--reader", "no_such:f", "--judge", "m:g", "--cost-cap", "1"], "No module named 'no_such'"),
    ],
)
def test_what_cannot_run_is_refused(file: Path, options: list[str], words: str) -> None:
    """Options that do not go together, and functions that are not there, are refused with the remedy."""
    with pytest.raises(RefusedError, match=words):
        longmemeval.main([str(file), *options])
