"""The hooks of agents: what to write into their settings, and which session an event of theirs tells of."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import NamedTuple

from vmstore.errors import InputError

# When a turn ends, when a session does, and before its beginning is summed up.
CLAUDE_EVENTS = ("Stop", "SessionEnd", "PreCompact")
TIMEOUT_S = 60


class HookSettings(NamedTuple):
    """The settings of one agent: where they go, and their text."""

    agent: str
    about: str
    text: str


def configurations(store: Path) -> list[HookSettings]:
    """What to put into the settings of each agent, so that it tells of its sessions."""
    words = ["vmstore", "watch", str(store.absolute()), "--hook"]
    hook = {"type": "command", "command": shlex.join(words), "timeout": TIMEOUT_S}
    claude = {"hooks": {event: [{"hooks": [hook]}] for event in CLAUDE_EVENTS}}
    return [
        HookSettings("claude-code", "in ~/.claude/settings.json", json.dumps(claude, indent=2)),
        HookSettings("codex", "in ~/.codex/config.toml, before the first [table]", f"notify = {json.dumps(words)}"),
        HookSettings("pi", "has no hooks in its settings; watch its files", shlex.join([*words[:3], "--discover"])),
    ]


def file_of(event: str) -> Path:
    """The session file that an event tells of: by its path, or by the id that stands in the file's name."""
    try:
        fields = json.loads(event)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise InputError(
            f"{event[:60]!r} is no event of an agent's hook; an agent sends one as JSON", code="not-a-hook-event"
        )
    if isinstance(path := fields.get("transcript_path"), str) and path:
        return Path(path).expanduser()
    thread = fields.get("thread-id") or fields.get("thread_id") or fields.get("session_id")
    if isinstance(thread, str) and thread:
        from vmstore.shell.commands.data.discover import files_of

        found = [file for file in files_of(None) if thread in file.name]
        if found:
            return found[-1]
        raise InputError(f"no session file of this machine has {thread[:80]!r} in its name", code="not-a-hook-event")
    raise InputError("the event names no session: no transcript_path and no thread-id", code="not-a-hook-event")
