"""Tasks of sessions: plans, with when each was begun and changed last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from vmstore.core.asof import AsOf
from vmstore.core.page import Standing
from vmstore.errors import UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_reads import asked_at, engine_of
from vmstore.work.plan import STATUSES, TAG

_NAMES = (
    *("page", "session", "title", "status", "progress", "steps", "done", "tags", "continues", "created_at"),
    "updated_at",
)
_TASKS = f"TASKS {', '.join(_NAMES)}"


class AgentTask(msgspec.Struct, frozen=True):
    """A task: its page, its session, what it is called, how it stands and how far it came.

    `continues` is the address of the task of an earlier session that it goes on with.
    """

    page: str
    session: str
    title: str
    status: str
    progress: float
    steps: int
    done: int
    tags: list[str]
    continues: str | None
    created_at: str
    updated_at: str


def tasks_at(session: SessionHost, when: AsOf, status: str | None = None) -> list[AgentTask]:
    """The tasks of a session at a moment, oldest first; with `status` those that stand so."""
    return _tasks(asked_at(session, _TASKS, when), status)


def tasks_of(ns: Namespace, user: str | None, status: str | None = None) -> list[AgentTask]:
    """The tasks of a user's sessions, or of all, by session, oldest first."""
    scope, params = ("ACROSS SESSIONS", {}) if user is None else ("ACROSS SESSIONS OF USER $user", {"user": user})
    return _tasks(engine_of(ns).ask(f"{_TASKS} {scope}", session=None, params=params), status)


def _tasks(rows: Iterable[Any], status: str | None) -> list[AgentTask]:
    if status is not None and (not isinstance(status, str) or Standing.of(status) not in STATUSES):
        words = ", ".join(standing.word for standing in STATUSES)
        raise UnknownError(f"{status!r:.40} is no status of a task; it is {words}", code="no-status")
    found = [dict(zip(_NAMES, row, strict=True)) for row in rows]
    return [
        AgentTask(**{**row, "tags": [tag for tag in row["tags"] if tag != TAG]})
        for row in found
        if row["title"] is not None and status in (None, row["status"])
    ]
