"""The log in PostgreSQL keeps the contract of every log."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmstore.log.port import Log
from vmstore.testing.log_contract import LogContract

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

from tests.postgres.logs import log_in


class TestPostgresLog(LogContract):
    def make_log(self, folder: Path) -> Log:
        """The log of a folder, in a schema of its own."""
        return log_in(folder)
