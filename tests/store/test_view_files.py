"""Views of another version are folded beside the old ones, whose readers go on until nobody has them open."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import chat
from vmstore.namespace import view_file


def files(store: Path) -> set[str]:
    """The views files of a store."""
    return {file.name for file in (store / "default").glob("views-*.sqlite")}


def another_version(patch: pytest.MonkeyPatch) -> None:
    """From here on stores are opened as by a vmstore with other projectors."""
    patch.setattr(view_file, "views_file", lambda folder: folder / "views-0new0000.sqlite")


def test_the_old_views_serve_while_they_are_open(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle on the old views answers and follows while a new version folds its own, which agree."""
    with vmstore.open(store_path) as old:
        old.record("s", chat("one"))
        before = files(store_path)
        with monkeypatch.context() as patch:
            another_version(patch)
            with vmstore.open(store_path) as new:
                assert files(store_path) == before | {"views-0new0000.sqlite"}
                new.record("s", chat("one", "1", "two"))
                assert [call.call for call in old.session("s").calls()] == [1, 2]
                assert old.session("s").calls() == new.session("s").calls()
        old.record("s", chat("one", "1", "two", "2", "three"))
        assert len(old.session("s").calls()) == 3


def test_old_views_go_when_nobody_has_them_open(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first open by a new version after the last reader left removes the old file, and what it knew is there."""
    with vmstore.open(store_path) as old:
        old.record("s", chat("one"))
    another_version(monkeypatch)
    with vmstore.open(store_path) as new:
        assert files(store_path) == {"views-0new0000.sqlite"}
        assert [call.call for call in new.session("s").calls()] == [1]


def test_damaged_views_of_another_version_go_too(store_path: Path) -> None:
    """A file in the name of old views that is none does not stay for ever."""
    with vmstore.open(store_path) as store:
        store.record("s", chat("one"))
    (store_path / "default" / "views-00000000.sqlite").write_bytes(b"dear diary " * 1_000)
    vmstore.open(store_path).close()
    assert "views-00000000.sqlite" not in files(store_path)


def test_two_who_find_other_views_make_them_anew_once(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two handles that find the views of another log only the first rebuilds them; the second uses those."""
    other = store_path.with_name("other.vms")
    for path, texts in ((store_path, ("one",)), (other, ("a", "b", "c"))):
        with vmstore.open(path) as store:
            for text in texts:
                store.record("s", chat(text))
    (mine,), (theirs,) = files(store_path), files(other)
    (store_path / "default" / mine).write_bytes((other / "default" / theirs).read_bytes())
    right, looked = view_file._look, []

    def look(path: Path, *arguments: object) -> object:
        looked.append(path)
        if len(looked) == 1:  # between this one's look and its lock another one does it all
            row = right(path, *arguments)  # type: ignore[arg-type]
            vmstore.open(store_path).close()
            return row
        return right(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(view_file, "_look", look)
    with caplog.at_level(logging.WARNING, "vmstore"), vmstore.open(store_path) as store:
        assert len(store.session("s").calls()) == 1
        assert store.verify().ok
    assert caplog.text.count("rebuilt") == 1
