"""Extracts from a text the sentences that answer a question: those with most of its rare words, in order."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence

from vmstore.core.text.stems import terms
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.vm.assembly.message_cut import cut

GAP = "…"
_SENTENCE = re.compile(r"(?<=[.!?;])[\"')\]]*\s+|\n+")
SHORT_TOKENS = 45  # a text of no more is shown whole
PICKED_TOKENS = 45  # of a longer one, so much is
LEAST_TOKENS = 22  # and where there is little room


def weights(asked: Iterable[str], texts: Sequence[str]) -> dict[str, float]:
    """The weight of each term of a question among some texts: rarer terms weigh more."""
    wanted = frozenset(asked)
    counts = Counter(term for text in texts for term in wanted.intersection(terms(text)))
    return {term: math.log(1 + len(texts) / (1 + counts[term])) for term in wanted}


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, each on one line."""
    return [" ".join(each.split()) for each in _SENTENCE.split(text) if each.strip()]


class AnswerSentences:
    """The sentences that answer a question, of texts that are asked best first; each sentence is told once.

    What many texts say, as a phrase somebody ends each answer with, tells none of them from the others: it answers
    the less, the more of them have it.
    """

    def __init__(self, asked: Iterable[str], texts: Sequence[str]) -> None:
        self._weights = weights(asked, texts)
        self._sentences = {text: sentences_of(text) for text in texts}
        self._counts = Counter(sentence for text in texts for sentence in set(self._sentences[text]))
        self._shown: set[str] = set()

    def of(self, text: str, tokens: int) -> str:
        """The best answering sentences of a text within some tokens, `…` for omissions; empty where none is new.

        A short text stands as it is.
        """
        sentences = self._sentences.get(text) or sentences_of(text)
        new = [sentence not in self._shown for sentence in sentences]
        if len(text) <= min(tokens, SHORT_TOKENS) * CHARACTERS_PER_TOKEN:
            self._shown.update(sentences)
            return " ".join(sentences) if any(new) else ""
        worth = [self._worth(sentence) * is_new for sentence, is_new in zip(sentences, new, strict=True)]
        ordered = sorted((at for at, value in enumerate(worth) if value > 0), key=lambda at: (-worth[at], at))
        room = tokens * CHARACTERS_PER_TOKEN
        chosen: set[int] = set()
        for at in ordered:
            needed = len(sentences[at]) + len(GAP) + 1
            if needed <= room:
                chosen.add(at)
                room -= needed
        if not chosen:
            return cut(sentences[ordered[0]], room) if ordered else ""
        self._shown.update(sentences[at] for at in chosen)
        return _joined(sentences, chosen)

    def _worth(self, sentence: str) -> float:
        count = self._counts[sentence]
        found = sum(self._weights.get(term, 0.0) for term in sorted({*terms(sentence)}))
        return found / count**2 if count else found


def shorter(text: str, tokens: int) -> str:
    """The beginning of what was picked, within fewer tokens, whole sentences where there is one."""
    sentences = sentences_of(text)
    kept: list[str] = []
    for sentence in sentences:
        if sum(map(len, kept)) + len(kept) + len(sentence) > tokens * CHARACTERS_PER_TOKEN:
            break
        kept.append(sentence)
    return " ".join(kept) if any(each != GAP for each in kept) else cut(text, tokens * CHARACTERS_PER_TOKEN)


def _joined(sentences: Sequence[str], chosen: Container[int]) -> str:
    pieces: list[str] = []
    for at, sentence in enumerate(sentences):
        if at in chosen:
            pieces.append(sentence)
        elif not pieces or pieces[-1] != GAP:
            pieces.append(GAP)
    return " ".join(pieces)
