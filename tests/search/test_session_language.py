"""The language of a session beside that of its store: each text by its own rules, and all of them asked together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import chat
from tests.refusals import refused
from vmstore.errors import InputError, UnknownError
from vmstore.search import place
from vmstore.store.store import Store

GERMAN, ENGLISH, FRENCH = "Die alten Häuser am Fluss sind leer.", "Old houses were painted.", "Les chevaux mangent."


@pytest.fixture(params=[True, False], ids=["index", "read"])
def indexed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With the text index, and where every text is read for each question."""
    assert place.installed()
    if not request.param:
        monkeypatch.setattr("vmstore.search.place.installed", lambda: False)
    return bool(request.param)


def travels(path: Path) -> Store:
    """A store in English with a session in German and one in French."""
    store = vmstore.open(path)
    for name, text in (("reise", GERMAN), ("trip", ENGLISH), ("voyage", FRENCH)):
        store.record(name, chat(text))
    store.index.set_language("de", session="reise")
    store.index.set_language("fr", session="voyage")
    return store


def texts_of(store: Store, query: str, **options: Any) -> list[str]:
    """The texts that a search of all sessions gives."""
    return [hit.text for hit in store.search(query, **options)]


@pytest.mark.parametrize("score", ["score@5", "score@1"])
def test_each_session_is_found_by_its_own_stems(tmp_path: Path, indexed: bool, score: str) -> None:
    """One search over sessions of three languages finds a form of a word in each."""
    with travels(tmp_path / "a.vms") as store:
        assert texts_of(store, "Haus", score=score) == [GERMAN]
        assert texts_of(store, "house", score=score) == [ENGLISH]
        assert texts_of(store, "paint", score=score) == [ENGLISH]
        assert texts_of(store, "cheval", score=score) == [FRENCH]
        assert store.verify().ok


def test_alone_a_session_is_asked_by_its_own_rules(tmp_path: Path, indexed: bool) -> None:
    """A session's own search, and its quotes, know its language."""
    with travels(tmp_path / "a.vms") as store:
        reise = store.session("reise")
        assert [hit.text for hit in reise.search("Haus")] == [GERMAN]
        assert [quote.match for quote in reise.memory.find_quote("Haus").quotes] == ["words"]
        assert not store.session("voyage").search("Haus")


def test_what_is_required_and_marked_is_so_in_any_language(tmp_path: Path, indexed: bool) -> None:
    """A word with a plus or a minus, a phrase and the marks of a hit go by the text's own language."""
    with travels(tmp_path / "a.vms") as store:
        assert texts_of(store, "+Haus Fluss") == [GERMAN]
        assert GERMAN not in texts_of(store, "Fluss -Haus")
        assert texts_of(store, '"alten Häuser"') == [GERMAN]
        (hit,) = store.search("Haus")
        assert [hit.text[first:last] for first, last in hit.marks] == ["Häuser"]


def test_a_stop_word_of_one_language_is_not_looked_for(tmp_path: Path, indexed: bool) -> None:
    """Words that say nothing in one of the languages choose no text."""
    with travels(tmp_path / "a.vms") as store:
        for question, text in (("die Häuser", GERMAN), ("les chevaux", FRENCH), ("the houses", ENGLISH)):
            answer = store.search(question, explain=True)
            assert answer[0].text == text and answer.explanation is not None
            assert [word.word for word in answer.explanation.words] == question.split()[1:]


def test_a_fork_speaks_as_its_parent(tmp_path: Path, indexed: bool) -> None:
    """What a fork writes is read by its parent's language, unless another is stated for it."""
    with travels(tmp_path / "a.vms") as store:
        assert texts_of(store, "Haus") == [GERMAN]
        store.session("reise").fork("umweg")
        store.record("umweg", chat("Zwei Bäume stehen dort."))
        assert store.index.language("umweg") == "de"
        assert texts_of(store, "Baum") == ["Zwei Bäume stehen dort."]
        store.index.set_language("none", session="umweg")
        assert store.index.language("umweg") == "none" and store.index.language("reise") == "de"
        assert texts_of(store, "Baum", score="score@1") == [] and texts_of(store, "Haus") == [GERMAN]


def test_another_handle_and_a_reader_know_it(tmp_path: Path) -> None:
    """What is stated is in the log: the next handle has it, and a rebuild gives the same answers."""
    with travels(tmp_path / "a.vms") as store, vmstore.open(tmp_path / "a.vms") as other:
        assert texts_of(other, "Haus") == texts_of(store, "Haus") == [GERMAN]
        other.index.set_language("en", session="reise")
        assert texts_of(store, "Haus", score="score@1") == []
        other.index.set_language("de", session="reise")
        other.admin.rebuild()
        assert texts_of(other, "Haus") == [GERMAN]
    with vmstore.open(tmp_path / "a.vms", "r") as store:
        assert store.index.languages() == {"reise": "de", "voyage": "fr"}
        assert texts_of(store, "cheval") == [FRENCH]


def test_what_is_unknown_is_refused(tmp_path: Path) -> None:
    """A session that is not there, and a language without rules, are named."""
    with travels(tmp_path / "a.vms") as store:
        with refused("no-session", UnknownError, "nowhere"):
            store.index.set_language("de", session="nowhere")
        with refused("no-language", InputError, "klingon"):
            store.index.set_language("klingon", session="reise")
