"""Writes small Claude Code transcripts, record by record, and reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vmstore.capture.importers.formats import read
from vmstore.capture.steps import ParsedSource, Step
from vmstore.core.draft import Draft
from vmstore.core.page import Origin
from vmstore.providers import give_message

Record = dict[str, Any]


def message_of(draft: Draft) -> Any:
    return give_message(draft.skeleton, [part.content for part in draft.parts])


def record(kind: str, uuid: str | None, parent: str | None) -> Record:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "isSidechain": False}


def user(uuid: str | None, parent: str | None, content: Any = "hi", **more: Any) -> Record:
    message = {"role": "user", "content": content}
    return {**record("user", uuid, parent), "message": message, **more}


def answer(uuid: str | None, parent: str | None, *parts: Any, mid: str | None = None, **more: Any) -> Record:
    message = {
        "id": mid or f"msg_{uuid}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(parts) or [{"type": "text", "text": "ok"}],
        "stop_reason": None,
        **more.pop("fields", {}),
    }
    return {**record("assistant", uuid, parent), "message": message, **more}


def tool(name: str, kind: str = "Bash", prompt: str | None = None) -> Record:
    return {"type": "tool_use", "id": name, "name": kind, "input": {"prompt": prompt} if prompt else {}}


def result(uuid: str | None, parent: str | None, name: str, **more: Any) -> Record:
    return user(uuid, parent, [{"type": "tool_result", "tool_use_id": name, "content": "done"}], **more)


def system(uuid: str, parent: str | None, **more: Any) -> Record:
    return {**record("system", uuid, parent), "subtype": "info", **more}


def reading(path: Path, records: Iterable[Any]) -> ParsedSource:
    file = path / "transcript"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    content = read(file)
    assert content.format == "claude-code"
    return content


def steps(path: Path, *records: Any) -> list[Step]:
    (track,) = reading(path, records).tracks
    return list(track.steps)


def lines(source: ParsedSource) -> dict[str, list[int]]:
    return {track.part: [step.line for step in track.steps] for track in source.tracks}


def forks(source: ParsedSource) -> dict[str, tuple[str | None, int]]:
    forked = [track for track in source.tracks if track.origin is Origin.FORK]
    return {track.part: (track.parent, track.inherits) for track in forked}
