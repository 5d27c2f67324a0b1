"""The language of a namespace's texts."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import chat
from tests.refusals import refused
from vmstore.errors import InputError, ReadOnlyError
from vmstore.search import place
from vmstore.store.store import Store


def german_store(path: Path) -> Store:
    """A store with a German text."""
    store = vmstore.open(path)
    store.record("reise", chat("Die Häuser am Fluss sind alt."))
    return store


def finds(store: Store, query: str) -> bool:
    """Whether a search of all sessions finds anything, and one of the session at its first call the same."""
    actual_bool = bool(store.search(query))
    assert bool(store.session("reise").search(query, call=1)) == actual_bool
    return actual_bool


@pytest.mark.parametrize("indexed", [True, False])
def test_a_stated_language_holds_for_every_moment(
    tmp_path: Path, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """German forms are found once German is stated, in texts from before too, with the index and without."""
    assert place.installed()
    if not indexed:
        monkeypatch.setattr("vmstore.search.place.installed", lambda: False)
    with german_store(tmp_path / "a.vms") as store:
        assert store.index.language() == "en"
        assert not finds(store, "Haus")
        store.index.set_language("de")
        assert store.index.language() == "de"
        assert finds(store, "Haus")
        assert store.search("Haus")[0].text == "Die Häuser am Fluss sind alt."
        assert store.verify().ok
    with vmstore.open(tmp_path / "a.vms", "r") as store:
        assert store.index.language() == "de"
        assert finds(store, "Haus")
        with pytest.raises(ReadOnlyError):
            store.index.set_language("en")


def test_another_handle_hears_of_it(tmp_path: Path) -> None:
    """What one handle states holds for the next question of another."""
    with german_store(tmp_path / "a.vms") as store, vmstore.open(tmp_path / "a.vms") as other:
        assert not finds(other, "Haus")
        store.index.set_language("de")
        assert finds(other, "Haus")
        other.index.set_language("en")
        assert not finds(store, "Haus")


def test_stating_it_again_writes_nothing(tmp_path: Path) -> None:
    """The language that holds is not logged a second time."""
    with german_store(tmp_path / "a.vms") as store:
        store.index.set_language("de")
        before = len(store.admin.log.tail(0, 100))
        store.index.set_language("de")
        assert len(store.admin.log.tail(0, 100)) == before


def test_a_language_without_rules_is_refused(tmp_path: Path) -> None:
    """Who names no language there are rules for is told which there are, and nothing is logged."""
    with german_store(tmp_path / "a.vms") as store:
        with refused("no-language", InputError):
            store.index.set_language("klingon")
        assert store.index.language() == "en"
