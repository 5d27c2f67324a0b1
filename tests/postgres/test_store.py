"""A store whose address names a database does what one in a folder does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg: pip install 'vmstore[postgres]'")

import vmstore
from tests.postgres.server import server
from tests.prose import CHECKOUT, blocks
from tests.refusals import refused
from vmstore.errors import InputError, ReadOnlyError, StoreError, UnknownError
from vmstore.namespace.backends.address import backend_of
from vmstore.shell.main import main

PAGE = CHECKOUT / "specs" / "postgres.md"
SECRET = "zebrafinch"


@pytest.fixture
def database() -> str:
    """The address of an empty database."""
    return server().database()


@pytest.fixture
def host(database: str, tmp_path: Path) -> Callable[[str], str]:
    """The address as a host uses it, with a cache of its own."""
    return lambda name: f"{database}&cache={tmp_path / name}"


def recorded(store: vmstore.Store, text: str, session: str = "chat") -> None:
    """Records a call of one message."""
    store.record(session, {"messages": [{"role": "user", "content": text}]}, None)


def texts(store: vmstore.Store, session: str = "chat") -> list[str]:
    """What the pages of a session say."""
    chat = store.session(session)
    return [chat.content(page.page).decode() for page in chat.pages()]


def holding(folder: Path, word: str) -> list[Path]:
    """The files in which a word stands."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return [file for file in files if word.encode() in file.read_bytes().lower()]


def heads(store: vmstore.Store) -> dict[bytes, tuple[int, bytes]]:
    """Where each session stands, by its uid."""
    rows: Any = store.admin.views.execute("SELECT uid, session, position FROM sessions").fetchall()
    log = store.admin.log
    chains = {bytes(uid): (position, log.head(key)) for uid, key, position in rows}
    return {uid: (position, head.hash) for uid, (position, head) in chains.items() if head is not None}


def test_a_second_host_reads_and_goes_on(host: Callable[[str], str]) -> None:
    """What one host acknowledged another reads at its next question, and each goes on where the other stopped."""
    with vmstore.open(host("a")) as a, vmstore.open(host("b")) as b:
        for number in range(3):
            recorded(a, f"a{number}")
            assert texts(b)[-1] == f"a{number}"
            recorded(b, f"b{number}")
            assert texts(a)[-1] == f"b{number}"
        assert a.verify().ok and b.verify().ok


def test_threads_share_a_store(host: Callable[[str], str]) -> None:
    """Threads that record into sessions of their own are all answered, and nothing is lost."""
    from functools import partial

    from vmstore.testing.log_contract import run_together

    with vmstore.open(host("a")) as store:
        run_together([partial(lambda n: [recorded(store, f"{n}-{i}", f"s{n}") for i in range(8)], n) for n in range(4)])
        assert [info.calls for info in store.sessions()] == [8] * 4
        assert store.verify().ok


def test_a_request_id_is_answered_once(host: Callable[[str], str]) -> None:
    """The same request id on another host returns the first answer and writes nothing."""
    request = {"messages": [{"role": "user", "content": "once"}]}
    with vmstore.open(host("a")) as a, vmstore.open(host("b")) as b:
        first = a.record("chat", request, None, request_id="r1")
        assert b.record("chat", request, None, request_id="r1") == first
        assert len(texts(a)) == 1


def test_what_was_erased_is_nowhere(host: Callable[[str], str], tmp_path: Path) -> None:
    """After an erasure no table has the words or the name, and no cache of a host that opens the namespace again."""
    with vmstore.open(host("a")) as a, vmstore.open(host("b")) as b:
        recorded(a, f"a secret {SECRET}", SECRET)
        recorded(a, "something else", "other")
        assert b.search(SECRET) and a.search(SECRET)
        b.admin.views.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert b._ns.snapshots is not None
        b._ns.snapshots.mkdir()
        (b._ns.snapshots / "1").write_bytes(SECRET.encode())  # as a live session that was kept there
        assert len(holding(tmp_path / "b", SECRET)) >= 2
        report = a.trust.erase(session=SECRET)
        assert report.plan.cells and Path(report.certificate or "").is_file()
        with pytest.raises(UnknownError):
            b.session(SECRET)
        assert texts(b, "other") == ["something else"]
    with closing(vmstore.open(host("b"))) as b:
        assert b.verify().ok
    assert holding(tmp_path, SECRET) == []
    server().execute("CHECKPOINT")
    data = Path(server().uri.split("host=")[1])
    assert holding(data / "base", SECRET) == []


def test_an_erasure_that_was_killed_is_finished_by_another_host(
    host: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one host recorded as erased and did not come to destroy, the next to open the namespace destroys."""
    with vmstore.open(host("a")) as a:
        recorded(a, f"a secret {SECRET}")
        with monkeypatch.context() as patch:
            patch.setattr(type(a.admin.log), "destroy", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                a.trust.erase(session="chat")
    with vmstore.open(host("b")) as b:
        log = b.admin.log
        assert all(cell.erased or SECRET.encode() not in cell.content for cell in log.cells(range(99)).values())
        assert b.verify().ok


def test_sessions_go_there_and_back(host: Callable[[str], str], tmp_path: Path) -> None:
    """Merged into a database and back into a folder every session has the same positions and hashes."""
    with vmstore.open(tmp_path / "a.vms") as store:
        for number in range(3):
            recorded(store, f"text {number}" * 9_000, f"s{number}")
        store.session("s0").fork("f0")
        before = heads(store)
    with vmstore.open(host("a")):
        pass
    vmstore.merge(host("a"), tmp_path / "a.vms")
    with vmstore.open(host("a")) as store:
        assert heads(store) == before and store.verify().ok
    with vmstore.open(tmp_path / "b.vms"):
        pass
    vmstore.merge(tmp_path / "b.vms", host("a"))
    with vmstore.open(tmp_path / "b.vms") as store:
        assert heads(store) == before and store.verify().ok


def test_seals_and_proofs_hold(host: Callable[[str], str], tmp_path: Path) -> None:
    """What was sealed in a database is proven from it, and verify holds it against the seal."""
    pytest.importorskip("cryptography")
    with vmstore.open(host("a")) as store:
        recorded(store, "to be sealed")
        sealed = store.trust.seal(vmstore.new_key(tmp_path / "key"))
        assert store.trust.prove("chat", "p4", call=1).says and store.verify().ok
        assert Path(sealed.path).parent.name.endswith(".seals")


def test_regions_are_namespaces(host: Callable[[str], str]) -> None:
    """A namespace that was shared is read from another one of the same database, as far as that goes."""
    with vmstore.open(host("a"), namespace="team-a") as a, vmstore.open(host("a"), namespace="team-b") as b:
        recorded(a, "shared text")
        with pytest.raises(UnknownError):
            b.sharing.region("team-a")
        a.sharing.share("sandbox:team-b")
        with b.sharing.region("team-a") as region:
            assert texts(region) == ["shared text"]
        assert [region.region for region in a.sharing.regions()] == ["team-a"]


def test_a_forked_process_opens_its_own(host: Callable[[str], str]) -> None:
    """A child goes on with the handle it inherited, on connections of its own, and so does its parent."""
    with vmstore.open(host("a")) as store:
        recorded(store, "parent")
        child = os.fork()
        if not child:
            code = 1
            try:
                recorded(store, "child")
                code = 0 if store.info().bytes_log else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        recorded(store, "parent again")
        assert texts(store) == ["parent", "child", "parent again"]


def test_a_cache_is_of_one_machine(host: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second machine that is given the same cache folder is refused, by the name of the first."""
    with vmstore.open(host("a")) as store:
        recorded(store, "here")
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    with refused("cache-of-another-machine", StoreError, "cache="):
        vmstore.open(host("a"))


def test_a_cache_of_another_log_is_emptied(host: Callable[[str], str]) -> None:
    """A namespace that was dropped and made again is not answered from what was folded of the old one."""
    with vmstore.open(host("a")) as store:
        recorded(store, SECRET)
        store.search(SECRET)
    name = host("a").split("?")[0].rsplit("/", 1)[1]
    server().execute("DROP TABLE vmstore_head, vmstore_commit, vmstore_frame, vmstore_format", name)
    with vmstore.open(host("a")) as store:
        assert store.sessions() == [] and not store.search(SECRET)


def test_a_database_that_went_back_is_followed(host: Callable[[str], str]) -> None:
    """Views that are ahead of a database that was restored to an earlier moment are folded again."""
    with vmstore.open(host("a")) as store:
        recorded(store, "kept")
        kept = store.admin.log.ordinal
        recorded(store, "lost with the restore")
    name = host("a").split("?")[0].rsplit("/", 1)[1]
    server().execute(f"DELETE FROM vmstore_commit WHERE ordinal > {kept}", name)
    server().execute(f"UPDATE vmstore_head SET ordinal = {kept}", name)
    with vmstore.open(host("a")) as store:
        assert texts(store) == ["kept"]
        recorded(store, "new")
        assert texts(store) == ["kept", "new"] and not store.search("restore")


@pytest.mark.parametrize(
    "address, code",
    [
        ("postgresql://db.example", "address-without-database"),
        ("postgresql://db.example/x?nonsense=1", "not-an-address"),
        ("postgresql://db.example/x?schema=a-b", "not-a-name"),
        ("gs://bucket/store", "no-backend"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str, code: str) -> None:
    """What cannot be the address of a store is refused before anything is reached."""
    with refused(code, InputError):
        vmstore.open(address)


def test_two_namespaces_are_refused(host: Callable[[str], str]) -> None:
    """An address that names one namespace and a call that names another contradict each other."""
    with refused("two-namespaces", InputError, "'x'", "'y'"):
        vmstore.open(host("a") + "&namespace=x", namespace="y")


def test_a_database_that_is_not_there_is_named(host: Callable[[str], str]) -> None:
    """A database that nobody made is said so, and a store that nobody made in one too."""
    with refused("no-database", StoreError, "missing"):
        vmstore.open(server().address("missing"))
    with refused("no-store", StoreError):
        vmstore.open(host("a"), "r")


@pytest.mark.parametrize("role, code", [("nobody_of_that_name", "not-let-in"), ("vmstore_locked_out", "not-let-in")])
def test_a_role_that_may_not_come_in_is_named_at_once(host: Callable[[str], str], role: str, code: str) -> None:
    """A role that is not there, or may not log in, is refused without waiting for the server to change its mind."""
    exists = "SELECT 1 FROM pg_roles WHERE rolname = 'vmstore_locked_out'"
    if not server().execute(exists):
        server().execute("CREATE ROLE vmstore_locked_out NOLOGIN")
    with refused(code, StoreError, role):
        vmstore.open(host("a").replace("postgres:@", f"{role}@"), wait_s=3_600)


def test_any_isolation_will_do(host: Callable[[str], str]) -> None:
    """In a database whose transactions are serializable by default, writers on two hosts lose and double nothing."""
    from functools import partial

    from vmstore.testing.log_contract import run_together

    name = host("a").split("?")[0].rsplit("/", 1)[1]
    server().execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    with vmstore.open(host("a")) as a, vmstore.open(host("b")) as b:
        run_together(
            [
                partial(lambda s, n: [recorded(s, f"{n}-{i}", n) for i in range(10)], s, n)
                for s, n in ((a, "x"), (b, "y"))
            ]
        )
        assert [info.calls for info in a.sessions()] == [10, 10] and b.verify().ok


def test_a_password_is_in_no_message(database: str) -> None:
    """Messages name the address without its password."""
    address = database.replace("postgres:@", "postgres:hunter2@")
    assert "hunter2" in address and "hunter2" not in backend_of(address).address
    with pytest.raises(StoreError) as caught:
        vmstore.open(address, "r")
    assert "hunter2" not in str(caught.value)


FOLDERS: dict[str, Callable[[str], object]] = {
    "backup": lambda address: vmstore.backup(address, "/nowhere"),
    "archive": lambda address: vmstore.open(address).admin.archive("chat"),
    "its backup": lambda address: vmstore.open(address).backup("/nowhere"),
}


@pytest.mark.parametrize("door", FOLDERS)
def test_what_works_on_files_says_so(host: Callable[[str], str], door: str) -> None:
    """What copies or mends files is refused for a database, with what to use instead."""
    with refused("no-folder-of-files", InputError, "postgresql://"):
        FOLDERS[door](host("a"))


def test_commands_take_an_address(host: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command takes the address where it takes a folder."""
    with vmstore.open(host("a")) as store:
        recorded(store, "hello")
    assert main(["sessions", host("a"), "--json"]) == 0
    assert '"chat"' in capsys.readouterr().out
    assert main(["verify", host("a"), "--json"]) == 0


# ---- the page


def page_sql() -> list[str]:
    """The blocks of SQL on the page, in order."""
    return [block.text for block in blocks(PAGE) if block.language == "sql"]


@pytest.fixture
def roles(database: str, host: Callable[[str], str]) -> Iterator[Callable[[str, str], str]]:
    """The database with the roles of the page; the address for a role and a host."""
    name = database.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    for namespace in ("team-a", "team-b"):
        with vmstore.open(host("owner"), namespace=namespace) as store:
            recorded(store, f"of {namespace}")
    for sql in page_sql():
        server().execute(sql, name)
    yield lambda role, where: host(where).replace("postgres:@", f"{role}@")
    for role in ("vmstore_writer", "vmstore_reader"):
        server().execute(f"DROP OWNED BY {role}", name)
        server().execute(f"DROP ROLE {role}")


def test_a_writer_writes_its_namespace_and_sees_no_other(roles: Callable[[str, str], str]) -> None:
    """With the grants and the policies of the page a role writes one namespace, and the others are not there."""
    with vmstore.open(roles("vmstore_writer", "w"), namespace="team-a") as store:
        recorded(store, "more")
        assert texts(store) == ["of team-a", "more"] and store.verify().ok
    assert backend_of(roles("vmstore_writer", "w")).namespaces() == ["team-a"]
    with refused("no-namespace", StoreError):
        vmstore.open(roles("vmstore_writer", "w"), "r", namespace="team-b")
    with refused("no-right", ReadOnlyError):
        vmstore.open(roles("vmstore_writer", "w"), namespace="team-c")


def test_a_writer_may_not_erase(roles: Callable[[str, str], str]) -> None:
    """A role that may not change contents is refused where it would destroy some."""
    with vmstore.open(roles("vmstore_writer", "w"), namespace="team-a") as store:
        with refused("no-right", ReadOnlyError):
            store.trust.erase(session="chat")


def test_a_reader_may_not_write(roles: Callable[[str, str], str]) -> None:
    """A role that may only read is opened for reading by commands, and refused where it would write."""
    backend = backend_of(roles("vmstore_reader", "r"))
    assert backend_of(roles("vmstore_writer", "w")).mode("team-a") == "rw" and backend.mode("team-a") == "r"
    with vmstore.open(roles("vmstore_reader", "r"), "r", namespace="team-b") as store:
        assert texts(store) == ["of team-b"] and store.verify().ok
    with refused("no-right", ReadOnlyError):
        backend.check_writable("team-a")


def test_a_session_is_published_from_a_database(host: Callable[[str], str], tmp_path: Path) -> None:
    """A cold tier has of a session in a database what the database has, and verifies."""
    with vmstore.open(host("a")) as store:
        store.import_file(CHECKOUT / "vmstore" / "shell" / "demo.jsonl")
        asked = "PAGES page, version, tokens, text IN SESSION 'planning-220'"
        before = [tuple(row) for row in store.query(asked)]
        vmstore.publish(store, f"cold://{tmp_path / 'cold'}")
    with vmstore.open(f"cold://{tmp_path / 'cold'}", "r") as cold:
        assert len(before) > 1_000 and [tuple(row) for row in cold.query(asked)] == before
        assert cold.verify().ok


def test_the_page_shows_what_happens(host: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    """The program on the page runs, with a database of ours, and prints what the page shows."""
    shown = [block for block in blocks(PAGE) if block.language in ("python", "text")]
    source = re.sub(r"postgresql://team@db.example/agents\?", host("a") + "&", shown[0].text)
    exec(compile(source, str(PAGE), "exec"), {})
    assert capsys.readouterr().out.rstrip() == shown[1].text.rstrip()
