"""What a session notices by itself: decisions that become claims, citations, pages a message may need.

All of it is found without a model, from what was said, and told to the log as it is found: a replay
reads it there and looks for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vmstore.core.decision import Use
from vmstore.core.mutation import Annotate, Cite, Link, Reference
from vmstore.core.page import LinkKind, Modality, PageType, Role, Standing
from vmstore.live.runtime import Act
from vmstore.live.saying import Spoke, page
from vmstore.live.spoken import TOPIC
from vmstore.vm import signals
from vmstore.vm.claims import Claim, Said
from vmstore.vm.compressors.form import Form, Material
from vmstore.vm.compressors.text import key_points
from vmstore.vm.protocol.citations import citations
from vmstore.vm.topics import topics

CLAIM_IMPORTANCE = 950_000  # seed 000:198
HEARD = 6  # messages before, whose questions an answer may be to
SUMMARY_CHARS = 600
HINTS_MAX = 512  # of pages that left, the newest, looked at for each message
FINDER = "claims@1"


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


def cite(act: Act, spoke: Spoke) -> list[int]:
    """Tells the citations of what the model wrote; the pages it cites."""
    cited = []
    for said in _texts(act, spoke.pages):
        for found in citations(said.text):
            number = act.spoken.number(found.page)
            if number is not None and number != said.page:
                act.tell(Cite(number, said.page))
                cited.append(number)
    return cited


def prefetch(act: Act, spoke: Spoke) -> None:
    """Wishes for the pages a message may need, by what it says."""
    settings = act.state.settings
    if settings is None or settings.paging == "model" or not settings.prefetch:
        return
    spoken, here = act.spoken, act.state.here
    message = "\n".join(said.text for said in _texts(act, spoke.pages))
    claims = [one for one in spoken.standing() if one.page not in here]
    away = partial(spoken.hints.having, without=here.keys() | act.state.retracted.pages.keys(), newest=HINTS_MAX)
    summaries = [page for page in spoken.summaries if page not in act.state.retracted]
    for wanted in signals.wanted(message, claims, away, summaries):
        if wanted.page not in here:
            act.tell(Reference(wanted.page, Use.SIGNAL, act.state.call, signal=wanted.signal))


def _texts(act: Act, pages: Sequence[int]) -> list[Said]:
    found = []
    for number in pages:
        held = act.state.pages[number]
        is_said = held.role in (Role.USER, Role.ASSISTANT) and number not in act.spoken.thoughts
        if is_said and number not in act.state.retracted and held.modality is Modality.TEXT:
            found.append(Said(number, Role(held.role), act.forms.of(number).decode("utf-8", "replace")))
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
    return made


def summed_up(act: Act, title: str) -> str:
    """The claims and the key points of the segment under way, as text."""
    here = [held for held in act.state.pages.values() if held.segment == act.state.segment]
    claims = [
        act.forms.of(held.page).decode("utf-8", "replace")
        for held in here
        if held.type is PageType.CLAIM and held.importance and held.page not in act.state.retracted
    ]
    return summed(title, claims, [one.text for one in _texts(act, [held.page for held in here if held.message])])


def summed(title: str, claims: Sequence[str], texts: Sequence[str]) -> str:
    """A summary of a segment: its title, its claims, and the key points of what was said in it."""
    said = "\n\n".join(texts)
    points = key_points(Material(content=said.encode()))
    about = points.content.decode("utf-8", "replace") if isinstance(points, Form) else said[:SUMMARY_CHARS]
    return "\n".join([*([title] if title else []), *claims, about])
