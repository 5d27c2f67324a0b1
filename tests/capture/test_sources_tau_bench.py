"""tau-bench results: each run its own session, told apart by task and trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vmstore.capture.importers.formats import read
from vmstore.capture.steps import CallStep, MessageStep, MetadataStep, UnreadableStep
from vmstore.providers import give_message


def run(task: int, trial: int, traj: Any) -> dict[str, Any]:
    return {"task_id": task, "reward": 1.0, "info": {"x": task}, "traj": traj, "trial": trial}


def test_a_hundred_recorded_runs_are_a_hundred_tracks(data: Path) -> None:
    """25 tasks of 4 trials: 1163 calls, each message given back equal, the outcome last."""
    path = data / "tau-bench" / "airline_even_tasks.json"
    runs = json.loads(path.read_text())
    reading = read(path)
    assert reading.format == "tau-bench"
    assert len({track.part for track in reading.tracks}) == len(reading.tracks) == 100
    calls = 0
    for track, source in zip(reading.tracks, runs, strict=True):
        assert track.key is None
        assert track.part == f"task{source['task_id']}-trial{source['trial']}"
        assert track.name == f"airline_even_tasks-{track.part}"
        *steps, outcome = track.steps
        assert isinstance(outcome, MetadataStep)
        assert json.loads(outcome.aside) == {key: source[key] for key in source if key != "traj"}
        for step, message in zip(steps, source["traj"], strict=True):
            assert isinstance(step, (MessageStep, CallStep))
            draft = step.draft if isinstance(step, MessageStep) else step.reply.drafts[0]
            assert give_message(draft.skeleton, [part.content for part in draft.parts]) == message
            if isinstance(step, CallStep):
                calls += 1
                assert step.request is None
                assert step.reply.final is ("tool_calls" not in message)
    assert calls == 1163


def test_a_run_met_twice_gets_a_suffix(tmp_path: Path) -> None:
    """Two runs of one task and trial stay two sessions."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps([run(1, 0, []), run(1, 0, []), run(1, 1, [])]))
    assert [track.part for track in read(path).tracks] == ["task1-trial0", "task1-trial0-2", "task1-trial1"]


def test_an_entry_that_is_no_run_is_kept(tmp_path: Path) -> None:
    """A strange entry among runs is a track of one unread record, a strange message one of its run."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps([run(1, 0, ["huh", {"role": "user", "content": "hi"}]), {"task_id": 2}]))
    first, second = (list(track.steps) for track in read(path).tracks)
    assert [type(step) for step in first] == [UnreadableStep, MessageStep, MetadataStep]
    assert [type(step) for step in second] == [UnreadableStep]
    assert second[0].raw == b'{"task_id":2}'
