"""Whose data a session's contents are: its user's, or where it has none its own."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core.mutation import Open, decode
from vmstore.log.commit import Commit


def subject_of(first: Commit) -> bytes:
    """The data subject of the session that begins with a commit, which has its cells."""
    try:
        opened = decode(first.body)[0]
    except (ValueError, IndexError):
        return b""
    if not isinstance(opened, Open):
        return b""
    user: Any = None
    if isinstance(opened.meta, int) and opened.meta < len(first.cells):
        meta = msgspec.json.decode(first.cells[opened.meta].content)
        user = meta.get("user") if isinstance(meta, dict) else None
    return b"user\0" + user.encode("utf-8", "replace") if isinstance(user, str) else b"session\0" + opened.uid
