"""Hot, warm and cold: what of a session and of a user's other sessions is how near, as questions with fixed numbers.

Nothing is moved and nothing is deleted: which turn is how near follows from the log as of a moment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from vmstore.core.address import page_name
from vmstore.core.page import Role
from vmstore.core.text.stems import terms
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import page_facts, texts_of
from vmstore.store.reads.search import Moments
from vmstore.store.recall.cold import ANCHOR, DAY_US, DECAY, LIKENESS, RECENCY, weighed
from vmstore.store.recall.recall import found
from vmstore.views.branch import Branch
from vmstore.views.reads.spoken_turns import SpokenMessage, newest_turns
from vmstore.views.reads.turn_tiers import (
    HOT_TOKENS,
    HOT_TURNS,
    HOT_WITH_CURRENT,
    WARM_TOKENS,
    WARM_TURNS,
    critical_turns,
    fitting,
    is_over,
    promoted_turns,
)

COLD_FOUND = 5


class NearTurn(msgspec.Struct, frozen=True):
    """A turn of a session: what was said in it by whom, its tokens, and how near it is.

    `promoted` is one that a reference brought near again for some turns; `is_identity_critical` the first turn of
    a session, and one that a fact about who somebody is was taken from: those are kept to the word.
    """

    turn: int
    at_us: int
    user: str
    reply: str
    user_tokens: int
    reply_tokens: int
    total_tokens: int
    tier: str
    is_identity_critical: bool = False
    promoted: bool = False


class ColdPage(msgspec.Struct, frozen=True):
    """A page of what is far: .5 of its recency, .3 of its similarity and .2 of its anchor make its score."""

    page: str
    session: str
    at_us: int
    text: str
    score: float
    recency: float
    similarity: float
    anchor: float


def hot(ns: Namespace, lane: Branch, position: int, now_us: int, current_tokens: int = 0) -> list[NearTurn]:
    """The last five turns, as far as they take 1,500 tokens, and 2,000 with the current one; none of a session over."""
    turns = newest_turns(lane, position, HOT_TOKENS, 1)
    if not turns or is_over(lane, position, turns[0][-1].at_us, now_us):
        return []
    room = min(HOT_TOKENS, HOT_WITH_CURRENT - current_tokens)
    kept = turns[: fitting(_tokens(turns), HOT_TURNS, room)]
    return _near(ns, lane, position, kept, "hot", frozenset())


def warm(ns: Namespace, lane: Branch, position: int, now_us: int, query: str = "") -> list[NearTurn]:
    """The fifty turns before the hot ones, within 15,000 tokens, and older ones that were referred to just now.

    With a query those that have a word of it come first; where none has, the most recent.
    """
    skipped = len(hot(ns, lane, position, now_us))
    turns = newest_turns(lane, position, WARM_TOKENS + HOT_TOKENS, skipped + 1)[skipped:]
    kept = turns[: fitting(_tokens(turns), WARM_TURNS, WARM_TOKENS)]
    last = kept[-1][0].turn if kept else 0
    promoted = promoted_turns(lane, position, last)
    if promoted:
        older = newest_turns(lane, position, 1 << 40, 0)
        kept += [turn for turn in older if turn[0].turn in promoted]
    near = _near(ns, lane, position, kept, "warm", promoted)
    asked = set(terms(query))
    return sorted(near, key=lambda turn: asked.isdisjoint(terms(f"{turn.user} {turn.reply}"))) if asked else near


def cold(ns: Namespace, moments: Moments, query: str, now_us: int, limit: int = COLD_FOUND) -> list[ColdPage]:
    """What sessions hold of a query, by age, likeness and what hangs on it, each value told."""
    answer = found(ns, moments, query)
    likeness = {(hit.lane.session, hit.page): hit.score for hit in answer.hits}
    best = max(likeness.values(), default=1.0) or 1.0
    ranked = weighed(ns, answer, query, now_us).hits[:limit]
    names = {lane.session: name for name, lane, _ in moments}
    with ns.asking():
        facts = page_facts(ranked, 0)
    pages = []
    for hit in ranked:
        at = facts[hit.lane.session, hit.page].at
        recency = math.exp(-DECAY * max(0, now_us - at) / DAY_US)
        similarity = likeness[hit.lane.session, hit.page] / best
        anchor = max(0.0, (hit.score - RECENCY * recency - LIKENESS * similarity) / ANCHOR)
        values = [round(value, 6) for value in (hit.score, recency, similarity, anchor)]
        pages.append(ColdPage(page_name(hit.page), names[hit.lane.session], at, hit.text, *values))
    return pages


def _tokens(turns: Sequence[Sequence[SpokenMessage]]) -> list[int]:
    return [sum(message.tokens for message in turn) for turn in turns]


def _near(
    ns: Namespace,
    lane: Branch,
    position: int,
    turns: Sequence[Sequence[SpokenMessage]],
    tier: str,
    promoted: frozenset[int],
) -> list[NearTurn]:
    pages = [page for turn in turns for message in turn for page in message.pages]
    texts = dict(texts_of(ns.log, lane, {lane.session: position}, pages))
    critical = critical_turns(lane, position)
    return [_turn(turn, texts, tier, critical, promoted) for turn in turns]


def _turn(
    messages: Sequence[SpokenMessage],
    texts: dict[int, str],
    tier: str,
    critical: frozenset[int],
    promoted: frozenset[int],
) -> NearTurn:
    said = {
        role: [message for message in messages if message.role == role]
        for role in (int(Role.USER), int(Role.ASSISTANT))
    }
    user, reply = (
        "\n".join(texts[page] for message in some for page in message.pages if page in texts) for some in said.values()
    )
    user_tokens, reply_tokens = (sum(message.tokens for message in some) for some in said.values())
    number = messages[0].turn
    return NearTurn(
        number, messages[0].at_us, user, reply, user_tokens, reply_tokens,
        sum(message.tokens for message in messages), tier,
        is_identity_critical=number in critical, promoted=number in promoted,
    )  # fmt: skip
