"""Changing what a session and its forks do with secrets from a position on."""

from __future__ import annotations

from vmstore.core.mutation import Redact
from vmstore.core.redaction import Redaction
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine


def change(engine: Engine, batch: Batch, policy: Redaction, at: int) -> None:
    """Gives a session another redaction by a commit of its own at the beginning of a batch, where it has another."""
    if batch.head.redaction == policy:
        return
    session, position = batch.head.session, batch.head.position
    batch.take(Redact(policy=policy))
    batch.end(at)
    batch.redact(engine.doors.of(session, policy, position, engine.follow))
