"""Formats tool calls: what they were given, how they ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from vmstore.shell.terminal.format import number
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable, table

STYLES = {"failed": "warn", "open": "dim"}
GIVEN_CHARS = 200


def tools(rows: Sequence[dict[str, Any]]) -> TextTable:
    """Tool calls in their order, what they were given last; the session where there are several."""
    cells: dict[TableColumn, Callable[[dict[str, Any]], Line]] = {
        TableColumn("call", right=True): lambda row: _number(row["call"]),
        TableColumn("tool", style="name"): lambda row: row["tool"] or "",
        TableColumn("status"): lambda row: StyledText(row["status"], STYLES.get(row["status"], "")),
        TableColumn("tokens", right=True): lambda row: _number(row["tokens"]),
        TableColumn("seconds", right=True): lambda row: _seconds(row["duration_ms"]),
        TableColumn("result", style="dim"): lambda row: row["result"] or "",
        TableColumn("given"): lambda row: _given(row),
    }
    if len({row["session"] for row in rows}) > 1:
        cells = {TableColumn("session"): lambda row: row["session"], **cells}
    return table(rows, cells)


def _number(value: int | None) -> str:
    return "" if value is None else number(value)


def _seconds(took_ms: float | None) -> str:
    return "" if took_ms is None else f"{took_ms / 1_000:.1f}"


def _given(row: dict[str, Any]) -> str:
    """The arguments on one line: one that stands alone without its name."""
    given = row["arguments"]
    if isinstance(given, dict) and len(given) == 1:
        (given,) = given.values()
    if given is None:
        return ""
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return " ".join(text.split())[:GIVEN_CHARS]
