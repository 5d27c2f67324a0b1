"""Cold recall: what a user's other sessions hold of some words, weighed by age, likeness and importance."""

from __future__ import annotations

import math
import re
from typing import Any

from vmstore.core.page import PageType
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import page_facts
from vmstore.store.reads.search import Moments
from vmstore.store.recall.recall import FoundTexts, types_of
from vmstore.views.branch import NEVER, Branch

RECENCY, LIKENESS, ANCHOR = 0.5, 0.3, 0.2
DECAY = 0.1  # a day
DAY_US = 86_400_000_000
SUMMARIES = 5
_SELF = re.compile(
    r"\b(?:i (?:mentioned|said|told|asked|wanted|like|prefer|am|was)|my|remember when|do you remember|about me)\b", re.I
)


def others(ns: Namespace, user: str, lane: Branch) -> Moments:
    """What each other session of a user wrote itself, up to its end; those a session descends from are its own past."""
    own = {stretch.session for stretch in lane.upto(NEVER)}
    return [moment for moment in written_by(ns, user) if moment[1].session not in own]


def written_by(ns: Namespace, user: str) -> Moments:
    """What each session of a user wrote itself, up to its end."""
    rows: list[Any] = ns.views.execute(_SESSIONS, (user,)).fetchall()
    return [(name, Branch(ns.views, key).alone(), position) for key, name, position in rows]


def weighed(ns: Namespace, answer: FoundTexts, query: str, now_us: int) -> FoundTexts:
    """The hits by .5 of their recency, .3 of their likeness, .2 of how much hangs on them; five summaries at most.

    Recency decays by a tenth a day. What hangs on a page is its importance; where the question is about who asks,
    a claim has all of it.
    """
    with ns.asking():
        facts = page_facts(answer.hits, 0)
        types = types_of(answer.hits)
    best = max((hit.score for hit in answer.hits), default=1.0) or 1.0
    of_self = _SELF.search(query) is not None
    hits = []
    for hit in answer.hits:
        place = hit.lane.session, hit.page
        type_, importance = types[place]
        age = max(0, now_us - facts[place].at) / DAY_US
        anchor = 1.0 if of_self and type_ == PageType.CLAIM else importance / 1_000_000
        score = RECENCY * math.exp(-DECAY * age) + LIKENESS * hit.score / best + ANCHOR * anchor
        hits.append((hit._replace(score=score), type_))
    hits.sort(key=lambda item: (-item[0].score, item[0].lane.session, item[0].page))
    summaries = [hit for hit, type_ in hits if type_ == PageType.SUMMARY][:SUMMARIES]
    chosen = {(hit.lane.session, hit.page) for hit in summaries}
    kept = [hit for hit, type_ in hits if type_ != PageType.SUMMARY or (hit.lane.session, hit.page) in chosen]
    return FoundTexts(kept, answer.note)


_SESSIONS = "SELECT session, name, position FROM sessions WHERE user = ? AND hidden = 0 ORDER BY session"
