"""Candidate pages for a message: everything said and printed, ranked by its words, and the answers of a search.

All of it is found without a model and logged as it is found: a replay reads it there and looks for nothing.
A decision is not shown without the one that replaced it: with a page comes what was decided since in its place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from vmstore.core.decision import Cause, Signal, Use
from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import Evict, Reference, Search
from vmstore.core.page import PageType
from vmstore.core.recalls import ppm
from vmstore.core.text.stems import terms
from vmstore.live.extraction import last, texts
from vmstore.live.messages import LoggedMessage
from vmstore.live.recall.index import RecallMatch
from vmstore.live.runtime import Act
from vmstore.vm import signals

TELLING = 3  # terms of a message that says itself what it is about
WORK = 2  # messages before, that say what is worked on
WORKED_ON = 0.15  # what a word of theirs weighs beside one of the message's
CLAIMED = 1.3  # a claim that holds, beside what was only said
NEAR = 8  # scores of one eighth of a natural logarithm are near: the newer first
ECHO = 0.5  # what a claim was found in, beside what no claim tells
SHARE, CUT, WISHES_MAX = 0.2, 0.2, 64  # of what is asked, by weight, that a page has; of the best score; pages
CUT_OF_DONE = 0.6  # the same of what was done or printed, and says not how something is to be
SHARE_OF_WORK, CUT_OF_WORK, FEW = 0.4, 0.7, 6  # the same where a message asks nothing and speaks of nothing said before
KIN, KIN_SAID_MAX = 16, 48  # statements that share with the message what few others have; what more state is not few
WORTH = 256  # tokens a page may take that has all of what is asked; what has a part of it as large a part of them
FOLLOWED = 32  # of the best answers to a search, of which is looked for what changed them


def prefetch(act: Act, spoke: LoggedMessage) -> None:
    """Wishes for the pages a message may need, by what it says and what is worked on, in the order they came to be."""
    settings = act.state.settings
    if settings is None or settings.paging == "model" or not settings.prefetch:
        return
    message = "\n".join(source.text for source in texts(act, spoke.pages))
    asks, past = signals.asks(message), signals.asks_for_the_past(message)
    asked = signals.asked(message)
    before = last(act, spoke.message)[-WORK:] if len(asked) < TELLING else []
    for source in (source for one in before for source in texts(act, one)):
        for term in terms(signals.read(source.text)):
            asked.setdefault(term, WORKED_ON)
    new = frozenset(spoke.pages)
    ranked = _ranked(act, asked, past, new)
    wishes = _chosen(act, _evident(act, ranked, asks, new))
    signal = Signal.RECALL if signals.recalls(message) or past else Signal.TOPIC
    for one in sorted(wishes):
        signal_of = _signal(act, one, signal)
        act.tell(Reference(one.page, Use.SIGNAL, act.state.call, signal=signal_of, evidence=act.cell(_why(one))))
    for summary in act.spoken.summaries[-settings.prefetch_depth :] if settings.prefetch_depth else ():
        held = act.state.pages[summary]
        gone = summary not in act.state.here and summary not in act.state.barred
        useful = held.used_turn >= held.entered  # or it came back the last time for nothing
        if gone and useful and summary not in {wish.page for wish in wishes}:
            act.tell(Reference(summary, Use.SIGNAL, act.state.call, signal=Signal.SUMMARY))


def look_for(
    act: Act, query: str, hits: Sequence[tuple[int, float]], total: int, pages_max: int
) -> tuple[list[tuple[int, float]], int]:
    """The hits that the model's search returns, best first; logged.

    What was replaced is left out where the past is not asked for, what may have changed a hit stands before it, and
    what the model sees already comes last.
    """
    state = act.state
    act.index.follow(state, act.spoken, act.forms)
    out = _out(act, signals.asks_for_the_past(query))
    held = [(page, score) for page, score in hits if page not in out and page not in state.barred]
    found: dict[int, float] = {}
    for page, score in held[:FOLLOWED]:
        for one in (*_after(act, RecallMatch(page, score, ())), page):
            found.setdefault(one, score)
    found |= {page: score for page, score in held if page not in found}
    seen = {page for page in found if page in state.here and not state.here[page].level}
    best = sorted(found, key=seen.__contains__)[:pages_max]
    total = max(total - len(hits) + len(held), len(found))
    act.tell(
        Search(
            act.cell(query.encode("utf-8", "backslashreplace")),
            tuple(best),
            total,
            scores=tuple(ppm(found[page]) for page in best),
        )
    )
    return [(page, found[page]) for page in best], total


def _out(act: Act, past: bool) -> frozenset[int]:
    """Superseded pages; where the past is asked for only the claims, since messages tell it in their order."""
    pages = act.state.pages
    return frozenset(page for page in act.spoken.past if not past or pages[page].type is PageType.CLAIM)


def _ranked(act: Act, asked: dict[str, float], past: bool, new: frozenset[int]) -> list[RecallMatch]:
    """All older pages that say something of what is asked, best first; what holds before what it was found in."""
    state, spoken = act.state, act.spoken
    act.index.follow(state, spoken, act.forms)
    out, barred = _out(act, past), state.barred
    found = act.index.ranked(asked, lambda page: page not in new and page not in barred and page not in out)
    claims = {spoken.named[name] for name in spoken.claims}
    stated = frozenset() if past else frozenset(page for claim in claims for page in spoken.sources.get(claim, ()))
    weights = {**dict.fromkeys(stated, ECHO), **dict.fromkeys(claims, CLAIMED)}
    weighed = [claim._replace(score=claim.score * weights.get(claim.page, 1.0)) for claim in found]
    weighed.sort(key=lambda claim: (-int(NEAR * math.log(claim.score + 1e-9)), -claim.page))
    return weighed


def _evident(act: Act, ranked: Sequence[RecallMatch], asks: bool, new: frozenset[int]) -> list[RecallMatch]:
    """The pages that are worth bringing back, each with what may have changed it since.

    Where the message asks, what was decided of each thing it names comes too.
    """
    certain = _certain(act, ranked, asks, new)
    telling = [match for match in certain if act.index.tells(match.page)]
    wished = {match.page: match for match in _best(act, telling, asks)}
    if asks:
        wished |= {match.page: match for match in _kin(act, telling) if match.page not in wished and _pays(act, match)}
    return [match._replace(after=_after(act, match, new)) for match in wished.values()]


def _certain(act: Act, ranked: Sequence[RecallMatch], asks: bool, new: frozenset[int]) -> list[RecallMatch]:
    """The pages without the claims that something stated since may say otherwise of.

    Those leave the prompt where the message asks for them: what was said is recalled, in its order.
    """
    claims = [match.page for match in ranked if _is_claim(act, match.page)]
    topics = act.spoken.claims.values() if claims else ()
    about = Counter(term for claim in topics for term in _words(claim.topic))
    doubted = {page: None for page in claims if _is_doubted(act, page, about, new)}
    for page in doubted if asks else ():
        _give_way(act, page)
    return [match for match in ranked if match.page not in doubted]


def _is_doubted(act: Act, page: int, about: Mapping[str, int], new: frozenset[int]) -> bool:
    """Whether something stated after a claim names all that it is about, or a word that no other is about."""
    whole = _words(act.spoken.topic(page))
    telling = {term for term in whole if about[term] <= 1}
    return bool(whole) and act.index.names_since(page, whole, telling, new)


@lru_cache(maxsize=4_096)
def _words(topic: str) -> frozenset[str]:
    """The terms of a topic."""
    return frozenset(terms(topic))


def _best(act: Act, telling: Sequence[RecallMatch], asks: bool) -> list[RecallMatch]:
    """Those that have enough of what is asked, and of the best one's score."""
    share, cut, most = (SHARE, CUT, WISHES_MAX) if asks else (SHARE_OF_WORK, CUT_OF_WORK, FEW)
    fitting = [match for match in telling if match.share >= share]
    first = max((match.score for match in fitting), default=0.0)
    near = (match for match in fitting if match.score >= cut * first)
    best = [match for match in near if act.index.decides(match.page) or _answers(match, first)]
    return [match for match in best[:most] if _pays(act, match)]


def _answers(match: RecallMatch, first: float) -> bool:
    """Whether what was done or printed is as good an answer as what is decided."""
    return match.share >= SHARE_OF_WORK and match.score >= CUT_OF_DONE * first


def _is_claim(act: Act, page: int) -> bool:
    return act.state.pages[page].type is PageType.CLAIM


def _pays(act: Act, match: RecallMatch) -> bool:
    """Whether a page is worth its tokens for what it has of what is asked; a claim always is.

    What is written costs 1.25 a token and a tenth at each call after it, so what has little may not take much.
    """
    form = act.state.pages[match.page].forms[0]
    return _is_claim(act, match.page) or (form is not None and form.tokens <= WORTH * match.share)


def _kin(act: Act, ranked: Sequence[RecallMatch]) -> list[RecallMatch]:
    """Decisions about each thing a message names, whatever else the message asks.

    A question in other words than the decision's shares with it the name of what it is about alone.
    """
    kin: dict[int, RecallMatch] = {}
    stating = [one for one in ranked if act.index.decides(one.page)]
    for term in dict.fromkeys(term for one in stating for term in one.terms):
        if act.index.stated(term) <= KIN_SAID_MAX:
            of = [one for one in stating if term in one.terms]
            kin |= {one.page: one for one in of[:KIN]}
    return list(kin.values())


def _after(act: Act, match: RecallMatch, new: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Pages that may have changed a page since: its replacements, and later messages on it."""
    if not act.index.decides(match.page):
        return ()
    topic, out = act.spoken.topic(match.page), act.state.barred
    later = act.index.later(match.page, _text(act, match.page), topic, act.spoken.topic)
    after = (*act.spoken.successors(match.page), *later)
    return tuple(page for page in after if page not in out and page not in new)


def _text(act: Act, page: int) -> str:
    form = act.state.pages[page].forms[0]
    content = b"" if form is None else act.forms.of(form.position)
    return "" if isinstance(content, ErasedContent) else content.decode("utf-8", "replace")


def _chosen(act: Act, ranked: Sequence[RecallMatch]) -> list[RecallMatch]:
    """As many of them as their share of the budget holds, each with what belongs to it, or not at all."""
    state = act.state
    left = state.recall or state.high - state.used
    chosen: dict[int, RecallMatch] = {}
    for match in ranked:
        pages = (match.page, *match.after)
        costs = {page: cost for page in pages if page not in chosen and (cost := _cost(act, page)) is not None}
        if sum(costs.values()) > left:
            continue
        for page, cost in costs.items():
            left -= cost
            chosen[page] = match._replace(page=page, of=0 if page == match.page else match.page)
        for page in match.beside:
            if page not in chosen and (beside := _cost(act, page)) is not None and beside <= left:
                left -= beside
                chosen[page] = match._replace(page=page, of=match.page)
    return list(chosen.values())


def _cost(act: Act, page: int) -> int | None:
    """The tokens it takes to show a page in full; None where it is not to be shown."""
    managed = act.state.pages[page]
    form = managed.forms[0]
    if form is None or page in act.state.barred:
        return None
    return 0 if page in act.state.here and not managed.level else form.tokens


def _give_way(act: Act, claim: int) -> None:
    """Takes a claim out of the prompt of which something later may say otherwise."""
    here = act.state.here.get(claim)
    if here is not None and not here.pinned:
        act.tell(Evict(claim, Cause.ASKED, here.tokens))


def _signal(act: Act, match: RecallMatch, asked: Signal) -> Signal:
    """The signal of a candidate: it belongs to a found page, it is a claim, or it matches the question."""
    if match.of:
        return Signal.NEXT if match.page > match.of else Signal.NEIGHBOUR
    return Signal.CLAIM if _is_claim(act, match.page) else asked


def _why(match: RecallMatch) -> bytes:
    """The reason a page was prefetched, in words: matching terms and score."""
    return f"{' '.join(match.terms)}: {match.score:.2f}".encode("utf-8", "backslashreplace")
