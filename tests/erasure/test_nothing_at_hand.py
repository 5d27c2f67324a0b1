"""What was erased is at hand nowhere in the process: no cache of a store holds it, as it did before."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest

import vmstore
from vmstore.search.place import analyzer
from vmstore.vmql import text_cache

WORD = "zyzzyvaqx"
PASSED = (type, ModuleType, FunctionType, CodeType, FrameType)


def at_hand(roots: Iterable[Any], word: str) -> list[str]:
    """The kinds of objects, of those that can be reached from some, that hold a word."""
    left, seen, names = [*roots], set(), []
    while left:
        holder = left.pop()
        for each in gc.get_referents(holder):
            if isinstance(each, str | bytes | bytearray):
                if (word in each) if isinstance(each, str) else (word.encode() in each):
                    names.append(type(holder).__name__)
            elif id(each) not in seen and not isinstance(each, PASSED):
                seen.add(id(each))
                left.append(each)
    return names


def lengths(texts: list[str]) -> list[list[float]]:
    """A vector of each text."""
    return [[float(len(text)), 1.0] for text in texts]


@pytest.mark.parametrize("indexed", [True, False])
def test_no_cache_holds_what_was_erased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexed: bool) -> None:
    """After a page was recorded, embedded, searched and recalled its words are in memory, and erased they are not."""
    if not indexed:
        monkeypatch.setattr("vmstore.search.place.installed", lambda: False)
    with vmstore.open(tmp_path / "a.vms", embedder=vmstore.FunctionEmbedder("l@1", lengths)) as store:
        messages = [{"role": "user", "content": f"line {n} {WORD if n == 5 else 'fence'}"} for n in range(40)]
        store.record("s", {"model": "m", "messages": messages}, {"choices": [{"message": {"content": "So."}}]})
        store.index.embed()
        session = store.session("s")
        page = session.search(WORD)[0].page
        assert session.memory.find_quote(WORD).quotes[0].page == page
        del messages
        asked = f"PAGES count(*) WHERE text MATCHES '{WORD}' OR text LIKE '%{WORD}%'"
        assert list(store.query(asked)) == list(store.sql(f"SELECT 1 FROM pages WHERE text LIKE '%{WORD}%'"))
        del asked
        assert (
            at_hand((analyzer("en"),), WORD)
            and at_hand(text_cache._MADE, WORD)
            and "RecordedRequest" in at_hand((store,), WORD)
        )
        store.trust.erase(page=page, in_session="s", reason="secret")
        assert at_hand((store, analyzer("en"), *text_cache._MADE), WORD) == []
        session.search("fence line")
        assert at_hand((store, analyzer("en"), *text_cache._MADE), WORD) == []
