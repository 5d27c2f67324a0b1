"""Long contents of a log in PostgreSQL lie in an object store: none is lost, doubled or found by nobody."""

from __future__ import annotations

import itertools
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore  # noqa: E402
from tests.objects.s3_server import KEYS, Failing, make_bucket, moto  # noqa: E402
from tests.postgres.logs import database, log_in, schema_of  # noqa: E402
from tests.prose import CHECKOUT  # noqa: E402
from tests.refusals import refused  # noqa: E402
from vmstore.cells.cell import ERASED  # noqa: E402
from vmstore.errors import CorruptError, StoreError  # noqa: E402
from vmstore.log.commit import Commit  # noqa: E402
from vmstore.log.port import Log  # noqa: E402
from vmstore.log.postgres.cell_objects import CellObjects  # noqa: E402
from vmstore.log.postgres.log import PostgresLog  # noqa: E402
from vmstore.objects.address import objects_at  # noqa: E402
from vmstore.objects.port import Objects  # noqa: E402
from vmstore.testing.chains import CommitSpec, chain  # noqa: E402
from vmstore.testing.log_contract import LogContract, run_together  # noqa: E402

UID = bytes(range(16))
LONG = bytes(range(256)) * 1_200  # 300 KiB
EVER = 1 << 62
numbers = itertools.count()


def objects_in(folder: Path, address: str | None = None, wait_s: float = 10.0) -> CellObjects:
    """The objects of a log, at an address or in a folder beside it."""
    kept = CellObjects(objects_at(address or folder / "objects", wait_s), UID)
    kept.claim()
    return kept


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server of S3."""
    with moto() as number:
        yield number


@pytest.fixture
def bucket(port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket, with its keys in the environment."""
    for key, value in KEYS.items():
        monkeypatch.setenv(key, value)
    name = f"contents-{next(numbers)}"
    make_bucket(port, name)
    return name


@pytest.fixture
def failing(port: int) -> Iterator[Failing]:
    """A server that fails before the real one."""
    forwarder = Failing(port)
    yield forwarder
    forwarder.close()


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty object store, of each kind."""
    if request.param == "folder":
        return str(tmp_path / "objects")
    number, name = request.getfixturevalue("port"), request.getfixturevalue("bucket")
    return f"s3://{name}/team?endpoint=http://127.0.0.1:{number}&region=us-east-1"


@pytest.fixture
def log(tmp_path: Path, place: str) -> Iterator[PostgresLog]:
    """An empty log with an object store."""
    log = log_in(tmp_path, objects=objects_in(tmp_path, place))
    yield log
    log.close()


class TestLogWithObjects(LogContract):
    """The contract of every log, with whatever is longer than 64 KiB in an object store."""

    @pytest.fixture(autouse=True)
    def all_that_is_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts there what a log in a folder keeps in files."""
        monkeypatch.setattr("vmstore.log.postgres.contents.OBJECT_BYTES_MIN", 65_537)

    def make_log(self, folder: Path) -> Log:
        """The log of a folder."""
        return log_in(folder, objects=objects_in(folder))


def wrote(log: Log, *contents: bytes) -> Commit:
    """A new session with contents."""
    return log.append(chain([CommitSpec(contents=contents or (LONG,))], secrets.token_bytes(32)), 0, 0)[0]


def names(objects: Objects) -> list[str]:
    """The names of contents in an object store."""
    return [info.name for info in objects.list() if not info.name.endswith("/namespace")]


def columns(folder: Path) -> list[tuple[object, ...]]:
    """Form and bytes of the frames of a log, as they lie in the database."""
    table = schema_of(folder).vacuum.rpartition(" ")[2]
    with psycopg.connect(database()) as db:
        return db.execute(f"SELECT form, length(content) FROM {table} ORDER BY first").fetchall()


# ---- where they lie


def test_a_long_content_is_an_object_and_a_row_names_it(log: PostgresLog, tmp_path: Path, place: str) -> None:
    """What is longer than 256 KiB lies in the object store under its commitment, the rest in rows."""
    commit = wrote(log, b"short", LONG, b"x" * (256 << 10))
    name = commit.commitment(1).hex()
    assert log.objects is not None and names(log.objects.objects) == [f"{UID.hex()}/{name[:2]}/{name}"]
    assert columns(tmp_path) == [(0, 5), (2, 32), (0, 256 << 10)]
    other = log_in(tmp_path, readonly=True, objects=CellObjects(objects_at(place), UID))
    assert [cell.content for cell in other.cells([1, 2, 3]).values()] == [b"short", LONG, b"x" * (256 << 10)]
    opened = other.open_cell(2)
    assert opened is not None and opened.file.read() == LONG
    other.close()


def test_an_object_that_is_not_whole_is_named(log: PostgresLog, tmp_path: Path) -> None:
    """Of an object that was deleted or changed by hand the error names the object; what lies beside it is read."""
    wrote(log, LONG, b"beside", LONG + b"2")
    assert log.objects is not None
    objects, (first, second) = log.objects.objects, [log.objects.name(place.commitment) for place in _longs(log)]
    objects.delete(first)
    objects.delete(second)
    objects.put(second, LONG)
    with refused("object-missing", CorruptError, first):
        log.cells([1])
    with refused("object-damaged", CorruptError, second):
        dict(log.each([2, 3]))
    assert log.cells([2])[2].content == b"beside"
    assert list(log.cells([1, 2, 3], archived=False)) == [2]


def _longs(log: PostgresLog) -> list[vmstore.log.frame.CellPlace]:  # type: ignore[name-defined]
    from vmstore.log.frame import in_file

    return [place for frame in log._frames([1, 3]) if (place := in_file(frame, frame.first)) is not None]


def test_an_object_that_is_damaged_is_put_again(log: PostgresLog) -> None:
    """A name that holds what its content cannot be is no obstacle for who brings the content."""
    commits = chain([CommitSpec(contents=(LONG,))])
    assert log.objects is not None
    log.objects.objects.put(log.objects.name(commits[0].cells[0].commitment), b"half")
    log.append(commits, 0, 0)
    assert log.cells([1])[1].content == LONG


def test_destroyed_contents_are_deleted(log: PostgresLog) -> None:
    """A destroyed content's object is deleted, also where a kill came between its row and it, and no other."""
    wrote(log, LONG, LONG + b"2", LONG + b"3")
    assert log.objects is not None
    kept, half = log.objects, log.cells([2])[2]
    assert log.destroy({1: 9}).files == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CellObjects, "remove", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            log.destroy({2: 9})
    assert kept.holds(half.commitment)
    log.destroy({1: 9, 2: 9})
    assert not kept.holds(half.commitment)
    assert log.cells([1, 2, 3]) == {1: ERASED, 2: ERASED, 3: log.cells([3])[3]}


# ---- strays


def test_a_stray_is_swept_and_nothing_else(log: PostgresLog, tmp_path: Path) -> None:
    """Objects that no commit names are found by age and deleted; those that are named, and the mark, stay."""
    wrote(log)
    assert log.objects is not None
    kept, stray = log.objects, chain([CommitSpec(contents=(LONG,))])[0].cells[0]
    kept.keep(stray.commitment, stray.content)
    kept.objects.put(f"{UID.hex()}/{'ab'}/noise", b"by hand")
    assert log.sweep(0) == []
    strays = log.sweep(EVER, dry=True)
    assert {str(each.path).rpartition("/")[2] for each in strays} == {"noise", stray.commitment.hex()}
    assert {each.size for each in strays} == {7, len(LONG)}
    reader = log_in(tmp_path, readonly=True, objects=kept)
    assert len(reader.sweep(EVER, dry=True)) == 2
    reader.close()
    assert len(log.sweep(EVER)) == 2
    assert log.sweep(EVER) == [] and not kept.holds(stray.commitment)
    assert log.cells([1])[1].content == LONG
    wrote(log)


@pytest.mark.parametrize("old", [False, True])
def test_a_sweep_during_an_append_loses_nothing(
    log: PostgresLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    """An append whose objects another host sweeps before it is written puts them again, a former try's among them."""
    sweeper = log_in(tmp_path, objects=log.objects)
    commits = chain([CommitSpec(contents=(LONG,))])
    assert log.objects is not None
    if old:
        log.objects.keep(commits[0].cells[0].commitment, LONG)
    put, swept = PostgresLog._put, list[int]()

    def late(writer: PostgresLog, *arguments: object) -> bool:
        if writer is log and not swept:
            swept.append(len(sweeper.sweep(EVER)))
        return put(writer, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresLog, "_put", late)
    log.append(commits, 0, 0)
    assert swept == [1]
    assert log.cells([1])[1].content == LONG
    sweeper.close()


def test_while_a_sweep_runs_nothing_is_named(log: PostgresLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that begins amid a sweep, and finds its object still there, waits for its end and puts it again."""
    commits = chain([CommitSpec(contents=(LONG,))])
    assert log.objects is not None
    log.objects.keep(commits[0].cells[0].commitment, LONG)
    sweeper = log_in(tmp_path, objects=log.objects)
    delete, writers = type(log.objects.objects).delete, list[threading.Thread]()

    def slow(objects: Objects, name: str) -> bool:
        if not writers:
            writers.append(threading.Thread(target=log.append, args=(commits, 0, 0)))
            writers[0].start()
            writers[0].join(0.5)
            assert writers[0].is_alive(), "the append waits"
        return delete(objects, name)

    monkeypatch.setattr(type(log.objects.objects), "delete", slow)
    assert len(sweeper.sweep(EVER)) == 1
    writers[0].join()
    assert log.cells([1])[1].content == LONG
    sweeper.close()


def test_a_sweep_that_lost_its_lease_stops(log: PostgresLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped while it swept, and was taken for gone, deletes nothing when it goes on."""
    assert log.objects is not None
    cell = chain([CommitSpec(contents=(LONG,))])[0].cells[0]
    log.objects.keep(cell.commitment, cell.content)
    monkeypatch.setattr("vmstore.log.postgres.lease.LEASE_S", 0)
    with refused("locked", StoreError):
        log.sweep(EVER)
    assert log.objects.holds(cell.commitment)


# ---- faults


def test_a_kill_between_object_and_commit_leaves_a_stray(tmp_path: Path, place: str) -> None:
    """A process killed when its object is there and its commit is not leaves an object that a sweep deletes."""
    log = log_in(tmp_path, objects=objects_in(tmp_path, place))
    script = f"""
import os, sys
sys.path.insert(0, {str(CHECKOUT)!r})
from vmstore.log.postgres.cell_objects import CellObjects
from vmstore.log.postgres.log import PostgresLog
from vmstore.log.postgres.tables import statements
from vmstore.objects.address import objects_at
from vmstore.testing.chains import CommitSpec, chain

schema = {schema_of(tmp_path).vacuum.rpartition(" ")[2].rpartition(".")[0]!r}
objects = CellObjects(objects_at({place!r}), bytes(range(16)))
log = PostgresLog({database()!r}, "db", "default", statements(schema), me="killed", objects=objects)
PostgresLog._put = lambda *_: os.kill(os.getpid(), 9)
log.append(chain([CommitSpec(contents=({LONG[:256]!r} * 1_200,))]), 0, 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert log.ordinal == 0 and log.objects is not None and len(names(log.objects.objects)) == 1
    wrote(log, b"life goes on", LONG)
    assert len(log.sweep(EVER)) == 1 == len(names(log.objects.objects))
    assert log.cells([2])[2].content == LONG
    log.close()


def failing_log(folder: Path, bucket: str, failing: Failing, wait_s: float = 10.0) -> PostgresLog:
    """A log whose object store fails as told."""
    address = f"s3://{bucket}/x?endpoint=http://127.0.0.1:{failing.port}&region=us-east-1"
    return log_in(folder, objects=objects_in(folder, address, wait_s))


@pytest.mark.parametrize(
    ("faults", "code"),
    [
        ([("PUT", "503")] * 99, "unreachable"),
        ([("PUT", "403")], "no-right"),
        ([("PUT", "507")] * 99, "full"),
        ([("PUT", "silent")] * 99, "unreachable"),
    ],
)
def test_what_cannot_be_put_is_not_logged(
    tmp_path: Path, bucket: str, failing: Failing, faults: list[tuple[str, str]], code: str
) -> None:
    """An object store that refuses, is full, is away or says nothing is named; nothing of the append is there."""
    log = failing_log(tmp_path, bucket, failing, wait_s=1.0)
    wrote(log, b"before", LONG)
    failing.faults = faults
    appends = [chain([CommitSpec(contents=(LONG,))], secrets.token_bytes(32)) for _ in range(1)]
    with refused(code, StoreError, "nothing was logged"):
        log.append(appends[0], 0, 0)
    assert (log.ordinal, log.last_cell) == (1, 2)
    wrote(log, b"a short one needs no object store")
    failing.faults = []
    log.append(appends[0], 0, 0)
    assert log.cells([4])[4].content == LONG
    log.close()


def test_one_that_cannot_be_put_spoils_no_other(tmp_path: Path, bucket: str, failing: Failing) -> None:
    """Of appends that share a flush the one whose object cannot be put is refused, and the others are written."""
    from vmstore.log.port import Append

    log = failing_log(tmp_path, bucket, failing, wait_s=1.0)
    failing.faults = [("PUT", "403")]
    made = [chain([CommitSpec(contents=(content,))], secrets.token_bytes(32)) for content in (LONG, b"a", b"b")]
    first, *others = log.together([Append(commits, 0, 0) for commits in made])
    assert isinstance(first, StoreError) and first.code == "no-right"
    assert [isinstance(other, list) and other[0].ordinal for other in others] == [1, 2]
    log.close()


@pytest.mark.parametrize("fault", ["503", "lost", "half"])
def test_what_passes_is_tried_again(tmp_path: Path, bucket: str, failing: Failing, fault: str) -> None:
    """A put or a read of which the answer was an error, half of one or lost is told once, and whole."""
    log = failing_log(tmp_path, bucket, failing)
    wrote(log, b"first", LONG)  # looks once whether this is the store
    failing.faults = [("PUT", fault)]
    wrote(log, LONG)
    assert failing.faults == [] and log.ordinal == 2
    failing.faults = [("GET", fault)]
    assert log.cells([3])[3].content == LONG
    assert failing.faults == []
    assert log.objects is not None and len(names(log.objects.objects)) == 2 and log.sweep(EVER) == []
    log.close()


def test_two_hosts_bring_one_content(log: PostgresLog, tmp_path: Path) -> None:
    """Of two hosts that append the same commit at the same moment one is told that it is there, and both read it."""
    other = log_in(tmp_path, objects=log.objects)
    commits, outcomes = chain([CommitSpec(contents=(LONG,))]), list[object]()
    first = log.append(chain([CommitSpec()]), 0, 0)[0]
    commits = chain([CommitSpec(contents=(LONG,))], first.hash, 1)

    def bring(host: PostgresLog) -> None:
        try:
            outcomes.append(host.append(commits, first.session, 1)[0].ordinal)
        except vmstore.VmstoreError as error:
            outcomes.append(error.code)

    run_together([lambda: bring(log), lambda: bring(other)])
    assert sorted(map(str, outcomes)) == ["2", "overtaken"]
    assert log.cells([1]) == other.cells([1]) and log.cells([1])[1].content == LONG
    assert log.objects is not None and len(names(log.objects.objects)) == 1
    other.close()


# ---- a store


@pytest.fixture
def host(tmp_path: Path, place: str) -> Callable[..., str]:
    """The address as a host uses it, with a cache of its own, and another object store or none where one is given."""
    from tests.postgres.server import server

    address = server().database()

    def named(name: str, blobs: str | None = place) -> str:
        return f"{address}&cache={tmp_path / name}" + ("" if blobs is None else f"&blobs={quote(blobs, safe='')}")

    return named


def recorded(store: vmstore.Store, text: str, session: str = "chat") -> None:
    """Records a call of one message."""
    store.record(session, {"messages": [{"role": "user", "content": text}]}, None)


TEXT = "a long tale of a zebrafinch. " * 12_000


def test_a_store_keeps_long_contents_there(host: Callable[..., str], tmp_path: Path, place: str) -> None:
    """Sizes count them, another host reads them, bundles carry them, verify reads them."""
    with vmstore.open(host("a")) as a:
        recorded(a, TEXT)
        info = a.info()
        assert info.bytes_blobs >= len(TEXT) > info.bytes_log
        a.export(tmp_path / "a.jsonl", "chat", exact=True)
    with vmstore.open(host("b"), mode="r") as b:
        page = b.session("chat").pages()[-1].page
        assert b.session("chat").content(page).decode() == TEXT
        assert b.verify().ok
    with vmstore.open(tmp_path / "c.vms") as c:
        c.import_file(tmp_path / "a.jsonl")
        assert c.session("chat").content(page).decode() == TEXT


def test_hosts_agree_on_the_place(host: Callable[..., str], tmp_path: Path, place: str) -> None:
    """A host that names no object store, or another than the one recorded, is refused with that."""
    with vmstore.open(host("a", None)) as plain:
        recorded(plain, TEXT, "rows")  # before there was one
        with vmstore.open(host("b")) as b:
            recorded(b, TEXT)
        with refused("blobs-not-named", StoreError):
            plain.session("chat").content(plain.session("chat").pages()[-1].page)
    for mode in ("r", "rw"):
        with refused("blobs-not-named", StoreError, place.partition("?")[0]):
            vmstore.open(host("a", None), mode=mode)
        with refused("blobs-elsewhere", StoreError, str(tmp_path / "others")):
            vmstore.open(host("a", str(tmp_path / "others")), mode=mode)
    with vmstore.open(host("c")) as c:
        assert c.verify().ok and {info.session for info in c.sessions()} == {"rows", "chat"}


def test_another_store_of_the_name_is_noticed(tmp_path: Path) -> None:
    """A host for which another store answers to the name writes nothing there."""
    from tests.postgres.server import server

    address = f"{server().database()}&cache={tmp_path / 'cache'}&blobs={quote(str(tmp_path / 'mounted'), safe='')}"
    with vmstore.open(address) as store:
        recorded(store, "short")
    (tmp_path / "mounted").rename(tmp_path / "not mounted")
    with vmstore.open(address) as store:
        recorded(store, "short too")
        with refused("blobs-elsewhere", StoreError, "nothing was logged"):
            recorded(store, TEXT)
    assert not (tmp_path / "mounted").exists()


def test_an_erasure_reaches_them(host: Callable[..., str]) -> None:
    """An erased content's object is gone, strays too, and the certificate says what a bucket may keep."""
    with vmstore.open(host("a")) as a:
        recorded(a, TEXT)
        recorded(a, TEXT[:-1], "other")
        kept: CellObjects = a._ns.log.objects  # type: ignore[attr-defined]
        stray = chain([CommitSpec(contents=(LONG,))])[0].cells[0]
        kept.keep(stray.commitment, stray.content)
        before = len(names(kept.objects))
        done = a.trust.erase(session="chat")
        assert len(names(kept.objects)) < before - 1
        assert any("WAL" in copies for copies in done.beyond)
        assert any("versions" in copies and kept.address in copies for copies in done.beyond)
        assert kept.address in Path(done.certificate or "").read_text()
        assert a.verify().ok and not kept.holds(stray.commitment)
        assert a.session("other").content(a.session("other").pages()[-1].page).decode() == TEXT[:-1]


def test_verify_names_an_object_that_is_not_whole_and_erasing_mends_it(host: Callable[..., str]) -> None:
    """Verify names each object that is missing or damaged, and what they held can be erased as if it were there."""
    with vmstore.open(host("a")) as a:
        recorded(a, TEXT)
        recorded(a, TEXT[:-1], "other")
        kept: CellObjects = a._ns.log.objects  # type: ignore[attr-defined]
        gone, damaged = names(kept.objects)[:2]
        kept.objects.delete(gone)
        kept.objects.delete(damaged)
        kept.objects.put(damaged, b"?")
        verdict = a.verify()
        assert not verdict.ok
        whats = [problem.what for problem in verdict.problems if problem.where == "object"]
        assert len(whats) == 2 and any(gone in what for what in whats) and any(damaged in what for what in whats)
        with pytest.raises(CorruptError) as caught:
            for name in ("chat", "other"):
                a.session(name).content(a.session(name).pages()[-1].page)
        assert "vmstore erase" in str(caught.value)
        plan = a.trust.plan_erasure(session="other", copies=True)
        assert plan.cells and not plan.untaken
        page = a.session("chat").pages()[-1].page
        a.trust.erase(page=page, in_session="chat")
        a.trust.erase(session="other")
        assert a.trust.erase(page=page, in_session="chat").commits == []
        a.trust.erase(session="chat")
        assert a.verify().ok


def test_the_command_sweeps_them(host: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """`vmstore sweep` names strays by the addresses of their objects, and deletes those older than its grace."""
    from vmstore.shell.main import main

    with vmstore.open(host("a")) as a:
        kept: CellObjects = a._ns.log.objects  # type: ignore[attr-defined]
        stray = chain([CommitSpec(contents=(LONG,))])[0].cells[0]
        kept.keep(stray.commitment, stray.content)
        name = kept.name(stray.commitment)
        assert a.admin.collect_garbage().files == []
        swept = a.admin.collect_garbage(grace_s=-60, dry_run=True)
        assert swept.files == [f"{kept.address}/{name}"] and swept.bytes == len(LONG)
    assert main(["sweep", host("a"), "--grace", "0", "--json"]) == 0
    assert name in capsys.readouterr().out


def test_tables_of_the_first_version_are_brought_up_to_date(tmp_path: Path) -> None:
    """Tables made before there were object stores are read once their owner has opened them for writing."""
    from tests.postgres.server import server

    address = server().database()
    with vmstore.open(f"{address}&cache={tmp_path / 'a'}") as store:
        recorded(store, "before")
    name = address.split("?")[0].rsplit("/", 1)[1]
    for sql in (
        "ALTER TABLE vmstore_head DROP COLUMN blobs",
        "ALTER TABLE vmstore_head DROP COLUMN swept",
        "UPDATE vmstore_format SET version = 1",
    ):
        server().execute(sql, name)
    with refused("older-format", StoreError):
        vmstore.open(f"{address}&cache={tmp_path / 'a'}", mode="r")
    with vmstore.open(f"{address}&cache={tmp_path / 'a'}&blobs={quote(str(tmp_path / 'o'), safe='')}") as store:
        recorded(store, TEXT)
        assert store.verify().ok
