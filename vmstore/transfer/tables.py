"""The tables that analysts get: plain columns, words instead of numbers, ids that can be joined.

A page is `session/p4`, a message `session/m3`, a call `session/c2`, a turn `session/t1`; what made a
version or a mutation stands at `session/4`. Times are UTC.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["text", "integer", "number", "boolean", "time"]


class ExportColumn(NamedTuple):
    """A column: its name, what it holds, and the table whose key it names."""

    name: str
    kind: Kind = "text"
    of: str | None = None


class ExportTable(NamedTuple):
    """A table; its first column is its key."""

    name: str
    columns: tuple[ExportColumn, ...]

    @property
    def key(self) -> str:
        """The name of the column that tells its rows apart."""
        return self.columns[0].name


SESSION = ExportColumn("session", of="sessions")
POSITION = ExportColumn("position", "integer")
AT = ExportColumn("happened_at", "time")

TABLES: tuple[ExportTable, ...] = (
    ExportTable(
        "sessions",
        (
            ExportColumn("session"),
            ExportColumn("origin"),
            ExportColumn("parent", of="sessions"),
            ExportColumn("fork_position", "integer"),
            ExportColumn("user_name"),
            ExportColumn("agent_name"),
            ExportColumn("title"),
            ExportColumn("source"),
            ExportColumn("opened_at", "time"),
            ExportColumn("last_position", "integer"),
        ),
    ),
    ExportTable("turns", (ExportColumn("id"), SESSION, ExportColumn("turn", "integer"), POSITION, AT)),
    ExportTable(
        "calls",
        (
            ExportColumn("id"),
            SESSION,
            ExportColumn("call", "integer"),
            ExportColumn("turn", "integer"),
            POSITION,
            AT,
            ExportColumn("model"),
            ExportColumn("fidelity"),
            ExportColumn("status"),
            ExportColumn("pages", "integer"),
            ExportColumn("tokens", "integer"),
            ExportColumn("tokens_reported", "integer"),
            ExportColumn("tokens_cached", "integer"),
            ExportColumn("tokens_out", "integer"),
            ExportColumn("cost_dollars", "number"),
            ExportColumn("latency_ms", "number"),
            ExportColumn("stop"),
            ExportColumn("error"),
        ),
    ),
    ExportTable(
        "messages",
        (
            ExportColumn("id"),
            SESSION,
            POSITION,
            ExportColumn("role"),
            ExportColumn("slot"),
            ExportColumn("human", "boolean"),
            ExportColumn("answers", of="calls"),
            ExportColumn("turn", "integer"),
            ExportColumn("call", "integer"),
            AT,
        ),
    ),
    ExportTable(
        "pages",
        (
            ExportColumn("id"),
            SESSION,
            POSITION,
            ExportColumn("message", of="messages"),
            ExportColumn("part", "integer"),
            ExportColumn("type"),
            ExportColumn("modality"),
            ExportColumn("role"),
            ExportColumn("mime"),
            ExportColumn("importance", "number"),
            ExportColumn("hint"),
            ExportColumn("turn", "integer"),
            ExportColumn("call", "integer"),
            AT,
        ),
    ),
    ExportTable(
        "versions",
        (
            ExportColumn("id"),
            ExportColumn("page", of="pages"),
            SESSION,
            POSITION,
            ExportColumn("version", "integer"),
            ExportColumn("level"),
            ExportColumn("bytes", "integer"),
            ExportColumn("tokens", "integer"),
            ExportColumn("method"),
            ExportColumn("lossy", "boolean"),
            AT,
            ExportColumn("content"),
        ),
    ),
    ExportTable(
        "residency",
        (
            ExportColumn("id"),
            SESSION,
            ExportColumn("page", of="pages"),
            ExportColumn("version", of="versions"),
            ExportColumn("level"),
            ExportColumn("rank", "integer"),
            ExportColumn("from_position", "integer"),
            ExportColumn("to_position", "integer"),
            ExportColumn("from_call", "integer"),
            ExportColumn("to_call", "integer"),
        ),
    ),
    ExportTable(
        "links",
        (
            ExportColumn("id"),
            SESSION,
            POSITION,
            ExportColumn("source", of="pages"),
            ExportColumn("kind"),
            ExportColumn("target", of="pages"),
            ExportColumn("valid_from", "time"),
            ExportColumn("valid_to", "time"),
        ),
    ),
    ExportTable(
        "annotations",
        (
            ExportColumn("id"),
            SESSION,
            POSITION,
            ExportColumn("page", of="pages"),
            ExportColumn("importance", "number"),
            ExportColumn("status"),
            ExportColumn("valid_from", "time"),
            ExportColumn("valid_to", "time"),
            ExportColumn("anchors"),
            AT,
        ),
    ),
    ExportTable(
        "tags",
        (
            ExportColumn("id"),
            SESSION,
            POSITION,
            ExportColumn("page", of="pages"),
            ExportColumn("tag"),
            ExportColumn("held", "boolean"),
            AT,
        ),
    ),
    ExportTable(
        "mutations",
        (
            ExportColumn("id"),
            SESSION,
            POSITION,
            ExportColumn("kind"),
            ExportColumn("turn", "integer"),
            ExportColumn("call", "integer"),
            AT,
            ExportColumn("logged_at", "time"),
            ExportColumn("page", of="pages"),
            ExportColumn("fields"),
        ),
    ),
)
