"""Bundles with placeholders carry erasures: what was erased stays so, told by place, and the new chain verifies."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.errors import CorruptError, ErasedError, RefusedError
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance.archive import archive

SECRET = "Never tell this to anybody: 4711."
ERASES = "MUTATIONS position, kind WHERE kind = 'erase'"
KEY = "AKIA" + "4MBUNL3JR5IEESZS"  # in halves, so that no scan of this repository takes it for a key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which `trip` and its fork lost what was said first, and `gone` all; `trip` went on afterwards."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        other_chat = chat(SECRET, "Fine.", f"The key is {KEY}, is it not?")
        store.record("trip", other_chat, answer("It is."), request_id="one")
        store.session("trip").fork("trip-b", call=1)
        more = chat(SECRET, "Fine.", f"The key is {KEY}, is it not?", "It is.", "More, and more.")
        store.record("trip-b", more, answer(f"No: {SECRET}"))
        store.record("gone", chat("All of this goes."), answer("Sure."))
        store.session("gone").fork("gone-b", call=1)
        for name in ("trip", "trip-b"):
            for page in store.session(name).pages():
                if SECRET.encode() in _content(store, name, page.page):
                    vmstore.erase(store, page=page.page, in_session=name)
        vmstore.erase(store, session="gone-b")
        # What was erased and is sent again is written again, so what goes on here leaves it out.
        store.record("trip", chat("Removed.", "Fine.", f"The key is {KEY}, is it not?"), answer("Still."))
        assert store.verify().ok
    return path


def _content(store: vmstore.Store, name: str, page: str) -> bytes:
    try:
        return store.session(name).content(page)
    except ErasedError:
        return b""


def contexts_of(store: vmstore.Store, name: str) -> list[list[dict[str, object]]]:
    """What every context of a session says."""
    session = store.session(name)
    return [session.context(call=call).messages() for call in range(1, session.info().calls + 1)]


def taken(bundle: Path, store: Path, *, exact: bool) -> dict[str, list[list[dict[str, object]]]]:
    """What every session says of a bundle that was taken into a new store, which is sound."""
    with vmstore.open(store) as new:
        new.import_file(bundle, exact=exact)
        verdict = new.verify()
        assert verdict.ok, verdict.problems
        new.admin.rebuild()
        assert new.verify().ok
        return {session.session: contexts_of(new, session.session) for session in new.sessions()}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("names", [["trip"], ["trip-b"], ["erased-"], None])
def test_a_masked_bundle_carries_erasures(path: Path, tmp_path: Path, names: list[str] | None, exact: bool) -> None:
    """Exported with placeholders and taken in, exactly or not, contexts say what they did, erased parts by place."""
    with vmstore.open(path) as store:
        all_names = [session.session for session in store.sessions()]
        chosen = [name for name in all_names if names is None or name in names or name[:7] in names]
        store.export(tmp_path / "b.jsonl", chosen)
        before = {name: contexts_of(store, name) for name in chosen}
    assert before
    content = (tmp_path / "b.jsonl").read_bytes()
    assert SECRET.encode() not in content and KEY.encode() not in content
    records = taken(tmp_path / "b.jsonl", tmp_path / "b.vms", exact=exact)
    for name, expected in before.items():
        assert len(records[name]) == len(expected)
        for first, other in zip(records[name], expected, strict=True):
            assert [_shape(message) for message in first] == [_shape(message) for message in other]


def _shape(message: dict[str, object]) -> tuple[object, bool, bool]:
    """Who said a message, whether it says that it was erased, and where."""
    text = str(message.get("content"))
    return message["role"], text.startswith("[erased at position"), "[masked" in text


def test_the_position_stays_where_the_record_is_told(path: Path, tmp_path: Path) -> None:
    """An erasure that is among what is exported is told at its position, with its reason; positions stay."""
    with vmstore.open(path) as store:
        store.export(tmp_path / "b.jsonl", "trip")
        end, records = store.session("trip").info().position, contexts_of(store, "trip")
        rows = [tuple(row) for row in store.query(ERASES, session="trip")]
    with vmstore.open(tmp_path / "b.vms") as new:
        new.import_file(tmp_path / "b.jsonl")
        assert new.session("trip").info().position == end and contexts_of(new, "trip")[0][1] == records[0][1]
        again = [tuple(row) for row in new.query(ERASES, session="trip")]
        assert again == rows != []


def test_a_record_beyond_what_is_exported_is_told_at_the_end(path: Path, tmp_path: Path) -> None:
    """Exported up to a moment before the erasure, a session ends with one more that names what was lost."""
    with vmstore.open(path) as store:
        end = store.session("trip-b").info().fork_position or 0
        store.export(tmp_path / "b.jsonl", "trip", position=end)
        with refused("erased-after-the-cut"):
            store.export(tmp_path / "exact.jsonl", "trip", position=end, exact=True)
        with refused("erased-after-the-cut", RefusedError, "'trip'"):
            store.export(tmp_path / "exact.jsonl", "trip-b", exact=True)
        store.export(tmp_path / "both.jsonl", ["trip", "trip-b"], exact=True)
    assert not (tmp_path / "exact.jsonl").exists()
    with vmstore.open(tmp_path / "b.vms") as new:
        new.import_file(tmp_path / "b.jsonl")
        assert new.verify().ok and new.session("trip").info().position == end + 1
        assert f"[erased at position {end + 1}]" in str(contexts_of(new, "trip"))
    assert taken(tmp_path / "both.jsonl", tmp_path / "c.vms", exact=True)


def test_an_archive_alone_is_exported_with_placeholders(path: Path, tmp_path: Path) -> None:
    """What was erased from an archive after it was made is told in a bundle made of it alone."""
    with vmstore.open(path) as store:
        store.record("late", chat(SECRET, "Fine."), answer("Good."))
        file = archive(store, "late", grace_s=0).sessions[0].file
        vmstore.erase(store, page="p6", in_session="late")
    with vmstore.open(file, "r") as alone:
        alone.export(tmp_path / "b.jsonl")
        with refused("erased-after-the-cut"):
            alone.export(tmp_path / "exact.jsonl", exact=True)
    records = taken(tmp_path / "b.jsonl", tmp_path / "b.vms", exact=False)
    assert "[erased at position" in str(records["late"]) and "4711" not in str(records)


@pytest.mark.parametrize("exact", [True, False])
def test_what_no_erasure_names_is_refused(path: Path, tmp_path: Path, exact: bool) -> None:
    """A cell that was destroyed without a record is damage for every export, and no erasure is made of it."""
    log = SqliteLog(path / "default" / "log.sqlite")
    number = next(n for n, cell in log.cells(range(1, 99)).items() if cell.content == b"Fine.")
    log.destroy({number: 1})
    log.close()
    with vmstore.open(path) as store, pytest.raises(CorruptError, match=f"cell {number} .*no erasure is recorded"):
        store.export(tmp_path / "b.jsonl", exact=exact)
    assert not (tmp_path / "b.jsonl").exists()


def test_recorded_and_still_there_is_left_out(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the record of an erasure and the destruction, as a kill leaves it, a bundle holds nothing of it."""
    monkeypatch.setattr(SqliteLog, "destroy", lambda self, erased: None)
    with vmstore.open(path) as store:
        store.record("late", chat("The violet one.", "Fine."), answer("Good."))
        vmstore.erase(store, page="p6", in_session="late")
        assert any(b"violet" in cell.content for cell in store.admin.log.cells(range(1, 200)).values())
        store.export(tmp_path / "b.jsonl", "late")
    assert b"violet" not in (tmp_path / "b.jsonl").read_bytes()
    assert "[erased at position" in str(taken(tmp_path / "b.jsonl", tmp_path / "b.vms", exact=False))


def test_an_exact_bundle_is_told_anew(path: Path, tmp_path: Path) -> None:
    """An exact bundle with erasures can be taken in as new sessions too, request ids with it."""
    with vmstore.open(path) as store:
        store.export(tmp_path / "b.jsonl", exact=True)
        before = {session.session: contexts_of(store, session.session) for session in store.sessions()}
    records = taken(tmp_path / "b.jsonl", tmp_path / "b.vms", exact=False)
    assert {name: record for name, record in records.items() if name in ("trip", "gone")} == {
        name: expected for name, expected in before.items() if name in ("trip", "gone")
    }
