"""SWE-agent trajectories: requests where the file has them, derived calls where it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vmstore.capture.importers.formats import read
from vmstore.capture.steps import CallStep, MessageStep, MetadataStep, Step, UnreadableStep
from vmstore.core.draft import Draft
from vmstore.core.page import PageType, Role
from vmstore.providers import give_message

COMPARED = ("role", "content", "tool_calls", "tool_call_ids")
SYSTEM = {"role": "system", "content": "you fix bugs", "agent": "main"}
TASK = {"role": "user", "content": "fix it", "agent": "main"}


def message_of(draft: Draft) -> Any:
    return give_message(draft.skeleton, [part.content for part in draft.parts])


def answer(text: str, action: str = "ls") -> dict[str, Any]:
    return {"role": "assistant", "content": text, "thought": text, "action": action, "agent": "main"}


def observed(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "agent": "main"}


def steps(path: Path, document: Any) -> list[Step]:
    file = path / "run.anything"
    file.write_text(json.dumps(document))
    reading = read(file)
    assert reading.format == "swe-agent"
    assert [track.key for track in reading.tracks] == [None]
    return list(reading.tracks[0].steps)


def test_the_oracle_of_thirteen_calls_is_exact(data: Path) -> None:
    """Call 1 was sent the first two messages, call c the list of step c-1, equal in every field."""
    path = data / "swe-agent" / "marshmallow-1867_prompt_per_step.traj"
    trajectory = json.loads(path.read_text())["trajectory"]
    sent = [trajectory[0]["messages"][:2]] + [trajectory[c - 2]["messages"] for c in range(2, 14)]
    answers = [step for step in read(path).tracks[0].steps if isinstance(step, CallStep)]
    assert len(answers) == 13
    for step, expected, done in zip(answers, sent, trajectory, strict=True):
        assert step.request is not None
        assert [message_of(draft) for draft in step.request] == [
            {key: message[key] for key in COMPARED if key in message} for message in expected
        ]
        (reply,) = step.reply.drafts
        assert message_of(reply) == {k: v for k, v in done["messages"][len(expected)].items() if k in COMPARED}
    assert [step.reply.final for step in answers] == [False] * 12 + [True]


def test_recorded_messages_met_again_are_the_same_draft(data: Path) -> None:
    """A message that stays in the requests is taken apart once; one that was shortened is another."""
    steps = read(data / "swe-agent" / "marshmallow-1867_prompt_per_step.traj").tracks[0].steps
    requests = [step.request for step in steps if isinstance(step, CallStep) and step.request]
    assert all(a is b for a, b in zip(requests[3], requests[4], strict=False))
    # From the seventh list on, the eighth request, the oldest output is gone but for a line.
    assert [a is b for a, b in zip(requests[6], requests[7], strict=False)].count(False) == 1
    changed = requests[7][3]
    assert changed.parts[0].content == b"Old environment output: (7 lines omitted)"
    assert changed.parts[0].call_id == requests[6][3].parts[0].call_id is not None


def test_recorded_observations_join_between_the_calls(data: Path) -> None:
    """What a step observed is said after its answer, the very draft the next request holds."""
    steps = list(read(data / "swe-agent" / "marshmallow-1867_prompt_per_step.traj").tracks[0].steps)
    assert [type(step) for step in steps] == [CallStep, MessageStep] * 13
    for say, after in zip(steps[1:-1:2], steps[2::2], strict=True):
        assert isinstance(say, MessageStep) and isinstance(after, CallStep) and after.request
        if "Old environment output" not in after.request[-1].skeleton.decode():
            assert say.draft is after.request[-1]
        assert not say.draft.human


@pytest.mark.parametrize(
    ("name", "calls", "others"),
    [
        ("i_got_id_demo", 21, 22),
        ("katy", 18, 19),
        ("marshmallow-1867_default", 14, 15),
        ("marshmallow-1867_function_calling", 11, 13),
    ],
)
def test_recorded_histories_are_derived(data: Path, name: str, calls: int, others: int) -> None:
    """Without requests each answer of the history is a derived call and each message comes back equal."""
    path = data / "swe-agent" / f"{name}.traj"
    history = json.loads(path.read_text())["history"]
    steps = list(read(path).tracks[0].steps)
    answers = [step for step in steps if isinstance(step, CallStep)]
    assert (len(answers), len(steps) - len(answers)) == (calls, others)
    assert all(step.request is None for step in answers)
    for step, message in zip(steps, history, strict=True):
        draft = step.reply.drafts[0] if isinstance(step, CallStep) else step.draft  # type: ignore[attr-defined]
        assert message_of(draft) == {key: message[key] for key in COMPARED if key in message}
        assert json.loads(draft.aside or b"") == {k: v for k, v in message.items() if k not in COMPARED}
    assert [n for n, s in enumerate(steps) if isinstance(s, MessageStep) and s.draft.human] == [1]
    assert [step.reply.final for step in answers] == [False] * (calls - 1) + [True]


def test_an_observation_is_an_artifact_and_nobody_speaks_it(tmp_path: Path) -> None:
    """A user message after an answer is what the action printed."""
    actual_steps = steps(tmp_path, {"history": [SYSTEM, TASK, answer("look"), observed("a.py"), answer("done", "")]})
    task, seen = actual_steps[1], actual_steps[3]
    assert isinstance(task, MessageStep) and isinstance(seen, MessageStep)
    assert (task.draft.human, task.draft.parts[0].type) == (True, PageType.TRANSCRIPT)
    assert (seen.draft.human, seen.draft.parts[0].type) == (False, PageType.ARTIFACT)


def test_only_the_first_message_before_any_answer_is_the_task(tmp_path: Path) -> None:
    """What the program adds to the task before the first answer is nobody's word."""
    actual_steps = steps(tmp_path, {"history": [SYSTEM, TASK, observed("a hint"), answer("go")]})
    assert [step.draft.human for step in actual_steps if isinstance(step, MessageStep)] == [False, True, False]


def test_an_answer_without_an_action_is_final(tmp_path: Path) -> None:
    """Only what asks for nothing, or submits at the very end, ends the turn."""
    history = [TASK, answer("a", "submit"), answer("b", "ls"), answer("c", ""), answer("d", "submit now")]
    actual = [step.reply.final for step in steps(tmp_path, {"history": history}) if isinstance(step, CallStep)]
    assert actual == [False, False, True, True]


def test_a_demonstration_is_no_call_and_no_person(tmp_path: Path) -> None:
    """Messages marked as a demonstration are shown to the model; the task after them is the person's."""
    demo = [{**TASK, "is_demo": True}, {**answer("see"), "is_demo": True}]
    actual_steps = steps(tmp_path, {"history": [SYSTEM, *demo, TASK, answer("go")]})
    assert [type(step) for step in actual_steps] == [MessageStep, MessageStep, MessageStep, MessageStep, CallStep]
    assert [step.draft.human for step in actual_steps[:4] if isinstance(step, MessageStep)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_query_is_its_own_steps_request(tmp_path: Path) -> None:
    """Newer files hold each step's own request; answers come from the next one, the last from history."""
    first, second = answer("one"), answer("two", "submit")
    queries = [[SYSTEM, TASK], [SYSTEM, TASK, first, observed("out")]]
    trajectory = [
        {"query": queries[0], "response": "one", "action": "ls", "observation": "out", "state": {"dir": "/"}},
        {"query": queries[1], "response": "two", "action": "submit", "observation": "bye"},
    ]
    history = [*queries[1], second, observed("bye")]
    actual_steps = steps(tmp_path, {"trajectory": trajectory, "history": history})
    assert [type(step) for step in actual_steps] == [CallStep, MessageStep, CallStep, MessageStep]
    for step, query, case in zip(actual_steps[::2], queries, (first, second), strict=True):
        assert isinstance(step, CallStep) and step.request is not None
        assert [message_of(d)["content"] for d in step.request] == [m["content"] for m in query]
        assert message_of(step.reply.drafts[0])["content"] == case["content"]
    assert isinstance(actual_steps[0], CallStep) and isinstance(actual_steps[2], CallStep)
    assert json.loads(actual_steps[0].reply.aside or b"") == {"action": "ls", "state": {"dir": "/"}}
    assert (actual_steps[0].reply.final, actual_steps[2].reply.final) == (False, True)


def test_a_trajectory_alone_is_told_from_its_responses(tmp_path: Path) -> None:
    """Without history and messages the responses and observations are the conversation."""
    trajectory = [
        {"response": "one", "action": "ls", "observation": "out"},
        {"response": "two", "action": ""},
    ]
    actual_steps = steps(tmp_path, {"trajectory": trajectory})
    assert [type(step) for step in actual_steps] == [CallStep, MessageStep, CallStep]
    say = actual_steps[1]
    assert isinstance(say, MessageStep)
    assert (say.draft.role, say.draft.human) == (Role.USER, False)


def test_a_growing_run_only_adds_steps(tmp_path: Path, data: Path) -> None:
    """A file written again after each step begins with the records it had before."""
    document = json.loads((data / "swe-agent" / "marshmallow-1867_prompt_per_step.traj").read_text())
    whole = [step.raw for step in steps(tmp_path, document)]
    for n in (1, 7, 12):
        cut = {**document, "trajectory": document["trajectory"][:n], "info": {"calls": n}}
        assert [step.raw for step in steps(tmp_path, cut)] == whole[: 2 * n]


def test_what_is_said_of_the_whole_run_stands_beside_its_last_answer(tmp_path: Path) -> None:
    """Outcome and configuration are kept, the configured model is each call's."""
    config = {"agent": {"model": {"name": "gpt-x"}}}
    document = {"history": [TASK, answer("a")], "info": {"exit": "ok"}, "replay_config": json.dumps(config)}
    last = steps(tmp_path, document)[-1]
    assert isinstance(last, CallStep)
    assert last.reply.model == "gpt-x"
    assert json.loads(last.reply.aside or b"")["run"]["info"] == {"exit": "ok"}
    (note,) = steps(tmp_path, {"history": [], "info": {"exit": "early"}})
    assert isinstance(note, MetadataStep)


def test_an_entry_that_is_no_message_is_kept(tmp_path: Path) -> None:
    """Strange entries of either list are steps with their bytes."""
    (_, stray, *_) = steps(tmp_path, {"history": [TASK, 42, answer("a")]})
    assert isinstance(stray, UnreadableStep)
    assert stray.raw == b"42"
    odd = steps(tmp_path, {"trajectory": ["x", {"query": [TASK], "response": "r", "action": ""}]})
    assert [type(step) for step in odd] == [UnreadableStep, CallStep]
