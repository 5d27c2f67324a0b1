"""The views cannot be written, or are not what they were, while the log is sound: the campaigns found these."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from campaigns.disk import IO, Fault, disk

import vmstore
from tests.engine.stories import answer, chat, tell
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.erasure.erase import erase
from vmstore.errors import CorruptError, StoreError
from vmstore.namespace import view_file

Damage = Callable[[apsw.Connection], None]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """What is said about views rebuilt is expected here."""
    caplog.set_level(logging.CRITICAL, "vmstore")


def views(store: Path) -> Path:
    """A store's one views file."""
    (path,) = (store / "default").glob("views-*.sqlite")
    return path


def of_the_views(kind: str, path: str) -> bool:
    """Whether an operation touches the views."""
    return "/views-" in path


def test_a_fork_goes_on_although_the_views_could_not_follow(store_path: Path) -> None:
    """A fork that was written when the views could not be is whole once they can: its child knows what it inherits."""
    with disk(store_path.parent) as made, vmstore.open(store_path) as store:
        store.record("a", chat("one"), answer("1"))
        made.fault = Fault(1, IO, forever=True, touches=of_the_views)
        with pytest.raises(StoreError):
            store.session("a").fork("b")
        made.fault = None
        store.record("b", chat("one", "1", "two"), answer("2"))
        assert store.session("b").wire.request() == chat("one", "1", "two")
        assert store.verify().ok


def test_views_that_cannot_be_written_are_folded_in_memory(store_path: Path) -> None:
    """A store whose views cannot be written opens, records and answers, and writes them when it can again."""
    vmstore.open(store_path).close()
    views(store_path).unlink()
    with disk(store_path.parent) as made:
        made.fault = Fault(1, IO, forever=True, touches=lambda kind, path: of_the_views(kind, path) and kind == "write")
        with vmstore.open(store_path) as store:
            store.record("a", chat("one"), answer("1"))
            assert store.session("a").wire.request() == chat("one")
        assert made.fault.fired
    with vmstore.open(store_path) as store:
        assert store.session("a").wire.request() == chat("one")
        assert store.verify().ok
    assert views(store_path).stat().st_size


def test_an_erasure_beside_views_that_cannot_be_opened_is_not_done(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that cannot reach the views' file says so, and who opens next finishes it: no file has the word."""
    word = b"violet-4711"
    with vmstore.open(store_path) as store:
        store.record(word.decode(), chat("one"), answer("1"))
        store.record("b", chat("one"), answer("1"))
        store.session("b")
    assert views(store_path).name in str(found_in(store_path, [word])[word])

    def none_left(*_: object) -> None:
        raise apsw.CantOpenError("unable to open database file")  # as where a process may open no more files

    with monkeypatch.context() as patch:
        patch.setattr(view_file, "_checked", none_left)
        with vmstore.open(store_path) as store, refused("views-unreachable", StoreError):
            erase(store, session=word.decode())
    assert found_in(store_path, [word])[word] == [f"default/{views(store_path).name}"]
    with vmstore.open(store_path) as store:
        assert store.verify().ok
    assert not found_in(store_path, [word])


def an_index_of_another_table(db: apsw.Connection) -> None:
    """An index leads to other rows than those of its table."""
    roots = dict(db.execute("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY name"))
    first, second = [name for name, _ in sorted(roots.items()) if name in ("pages", "changes")]
    for name, other in ((first, second), (second, first)):
        db.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (roots[other], name))


def another_column(db: apsw.Connection) -> None:
    """A column has another name, as after one flipped byte."""
    db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'commitment', 'commitmend') WHERE name = 'versions'")


def no_text(db: apsw.Connection) -> None:
    """A column's name is no text."""
    db.execute(
        "UPDATE sqlite_schema SET sql = CAST(replace(sql, 'commitment', x'636fe4') AS TEXT) WHERE name = 'versions'"
    )


DAMAGES: list[Damage] = [an_index_of_another_table, another_column, no_text]


def damage(store: Path, how: Damage) -> None:
    """Changes the schema of a store's views by hand, so that who has them open reads it again."""
    db = apsw.Connection(str(views(store)))
    db.execute("PRAGMA writable_schema = ON")
    how(db)
    db.execute(f"PRAGMA schema_version = {db.execute('PRAGMA schema_version').get + 1}")
    db.close()


@pytest.mark.parametrize("how", DAMAGES, ids=lambda how: how.__name__)
def test_verify_names_views_that_are_not_what_they_were(store_path: Path, how: Damage) -> None:
    """Damage that leaves rows readable, or makes them unreadable, is a problem with the views, never a traceback."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        damage(store_path, how)
        verdict = store.verify()
    assert not verdict.ok
    assert {problem.kind for problem in verdict.problems} <= {"view", "views"}


@pytest.mark.parametrize("how", [another_column, no_text], ids=lambda how: how.__name__)
def test_views_of_another_schema_are_made_anew(store_path: Path, how: Damage, caplog: pytest.LogCaptureFixture) -> None:
    """A views file whose tables are not those of this version is folded again when it is opened, and that is told."""
    tell(store_path)
    damage(store_path, how)
    caplog.set_level(logging.WARNING, "vmstore")
    with vmstore.open(store_path) as store:
        assert store.session("plan").content("p4") == b"Be brief."
        assert store.verify().ok
    assert "rebuilt from the log" in caplog.text


def test_a_question_that_meets_damaged_views_says_so(store_path: Path) -> None:
    """A question that SQLite cannot answer is a CorruptError with the remedy, which helps."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        damage(store_path, another_column)
        with refused("views-damaged", CorruptError):
            store.session("plan").content("p4")
        store.admin.rebuild()
        assert store.session("plan").content("p4") == b"Be brief."
        assert store.verify().ok


def test_a_tail_meets_a_session_that_was_opened_just_now(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that another process wrote between two looks of a tail is given with the name of its session."""
    with vmstore.open(store_path) as store, vmstore.open(store_path, "r") as reader:
        store.record("first", chat("one"))
        right = reader.admin.log.tail

        def tail(after: int, limit: int) -> list[object]:
            if "second" not in {info.session for info in store.sessions()}:
                store.record("second", chat("two"))
            return right(after, limit)  # type: ignore[return-value]

        monkeypatch.setattr(reader.admin.log, "tail", tail)
        assert {entry.session for entry in reader.tail()} == {"first", "second"}
