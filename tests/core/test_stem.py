"""Stems: the forms of an English word are one term, and other words stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.text.stems import STOP_WORDS, stem, terms

FAMILIES = [
    "connect connected connecting connection connections",
    "cache caches cached caching",
    "deploy deploys deployed deploying deployment deployments",
    "authenticate authenticated authenticating authentication",
    "database databases", "policy policies", "retry retries retried retrying", "replicate replication replicated",
    "monitor monitors monitored monitoring", "configure configured configuration", "happy happiness",
    "run running runs", "choose chose chosen choosing", "study studied studies studying", "generalize generalization",
    "electric electrical electricity", "index indexes indexing", "store stored stores storing",
]  # fmt: skip
APART = [
    "new news",
    "policy police",
    "import important",
    "hope hop",
    "red read",
]


@pytest.mark.parametrize("family", FAMILIES)
def test_forms_are_one(family: str) -> None:
    """The forms of a word have one stem."""
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize("pair", APART)
def test_words_stay_apart(pair: str) -> None:
    """Words that only look alike keep stems of their own."""
    first, other = pair.split()
    assert stem(first) != stem(other)


def test_names_are_found_by_their_parts() -> None:
    """A name of several words counts by each, whichever way they are joined; in camel case as a whole too."""
    assert {"retri", "backoff"} <= set(terms("retry_with_backoff"))
    assert {"page", "fault", "handler", stem("pagefaulthandler")} <= set(terms("PageFaultHandler"))


def test_writing_without_spaces_counts_by_pairs() -> None:
    """A word of Chinese is found inside a sentence."""
    assert set(terms("北京")) <= set(terms("数据库在北京"))


@given(st.text(max_size=300))
def test_any_text_has_terms(text: str) -> None:
    """No text fails, no term is empty, no stop word is one, and the same text gives the same terms."""
    actual_terms = terms(text)
    assert actual_terms == terms(text) and "" not in actual_terms
    assert not {word for word in STOP_WORDS if terms(word)}
