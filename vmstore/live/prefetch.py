"""Which pages a message may need, or a search: all that was said and printed, ranked by its words.

All of it is found without a model and told to the log as it is found: a replay reads it there and looks for nothing.
What was said is not to stand without what took its place: with a page comes what was decided anew since.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vmstore.core.decision import Cause, Signal, Use
from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import Evict, Reference, Search
from vmstore.core.page import PageType
from vmstore.core.text.stems import terms
from vmstore.live.extraction import last, texts
from vmstore.live.messages import LoggedMessage
from vmstore.live.recall.index import RecallMatch, apart
from vmstore.live.runtime import Act
from vmstore.vm import signals
from vmstore.vm.claims import quotes

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
NEWEST = 3  # statements that a claim gives way to
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
    ranked = _ranked(act, asked, past, new, common=False)
    wishes = _chosen(act, _evident(act, ranked, asks, new))
    signal = Signal.RECALL if signals.recalls(message) or past else Signal.TOPIC
    for one in sorted(wishes):
        signal_of = _signal(act, one, signal)
        act.tell(Reference(one.page, Use.SIGNAL, act.state.call, signal=signal_of, evidence=act.cell(_why(one))))
    for summary in act.spoken.summaries[-settings.prefetch_depth :] if settings.prefetch_depth else ():
        held = act.state.pages[summary]
        gone = summary not in act.state.here and summary not in act.state.retracted
        useful = held.used_turn >= held.entered  # or it came back the last time for nothing
        if gone and useful and summary not in {wish.page for wish in wishes}:
            act.tell(Reference(summary, Use.SIGNAL, act.state.call, signal=Signal.SUMMARY))


def look_for(act: Act, query: str, pages_max: int) -> tuple[list[RecallMatch], int]:
    """The pages that answer the model's search best, what it sees already last, and how many do; logged."""
    found: dict[int, RecallMatch] = {}
    ranked = _ranked(act, signals.asked(query), signals.asks_for_the_past(query))
    for one in (*(_followed(act, one) for one in ranked[:FOLLOWED]), *ranked[FOLLOWED:]):
        for page in (*one.after, one.page):
            found.setdefault(page, one._replace(page=page))
    seen = {page for page in found if page in act.state.here and not act.state.here[page].level}
    best = sorted(found.values(), key=lambda one: one.page in seen)[:pages_max]
    query_cell = act.cell(query.encode("utf-8", "backslashreplace"))
    act.tell(Search(query_cell, tuple(one.page for one in best), len(found)))
    return best, len(found)


def _ranked(
    act: Act, asked: dict[str, float], past: bool, but: frozenset[int] = frozenset(), *, common: bool = True
) -> list[RecallMatch]:
    """All pages that say something of what is asked, best first; what holds before what was superseded."""
    state, spoken = act.state, act.spoken
    act.index.follow(state, spoken, act.forms)
    if past:  # the messages tell it in their order; a claim that holds no more misleads
        out = frozenset(page for page in spoken.past if state.pages[page].type is PageType.CLAIM)
    else:
        out = frozenset(spoken.past)
    retracted = state.retracted
    found = act.index.ranked(
        asked, lambda page: page not in but and page not in retracted and page not in out, common=common
    )
    claims = {spoken.named[name] for name in spoken.claims}
    stated = frozenset() if past else frozenset(page for claim in claims for page in spoken.sources.get(claim, ()))
    weights = {**dict.fromkeys(stated, ECHO), **dict.fromkeys(claims, CLAIMED)}
    weighed = [claim._replace(score=claim.score * weights.get(claim.page, 1.0)) for claim in found]
    weighed.sort(key=lambda claim: (-int(NEAR * math.log(claim.score + 1e-9)), -claim.page))
    return weighed


def _evident(act: Act, ranked: Sequence[RecallMatch], asks: bool, but: frozenset[int]) -> list[RecallMatch]:
    """The best of them that have enough of what is asked, with what may have changed them since.

    What is written costs 1.25 a token and a tenth at each call after it, so a page that has little of what is asked
    may not take much; a claim is always worth it. Where the message asks, a claim in the prompt that something later
    may say otherwise of gives way to what it was found in, and that: what stood behind it has to be written anew.
    """
    share, cut, most = (SHARE, CUT, WISHES_MAX) if asks else (SHARE_OF_WORK, CUT_OF_WORK, FEW)
    telling = [match for match in ranked if act.index.tells(match.page)]
    fitting = [match for match in telling if match.share >= share]
    first = max((match.score for match in fitting), default=0.0)
    best = [
        match
        for match in fitting
        if match.score >= cut * first and (act.index.decides(match.page) or _near(match, first))
    ]
    best = [match for match in best[:most] if _pays(act, match)]
    kin = [match for match in _kin(act, telling) if _pays(act, match)] if asks else []
    wished = {
        match.page: match
        for match in (*best, *(match for match in kin if match.page not in frozenset(o.page for o in best)))
    }
    stand = [match for match in ranked if match.page not in wished and _stands(act, match.page)] if asks else []
    found = [_followed(act, match, but) for match in (*wished.values(), *stand)]
    loose = _loose(act, kin)
    found = [_outrun(act, match, loose) for match in found]
    for match in found if asks else ():
        if match.after and act.state.pages[match.page].type is PageType.CLAIM:
            _give_way(act, match.page)
    return [match for match in found if match.page in wished or match.after]


def _pays(act: Act, one: RecallMatch) -> bool:
    """Whether a page is worth its tokens for what it has of what is asked."""
    held = act.state.pages[one.page]
    form = held.forms[0]
    return held.type is PageType.CLAIM or (form is not None and form.tokens <= WORTH * one.share)


def _kin(act: Act, ranked: Sequence[RecallMatch]) -> list[RecallMatch]:
    """What was decided of each thing a message names, whatever else the message asks with.

    A question in other words than the decision's shares with it the name of what it is about alone.
    """
    kin: dict[int, RecallMatch] = {}
    stating = [one for one in ranked if act.index.decides(one.page)]
    for term in dict.fromkeys(term for one in stating for term in one.terms):
        if act.index.stated(term) <= KIN_SAID_MAX:
            of = [one for one in stating if term in one.terms]
            kin |= {one.page: one for one in of[:KIN]}
    return list(kin.values())


def _loose(act: Act, kin: Sequence[RecallMatch]) -> list[tuple[RecallMatch, str]]:
    """The statements that no claim was found in and that may say of a thing how it is now, each with the thing."""
    claimed = act.spoken.claimed()
    loose = [one for one in kin if act.index.turns(one.page) and one.page not in claimed]
    things = [(one, quotes.named(_text(act, one.page))) for one in loose]
    return [(one, thing) for one, thing in things if thing]


def _outrun(act: Act, one: RecallMatch, loose: Sequence[tuple[RecallMatch, str]]) -> RecallMatch:
    """A claim with the newest such statements that answer what is asked at least as well, and name no other thing."""
    if one.after or act.state.pages[one.page].type is not PageType.CLAIM:
        return one
    asked, topic = frozenset(one.terms), act.spoken.topic(one.page)
    newer = [
        other.page
        for other, thing in loose
        if other.page > one.page and asked <= frozenset(other.terms) and not apart(topic, thing)
    ]
    return one._replace(after=tuple(sorted(newer)[-NEWEST:]))


def _text(act: Act, page: int) -> str:
    form = act.state.pages[page].forms[0]
    content = b"" if form is None else act.forms.of(form.position)
    return "" if isinstance(content, ErasedContent) else content.decode("utf-8", "replace")


def _near(match: RecallMatch, first: float) -> bool:
    """Whether what was done or printed is as good an answer as what is decided."""
    return match.share >= SHARE_OF_WORK and match.score >= CUT_OF_DONE * first


def _stands(act: Act, page: int) -> bool:
    return page in act.state.here and act.state.pages[page].type is PageType.CLAIM


def _followed(act: Act, match: RecallMatch, but: frozenset[int] = frozenset()) -> RecallMatch:
    """The same with what may have changed it since."""
    form = act.state.pages[match.page].forms[0]
    if form is None or not act.index.decides(match.page):
        return match
    text = act.forms.of(form.position).decode("utf-8", "replace")
    later = act.index.later(match.page, text, act.spoken.topic(match.page), act.spoken.topic)
    out = act.state.retracted
    after = (*act.spoken.successors(match.page), *later)
    return match._replace(after=tuple(page for page in after if page not in out and page not in but))


def _chosen(act: Act, ranked: Sequence[RecallMatch]) -> list[RecallMatch]:
    """As many of them as their share of the budget holds, each with what belongs to it, or not at all."""
    state = act.state
    left = state.recall or state.high - state.used
    chosen: dict[int, RecallMatch] = {}
    for match in ranked:
        pages = (match.page, *match.after)
        if match.after and state.pages[match.page].type is PageType.CLAIM:
            pages = (*act.spoken.sources.get(match.page, ()), *match.after)
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
    if form is None or page in act.state.retracted:
        return None
    return 0 if page in act.state.here and not managed.level else form.tokens


def _give_way(act: Act, claim: int) -> None:
    """Takes a claim out of the prompt of which something later may say otherwise: its sources come, and that."""
    here = act.state.here.get(claim)
    if here is not None and not here.pinned:
        act.tell(Evict(claim, Cause.ASKED, here.tokens))


def _signal(act: Act, match: RecallMatch, asked: Signal) -> Signal:
    """Why a page is wished for: it belongs to one that was found, it is a claim, or what the message asks with."""
    if match.of:
        return Signal.NEXT if match.page > match.of else Signal.NEIGHBOUR
    return Signal.CLAIM if act.state.pages[match.page].type is PageType.CLAIM else asked


def _why(match: RecallMatch) -> bytes:
    """What a page was wished for by, in words: the terms it has, the score."""
    return f"{' '.join(match.terms)}: {match.score:.2f}".encode("utf-8", "backslashreplace")
