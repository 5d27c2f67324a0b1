"""Claims and citations that a session finds by itself.

All of it is found without a model, from what was said, and written to the log as it is found: a replay
reads it there and looks for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from vmstore.core.decision import Cause, Signal, Use
from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import Annotate, Cite, Evict, Link, Reference
from vmstore.core.page import LinkKind, Modality, PageType, Role, Standing
from vmstore.core.tags import TOPIC
from vmstore.live.messages import LoggedMessage, page
from vmstore.live.page_moves import segment
from vmstore.live.runtime import Act
from vmstore.live.topics import turn_tags
from vmstore.vm.claims.claims import FINDER, Claim, ClaimSource
from vmstore.vm.compressors.form import Form, Material
from vmstore.vm.compressors.text import key_points
from vmstore.vm.protocol.citations import citations
from vmstore.vm.recall.topics import topics

CLAIM_IMPORTANCE = 950_000  # in parts per million
HEARD = 6  # messages before, whose questions an answer may be to
SUMMARY_CHARS = 600
EVIDENCE_CHARS_MAX = 120


def notice(act: Act, spoke: LoggedMessage) -> list[int]:
    """Writes a claim page for each decision a message makes or takes back; the pages."""
    turn = texts(act, spoke.pages)
    if not turn:
        return []
    before = [source for message in last(act, spoke.message) for source in texts(act, message)]
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


def hear(act: Act, spokes: Sequence[LoggedMessage], sent: dict[int, int]) -> None:
    """Takes in what the model answered: what it cites, what else it used of what it was sent, what it decides."""
    cited = {number for spoke in spokes for number in _cite(act, spoke)}
    written = [number for spoke in spokes for number in spoke.pages if number not in act.spoken.thoughts]
    for used in act.uses.of(written, sent):
        here = act.state.here.get(used.page)  # recorded at the level it has, so that nothing is decided of it
        if here is not None and used.page not in cited and used.page not in act.state.barred:
            words = used.evidence[:EVIDENCE_CHARS_MAX].encode("utf-8", "replace")
            act.tell(Reference(used.page, used.use, act.state.call, here.level, evidence=act.cell(words)))
    _need(act, written)
    for spoke in spokes:
        notice(act, spoke)
    turn_tags.tag(act)
    close(act)


def _need(act: Act, written: Sequence[int]) -> None:
    """Wishes for the files that the model's calls name and that are not in the prompt: their tools work on them."""
    settings = act.state.settings
    if settings is None or settings.paging == "model" or not settings.prefetch:
        return
    for number, name in act.uses.files(written).items():
        if number not in act.state.here and number not in act.state.barred:
            evidence = act.cell(name.encode("utf-8", "replace"))
            act.tell(Reference(number, Use.SIGNAL, act.state.call, signal=Signal.TOOL, evidence=evidence))


def _cite(act: Act, spoke: LoggedMessage) -> list[int]:
    """Tells the citations of what the model wrote, each page once; the pages it cites."""
    cited: dict[int, None] = {}
    for source in texts(act, spoke.pages):
        for found in citations(source.text):
            number = act.spoken.number(found.page)
            if number is not None and number != source.page and number not in cited:
                act.tell(Cite(number, source.page))
                cited[number] = None
    return list(cited)


def close(act: Act) -> int | None:
    """Ends the segment under way after a final answer, where enough was said in it; the page of its summary."""
    settings, state = act.state.settings, act.state
    most = 0 if settings is None else settings.segment_tokens_max
    if not most or not act.spoken.final or state.segment_tokens <= state.tokens(most):
        return None
    return segment(act, "", summed_up(act, "").encode("utf-8", "backslashreplace"))


def texts(act: Act, pages: Sequence[int]) -> list[ClaimSource]:
    """The texts of user and model on some pages."""
    found = []
    for number in pages:
        managed = act.state.pages[number]
        is_said = managed.role in (Role.USER, Role.ASSISTANT) and number not in act.spoken.thoughts
        if is_said and number not in act.state.barred and managed.modality is Modality.TEXT:
            content = act.forms.of(number)
            if not isinstance(content, ErasedContent):
                found.append(ClaimSource(number, Role(managed.role), content.decode("utf-8", "replace")))
    return found


def last(act: Act, message: int) -> list[list[int]]:
    """The pages of the last messages of user and model before one."""
    found: list[list[int]] = []
    for spoken in reversed(act.spoken.messages.values()):
        if spoken.message < message and spoken.role in (Role.USER, Role.ASSISTANT):
            found.append(spoken.parts)
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
        if old not in act.state.barred:  # what was retracted stays so
            act.tell(Annotate(old, status=Standing.ABANDONED, importance=0))
            here = act.state.here.get(old)
            if here is not None and not here.pinned:  # two claims that say different things of one subject mislead
                act.tell(Evict(old, Cause.ASKED, here.tokens))
    return made


def claims_in(act: Act, number: int) -> list[str]:
    """The texts of valid claims that were made in a segment."""
    stated = [
        act.forms.of(managed.forms[0].position)
        for managed in act.state.pages.values()
        if managed.segment == number
        and managed.forms[0] is not None
        and managed.type is PageType.CLAIM
        and managed.importance
        and managed.page not in act.state.barred
    ]
    return [content.decode("utf-8", "replace") for content in stated if not isinstance(content, ErasedContent)]


def summed_up(act: Act, title: str) -> str:
    """The claims and the key points of the segment under way, as text."""
    here = [managed for managed in act.state.pages.values() if managed.segment == act.state.segment]
    spoken = texts(act, [managed.page for managed in here if managed.message])
    return summed(title, claims_in(act, act.state.segment), [source.text for source in spoken])


def summed(title: str, claims: Sequence[str], texts: Sequence[str]) -> str:
    """A summary of a segment: its title, its claims, and the key points of what was said in it."""
    text = "\n\n".join(texts)
    points = key_points(Material(content=text.encode()))
    about = points.content.decode("utf-8", "replace") if isinstance(points, Form) else text[:SUMMARY_CHARS]
    return "\n".join([*([title] if title else []), *claims, about])
