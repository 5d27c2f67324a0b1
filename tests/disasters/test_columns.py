"""What may happen to column segments: none of it changes an answer, and the next cut mends it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import vmstore
from tests.columns.kept import cut, grow, segments, sound
from tests.disasters.mounts import remount, small_disk
from tests.refusals import refused
from vmstore.columns import segments as shelf
from vmstore.errors import StoreError

FILES = ("mutations.parquet", "contents.parquet", "residencies.parquet", "seal.json")


def mended(path: Path, caplog: pytest.LogCaptureFixture, warned: int = 1) -> None:
    """Asserts that answers stand with so many warnings, that verify names it, and that cutting on mends it."""
    assert sound(path) == sound(path, "r")
    assert caplog.text.count("left out and cut again") == 2 * warned, caplog.text
    with vmstore.open(path) as store:
        problems = store.verify().problems
        assert {problem.kind for problem in problems} <= {"columns"} and len(problems) == warned
        store.admin.column_segments()
        assert store.verify().ok
    caplog.clear()
    sound(path)
    assert not caplog.text


@pytest.mark.parametrize("name", FILES)
def test_flipped_bytes_are_noticed(store_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A byte flipped anywhere in a file of a segment is named, and nothing is read from it."""
    cut(store_path)
    (segment,) = segments(store_path)
    file = segment / name
    content = file.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 12)):
        file.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
        with vmstore.open(store_path) as store:
            problems = store.verify().problems
            assert [problem.where for problem in problems] == [segment.name], f"byte {at} of {name}"
    caplog.clear()
    mended(store_path, caplog)


def cut_short(segment: Path) -> None:
    (segment / "contents.parquet").write_bytes((segment / "contents.parquet").read_bytes()[:-9])


def lacks_a_file(segment: Path) -> None:
    (segment / "residencies.parquet").unlink()


def not_a_seal(segment: Path) -> None:
    (segment / "seal.json").write_bytes(b"dear diary")


def bears_another_name(segment: Path) -> None:
    segment.rename(segment.with_name(segment.name[:-16] + "0" * 16))


@pytest.mark.parametrize("damage", [cut_short, lacks_a_file, not_a_seal, bears_another_name])
def test_a_damaged_segment_is_cut_again(
    store_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """A segment that lacks anything is left out with a warning, and cut again."""
    cut(store_path)
    (segment,) = segments(store_path)
    damage(segment)
    mended(store_path, caplog)


def test_a_segment_of_another_store_is_left_out(store_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Segments that somebody copied from another store do not become part of this one's answers."""
    cut(store_path)
    other = store_path.with_name("other.vms")
    grow(other, 30)
    with vmstore.open(other) as store:
        store.admin.column_segments()
    (segment,) = segments(store_path)
    shutil.rmtree(segment)
    shutil.copytree(segments(other)[0], segment.with_name(segments(other)[0].name))
    mended(store_path, caplog)


def test_a_log_put_back_from_a_backup(store_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Segments that go further than the log, which was put back from a backup, are left out."""
    cut(store_path)
    with vmstore.open(store_path) as store:
        store.backup(store_path.with_name("nightly"))
    grow(store_path)
    with vmstore.open(store_path) as store:
        store.admin.column_segments()
    before = segments(store_path)
    shutil.copy(store_path.with_name("nightly") / "default" / "log.sqlite", store_path / "default" / "log.sqlite")
    assert len(before) == 2, "the one that was replaced stays for those who read it"
    sound(store_path)
    assert caplog.text.count("left out and cut again") == 1
    grow(store_path, 5)  # the log goes on otherwise
    with vmstore.open(store_path) as store:
        store.admin.column_segments()
        assert store.verify().ok
    assert before[0] not in segments(store_path) or before[1] not in segments(store_path)
    sound(store_path)


# Cuts segments, and stops dead when one is to get its name.
STOPPED = """
import os, sys, vmstore
from vmstore.columns import segment
segment.os = type("os", (), {**vars(os), "rename": staticmethod(lambda *names: os._exit(9))})
vmstore.open(sys.argv[1]).columns()
"""
CUTTING = """
import sys, vmstore
from vmstore.columns import segments
segments.MUTATIONS_MAX, segments.MUTATIONS_MIN = 20, 10
with vmstore.open(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    print(store.admin.column_segments().ordinal)
"""


def test_a_half_written_segment_is_none(store_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A process that dies before its segment has a name leaves nothing that is read, and the next cut removes it."""
    cut(store_path)
    before = segments(store_path)
    grow(store_path)
    died = subprocess.run([sys.executable, "-c", STOPPED, str(store_path)], check=False)
    assert died.returncode == 9
    left = list((store_path / "default" / "columns").glob("*.new"))
    assert len(left) == 1 and segments(store_path) == before
    sound(store_path)
    with vmstore.open(store_path) as store:
        assert store.verify().ok
        store.admin.column_segments()
    assert not list((store_path / "default" / "columns").glob("*.new"))
    sound(store_path)
    assert not caplog.text


def test_two_processes_cut_once(store_path: Path) -> None:
    """Of processes that cut at the same time one does and the others find it done; the segments have no gap."""
    cut(store_path)
    shutil.rmtree(store_path / "default" / "columns")
    command = [sys.executable, "-c", CUTTING, str(store_path)]
    cutters = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for cutter in cutters:
        assert cutter.stdout is not None and cutter.stdout.readline() == "ready\n"
    for cutter in cutters:
        assert cutter.stdin is not None
        cutter.stdin.write("go\n")
        cutter.stdin.flush()
    value = [each_cutter.communicate()[0] for each_cutter in cutters]
    assert [each_cutter.returncode for each_cutter in cutters] == [0, 0, 0]
    with vmstore.open(store_path) as store:
        assert value == [f"{store.admin.log.ordinal}\n"] * 3
        assert store.verify().ok
    assert len(segments(store_path)) == 3
    sound(store_path)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """Where segments do not fit, the error says that nothing is lost, answers come from memory, and room mends it."""
    with small_disk(tmp_path / "disk", "4m") as folder:
        path = folder / "agent.vms"
        cut(path)
        shutil.rmtree(path / "default" / "columns")
        with vmstore.open(path) as store:
            room = shutil.disk_usage(folder).free
            (folder / "ballast").write_bytes(bytes(room - 16_000))
            table = list(store.admin.page_table().rows())
            with refused("not-written", StoreError) as caught:
                store.admin.column_segments()
        assert "make room" in str(caught.value)
        assert not list((path / "default" / "columns").glob("*.new")) and not segments(path)
        remount(folder, "size=8m")
        assert sound(path) == table
        with vmstore.open(path) as store:
            assert store.admin.column_segments().behind == 0 and store.verify().ok
        assert len(segments(path)) == 1


def test_much_that_is_new_waits_for_room(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A question that would seal what is new, and cannot, answers from memory and says so."""
    cut(store_path)
    monkeypatch.setattr(shelf, "TAIL_MAX", 2)
    shutil.rmtree(store_path / "default" / "columns")
    (store_path / "default" / "columns").write_text("a file where a folder should be")
    sound(store_path)
    assert "the newest commits are cut in memory: column segments cannot be written" in caplog.text


def test_readers_go_on_while_segments_are_replaced(store_path: Path) -> None:
    """A handle that found segments answers on when another has cut them again, and again when all are gone."""
    cut(store_path)
    with vmstore.open(store_path) as reader:
        before = list(reader.admin.page_table("plan").rows())
        with vmstore.open(store_path) as other:
            other.admin.rebuild("columns")
        assert list(reader.admin.page_table("plan").rows()) == before
        shutil.rmtree(store_path / "default" / "columns")
        assert list(reader.admin.page_table("plan").rows()) == before
