"""A primary with a standby, to be killed and promoted; the servers are pip's, each in a folder of its own.

with pair(synchronous=True) as servers:
    address = servers.database()  # names both hosts, and means the one that may be written
    servers.fail_over()
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres.server import TestServer, own_server


class Pair:
    """A primary and its standby."""

    def __init__(self, primary: TestServer, folder: Path, *, synchronous: bool) -> None:
        self.primary = primary
        self.folder = folder
        self.synchronous = synchronous
        self._bin = Path(primary.handle.bin_path)
        self._user = primary.handle.system_user
        host = str(primary.handle.pgdata)
        folder.mkdir(mode=0o700)
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("pg_basebackup", "-h", host, "-U", "postgres", "-D", str(folder), "-R", "-X", "stream", "-c", "fast")
        (folder / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # of the primary's socket, which lies in its data
        self._run("pg_ctl", "-w", "-D", str(folder), "-l", f"{folder}/log", "-o", f'-h "" -k {folder}', "start")
        if synchronous:
            primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary.execute("SELECT pg_reload_conf()")
            while not primary.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"):
                pass

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            user=self._user, cwd="/", check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()[-2_000:]

    def database(self) -> str:
        """The address of a new database on the pair, wherever it may be written."""
        name = self.primary.database().split("?")[0].rsplit("/", 1)[1]
        if self.synchronous:  # a standby that has not replayed it yet says that there is no such database
            while not self.primary.execute(
                "SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()"
            ):
                pass
        hosts = f"{self.primary.handle.pgdata},{self.folder}"
        return f"postgresql://postgres@/{name}?host={hosts}&target_session_attrs=read-write"

    def cut(self) -> None:
        """Has the standby receive nothing any more."""
        for sql in ("ALTER SYSTEM SET primary_conninfo = 'host=/nowhere'", "SELECT pg_reload_conf()"):
            TestServer(f"postgresql://postgres@/postgres?host={self.folder}").execute(sql)
        while self.primary.execute("SELECT 1 FROM pg_stat_replication"):
            pass

    def fail_over(self) -> None:
        """Kills every process of the primary at once, as its machine's end would, and promotes the standby."""
        master = self.primary.handle.get_pid()
        pids = [master, *children(master)]
        for step in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, step)
        self._run("pg_ctl", "-w", "-D", str(self.folder), "promote")

    def end(self) -> None:
        """Stops the standby."""
        with contextlib.suppress(AssertionError):
            self._run("pg_ctl", "-D", str(self.folder), "-m", "immediate", "stop")


def children(pid: int) -> list[int]:
    """The child processes of one."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def pair(*, synchronous: bool) -> Iterator[Pair]:
    """A primary and a standby, for a while."""
    primary = own_server()
    servers = Pair(primary, Path(primary.handle.pgdata).parent / "standby", synchronous=synchronous)
    try:
        yield servers
    finally:
        servers.end()
        primary.stop()
