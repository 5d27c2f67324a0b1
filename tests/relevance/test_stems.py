"""The endings of words, taken off by Python or by what is compiled."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from threading import Thread

import pytest

from vmstore.relevance import stems
from vmstore.relevance.words import LANGUAGES, Analyzer

SPECS = Path(__file__).parents[2] / "specs"
WORDS = 250  # made ones of a language


def made(algorithm: str) -> Iterator[str]:
    """Words with the endings and beginnings that an algorithm knows, of its own letters."""
    module = import_module(f"snowballstemmer.{algorithm}_stemmer")
    known = vars(getattr(module, f"{algorithm.title()}Stemmer"))
    parts = [entry.s for name, table in sorted(known.items()) if re.fullmatch(r"a_\d+", name) for entry in table]
    letters = sorted({letter for part in parts for letter in part if letter.isalpha()})
    chance = random.Random(algorithm)
    for _ in range(WORDS):
        first, *endings = chance.choices(parts, k=3)
        middle = "".join(chance.choices(letters, k=chance.randrange(1, 6)))
        yield chance.choice(("", first)) + middle + "".join(endings[: chance.randrange(3)])


def test_compiled_stems_are_those_of_python() -> None:
    """PyStemmer takes off the same endings as snowballstemmer, in every language that is offered."""
    pytest.importorskip("Stemmer")
    assert stems.compiled()
    written = sorted({word for page in SPECS.glob("*.md") for word in re.findall("[a-z]{3,}", page.read_text("utf-8"))})
    for language, algorithm in LANGUAGES.items():
        if not algorithm:
            continue
        plain, fast = stems.plain_stemmer(algorithm), stems.compiled_stemmer(algorithm)
        words = [*made(algorithm), *(written if language == "en" else ())]
        assert [word for word in words if plain(word) != fast(word)] == []
        assert sum(plain(word) != word for word in words) > WORDS // 10, language


def test_another_release_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyStemmer of another release than snowballstemmer may know other endings, so Python does it."""
    pytest.importorskip("Stemmer")
    monkeypatch.setattr(stems, "snowball_version", lambda: "2.9.1")
    assert not stems.compiled()
    monkeypatch.setattr(stems, "snowball_version", lambda: stems.import_module("Stemmer").version() + ".9")
    assert stems.compiled()


def test_without_the_extra_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyStemmer is not installed, texts have the same terms and an index the same version."""
    text = "The generations of relational painters were considering nationalities"
    fast = Analyzer("en")
    expected = fast.terms(text), fast.version
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    stems.stemmer.cache_clear()
    try:
        slow = Analyzer("en")
        assert not stems.compiled()
        assert (slow.terms(text), slow.version) == expected
    finally:
        stems.stemmer.cache_clear()


@pytest.mark.parametrize("make", [stems.plain_stemmer, stems.compiled_stemmer])
def test_threads_do_not_disturb_each_other(make: stems.MakeStem) -> None:
    """A stemmer works in a place of its own, so each thread has one: what one takes off is not another's."""
    if make is stems.compiled_stemmer:
        pytest.importorskip("Stemmer")
    stem = stems.for_all_threads(make, "english")
    endings = ("ational", "iveness", "ization", "ly")
    words = [begin + end for begin in ("nation", "relat", "consider") for end in endings]
    expected = [stem(word) for word in words]
    texts: list[list[str]] = []
    threads = [Thread(target=lambda: texts.extend([stem(word) for word in words] for _ in range(60))) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(texts) == 240 and all(each == expected for each in texts)
