"""Formats tasks and the files of sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import number
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable, table

if TYPE_CHECKING:
    from vmstore.store.work.artifacts import ArtifactInfo
    from vmstore.store.work.tasks import AgentTask
    from vmstore.work.artifact import ArtifactCheck

SHA_CHARS = 12


def tasks(found: Sequence[AgentTask]) -> TextTable:
    """Tasks in their order: how far each came, and when it was changed last."""
    cells: dict[TableColumn, Callable[[AgentTask], Line]] = {
        TableColumn("session", style="dim"): lambda task: task.session,
        TableColumn("page", style="dim"): lambda task: task.page,
        TableColumn("status"): lambda task: StyledText(task.status, "" if task.status == "active" else "dim"),
        TableColumn("done", right=True): lambda task: f"{task.done} of {task.steps}" if task.steps else _share(task),
        TableColumn("task", style="name"): lambda task: task.title,
        TableColumn("changed (UTC)", style="dim"): lambda task: _minute(task.updated_at),
    }
    return table(found, cells)


def artifacts(found: Sequence[ArtifactInfo]) -> TextTable:
    """Files in their order: digest, size, and what was said of each."""
    cells: dict[TableColumn, Callable[[ArtifactInfo], Line]] = {
        TableColumn("page", style="dim"): lambda file: file.page,
        TableColumn("bytes", right=True): lambda file: number(file.bytes),
        TableColumn("sha256", style="dim"): lambda file: (file.sha256 or "")[:SHA_CHARS],
        TableColumn("prompt"): _word,
        TableColumn("task", style="dim"): lambda file: file.task or "",
        TableColumn("file", style="name"): lambda file: file.path or file.mime,
    }
    return table(found, cells)


def checks(found: Sequence[ArtifactCheck]) -> TextTable:
    """Files beside what lies at their paths now."""
    cells: dict[TableColumn, Callable[[ArtifactCheck], Line]] = {
        TableColumn("page", style="dim"): lambda check: check.page,
        TableColumn("file is"): lambda check: StyledText(check.state, "good" if check.state == "same" else "warn"),
        TableColumn("file", style="name"): lambda check: check.path,
        TableColumn("why"): lambda check: check.why or "",
    }
    return table(found, cells)


def _word(file: ArtifactInfo) -> Line:
    if file.approval is None:
        return StyledText(f"refused {file.refused}×" if file.refused else "", "warn")
    by = f" by {file.approved_by}" if file.approved_by else ""
    return StyledText(f"{file.approval}{by}", "good" if file.approval == "approved" else "bad")


def _share(task: AgentTask) -> str:
    return f"{task.progress:.0%}"


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
