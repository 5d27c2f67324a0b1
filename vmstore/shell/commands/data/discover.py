"""Finds the sessions that agents left on this machine, where each of them keeps its own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from vmstore.errors import InputError
from vmstore.namespace.results import to_json
from vmstore.shell.terminal.format import count, cut, moment, size
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

COLUMNS_OF_FOLDER = 40


class SessionFolder(msgspec.Struct, frozen=True):
    """A folder where an agent keeps its sessions, and how many are there."""

    format: str
    folder: str
    sessions: int


class SessionFile(msgspec.Struct, frozen=True):
    """One session file: when it last changed (µs since 1970), its size, where it was worked, what was said first."""

    format: str
    changed_at: int
    bytes: int
    folder: str | None
    words: str | None
    file: str


def discover(arguments: argparse.Namespace, screen: Screen) -> list[Path]:
    """Lists the sessions of this machine, newest first; their files."""
    files, places = _find_sessions(arguments.format, screen)
    if arguments.json and not arguments.all:
        screen.json({"sessions": to_json(files), "places": to_json(places)})
    elif not files:
        looked = "; ".join(f"{place.folder} ({place.format})" for place in places)
        screen.show(f"no sessions found; looked in {looked}")
    elif not arguments.all and not screen.quiet:
        screen.show(_table(files, screen.terminal))
        store = arguments.store or "STORE"
        screen.note(
            f"{count(len(files), 'session')}; `vmstore import {store} FILE` takes one in, "
            f"`vmstore import {store} --discover --all` takes them all"
        )
    return [Path(file.file) for file in files]


def _find_sessions(format: str | None, screen: Screen) -> tuple[list[SessionFile], list[SessionFolder]]:
    """The sessions, newest first, and the places that were looked in."""
    chosen = _chosen(format)
    files = [(name, folder, path) for name, folder, pattern in chosen for path in _files(folder, pattern)]
    sessions = []
    with screen.progress("looking at sessions") as tell:
        for n, (name, _, path) in enumerate(files, 1):
            if (session := _inspect_file(name, path)) is not None:
                sessions.append(session)
            if tell is not None:
                tell(n, len(files))
    sessions.sort(key=lambda session: (-session.changed_at, session.file))
    folders = [folder for _, folder, _ in files]
    return sessions, [SessionFolder(name, str(folder), folders.count(folder)) for name, folder, _ in chosen]


def files_of(format: str | None) -> list[Path]:
    """The files of the sessions on this machine, of one format or of all."""
    return [path for _, folder, pattern in _chosen(format) for path in _files(folder, pattern)]


def _chosen(format: str | None) -> list[tuple[str, Path, str]]:
    """The places of a format, or all; InputError where nobody knows them."""
    formats = {name for name, _, _ in _places()}
    if format is not None and format not in formats:
        raise InputError(f"nobody knows where {format} sessions lie; found are those of {', '.join(sorted(formats))}")
    return [place for place in _places() if format in (None, place[0])]


def _places() -> list[tuple[str, Path, str]]:
    """Returns the session folder of each agent, by its environment variables, and its file pattern."""
    codex = _home("CODEX_HOME", ".codex")
    return [
        ("claude-code", _home("CLAUDE_CONFIG_DIR", ".claude") / "projects", "*/*.jsonl"),
        ("codex", codex / "sessions", "**/rollout-*.jsonl*"),
        ("codex", codex / "archived_sessions", "**/rollout-*.jsonl*"),
        ("pi", _home("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions", "**/*.jsonl"),
    ]


def _home(variable: str, below: str) -> Path:
    """An agent's folder: the one its variable names, else the one below the home."""
    setting = os.environ.get(variable)
    return Path(setting).expanduser() if setting else _user() / below


def _user() -> Path:
    """The person's home."""
    return Path(os.path.expanduser("~"))  # Path.home() fails for a user that no list of users names


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    """The session files below a folder; a sub-agent's own are parts of other sessions."""
    for path in sorted(folder.glob(pattern)):
        if path.suffix in (".jsonl", ".zst") and not path.name.startswith("agent-") and path.is_file():
            yield path


def _inspect_file(format: str, path: Path) -> SessionFile | None:
    """Returns the listing's entry for a file, None if it is gone or empty."""
    try:
        stat = path.stat()
    except OSError:
        return None
    if not stat.st_size:
        return None
    from vmstore.capture.importers.formats.preview import glance

    preview = glance(path, format)
    return SessionFile(format, stat.st_mtime_ns // 1000, stat.st_size, preview.folder, preview.words, str(path))


def _table(files: list[SessionFile], terminal: bool) -> TextTable:
    """The sessions as a table; on a terminal long folders are cut, and at its edge the words."""
    columns = [TableColumn("format"), TableColumn("changed (UTC)", style="dim"), TableColumn("size", right=True)]
    columns += [TableColumn("folder"), TableColumn("file", style="name"), TableColumn("first words")]
    rows = [
        (
            file.format,
            moment(file.changed_at),
            size(file.bytes),
            cut(_short(file.folder or ""), COLUMNS_OF_FOLDER) if terminal else file.folder or "",
            _short(file.file) if terminal else file.file,
            StyledText(file.words or "", "" if file.words else "dim"),
        )
        for file in files
    ]
    return TextTable(columns, rows)


def _short(path: str) -> str:
    """A path with the home in it written as people write it."""
    home = str(_user())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
