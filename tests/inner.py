"""The inner door: a batch as the store's own writers have it, for tests that write what no user may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vmstore.engine.batch import Batch
from vmstore.store.session import Session


@contextmanager
def inner_batch(session: Session, at: int | None = None) -> Iterator[Batch]:
    """Mutations that nobody looks at beyond the rules about their fields, as one commit."""
    ns = session._ns
    with ns.lock:
        batch = ns.engine.batch(session._key)
        yield batch
        if not batch.empty:
            batch.commit(ns.clock.now() if at is None else at)
