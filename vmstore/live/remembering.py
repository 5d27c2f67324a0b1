"""What a session notices by itself: decisions that become claims, citations, pages a message may need.

All of it is found without a model, from what was said, and told to the log as it is found: a replay
reads it there and looks for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vmstore.core.decision import Cause, Signal, Use
from vmstore.core.erasure import Gone
from vmstore.core.mutation import Annotate, Cite, Evict, Link, Reference, Search
from vmstore.core.page import LinkKind, Modality, PageType, Role, Standing
from vmstore.core.stems import terms
from vmstore.live.index import Ranked
from vmstore.live.paging import segment
from vmstore.live.runtime import Act
from vmstore.live.saying import Spoke, page
from vmstore.vm import signals
from vmstore.vm.claims import Claim, Said
from vmstore.vm.compressors.form import Form, Material
from vmstore.vm.compressors.text import key_points
from vmstore.vm.protocol.citations import citations
from vmstore.vm.topics import TOPIC, topics

CLAIM_IMPORTANCE = 950_000  # seed 000:198
HEARD = 6  # messages before, whose questions an answer may be to
SUMMARY_CHARS = 600
TELLING = 3  # terms of a message that says itself what it is about
WORK = 2  # messages before, that say what is worked on
WORKED_ON = 0.15  # what a word of theirs weighs beside one of the message's
CLAIMED = 1.3  # a claim that holds, beside what was only said
NEAR = 8  # scores of one eighth of a natural logarithm are near: the newer first
CUT = 0.2  # of the best score: what has less is not wished for
WISHES_MAX = 64
CUT_OF_WORK, FEW = 0.7, 6  # the same where a message asks nothing and speaks of nothing said before
FINDER = "claims@1"
EVIDENCE_CHARS_MAX = 120


def notice(act: Act, spoke: Spoke) -> list[int]:
    """Writes a claim page for each decision a message makes or takes back; the pages."""
    turn = _texts(act, spoke.pages)
    if not turn:
        return []
    before = [said for message in _last(act, spoke.message) for said in _texts(act, message)]
    found = act.finder.of(turn, before, list(act.spoken.claims.values()))
    return [_claim(act, claim) for claim in found]


def _claim(act: Act, claim: Claim) -> int:
    links = [(int(LinkKind.DERIVES), source) for source in claim.sources]
    old = act.spoken.named.get(claim.supersedes or claim.name)
    return state(act, claim.text, claim.name, links, old, weight=CLAIM_IMPORTANCE, actor=FINDER)


def unanswered(act: Act) -> dict[int, int]:
    """The pages of the call that is answered next, each with the position of the content that was sent; else none."""
    if act.state.call <= act.spoken.answered:
        return {}
    return {page: residence[1] for page, residence in act.state.packed.items()}


def hear(act: Act, spokes: Sequence[Spoke], sent: dict[int, int]) -> None:
    """Takes in what the model answered: what it cites, what else it used of what it was sent, what it decides."""
    cited = {number for spoke in spokes for number in _cite(act, spoke)}
    written = [number for spoke in spokes for number in spoke.pages if number not in act.spoken.thoughts]
    for used in act.uses.of(written, sent):
        here = act.state.here.get(used.page)  # told as it is shown, so that nothing is decided of it
        if here is not None and used.page not in cited and used.page not in act.state.retracted:
            words = used.evidence[:EVIDENCE_CHARS_MAX].encode("utf-8", "replace")
            act.tell(Reference(used.page, used.use, act.state.call, here.level, evidence=act.cell(words)))
    _need(act, written)
    for spoke in spokes:
        notice(act, spoke)
    close(act)


def _need(act: Act, written: Sequence[int]) -> None:
    """Wishes for the files that the model's calls name and that are not in the prompt: their tools work on them."""
    settings = act.state.settings
    if settings is None or settings.paging == "model" or not settings.prefetch:
        return
    for number, name in act.uses.files(written).items():
        if number not in act.state.here and number not in act.state.retracted:
            evidence = act.cell(name.encode("utf-8", "replace"))
            act.tell(Reference(number, Use.SIGNAL, act.state.call, signal=Signal.TOOL, evidence=evidence))


def _cite(act: Act, spoke: Spoke) -> list[int]:
    """Tells the citations of what the model wrote, each page once; the pages it cites."""
    cited: dict[int, None] = {}
    for said in _texts(act, spoke.pages):
        for found in citations(said.text):
            number = act.spoken.number(found.page)
            if number is not None and number != said.page and number not in cited:
                act.tell(Cite(number, said.page))
                cited[number] = None
    return list(cited)


def prefetch(act: Act, spoke: Spoke) -> None:
    """Wishes for the pages a message may need, by what it says and what is worked on, in the order they came to be."""
    settings = act.state.settings
    if settings is None or settings.paging == "model" or not settings.prefetch:
        return
    spoken = act.spoken
    message = "\n".join(said.text for said in _texts(act, spoke.pages))
    asks = signals.asks(message)
    wishes = _chosen(act, _ranked(act, spoke, message), CUT if asks else CUT_OF_WORK, WISHES_MAX if asks else FEW)
    signal = Signal.RECALL if signals.recalls(message) or signals.asks_for_the_past(message) else Signal.TOPIC
    for one in sorted(wishes):
        told = _signal(act, one, signal)
        act.tell(Reference(one.page, Use.SIGNAL, act.state.call, signal=told, evidence=act.cell(_why(one))))
    for last in spoken.summaries[-settings.prefetch_depth :] if settings.prefetch_depth else ():
        out = last not in act.state.here and last not in act.state.retracted
        if out and last not in {one.page for one in wishes}:
            act.tell(Reference(last, Use.SIGNAL, act.state.call, signal=Signal.SUMMARY))


def close(act: Act) -> int | None:
    """Ends the segment under way after a final answer, where enough was said in it; the page of its summary."""
    settings, state = act.state.settings, act.state
    most = 0 if settings is None else settings.segment_tokens_max
    if not most or not act.spoken.final or state.segment_tokens <= state.tokens(most):
        return None
    return segment(act, "", summed_up(act, "").encode("utf-8", "backslashreplace"))


def look_for(act: Act, query: str, pages_max: int) -> list[Ranked]:
    """The pages that answer the model's search best, by the ranking of the pre-pass; logged with what was found."""
    act.index.follow(act.state, act.spoken, act.forms)
    found = act.index.ranked(signals.asked(query), lambda page: page not in act.state.retracted)
    best = found[:pages_max]
    query_cell = act.cell(query.encode("utf-8", "backslashreplace"))
    act.tell(Search(query_cell, tuple(one.page for one in best), len(found)))
    return best


def _ranked(act: Act, spoke: Spoke, message: str) -> list[Ranked]:
    """All pages that say something of what is asked, best first; what holds before what was superseded."""
    state, spoken = act.state, act.spoken
    act.index.follow(state, spoken, act.forms)
    asked = signals.asked(message)
    before = _last(act, spoke.message)[-WORK:] if len(asked) < TELLING else []
    for said in (said for one in before for said in _texts(act, one)):
        for term in terms(signals.read(said.text)):
            asked.setdefault(term, WORKED_ON)
    new, retracted = frozenset(spoke.pages), state.retracted
    if signals.asks_for_the_past(message):  # the messages tell it in their order; a claim that holds no more misleads
        out = frozenset(page for page in spoken.past if state.pages[page].type is PageType.CLAIM)
    else:
        out = frozenset(spoken.past)
    found = act.index.ranked(asked, lambda page: page not in new and page not in retracted and page not in out)
    claims = {spoken.named[name] for name in spoken.claims}
    weighed = [one._replace(score=one.score * CLAIMED) if one.page in claims else one for one in found]
    weighed.sort(key=lambda one: (-int(NEAR * math.log(one.score + 1e-9)), -one.page))
    return weighed


def _chosen(act: Act, ranked: Sequence[Ranked], cut: float, wishes_max: int) -> list[Ranked]:
    """As many of the best as their share of the budget holds, with what belongs to them."""
    state = act.state
    assert state.settings is not None
    left = int(state.room * state.settings.recall_share) or state.high - state.used
    chosen: dict[int, Ranked] = {}
    best = ranked[0].score if ranked else 0.0
    for one in ranked[:wishes_max]:
        if one.score < best * cut:
            break
        for number in (one.page, *one.beside):
            held = state.pages[number]
            form = held.forms[0]
            if number in chosen or form is None or number in state.retracted:
                continue
            cost = 0 if number in state.here and not held.level else form.tokens
            if cost <= left:
                left -= cost
                chosen[number] = one if number == one.page else one._replace(page=number, of=one.page)
    return list(chosen.values())


def _signal(act: Act, one: Ranked, asked: Signal) -> Signal:
    """Why a page is wished for: it belongs to one that was found, it is a claim, or what the message asks with."""
    if one.of:
        return Signal.NEXT if one.page > one.of else Signal.NEIGHBOUR
    return Signal.CLAIM if act.state.pages[one.page].type is PageType.CLAIM else asked


def _why(one: Ranked) -> bytes:
    """What a page was wished for by, in words: the terms it has, the score."""
    return f"{' '.join(one.terms)}: {one.score:.2f}".encode("utf-8", "backslashreplace")


def _texts(act: Act, pages: Sequence[int]) -> list[Said]:
    found = []
    for number in pages:
        held = act.state.pages[number]
        is_said = held.role in (Role.USER, Role.ASSISTANT) and number not in act.spoken.thoughts
        if is_said and number not in act.state.retracted and held.modality is Modality.TEXT:
            content = act.forms.of(number)
            if not isinstance(content, Gone):
                found.append(Said(number, Role(held.role), content.decode("utf-8", "replace")))
    return found


def _last(act: Act, message: int) -> list[list[int]]:
    """The pages of the last messages of user and model before one."""
    found: list[list[int]] = []
    for said in reversed(act.spoken.messages.values()):
        if said.message < message and said.role in (Role.USER, Role.ASSISTANT):
            found.append(said.parts)
            if len(found) == HEARD:
                break
    return found[::-1]


def state(
    act: Act,
    text: str,
    name: str | None,
    links: list[tuple[int, int]],
    old: int | None,
    *,
    weight: int,
    actor: str | None = None,
) -> int:
    """Writes a claim somebody states, in place of an older one where it replaces it; its page."""
    made = page(
        act,
        PageType.CLAIM,
        text.encode("utf-8", "backslashreplace"),
        role=Role.ASSISTANT,
        name=name,
        links=links,
        tags=[TOPIC + topic for topic in topics(text)],
        importance=weight,
        actor=actor,
    )
    if old is not None and act.state.pages[old].type is PageType.CLAIM:
        act.tell(Link(made, old, LinkKind.SUPERSEDES))
        if old not in act.state.retracted:  # what was retracted stays so
            act.tell(Annotate(old, status=Standing.ABANDONED, importance=0))
            here = act.state.here.get(old)
            if here is not None and not here.pinned:  # two claims that say different things of one subject mislead
                act.tell(Evict(old, Cause.ASKED, here.tokens))
    return made


def summed_up(act: Act, title: str) -> str:
    """The claims and the key points of the segment under way, as text."""
    here = [held for held in act.state.pages.values() if held.segment == act.state.segment]
    stated = [
        act.forms.of(held.page)
        for held in here
        if held.type is PageType.CLAIM and held.importance and held.page not in act.state.retracted
    ]
    claims = [content.decode("utf-8", "replace") for content in stated if not isinstance(content, Gone)]
    return summed(title, claims, [one.text for one in _texts(act, [held.page for held in here if held.message])])


def summed(title: str, claims: Sequence[str], texts: Sequence[str]) -> str:
    """A summary of a segment: its title, its claims, and the key points of what was said in it."""
    said = "\n\n".join(texts)
    points = key_points(Material(content=said.encode()))
    about = points.content.decode("utf-8", "replace") if isinstance(points, Form) else said[:SUMMARY_CHARS]
    return "\n".join([*([title] if title else []), *claims, about])
