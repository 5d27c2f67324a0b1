"""An append that waits for its turn at a log, so that several share one transaction and one flush."""

from __future__ import annotations

from msgspec import Struct

from vmstore.log.commit import Commit
from vmstore.log.frame import Frame
from vmstore.log.port import Append


class Waiting(Struct, eq=False):
    """An append that waits for its turn, then what came of it."""

    told: Append
    key: bytes = b""  # the id of the key that its files were written under
    stored: list[Commit] = []
    frames: list[Frame] = []
    error: Exception | None = None
    done: bool = False
