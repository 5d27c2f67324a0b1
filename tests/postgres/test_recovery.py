"""A database is put back to a moment by PostgreSQL's own tools, and a store in it goes on from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore
from tests.postgres.server import TestServer, own_server
from tests.refusals import refused
from vmstore.errors import UnknownError
from vmstore.shell.main import main

SECRET = "zebrafinch"


class Cluster:
    """A server of the test's own, with its log archived, and the tools to copy it and to put it back."""

    def __init__(self, server: TestServer) -> None:
        self.server = server
        self.data = Path(server.handle.pgdata)
        self.bin = server.handle.bin_path
        self.root = self.data.parent
        self.archive = self.root / "archive"
        self.archive.mkdir()
        self.archive.chmod(0o777)
        self.root.chmod(0o777)
        server.execute("ALTER SYSTEM SET archive_mode = on")
        server.execute(f"ALTER SYSTEM SET archive_command = 'cp %p {self.archive}/%f'")
        server.kill_and_start()

    def run(self, tool: str, *words: str) -> None:
        """Runs a tool of PostgreSQL as the user that the server runs as."""
        command = [str(self.bin / tool), *words]
        done = subprocess.run(command, user=self.server.handle.system_user, cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def base_backup(self) -> Path:
        """A base backup; its folder."""
        base = self.root / "base"
        words = ("-h", str(self.data), "-U", "postgres", "-D", str(base), "-X", "stream", "-c", "fast")
        self.run("pg_basebackup", *words)
        return base

    def archive_all(self) -> None:
        """Waits until all that was written is archived."""
        self.server.execute("SELECT pg_switch_wal()")
        for _ in range(200):
            waiting = "SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'"
            if self.server.execute(waiting) == [(0,)]:
                return
            time.sleep(0.05)
        raise AssertionError("the log is not archived")

    @contextmanager
    def put_back(self, base: Path, moment: str) -> Iterator[str]:
        """A server of its own on the base backup, with the archived log up to a moment; the folder of its socket."""
        (base / "recovery.signal").touch()
        with (base / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"restore_command = 'cp {self.archive}/%f %p'\nrecovery_target_time = '{moment}'\n")
            settings.write("recovery_target_action = 'promote'\narchive_mode = off\n")
        if self.server.handle.system_user:
            for file in (base / "recovery.signal", base / "postgresql.auto.conf"):
                shutil.chown(file, self.server.handle.system_user)
        log, socket = base / "recovery.log", self.root / "socket"
        socket.mkdir()
        socket.chmod(0o777)
        try:
            self.run("pg_ctl", "-w", "-D", str(base), "-l", str(log), "-o", f'-h "" -k {socket}', "start")
        except AssertionError as error:
            raise AssertionError(log.read_text()[-3_000:]) from error
        try:
            yield str(socket)
        finally:
            with suppress(AssertionError):
                self.run("pg_ctl", "-w", "-D", str(base), "-m", "immediate", "stop")


def recorded(store: vmstore.Store, text: str, session: str) -> None:
    """Records a call of one message."""
    store.record(session, {"messages": [{"role": "user", "content": text}]}, None)


def test_a_store_is_put_back_to_a_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was acknowledged up to the moment is there and nothing later, views that were ahead are folded again,
    what was erased since is erased again by its certificate, and the store goes on."""
    server = own_server()
    cluster = Cluster(server)
    address = server.database()
    cache = tmp_path / "cache"
    with vmstore.open(f"{address}&cache={cache}") as store:
        recorded(store, f"a secret {SECRET}", "erased")
        recorded(store, "kept", "kept")
    base = cluster.base_backup()
    with vmstore.open(f"{address}&cache={cache}") as store:
        recorded(store, "after the base backup", "kept")
        time.sleep(0.02)
        (moment,) = server.execute("SELECT clock_timestamp()::text")[0]
        time.sleep(0.02)
        recorded(store, "after the moment", "kept")
        recorded(store, "after the moment", "late")
        certificate = store.trust.erase(session="erased").certificate
        assert certificate is not None
        ahead = store.admin.log.ordinal
    cluster.archive_all()
    server.stop()
    with cluster.put_back(base, moment) as socket:
        name = address.partition("?")[0].rsplit("/", 1)[1]
        again = f"postgresql://postgres@/{name}?host={socket}"
        kept = next(path for path in cache.iterdir() if path.is_dir() and path.suffix != ".erasures")
        with vmstore.open(f"{again}&cache={tmp_path / 'other'}") as store:
            assert store.admin.log.ordinal < ahead
        other = next(path for path in (tmp_path / "other").iterdir())
        shutil.rmtree(other)
        shutil.copytree(kept, other)  # the same host's cache: its views are ahead of this log
        with vmstore.open(f"{again}&cache={tmp_path / 'other'}") as store:
            chat = store.session("kept")
            texts = [chat.content(page.page).decode() for page in chat.pages()]
            assert texts == ["kept", "after the base backup"]
            with pytest.raises(UnknownError):
                store.session("late")
            assert store.search(SECRET) and store.verify().ok
            with refused("effect-not-allowed"):
                store.trust.erase_again(Path(certificate).parent)
            lost = store.trust.erase_again(Path(certificate).parent, dry_run=True)
            assert (lost.certificates, lost.signed, lost.done) == (1, 0, False) and lost.cells > 0
        words = ["erase", f"{again}&cache={tmp_path / 'other'}", "--again", str(Path(certificate).parent)]
        assert main([*words, "--yes"]) == 0
        assert f"erased again: {lost.cells} cells, by 1 certificate" in capsys.readouterr().out
        with vmstore.open(f"{again}&cache={tmp_path / 'other'}") as store:
            assert not store.search(SECRET) and store.verify().ok
            assert store.trust.erase_again(Path(certificate).parent, agreed=True).cells == 0
            recorded(store, "and on", "kept")
            assert store.session("kept").info().calls == 3 and store.verify().ok
        assert not any(SECRET.encode() in file.read_bytes() for file in other.rglob("*") if file.is_file())
    assert os.path.isdir(base)
