"""Files of a few bytes that ask for all the memory there is: refused, or read in little memory, by every door."""

from __future__ import annotations

import base64
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import msgspec
import pytest
import zstandard

import vmstore
from tests.engine.stories import tell
from tests.log.test_upgrade import old_log
from vmstore.cells.cell import Cell
from vmstore.core.mutation import AnyMutation, Create, Mark, Open, body, wire
from vmstore.log.commit import genesis, seal
from vmstore.log.frame import BOMB_BYTES, ZSTD, densely, opened, raw, unpacked
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance.archive import archive
from vmstore.testing.chains import CommitSpec, chain

HUGE = 1 << 30
PEAK_MIB_MAX = 200

# Prints what came of it, and how many MiB the process took at most.
_CHILD = """
import pathlib, sys
import vmstore
from vmstore.maintenance.upgrade import upgrade
path, how = sys.argv[1:]
try:
    if how == "verify":
        with vmstore.open(path) as store:
            print("sound" if store.verify().ok else "named")
    elif how == "open":
        vmstore.open(path, "r").close()
        print("sound")
    elif how == "read":
        with vmstore.open(path, "r") as store:
            store.query("SESSIONS")
        print("sound")
    elif how == "doctor":
        from vmstore.maintenance.doctor import doctor
        print("sound" if doctor(path).ok else "named")
    elif how == "backup":
        with vmstore.open(path) as store:
            store.backup(path + ".backup")
        print("sound")
    elif how == "upgrade":
        upgrade(pathlib.Path(path), 'default')
        print("sound")
    else:
        with vmstore.open(path + ".vms") as store:
            store.import_file(path)
        print("sound")
except vmstore.VmstoreError as error:
    print("named" if str(error) else "silent")
status = pathlib.Path("/proc/self/status").read_text()  # ru_maxrss would count what the parent had
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def squeezed(content: bytes, times: int) -> bytes:
    """A zstd frame that holds a content so many times, and says how long that is."""
    stream = zstandard.ZstdCompressor(level=19).compressobj(size=len(content) * times)
    return b"".join([*(stream.compress(content) for _ in range(times)), stream.flush()])


ZEROS = squeezed(bytes(1 << 20), HUGE >> 20)


def sql(file: Path, statement: str, *values: object) -> None:
    """Changes a file by hand."""
    db = apsw.Connection(str(file))
    db.execute(statement, values)
    db.close()


def one_cell(path: Path) -> Path:
    """A log whose last frame says that it holds a cell of 1 GiB, and does."""
    tell(path)
    last = "UPDATE frames SET count = 1, form = 1, sizes = ?, salts = ?, content = ?"
    last += " WHERE first = (SELECT max(first) FROM frames)"
    sql(path / "default/log.sqlite", last, struct.pack(">I", HUGE), bytes(16), ZEROS)
    return path


def many_cells(path: Path) -> Path:
    """A sound log with a commit of 7,000 cells of 64 KiB, which pack to nothing."""
    tell(path)
    cells = [Cell(b"n" * 16, b"many"), *(Cell(os.urandom(16), b"x" * 65_000) for _ in range(7_000))]
    opening = body([msgspec.msgpack.encode(Open(uid=b"u" * 16, name=0))])
    log = SqliteLog(path / "default/log.sqlite")
    log.append([seal(genesis(b"u" * 16), 1, 1, 0, 0, opening, tuple(cells), -1)], 0, 0, dense=True)
    log.close()
    return path


def named_cells(path: Path) -> Path:
    """A log with a commit of 4,000 marks, each with a name of 64 KiB; only the last may end its commit."""
    return _written(path, [Mark(Mark.NAMED, name=at) for at in range(1, 4_001)], [_long(at) for at in range(4_000)])


def one_name(path: Path) -> Path:
    """A log with a commit of 4,000 marks that all have one name of 64 KiB."""
    return _written(path, [Mark(Mark.NAMED, name=1)] * 4_000, [_long(0)])


def one_label(path: Path) -> Path:
    """A sound log with a commit of 2,000 pages that all have the labels of one cell of 64 KiB."""
    return _written(path, [Create(3, 0, 1, 0, 0, 2, 0, 0, labels=1)] * 2_000, [b'{"hint":"%s"}' % _long(0), b""])


def _long(at: int) -> bytes:
    return b"%d" % at + b"x" * 65_000


def _written(path: Path, mutations: Sequence[AnyMutation], contents: Sequence[bytes]) -> Path:
    """A store with one more session, of one commit, past every check."""
    tell(path)
    cells = [Cell(b"n" * 16, b"many"), *(Cell(os.urandom(16), content) for content in contents)]
    other_body = body([wire(case) for case in (Open(uid=b"u" * 16, name=0), *mutations)])
    log = SqliteLog(path / "default/log.sqlite")
    log.append([seal(genesis(b"u" * 16), 1, len(mutations) + 1, 0, 0, other_body, tuple(cells), -1)], 0, 0, dense=True)
    log.close()
    return path


def counted_cells(path: Path) -> Path:
    """A log whose frames say that they hold 2^40 cells."""
    tell(path)
    sql(path / "default/log.sqlite", "UPDATE frames SET count = 1 << 40")
    return path


def an_archive(path: Path) -> Path:
    """A copy of the archive of a session."""
    tell(path)
    with vmstore.open(path) as store:
        archive(store, sessions=["plan"])
    (file,) = (path / "default/archive").glob("*.archive")
    return Path(shutil.copy(file, path.with_suffix(".archive")))


def archived_cell(path: Path) -> Path:
    """An archive with a cell of 1 GiB."""
    file = an_archive(path)
    last = (
        "UPDATE frames SET count = 1, sizes = ?, salts = ?, content = ? WHERE first = (SELECT max(first) FROM frames)"
    )
    sql(file, last, struct.pack(">I", HUGE), bytes(16), ZEROS)
    return file


def archived_columns(path: Path) -> Path:
    """An archive whose commits are 1 GiB long."""
    file = an_archive(path)
    sql(file, "UPDATE runs SET size = ?, content = ?", HUGE, ZEROS)
    return file


def archived_numbers(path: Path) -> Path:
    """An archive with a column of 15 million numbers where 512 is the most."""
    file = an_archive(path)
    column = b"\x98\xdd" + struct.pack(">I", 15 << 20) + bytes(15 << 20)
    sql(file, "UPDATE runs SET size = ?, content = ?", len(column), squeezed(column, 1))
    return file


def packed_blanks(path: Path) -> Path:
    """A packed session file of 1 GiB."""
    path.write_bytes(ZEROS)
    return path


def packed_lists(path: Path) -> Path:
    """A packed session file of 12 MiB that is 4 million empty lists."""
    path.write_bytes(squeezed(b'{"messages":[' + b"[]," * (4 << 20) + b"[]]}", 1))
    return path


def packed_document(path: Path) -> Path:
    """A packed document of two lines, the second of which is as long as one of records that is never parsed."""
    path.write_bytes(squeezed(b'{"messages":\n[' + b"[]," * (15 << 20) + b"[]]}", 1))
    return path


def packed_signs(path: Path) -> Path:
    """A packed line of 15 MiB with one sign that takes four bytes in memory, and so do all others beside it."""
    return _packed(path, 15 << 20, "\N{GRINNING FACE}")


def packed_text(path: Path) -> Path:
    """A packed line of 15 MiB that is one text."""
    return _packed(path, 15 << 20)


def packed_texts(path: Path) -> Path:
    """A sound packed line of four texts of 6 MiB, the most that a text in a small file may be."""
    return _packed(path, (6 << 20) - 100, times=4)


def _packed(path: Path, size: int, last: str = "", times: int = 1) -> Path:
    messages = ",".join([f'{{"role":"user","content":"{"x" * size}{last}"}}'] * times)
    noise = base64.b64encode(os.urandom(500_000)).decode()  # so that the file is of a size to hold so much
    line = f'{{"request":{{"model":"m","messages":[{messages}],"user":"{noise}"}},"response":null}}'
    path.write_bytes(squeezed(line.encode(), 1))
    return path


def deflated_cell(path: Path) -> Path:
    """A log of format 0 with a cell of 1 GiB."""
    import zlib

    old_log(path / "default/log.sqlite", chain([CommitSpec(contents=(b"a",))]))
    stream = zlib.compressobj(9)
    content = b"".join([*(stream.compress(bytes(1 << 20)) for _ in range(HUGE >> 20)), stream.flush()])
    sql(path / "default/log.sqlite", "UPDATE cells SET content = ?, form = 1 WHERE number = 1", content)
    return path


BOMBS: list[tuple[Callable[[Path], Path], str, str, str]] = [
    (one_cell, ".vms", "verify", "named"),
    (many_cells, ".vms", "verify", "sound"),
    (named_cells, ".vms", "verify", "named"),
    (named_cells, ".vms", "read", "named"),
    (named_cells, ".vms", "doctor", "sound"),
    (one_name, ".vms", "verify", "named"),
    (one_name, ".vms", "read", "named"),
    (one_label, ".vms", "verify", "sound"),
    (one_label, ".vms", "read", "named"),
    (one_label, ".vms", "backup", "named"),
    (counted_cells, ".vms", "verify", "named"),
    (archived_cell, ".vms", "open", "named"),
    (archived_columns, ".vms", "open", "named"),
    (archived_numbers, ".vms", "open", "named"),
    (packed_blanks, ".jsonl.zst", "import", "named"),
    (packed_lists, ".jsonl.zst", "import", "named"),
    (packed_document, ".jsonl.zst", "import", "named"),
    (packed_signs, ".jsonl.zst", "import", "named"),
    (packed_text, ".jsonl.zst", "import", "named"),
    (packed_texts, ".jsonl.zst", "import", "sound"),
    (deflated_cell, ".vms", "upgrade", "named"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc how much memory it took")
@pytest.mark.parametrize(("bomb", "suffix", "how", "outcome"), BOMBS, ids=lambda case: getattr(case, "__name__", ""))
def test_a_few_bytes_take_little_memory(
    tmp_path: Path, bomb: Callable[[Path], Path], suffix: str, how: str, outcome: str
) -> None:
    """A hostile file of 1.1 MB at most is named, or read where it is sound, in less than 200 MiB."""
    file = bomb(tmp_path / f"hostile{suffix}")
    files = [file] if file.is_file() else [path for path in file.rglob("*") if path.is_file()]
    assert sum(file.stat().st_size for file in files) < 1_100_000
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(file), how], capture_output=True, text=True, check=True, timeout=300
    )
    lines, peak = child.stdout.split()
    assert lines == outcome and int(peak) < PEAK_MIB_MAX


def test_what_looks_like_a_bomb_is_not_written() -> None:
    """A content that would shrink beyond belief lies in an archive as it is, and comes back."""
    cell = Cell(b"z" * 16, bytes(BOMB_BYTES + 1))
    (frame,) = densely(1, [cell])
    assert frame.form != ZSTD and dict(opened(frame, [1], lambda _: None, dense=True)) == {1: cell}
    dense = raw(1, [cell])._replace(form=ZSTD, content=squeezed(cell.content, 1))
    assert unpacked(dense, len(cell.content), dense=True) is None
