"""The laws of the store hold where its log is in PostgreSQL."""

from __future__ import annotations

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests import lanes, laws
from tests.postgres.server import server
from vmstore.store.store import Store, open_store
from vmstore.testing import simulate
from vmstore.testing.strategies import Life, lives

FEW = settings(
    max_examples=lanes.tries(4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def in_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opens what lives play in a database, with the cache where a store on disk would lie."""
    database, schemas = server().database(), dict[Path, str]()

    def opened(path: Path, **fields: Any) -> Store:
        schema = schemas.setdefault(path, f"s{secrets.token_hex(6)}")
        return open_store(f"{database}&schema={schema}&cache={path}", **fields)

    monkeypatch.setattr(simulate, "open_store", opened)


@FEW
@given(life=lives())
def test_every_law_holds(in_database: None, life: Life) -> None:
    """Answers, requests, views, columns, forks, retries and bytes are what the laws say, in a database too."""
    with TemporaryDirectory() as folder:
        laws.hold(life, Path(folder))
