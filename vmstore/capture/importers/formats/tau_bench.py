"""Reads tau-bench results: a JSON list of runs, each a session of chat messages.

The file holds what was said, not what was sent, so its calls are derived by the rule `before`:
an answer saw the messages before it. Task and trial name a run within the file; the file itself
has no name of its own.
"""

from __future__ import annotations

from typing import Any

from vmstore.capture.importers.formats.chat_steps import ChatSteps
from vmstore.capture.importers.formats.jsonl import SourceFile
from vmstore.capture.steps import MetadataStep, ParsedSource, Step, Track, UnreadableStep
from vmstore.providers.message import json_bytes

WORD_CHARS_MAX = 100


def recognises(source: SourceFile) -> bool:
    """Whether a file is a list that holds a run: an object with a `traj`."""
    return isinstance(source.document, list) and any(_is_run(run) for run in source.document)


def read_tau_bench(source: SourceFile) -> ParsedSource:
    """The runs of a results file, a track each."""
    tracks: list[Track] = []
    seen: dict[str, int] = {}
    for n, run in enumerate(source.document, 1):
        part = f"task{_word(run.get('task_id'))}-trial{_word(run.get('trial'))}" if _is_run(run) else f"entry{n}"
        seen[part] = seen.get(part, 0) + 1
        if seen[part] > 1:
            part = f"{part}-{seen[part]}"
        steps = _steps(run) if _is_run(run) else [_stray(run, n)]
        tracks.append(Track(key=None, name=f"{source.stem}-{part}", part=part, steps=steps))
    return ParsedSource(format="tau-bench", tracks=tracks)


def _word(value: Any) -> str:
    """A number or a name of a run as part of a name: of bounded length, without lone surrogates."""
    return str(value)[:WORD_CHARS_MAX].encode("utf-8", "replace").decode()


def _is_run(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("traj"), list)


def _steps(run: dict[str, Any]) -> list[Step]:
    """The messages of a run, then a note of how it was rated."""
    talk = ChatSteps()
    for n, message in enumerate(run["traj"], 1):
        talk.hear(json_bytes(message), n, message)
    outcome = json_bytes({key: value for key, value in run.items() if key != "traj"})
    return [*talk.steps, MetadataStep(raw=outcome, line=len(talk.steps) + 1, aside=outcome)]


def _stray(entry: Any, n: int) -> UnreadableStep:
    return UnreadableStep(raw=json_bytes(entry), line=n, reason="no run: no object with a list `traj`")
