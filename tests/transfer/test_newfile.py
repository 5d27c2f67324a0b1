"""What is exported appears when it is whole: not before, not by half, and never in the place of something else."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.transfer.moved import taken
from tests.transfer.test_backup import hashes, recorder
from vmstore.core.system.atomic_file import SUFFIX, beside, new_file
from vmstore.errors import StoreError

EXPORTS = 6


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    """While it is written nothing stands at its path; afterwards it does, and nothing else is left."""
    path = tmp_path / "x"
    with new_file(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" whole")
    assert path.read_bytes() == b"half whole" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, StoreError])
def test_what_fails_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    """An error, a full disk or Ctrl-C while it is written leaves the folder as it was."""
    with pytest.raises((KeyboardInterrupt, StoreError)):
        with new_file(tmp_path / "x") as file:
            file.write(b"half")
            raise error
    with pytest.raises((KeyboardInterrupt, StoreError)):
        with beside(tmp_path / "y") as part:
            (part / "z").mkdir(parents=True)
            raise error if error is not OSError else StoreError
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_no_file_of_that_name(tmp_path: Path) -> None:
    """SIGKILL at growing delays: the file is absent or whole, and what is left is hidden and says what it is."""
    content = b"x" * 3_000_000

    def work(path: Path) -> None:
        with new_file(path) as file:
            for at in range(0, len(content), 10_000):
                file.write(content[at : at + 10_000])

    absent = 0
    for number in range(12):
        path = tmp_path / f"x{number}"
        pid = start(lambda path=path: work(path))  # type: ignore[misc]
        time.sleep(0.001 * number)
        if not os.waitpid(pid, os.WNOHANG)[0]:
            kill(pid)
        absent += not path.exists()
        assert not path.exists() or path.read_bytes() == content
    assert absent, "no writer was killed before its end: the delays are too long"
    left = [path.name for path in tmp_path.iterdir() if not path.name.startswith("x")]
    assert all(name.startswith(".x") and name.endswith(SUFFIX) for name in left)


def test_what_came_meanwhile_stays(tmp_path: Path) -> None:
    """A file that somebody else puts at the path meanwhile is not replaced, and the loser says so."""
    path = tmp_path / "x"
    with refused("not-written", StoreError):
        with new_file(path) as file:
            file.write(b"mine")
            path.write_bytes(b"theirs")
    assert path.read_bytes() == b"theirs" and list(tmp_path.iterdir()) == [path]


def test_a_pipe_or_device_is_written_as_it_stands(tmp_path: Path) -> None:
    """What is no regular file takes the bytes itself; a full one is named."""
    with new_file(Path("/dev/null")) as file:
        file.write(b"gone")
    with refused("not-written", StoreError):
        with new_file(Path("/dev/full")) as file:
            file.write(b"x" * 100_000)


def test_bundles_beside_a_writer_hold_a_prefix(store_path: Path, tmp_path: Path) -> None:
    """While another process records, each bundle is taken in exactly and holds a prefix of every session."""
    vmstore.open(store_path).close()
    reader, writer = os.pipe()
    pid = start(lambda: recorder(store_path, writer))
    bundles: list[bytes] = []
    try:
        os.read(reader, 3)
        for number in range(EXPORTS):
            with vmstore.open(store_path) as store:
                store.export(tmp_path / f"b{number}", exact=True)
            bundles.append((tmp_path / f"b{number}").read_bytes())
            os.read(reader, 1 << 16)
    finally:
        kill(pid)
    with vmstore.open(store_path) as store:
        whole = hashes(store)
        for bundle in bundles:
            with taken(tmp_path, bundle, exact=True) as other:
                assert set(hashes(other)) <= set(whole) and other.verify().ok
                assert len(hashes(other)) == bundle.count(b'\n{"kind":"commit"')
    sizes = [len(actual_bundle) for actual_bundle in bundles]
    assert sizes == sorted(sizes) and len(set(sizes)) > 2, "the writer wrote between the exports"


@pytest.mark.parametrize("format", ["jsonl", "sqlite", "parquet"])
def test_other_threads_write_meanwhile(store_path: Path, tmp_path: Path, format: str) -> None:
    """While one thread exports, another records through the same handle and is not kept waiting to the end."""
    with vmstore.open(store_path) as store:
        for number in range(5):
            store.record("s", chat(f"question {number}"), answer("fine"))
        recorded: list[bool] = []

        def progress(done: int, total: int) -> None:
            if not recorded:
                thread = threading.Thread(target=lambda: store.record("s", chat("meanwhile"), None))
                thread.start()
                thread.join(20)
                recorded.append(not thread.is_alive())

        report = store.export(tmp_path / "x", format=format, progress=progress)
        assert recorded == [True] and len(store.session("s").calls()) == 6
        assert report.mutations < store.session("s").info().mutations


def test_what_a_kill_left_goes_with_the_next_of_that_name(tmp_path: Path) -> None:
    """A hidden folder of a killed writer is removed by the next one of the same name, and by none of another."""
    path = tmp_path / "x"

    def work() -> None:
        with beside(path) as part:
            part.write_bytes(b"half")
            (tmp_path / "ready").touch()
            time.sleep(60)

    pid = start(work)
    while not (tmp_path / "ready").exists():
        time.sleep(0.001)
    kill(pid)
    (left,) = tmp_path.glob(f".x.*{SUFFIX}")
    for name in ("x.y", "other"):
        with new_file(tmp_path / name) as file:
            file.write(b"whole")
    assert left.exists()
    with new_file(path) as file:
        file.write(b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "ready", "x", "x.y"]


def test_what_is_in_use_stays(tmp_path: Path) -> None:
    """Two that make the same name at once do not take each other's folders away, in one process or two."""
    path = tmp_path / "x"

    def work() -> None:
        with beside(path) as part:
            part.write_bytes(b"theirs")
            (tmp_path / "ready").touch()
            for _ in range(10_000):
                time.sleep(0 if (tmp_path / "go").exists() else 0.001)

    pid = start(work)
    while not (tmp_path / "ready").exists():
        time.sleep(0.001)
    with refused("not-written", StoreError), beside(path) as mine, beside(path) as other:
        mine.write_bytes(b"mine")
        other.write_bytes(b"another")
        assert len(list(tmp_path.glob(f".x.*{SUFFIX}"))) == 3
        (tmp_path / "go").touch()
        assert os.waitpid(pid, 0)[1] == 0
    assert path.read_bytes() == b"theirs" and not list(tmp_path.glob(".x.*"))


def test_what_only_looks_like_one_stays(tmp_path: Path) -> None:
    """A link or a file of such a name is nobody's leftover, and nothing behind a link is touched."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "dear").touch()
    (tmp_path / ".x.abcd1234.part").symlink_to(kept)
    (tmp_path / ".x.abcd1235.part").write_bytes(b"dear")
    (tmp_path / ".x.y.abcd1234.part").mkdir()
    with new_file(tmp_path / "x") as file:
        file.write(b"whole")
    assert (kept / "dear").exists() and len(list(tmp_path.glob(".x.*"))) == 3
