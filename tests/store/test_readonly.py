"""Reading handles: right whatever the views' state, and nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capture.imports import write
from tests.capture.words import request, user
from tests.refusals import refused
from tests.store.kept import CALLS, HEAD, tell, told_at
from vmstore.errors import ReadOnlyError
from vmstore.store.store import Store, open_store


def files(path: Path) -> dict[str, bytes]:
    """Every file of a store with its bytes."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def answers(store: Store) -> list[Any]:
    """All the questions a reader may ask, answered."""
    session = store.session("s")
    items: list[Any] = [store.sessions(), list(store.tail()), session.pages(), session.calls(), session.turns()]
    for call in session.calls():
        items.append(session.context(call=call.call).to_dict(messages=True, render=True))
    for page in session.pages():
        items += [session.content(page.page), session.lineage.history(page.page), session.lineage.ancestors(page.page)]
        items.append(session.lineage.descendants(page.page))
    return items


def no_views(folder: Path) -> None:
    for file in folder.glob("views-*"):
        file.unlink()


def views_of_nothing(folder: Path) -> None:
    """Views that have followed none of the log."""
    (views,) = folder.glob("views-*.sqlite")
    no_views(folder)
    with open_store(folder.parent.parent / "empty.vms"):
        pass
    (empty,) = (folder.parent.parent / "empty.vms" / "default").glob("views-*.sqlite")
    shutil.copy(empty, views)
    shutil.rmtree(folder.parent.parent / "empty.vms")


def views_of_another_log(folder: Path) -> None:
    """Views that are ahead of this log."""
    other = folder.parent.parent / "other.vms"
    with open_store(other) as store:
        for n in range(9):
            tell(store, f"t{n}")
    (views,) = folder.glob("views-*.sqlite")
    no_views(folder)
    shutil.copy(next((other / "default").glob("views-*.sqlite")), views)
    shutil.rmtree(other)


def damaged_views(folder: Path) -> None:
    (views,) = folder.glob("views-*.sqlite")
    no_views(folder)
    views.write_bytes(b"dear diary " * 1000)


def as_they_are(folder: Path) -> None:
    """The views the last writer left."""


VIEWS: list[Callable[[Path], None]] = [as_they_are, no_views, views_of_nothing, views_of_another_log, damaged_views]


@pytest.mark.parametrize("change", VIEWS)
def test_a_reader_is_right_and_writes_nothing(change: Callable[[Path], None], store_path: Path) -> None:
    """Whether the views are there, behind, ahead or damaged: the same answers, and every byte as before."""
    with told_at(store_path) as store:
        wanted = answers(store)
    change(store_path / "default")
    before = files(store_path)
    with open_store(store_path, "r") as reader:
        assert answers(reader) == wanted
        assert reader.verify().ok
    assert files(store_path) == before


@pytest.mark.parametrize("change", VIEWS)
def test_a_writer_mends_the_views_it_finds(change: Callable[[Path], None], store_path: Path) -> None:
    """Opened for writing, missing, old, foreign or damaged views are rebuilt from the log."""
    with told_at(store_path) as store:
        wanted = answers(store)
    change(store_path / "default")
    with open_store(store_path) as store:
        assert answers(store) == wanted
        assert store.verify().ok
    assert len(list((store_path / "default").glob("views-*.sqlite"))) == 1


WRITES: dict[str, Callable[[Store, Path], Any]] = {
    "record": lambda store, file: store.record("s", request(HEAD)),
    "record a new session": lambda store, file: store.record("new", request(HEAD)),
    "record by session": lambda store, file: store.session("s").record(request(HEAD)),
    "record a gap": lambda store, file: store.admin.record_gap("s", "why"),
    "open a session": lambda store, file: store.session("new", create=True),
    "import": lambda store, file: store.import_file(file),
    "fork": lambda store, file: store.session("s").fork("f"),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_reader_refuses_to_write(what: str, store_path: Path, tmp_path: Path) -> None:
    """Whatever would write is refused, naming the mode that could."""
    told_at(store_path).close()
    file = write(tmp_path / "talk.jsonl", "chat lines", 1)
    before = files(store_path)
    with open_store(store_path, "r") as reader:
        with refused("read-only", ReadOnlyError):
            WRITES[what](reader, file)
        assert [info.session for info in reader.sessions()] == ["s"]
    assert files(store_path) == before


def test_a_session_there_is_needs_no_writing(store_path: Path) -> None:
    """Asking a reader for a session with `create` is only asking where it exists."""
    told_at(store_path).close()
    with open_store(store_path, "r") as reader:
        assert reader.session("s", create=True).info().calls == 4


def test_a_reader_sees_what_a_writer_adds(store_path: Path) -> None:
    """While a writer goes on, an open reader answers of what has been acknowledged so far."""
    with open_store(store_path) as writer:
        tell(writer, calls=1)
        with open_store(store_path, "r") as reader:
            session = reader.session("s")
            for n, (items, _) in enumerate(CALLS[1:], 2):
                writer.record("s", request(items))
                assert session.context().basis.call == n
                assert session.wire.request() == request(items)
            writer.record("t", request([user("new")]))
            assert [info.session for info in reader.sessions()] == ["s", "t"]
            assert reader.verify().ok


def test_a_store_in_a_folder_nobody_may_write_is_read(store_path: Path) -> None:
    """Read-only files in a read-only folder are enough to answer everything."""
    with told_at(store_path) as store:
        wanted = answers(store)
    folder = store_path / "default"
    before = files(store_path)
    paths = [folder, *folder.iterdir()]
    modes = [path.stat().st_mode for path in paths]
    try:
        for path in reversed(paths):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with open_store(store_path, "r") as reader:
            assert answers(reader) == wanted
    finally:
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)
    assert files(store_path) == before
