"""The tables that analysts get: plain columns, words instead of numbers, ids that can be joined.

A page is `session/p4`, a message `session/m3`, a call `session/c2`, a turn `session/t1`; what made a
version or a mutation stands at `session/4`. Times are UTC.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["text", "integer", "number", "boolean", "time"]


class Column(NamedTuple):
    """A column: its name, what it holds, and the table whose key it names."""

    name: str
    kind: Kind = "text"
    of: str | None = None


class Table(NamedTuple):
    """A table; its first column is its key."""

    name: str
    columns: tuple[Column, ...]

    @property
    def key(self) -> str:
        """The name of the column that tells its rows apart."""
        return self.columns[0].name


SESSION = Column("session", of="sessions")
POSITION = Column("position", "integer")
AT = Column("happened_at", "time")

TABLES: tuple[Table, ...] = (
    Table(
        "sessions",
        (
            Column("session"),
            Column("origin"),
            Column("parent", of="sessions"),
            Column("fork_position", "integer"),
            Column("user_name"),
            Column("agent_name"),
            Column("title"),
            Column("source"),
            Column("opened_at", "time"),
            Column("last_position", "integer"),
        ),
    ),
    Table("turns", (Column("id"), SESSION, Column("turn", "integer"), POSITION, AT)),
    Table(
        "calls",
        (
            Column("id"),
            SESSION,
            Column("call", "integer"),
            Column("turn", "integer"),
            POSITION,
            AT,
            Column("model"),
            Column("fidelity"),
            Column("status"),
            Column("pages", "integer"),
            Column("tokens", "integer"),
            Column("tokens_reported", "integer"),
            Column("tokens_cached", "integer"),
            Column("tokens_out", "integer"),
            Column("cost_dollars", "number"),
            Column("latency_ms", "number"),
            Column("stop"),
            Column("error"),
        ),
    ),
    Table(
        "messages",
        (
            Column("id"),
            SESSION,
            POSITION,
            Column("role"),
            Column("slot"),
            Column("human", "boolean"),
            Column("answers", of="calls"),
            Column("turn", "integer"),
            Column("call", "integer"),
            AT,
        ),
    ),
    Table(
        "pages",
        (
            Column("id"),
            SESSION,
            POSITION,
            Column("message", of="messages"),
            Column("part", "integer"),
            Column("type"),
            Column("modality"),
            Column("role"),
            Column("mime"),
            Column("importance", "number"),
            Column("hint"),
            Column("turn", "integer"),
            Column("call", "integer"),
            AT,
        ),
    ),
    Table(
        "versions",
        (
            Column("id"),
            Column("page", of="pages"),
            SESSION,
            POSITION,
            Column("version", "integer"),
            Column("level"),
            Column("bytes", "integer"),
            Column("tokens", "integer"),
            Column("method"),
            Column("lossy", "boolean"),
            AT,
            Column("content"),
        ),
    ),
    Table(
        "residency",
        (
            Column("id"),
            SESSION,
            Column("page", of="pages"),
            Column("version", of="versions"),
            Column("level"),
            Column("rank", "integer"),
            Column("from_position", "integer"),
            Column("to_position", "integer"),
            Column("from_call", "integer"),
            Column("to_call", "integer"),
        ),
    ),
    Table(
        "links",
        (
            Column("id"),
            SESSION,
            POSITION,
            Column("source", of="pages"),
            Column("kind"),
            Column("target", of="pages"),
            Column("valid_from", "time"),
            Column("valid_to", "time"),
        ),
    ),
    Table(
        "annotations",
        (
            Column("id"),
            SESSION,
            POSITION,
            Column("page", of="pages"),
            Column("importance", "number"),
            Column("status"),
            Column("valid_from", "time"),
            Column("valid_to", "time"),
            Column("anchors"),
            AT,
        ),
    ),
    Table(
        "tags",
        (
            Column("id"),
            SESSION,
            POSITION,
            Column("page", of="pages"),
            Column("tag"),
            Column("held", "boolean"),
            AT,
        ),
    ),
    Table(
        "mutations",
        (
            Column("id"),
            SESSION,
            POSITION,
            Column("kind"),
            Column("turn", "integer"),
            Column("call", "integer"),
            AT,
            Column("logged_at", "time"),
            Column("page", of="pages"),
            Column("fields"),
        ),
    ),
)
