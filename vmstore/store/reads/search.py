"""Searching: the pages that hold some words, of one session or of all, as of any moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from vmstore.core.address import page_name
from vmstore.errors import InputError
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Hit, Hits
from vmstore.relevance.excerpt import ExcerptMaker
from vmstore.relevance.query import parse_query
from vmstore.search.blend import answers
from vmstore.search.explanation import explained
from vmstore.search.rank import NO_WORDS
from vmstore.views.branch import Branch, each_alone

if TYPE_CHECKING:
    from vmstore.namespace.closeness import QuestionVector

NOTHING = "No text of that moment has any of the words, or what is required of it."
SHOWN_CHARS = 120  # of a text, in one line


Moments = Sequence[tuple[str, Branch, int]]
"""Sessions to search: the name of each, what is looked at of it, and up to which position."""


def everywhere(ns: Namespace) -> Moments:
    """Each session's own branch up to its end."""
    return list(each_alone(ns.views))


def question_of(ns: Namespace, query: str) -> QuestionVector | None:
    """The vector of what is asked, where an embedder was handed in; asked for before the views are held."""
    return ns.closeness.question(query) if ns.embedder is not None and isinstance(query, str) else None


def search(
    ns: Namespace,
    moments: Moments,
    query: str,
    limit: int | None,
    question: QuestionVector | None = None,
    score: str | None = None,
    explain: bool = False,
) -> Hits:
    """The best answers of some sessions, each as of its position; within one moment of the namespace."""
    if not isinstance(query, str):
        raise InputError(f"a search is a text, and {query!r} is none", code="not-a-text")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InputError(f"limit {limit!r} is no number of pages from 1 up", code="not-a-limit")
    with ns.asking():
        lanes = [(lane, position) for _, lane, position in moments]
        texts = ns.texts(lanes)
        closeness, note = ns.closeness.of(question, lanes, texts) if question is not None else (None, None)
        try:
            hits = answers(texts, lanes, query, limit, closeness=closeness, score=score)
        except InputError as error:
            if error.code != NO_WORDS:
                raise
            hits = []  # what was typed has no word, which the notes say
        asked = parse_query(query, texts.analyzer)
        line_of = ExcerptMaker(asked, texts.analyzer, SHOWN_CHARS).of
        found = [
            Hit(
                moments[hit.lane][0], page_name(hit.page), round(hit.score, 6), hit.version, hit.position,
                partial(line_of, text),
            )
            for hit, text in zip(hits, texts.texts([hit.row for hit in hits]), strict=True)
        ]  # fmt: skip
        nothing = [] if found or asked.empty or note is not None else [NOTHING]
        notes = [*asked.notes, *nothing, *([] if note is None else [note])]
        if not explain:
            return Hits(found, notes)
        vectors = closeness.coverage if closeness is not None else note
        about, reasons = explained(texts, query, hits, limit, score, vectors)
        return Hits([hit.explained(*why) for hit, why in zip(found, reasons, strict=True)], notes, about)
