"""Opening and closing: what a path may be, which modes there are, what a closed store says."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import vmstore
from tests.capture.words import request, user
from tests.refusals import refused
from tests.store.kept import HEAD, told_at, told_in_memory
from vmstore.errors import InputError, StoreError, UnknownError, VmstoreError
from vmstore.store.store import Store, open_store


def test_a_store_is_made_where_there_is_none(store_path: Path) -> None:
    """Opened for writing, a path that is not there becomes a store with an empty namespace."""
    with open_store(store_path) as store:
        assert (store.sessions(), store.info().commits, list(store.tail())) == ([], 0, [])
    assert (store_path / "default" / "log.sqlite").is_file()
    assert list((store_path / "default").glob("views-*.sqlite"))


def test_what_was_written_is_there_again(store_path: Path) -> None:
    """Closed and opened, a store answers as before."""
    with told_at(store_path) as store:
        before = [store.session("s").context(call=n).to_dict(messages=True) for n in (1, 2, 3, 4)]
    with open_store(store_path) as store:
        assert [store.session("s").context(call=n).to_dict(messages=True) for n in (1, 2, 3, 4)] == before


def test_nothing_is_made_for_reading(store_path: Path) -> None:
    """Opened for reading, a path that is not there is an error and stays so."""
    with refused("no-store", StoreError):
        open_store(store_path, "r")
    assert not store_path.exists()


@pytest.mark.parametrize("mode", ["w", "", "RW", "rb", None])
def test_other_modes_are_refused(mode: Any, store_path: Path) -> None:
    """There are two modes; any other word is refused and nothing is made."""
    with refused("no-mode", InputError):
        open_store(store_path, mode)
    assert not store_path.exists()


def a_file(path: Path) -> None:
    path.write_text("dear diary")


def an_empty_folder(path: Path) -> None:
    path.mkdir()


def a_folder_of_something(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("dear diary")


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def another_database(path: Path) -> None:
    (path / "default").mkdir(parents=True)
    apsw.Connection(str(path / "default" / "log.sqlite")).execute(
        "CREATE TABLE t(x); INSERT INTO t VALUES(1)"
    ).fetchall()


def another_format(path: Path) -> None:
    open_store(path).close()
    apsw.Connection(str(path / "default" / "log.sqlite")).execute("PRAGMA user_version = 99").fetchall()


def no_database(path: Path) -> None:
    (path / "default").mkdir(parents=True)
    (path / "default" / "log.sqlite").write_bytes(b"dear diary " * 100)


WRONG: list[tuple[Callable[[Path], None], str]] = [
    (a_file, "is a file"),
    (an_empty_folder, "is an empty folder"),
    (a_folder_of_something, "something else"),
    (a_link_to_nothing, "link to nothing"),
    (another_database, "no vmstore log"),
    (another_format, "format 99"),
    (no_database, "damaged|no vmstore log"),
]


def everything(path: Path) -> dict[str, bytes]:
    """Each file under a path with its bytes, and each folder."""
    if path.is_symlink() and not path.exists():
        return {"": os.readlink(path).encode()}
    items = sorted([path, *path.rglob("*")])
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else b"folder" for p in items}


@pytest.mark.parametrize("mode", ["r", "rw"])
@pytest.mark.parametrize(("make", "reason"), WRONG)
def test_a_path_that_is_no_store_is_named_and_left_alone(
    make: Callable[[Path], None], reason: str, mode: str, store_path: Path
) -> None:
    """A file, an empty folder, another's folder or database: its own error each, and not a byte is touched."""
    make(store_path)
    before = everything(store_path)
    with pytest.raises(VmstoreError, match=reason):
        open_store(store_path, mode)
    assert everything(store_path) == before
    assert sorted(store_path.parent.iterdir()) == [store_path]


def test_a_store_needs_its_parent_folder(tmp_path: Path) -> None:
    """A store in a folder that is not there is refused, and the folder is not made."""
    with refused("no-folder", StoreError):
        open_store(tmp_path / "none" / "agent.vms")
    assert list(tmp_path.iterdir()) == []


def test_the_namespace_given_instead_of_its_store_is_recognised(store_path: Path) -> None:
    """Naming the folder inside gets the hint to name the store."""
    open_store(store_path).close()
    with pytest.raises(StoreError, match=f"did you mean {store_path}"):
        open_store(store_path / "default")


def test_namespaces_are_apart(store_path: Path) -> None:
    """Sessions of one namespace are neither seen nor named in another."""
    with told_at(store_path) as store, open_store(store_path, namespace="other") as other:
        assert other.sessions() == []
        other.record("t", request(HEAD))
        assert [info.session for info in store.sessions()] == ["s"]
        with refused("no-session", UnknownError, "'t'"):
            store.session("t")
        with refused("no-namespace", StoreError, "'third'"):
            open_store(store_path, "r", namespace="third")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "\x00"])
def test_a_namespace_is_one_folders_name(name: str, store_path: Path) -> None:
    """What could lead out of the store is no namespace."""
    with refused("not-a-name", StoreError):
        open_store(store_path, namespace=name)
    assert not store_path.exists()


def test_makers_at_once_make_one_store(store_path: Path) -> None:
    """Of several that make the same store one wins, the others open it, and nothing is left beside it."""
    barrier = threading.Barrier(4)
    outcomes: list[Any] = []

    def make(name: str) -> None:
        barrier.wait(10)
        try:
            with open_store(store_path) as store:
                outcomes.append(store.record(name, request(HEAD)).call)
        except BaseException as error:
            outcomes.append(error)

    threads = [threading.Thread(target=make, args=(f"s{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [1, 1, 1, 1]
    with open_store(store_path) as store:
        assert len(store.sessions()) == 4 and store.verify().ok
    assert sorted(store_path.parent.iterdir()) == [store_path]


def test_paths_may_be_strange(tmp_path: Path) -> None:
    """Spaces, question marks, hashes and other scripts in a path lead to a store like any other."""
    for name in ("a b.vms", "what?.vms", "#1 100%.vms", "数据.vms", "-r.vms", "it's.vms"):
        with open_store(tmp_path / name) as store:
            store.record("s", request(HEAD))
        with open_store(str(tmp_path / name), "r") as store:
            assert store.session("s").wire.request() == request(HEAD)
    assert len(list(tmp_path.iterdir())) == 6


# ---- closing


def test_closing_twice_does_nothing(store_path: Path) -> None:
    """`close` may be called again, and a `with` may close what is closed."""
    with told_at(store_path) as store:
        store.close()
        store.close()
    store.close()


def test_a_with_closes_also_on_an_error(store_path: Path) -> None:
    """Leaving a `with` by an exception closes the store and lets the exception through."""
    with pytest.raises(ZeroDivisionError), told_at(store_path) as store:
        raise ZeroDivisionError
    with refused("closed", InputError):
        store.sessions()


AFTER: dict[str, Callable[[Store, Any, Any, Path], Any]] = {
    "sessions": lambda store, session, context, path: store.sessions(),
    "session": lambda store, session, context, path: store.session("s"),
    "session made": lambda store, session, context, path: store.session("t", create=True),
    "record": lambda store, session, context, path: store.record("s", request([user("x")])),
    "record_gap": lambda store, session, context, path: store.admin.record_gap("s", "why"),
    "import_file": lambda store, session, context, path: store.import_file(path),
    "tail": lambda store, session, context, path: list(store.tail()),
    "find": lambda store, session, context, path: store.catalog.find_page("p4"),
    "info": lambda store, session, context, path: store.info(),
    "verify": lambda store, session, context, path: store.verify(),
    "rebuild": lambda store, session, context, path: store.admin.rebuild(),
    "session.info": lambda store, session, context, path: session.info(),
    "session.context": lambda store, session, context, path: session.context(),
    "session.pages": lambda store, session, context, path: session.pages(),
    "session.content": lambda store, session, context, path: session.content("p4"),
    "session.history": lambda store, session, context, path: session.lineage.history("p4"),
    "session.ancestors": lambda store, session, context, path: session.lineage.ancestors("p4"),
    "session.calls": lambda store, session, context, path: session.calls(),
    "session.turns": lambda store, session, context, path: session.turns(),
    "session.record": lambda store, session, context, path: session.record(request(HEAD)),
    "session.fork": lambda store, session, context, path: session.fork("f"),
    "context.messages": lambda store, session, context, path: context.messages(),
    "context.request": lambda store, session, context, path: context.request(),
    "context.contents": lambda store, session, context, path: context.contents(),
}


@pytest.mark.parametrize("what", AFTER)
def test_a_closed_store_says_that_it_is_closed(what: str, store_path: Path, tmp_path: Path) -> None:
    """Whatever is asked of a closed store, or of what it gave out, the answer is that it is closed."""
    store = told_at(store_path)
    session = store.session("s")
    context = session.context()
    file = tmp_path / "talk.json"
    file.write_text('[{"role": "user", "content": "hi"}]')
    store.close()
    with refused("closed", VmstoreError):
        AFTER[what](store, session, context, file)


def test_a_memory_store_ends_with_its_close() -> None:
    """A store in memory is a store like any other until it is closed."""
    store = told_in_memory()
    assert store.verify().ok and store.info().bytes_log == 0
    store.close()
    with refused("closed", InputError):
        store.info()


def test_the_package_offers_what_a_user_needs(store_path: Path) -> None:
    """`vmstore.open` and the named moments are enough to record and ask."""
    with vmstore.open(store_path) as store:
        store.record("s", request(HEAD))
        session = store.session("s")
        assert session.context(vmstore.Call(1)).messages() == request(HEAD)["messages"]
        assert session.context(at=vmstore.Turn(1)).basis == session.context(vmstore.Head()).basis
