"""What a search of the debugger answers: the best pages with a line each, who said it and when, and why each is one."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import to_builtins

from vmstore.core.asof import Call, Head
from vmstore.core.page import PageType, Role
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Hit
from vmstore.relevance.excerpt import excerpt
from vmstore.relevance.query import parse_query
from vmstore.relevance.words import Analyzer
from vmstore.search.passages import texts_of
from vmstore.search.place import rules_of
from vmstore.store.reads.search import SHOWN_CHARS, Moments, everywhere, question_of, search
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis

FOUND_MAX = 50


class FoundHits(NamedTuple):
    """The answer of a search, the whole text of each hit where that was wanted, and by which rules words are read."""

    answer: dict[str, Any]
    texts: list[str]
    rules: Analyzer


def search_hits(
    store: Store, session: Session, words: str, *, call: int | None, everyone: bool, whole: bool
) -> FoundHits:
    """The best pages of a session, as of a call or now; if `everyone` those of all sessions, as they stand."""
    ns = store._ns
    question = question_of(ns, words)
    with ns.asking():
        lane = Branch(ns.views, ns.key(session.name) or 0)
        here = [(session.name, lane, basis(lane, Head() if call is None else Call(call)).position)]
        moments = everywhere(ns) if everyone else here
        hits = search(ns, moments, words, FOUND_MAX, question, explain=True)
        rules = rules_of(
            ns.languages, (stretch.session for _, of, position in moments for stretch in of.upto(position))
        )
        lanes = {name: of for name, of, _ in moments}
        answer = {
            "hits": [{**hit.to_dict(), **_place(lanes[hit.session], hit)} for hit in hits],
            "explanation": to_builtins(hits.explanation),
            "notes": hits.notes,
        }
        return FoundHits(answer, _texts(ns, moments, hits) if whole else [], rules)


def _place(lane: Branch, hit: Hit) -> dict[str, Any]:
    """Who said what was found, and when."""
    ((_, turn, call, at, role, type_),) = lane.rows(_PLACE, [int(hit.page[1:])])
    return {"turn": turn, "call": call, "at": at, "role": Role(role).word, "type": PageType(type_).word}


def _texts(ns: Namespace, moments: Moments, hits: list[Hit]) -> list[str]:
    """All that each hit says."""
    known: dict[tuple[str, int], str] = {}
    for name, lane, position in moments:
        pages = [int(hit.page[1:]) for hit in hits if hit.session == name]
        known.update(((name, page), text) for page, text in texts_of(ns.log, lane, {lane.session: position}, pages))
    return [known[hit.session, int(hit.page[1:])] for hit in hits]


def masked(hits: FoundHits, texts: list[str], words: str) -> dict[str, Any]:
    """The answer with its lines taken from masked texts, and without the terms that stand in those it found.

    A line may cut a secret in half, which nobody would know for one.
    """
    asked = parse_query(words, hits.rules)
    for hit, text in zip(hits.answer["hits"], texts, strict=True):
        line = excerpt(text, asked, hits.rules, SHOWN_CHARS)
        hit |= {"text": line.text, "marks": list(line.marks)}
        for word in hit["words"]:
            word["term"] = ""
    for word in hits.answer["explanation"]["words"]:
        word |= {"terms": [], "alike": {}}
    return hits.answer


_PLACE = """SELECT page, turn, call, at, role, type FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
