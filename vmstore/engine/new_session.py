"""What a new session is told at its beginning."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.page import Origin
from vmstore.core.redaction import Redaction


class Opening(NamedTuple):
    """What a new session is told at its beginning; a fork whose redaction is not told has its parent's."""

    name: str
    meta: dict[str, str] = {}  # noqa: RUF012 (never changed)
    origin: Origin = Origin.NEW
    parent: int = 0
    parent_position: int = 0
    source: str | None = None
    key: bytes | None = None
    hidden: int = 0
    spawned_by: int | None = None
    redaction: Redaction | None = None
    lost: tuple[bytes, ...] = ()  # see `Batch.lost`
