"""The shapes answers have: the same from Python as in the command's JSON."""

from __future__ import annotations

from typing import Any

import msgspec


class Basis(msgspec.Struct, frozen=True):
    """The moment an answer holds for; given back, it repeats the answer."""

    session: str
    position: int
    turn: int
    call: int


class ContextPage(msgspec.Struct, frozen=True):
    """One page as the model saw it, with since when it stayed there unbroken."""

    order: int
    page: str
    message: str | None
    role: str
    type: str
    level: int
    tokens: int
    pinned: bool
    since_turn: int
    since_call: int


class Page(msgspec.Struct, frozen=True):
    """A page as it stood at a moment. `tier` 0 is the prompt, 2 the event store."""

    page: str
    message: str | None
    type: str
    role: str
    modality: str
    mime: str
    tier: int
    level: int
    version: int
    tokens: int
    bytes: int
    importance: float
    hint: str | None
    created_turn: int
    created_call: int
    created_at: int
    position: int


class Fault(msgspec.Struct, frozen=True):
    """A page that came back to the prompt at a call, out of it since a position; tokens are what it shows."""

    page: str
    position: int
    turn: int
    call: int
    out_since: int
    tokens: int


class Hit(msgspec.Struct, frozen=True):
    """A page that answers a search: how well (BM25, comparable within one answer), and where its words begin."""

    session: str
    page: str
    score: float
    version: int
    position: int
    text: str


class Event(msgspec.Struct, frozen=True):
    """Something that happened to a page: one line of its history."""

    position: int
    turn: int
    call: int
    event: str
    level: int
    version: int
    tokens: int | None = None
    method: str | None = None
    detail: str | None = None


class Relation(msgspec.Struct, frozen=True):
    """One link met on a walk: `source` was made from, or otherwise relates to, `target`."""

    depth: int
    source: str
    kind: str
    target: str
    position: int
    text: str


class Change(msgspec.Struct, frozen=True):
    """One difference between two contexts: a page that entered, left or is shown otherwise."""

    change: str
    page: str
    message: str | None
    role: str
    type: str
    tokens_before: int
    tokens_after: int
    level_before: int | None
    level_after: int | None
    text: str


class Diff(msgspec.Struct, frozen=True):
    """What changed between two contexts, from `before` to `after`."""

    before: Basis
    after: Basis
    tokens_before: int
    tokens_after: int
    unchanged: int
    changes: list[Change]


class SessionInfo(msgspec.Struct, frozen=True):
    """One session with its counts; turns and calls are the last numbers, forks' inherited ones included."""

    session: str
    origin: str
    parent: str | None
    fork_position: int | None
    title: str | None
    user: str | None
    agent: str | None
    fidelity: str
    turns: int
    calls: int
    messages: int
    pages: int
    raw: int
    mutations: int
    tokens: int
    position: int
    opened_at: int
    source: str | None


class TurnInfo(msgspec.Struct, frozen=True):
    """One turn: where it opened and how many calls it made."""

    turn: int
    position: int
    at: int
    calls: int


class CallInfo(msgspec.Struct, frozen=True):
    """One call; tokens are estimated, `tokens_reported` and the rest the provider's. Cost in dollars."""

    call: int
    turn: int
    position: int
    at: int
    model: str | None
    status: str
    fidelity: str
    pages: int
    tokens: int
    tokens_reported: int | None
    tokens_cached: int | None
    tokens_out: int | None
    cost: float | None
    latency_ms: float | None
    stop: str | None
    error: str | None


class Recorded(msgspec.Struct, frozen=True):
    """A call as it was taken in: where it stands."""

    session: str
    call: int
    turn: int
    position: int


class Info(msgspec.Struct, frozen=True):
    """What a namespace holds and how large its parts are, in bytes."""

    sessions: int
    commits: int
    mutations: int
    pages: int
    bytes_log: int
    bytes_views: int
    bytes_blobs: int
    positions: dict[str, int]


class Problem(msgspec.Struct, frozen=True):
    """Something verify found: what kind, where, and what about it."""

    kind: str
    where: str
    what: str


class Verdict(msgspec.Struct, frozen=True):
    """What verify found."""

    ok: bool
    commits: int
    mutations: int
    sessions: int
    problems: list[Problem]


class Compacted(msgspec.Struct, frozen=True):
    """What packing the log did: rows of cells and the log's bytes on disk, before and after."""

    frames_before: int
    frames_after: int
    bytes_before: int
    bytes_after: int


class Swept(msgspec.Struct, frozen=True):
    """Files of cells that no commit names, and their bytes; `deleted` unless it was only a look."""

    deleted: bool
    files: list[str]
    bytes: int


class Entry(msgspec.Struct, frozen=True):
    """One mutation of a tail; `cursor` resumes after it."""

    cursor: str
    session: str
    position: int
    kind: str
    at: int
    logged_at: int
    mutation: Any


def to_json(answer: Any) -> Any:
    """An answer as plain dicts and lists."""
    return msgspec.to_builtins(answer, builtin_types=(bytes,), enc_hook=str)


class LineProblem(msgspec.Struct, frozen=True):
    """A record kept as a raw page: where it stands and why it could not be read."""

    line: int
    reason: str


class Imported(msgspec.Struct, frozen=True):
    """A session after an import: its totals, also where nothing changed."""

    session: str
    format: str
    fidelity: str
    turns: int
    calls: int
    messages: int
    pages: int
    mutations: int
    raw: int
    position: int


class Import(msgspec.Struct, frozen=True):
    """What an import did: its sessions, the main one first, and what could not be read.

    `new` counts the records taken in now; `torn` is the line of a torn last record, left for the
    next import.
    """

    sessions: list[Imported]
    new: int = 0
    problems: list[LineProblem] = []
    torn: int | None = None


class Exported(msgspec.Struct, frozen=True):
    """What left the store: the sessions asked for, those that came along as their past, and how much."""

    format: str
    sessions: list[str]
    ancestors: list[str]
    commits: int
    mutations: int
    bytes: int


class BackupPart(msgspec.Struct, frozen=True):
    """One namespace of a backup: how much its log held."""

    namespace: str
    commits: int
    mutations: int
    sessions: int


class Backup(msgspec.Struct, frozen=True):
    """What was backed up or restored, and where it is now."""

    path: str
    namespaces: list[BackupPart]


class Weight(msgspec.Struct, frozen=True):
    """Bytes on disk: of which part (log, views, blobs, columns, other), and what in it."""

    part: str
    what: str
    bytes: int


class Sealed(msgspec.Struct, frozen=True):
    """Contents as they were accepted: of which session or kind, how many cells and bytes."""

    what: str
    cells: int
    bytes: int


class Usage(msgspec.Struct, frozen=True):
    """Where the bytes are: files by what they hold, contents by session and by kind; largest first."""

    bytes: int
    files: list[Weight]
    sessions: list[Sealed]
    kinds: list[Sealed]
