"""The twin of a session: what decides which one is loaded with the first live session."""

from __future__ import annotations

import vmstore.store.session as sync_session
from vmstore.aio.session import Session
from vmstore.aio.worker import Worker


def twin(session: sync_session.Session, worker: Worker) -> Session:
    """The twin of a session, recorded or live."""
    if type(session) is sync_session.Session:
        return Session(session, worker)
    from vmstore.aio.live import live_twin

    return live_twin(session, worker)
