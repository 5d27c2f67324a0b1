"""Stops the servers of a test process: one of xdist's ends without what is registered for its end."""

from __future__ import annotations

import pytest

from tests.postgres.server import stop_all


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stops every server that was started here."""
    stop_all()
