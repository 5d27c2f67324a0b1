"""Real sessions imported whole: the requests of an agent call by call, compactions, a hundred runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vmstore.core.asof import Call
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store, open_store

SEEN = ("role", "content", "tool_calls", "tool_call_ids")
PI = "pi/before-compaction.jsonl"
CALLS = {  # file: turns, calls, fidelity
    "swe-agent/marshmallow-1867_prompt_per_step.traj": (13, "recorded"),
    "swe-agent/marshmallow-1867_default.traj": (None, "derived"),
    "swe-agent/marshmallow-1867_function_calling.traj": (None, "derived"),
    "swe-agent/katy.traj": (None, "derived"),
    "swe-agent/i_got_id_demo.traj": (None, "derived"),
    "claude-code/edge_cases.jsonl": (None, "derived"),
    "claude-code/representative_messages.jsonl": (None, "derived"),
}


@pytest.fixture(scope="module")
def pi(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Path]]:
    """The pi session, imported into a store on disk, which is open again."""
    path = tmp_path_factory.mktemp("pi") / "pi.vms"
    with open_store(path) as store:
        store.import_file(data / PI, session="pi")
    with open_store(path) as store:
        yield store, path


@pytest.fixture(scope="module")
def session(pi: tuple[Store, Path]) -> Session:
    """The pi session."""
    return pi[0].session("pi")


@pytest.mark.parametrize("file", CALLS)
def test_every_recorded_file_is_taken(file: str, data: Path) -> None:
    """Each file imports without a problem, verifies, and imports again as nothing."""
    calls, fidelity = CALLS[file]
    with memory_store() as store:
        done = store.import_file(data / file)
        assert store.verify().ok
        assert done.sessions[0].fidelity == fidelity
        assert done.sessions[0].calls == calls if calls else done.sessions[0].calls > 0
        again = store.import_file(data / file)
        assert (again.new, again.sessions) == (0, done.sessions)


# ---- the oracle: 13 requests, read exactly


@pytest.fixture(scope="module")
def marshmallow(data: Path) -> Iterator[tuple[Session, list[list[Any]]]]:
    """The trajectory with messages per step, and what each call was sent."""
    path = data / "swe-agent" / "marshmallow-1867_prompt_per_step.traj"
    steps = json.loads(path.read_text())["trajectory"]
    sent = [steps[0]["messages"][:2], *[step["messages"] for step in steps[:12]]]
    with memory_store() as store:
        store.import_file(path)
        bare = [[{k: m[k] for k in SEEN if k in m} for m in messages] for messages in sent]
        yield store.session(path.stem), bare


@pytest.mark.parametrize("call", range(1, 14))
def test_each_of_thirteen_calls_saw_what_it_was_sent(call: int, marshmallow: tuple[Session, list[list[Any]]]) -> None:
    """Call by call the messages are those of the trajectory, and said to be recorded."""
    session, sent = marshmallow
    assert session.wire.messages(call=call) == sent[call - 1]
    assert session.context(call=call).fidelity == "recorded"


def test_old_outputs_become_references(marshmallow: tuple[Session, list[list[Any]]]) -> None:
    """From the seventh list on outputs are replaced by a note: level 3 of a page whose full text stays."""
    session, sent = marshmallow
    replaced = 0
    for call, messages in enumerate(sent, 1):
        context = session.context(call=call)
        levels = {page.page: page.level for page in context.pages}
        contents = context.contents()
        for page, level in levels.items():
            assert (level == 3) == contents[page].startswith(b"Old environment output:")
            if level:
                replaced += 1
                assert not session.content(page).startswith(b"Old environment output:")
        assert sum(level == 3 for level in levels.values()) == sum(
            str(message["content"]).count("Old environment output:") for message in messages
        )
    assert replaced > 10


def test_no_page_of_the_trajectory_was_written_twice(marshmallow: tuple[Session, list[list[Any]]]) -> None:
    """Thirteen growing requests are as many messages as the last conversation, each page in one version."""
    session, sent = marshmallow
    assert session.info().messages == len(sent[-1]) + 2  # the last answer, and what was observed after it
    assert all(page.version == 1 for page in session.pages())


# ---- pi: 484 derived calls


def test_the_pi_session_is_counted(session: Session) -> None:
    """990 messages and two summaries, 484 calls in 31 turns and more, none of them recorded."""
    info = session.info()
    assert (info.calls, info.messages, info.fidelity, info.raw) == (484, 992, "derived", 0)
    statuses = [call.status for call in session.calls()]
    assert (statuses.count("aborted"), statuses.count("failed")) == (18, 1)
    assert [page.type for page in session.pages()].count("summary") == 2
    assert sum(turn.calls for turn in session.turns()) == 484


def test_the_first_pi_call_sums_to_its_report(session: Session) -> None:
    """2,775 tokens were reported; the opaque page makes the context at call 1 sum to that."""
    context = session.context(call=1)
    assert (context.tokens, context.tokens_reported) == (2775, 2775)
    opaque = [page for page in context.pages if page.page not in context.contents()]
    assert len(opaque) == 1 and opaque[0].tokens == 2775 - sum(p.tokens for p in context.pages[1:])


def test_pi_estimates_stay_near_the_reports(session: Session) -> None:
    """With opaque page and factor the median estimate is within a fifth of what was reported."""
    (opaque,) = [page for page in session.pages() if not page.bytes and page.hint == "opaque"]
    errors = []
    for call in session.calls()[::7]:
        if call.tokens_reported:
            factor = session.context(call=call.call).factor
            estimate = opaque.tokens + (call.tokens - opaque.tokens) * factor
            errors.append(abs(estimate - call.tokens_reported) / call.tokens_reported)
    assert sorted(errors)[len(errors) // 2] < 0.2


def test_a_pi_compaction_takes_its_messages_away(session: Session, data: Path) -> None:
    """At the first compaction the messages before the kept one leave for a summary derived from them all."""
    records = [json.loads(line) for line in (data / PI).read_text().splitlines()]
    compacted = next(n for n, record in enumerate(records) if record["type"] == "compaction")
    last = sum(record.get("message", {}).get("role") == "assistant" for record in records[:compacted])
    before, after = session.context(call=last), session.context(call=last + 1)
    diff = session.diff(Call(last), Call(last + 1))
    entered = [change for change in diff.changes if change.change == "entered"]
    (summary,) = [change for change in entered if change.type == "summary"]
    left = {change.page for change in diff.changes if change.change == "left"}
    assert {link.target for link in session.lineage.ancestors(summary.page, depth=1)} >= left
    assert len(left) > 100 and after.tokens < before.tokens
    other_summary = next(record["summary"] for record in records if record["type"] == "compaction")
    assert session.content(summary.page).decode() == other_summary
    assert after.contents()[summary.page].decode() == other_summary
    assert [page.type for page in after.pages][:2] == ["procedure", "summary"]
    assert session.diff(Call(last), Call(last)).changes == []


def test_pi_tool_results_are_caused_by_their_calls(session: Session) -> None:
    """Each of the 448 results leads back to the call the model made."""
    artifacts = [page for page in session.pages() if page.type == "artifact"]
    assert len({page.message for page in artifacts}) == 448
    for page in artifacts[::20]:
        (link,) = session.lineage.ancestors(page.page, kinds=["caused_by"])
        called = json.loads(session.content(link.target))
        assert (called["type"], session.page(link.target).role) == ("toolCall", "assistant")


def test_the_pi_file_grown_in_parts_is_the_pi_file(data: Path, tmp_path: Path, session: Session) -> None:
    """Imported in four parts, one of them torn, the file gives the contexts of the whole."""
    whole = (data / PI).read_bytes()
    file = tmp_path / "grown.jsonl"
    with memory_store() as store:
        for part in (0.1, 0.35, 0.7, 1.0):
            file.write_bytes(whole[: int(len(whole) * part)])
            store.import_file(file, session="pi")
        grown = store.session("pi")
        assert grown.info().calls == 484
        for call in (1, 17, 40, 173, 174, 300, 411, 484):
            first, other = grown.context(call=call), session.context(call=call)
            assert (first.tokens, first.factor, first.messages()) == (other.tokens, other.factor, other.messages())


# ---- tau-bench: a hundred sessions


def test_a_hundred_runs_are_a_hundred_verified_sessions(data: Path) -> None:
    """Each run is a session named by task and trial, its messages equal, all of it verified."""
    path = data / "tau-bench" / "airline_even_tasks.json"
    runs = json.loads(path.read_text())
    with memory_store() as store:
        done = store.import_file(path)
        verdict = store.verify()
        assert (verdict.ok, verdict.sessions, len(done.sessions), len(store.sessions())) == (True, 100, 100, 100)
        assert sum(taken.calls for taken in done.sessions) == 1163
        for taken, run in list(zip(done.sessions, runs, strict=True))[::9]:
            assert taken.session == f"{path.stem}-task{run['task_id']}-trial{run['trial']}"
            last = max(n for n, message in enumerate(run["traj"]) if message["role"] == "assistant")
            assert store.session(taken.session).wire.messages() == run["traj"][:last]
        again = store.import_file(path)
        assert (again.new, again.sessions) == (0, done.sessions)
