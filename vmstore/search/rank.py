"""BM25: how well pages answer some words, with the counts and lengths of the texts in force at the moment.

Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with k1 = 1.2 and b = 0.75;
the weight of a word is Lucene's, which is never negative.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vmstore.core.text.tokenizer import words
from vmstore.errors import InputError
from vmstore.search.corpus import Corpus, IndexedContent
from vmstore.views.branch import Branch, BranchRange

K1 = 1.2
B = 0.75


class RankedPage(NamedTuple):
    """A page that holds one of the words, best first: its score, who wrote it, the content in force."""

    score: float
    lane: Branch
    content: IndexedContent
    text: str


def ranked(corpus: Corpus, moments: Sequence[tuple[Branch, int]], query: str) -> list[RankedPage]:
    """The pages that hold a word of the query at each lane's position; InputError where it has no word."""
    wanted = list(dict.fromkeys(words(query)))
    if not wanted:
        raise InputError(f"{query!r} has no word to search for; a word has letters or digits")
    found: list[tuple[Branch, IndexedContent, str, Counter[str]]] = []
    texts = total = 0
    for lane, position in moments:
        own = lane.upto(position)
        some = corpus.totals(own, lane.stretches[-1].low > 0)
        texts, total = texts + some.texts, total + some.words
        for content, text in corpus.texts(_in_force(lane, position, corpus.holding(wanted, own))):
            counts = Counter(words(text))
            if any(word in counts for word in wanted):
                found.append((lane, content, text, counts))
    frequency = {word: sum(word in counts for *_, counts in found) for word in wanted}
    weight = {word: math.log(1 + (texts - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}
    mean = total / texts if total else 1.0
    hits = [
        RankedPage(_score(counts, wanted, weight, mean), lane, content, text) for lane, content, text, counts in found
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.content.session, hit.content.page))


def _score(counts: Counter[str], wanted: Iterable[str], weight: dict[str, float], mean: float) -> float:
    norm = K1 * (1 - B + B * counts.total() / mean)
    return sum(weight[word] * counts[word] * (K1 + 1) / (counts[word] + norm) for word in wanted)


def _in_force(lane: Branch, position: int, candidates: Iterable[tuple[int, int]]) -> Iterator[IndexedContent]:
    """Those of some contents that a lane sees at a position, none having taken their place."""
    groups: dict[int, list[int]] = {}
    for session, at in candidates:
        groups.setdefault(session, []).append(at)
    own = lane.upto(position)
    for stretch in own:
        listed = json.dumps(groups.get(stretch.session, []))
        given: list[Any] = lane.db.execute(_GIVEN, (stretch.session, listed)).fetchall()
        rows = [IndexedContent(stretch.session, *row) for row in given]
        last = _last(lane, own, {row.page for row in rows})
        for row in rows:
            if last.get(row.page, row.position) == row.position:
                yield row


def _last(lane: Branch, own: Sequence[BranchRange], pages: Iterable[int]) -> dict[int, int]:
    """Where each page that was changed has its last full content."""
    listed = json.dumps(sorted(pages))
    last: dict[int, int] = {}
    for stretch in own:
        for page, position in lane.db.execute(_LAST, (stretch.session, listed, stretch.high)):
            last[page] = max(position, last.get(page, 0))
    return last


_GIVEN = """SELECT position, page, version, cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?)) AND level = 0 AND cell IS NOT NULL"""
_LAST = """SELECT page, max(position) FROM changes
  WHERE session = ? AND page IN (SELECT value FROM json_each(?)) AND position <= ? AND level = 0 GROUP BY page"""
