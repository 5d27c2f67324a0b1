"""The candidates of a prompt: turns read back, summaries, what is known, and what answers the message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.decision import PromptPart
from vmstore.core.page import LinkKind, Modality, PageType, Role, Standing
from vmstore.core.text.stems import terms
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN, estimate
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import PlacedText, RankedText, folded, neighbours, page_facts, texts_of
from vmstore.store.reads.search import Moments
from vmstore.store.recall.assembly.known import FactsAtHand
from vmstore.store.recall.cold import weighed
from vmstore.store.recall.recall import found, types_of
from vmstore.store.recall.results import KnownFact
from vmstore.tags.history import TagHistory
from vmstore.views.branch import Branch
from vmstore.views.reads.annotations import notes_of
from vmstore.views.reads.spoken_turns import MESSAGE_TOKENS, SpokenMessage, said_by_users
from vmstore.vm import signals
from vmstore.vm.assembly.blocks import day, harmless, plain
from vmstore.vm.assembly.candidate import CandidateForm, PromptCandidate
from vmstore.vm.assembly.evidence import LEAST_TOKENS, PICKED_TOKENS, AnswerSentences, shorter
from vmstore.vm.assembly.history import chains, is_whole
from vmstore.vm.assembly.message_cut import cut, shortened
from vmstore.vm.recall.text_pieces import bounded, without_controls

HITS_MIN, HITS_MAX = 160, 1_000  # texts of the best answers that are looked at, by how many a prompt has room for
TEXT_TOKENS = 12  # of a text, that so many are looked at
FACTS_MAX = 24
OF_CONVERSATION = "score@3"  # what people said is recalled; with score@4 talk about code is weighed as work
BESIDE_MAX, BESIDE = 6, 0.6  # of the best hits; what stands beside one weighs so much of it
DENSE, DENSITY = 20, 0.6  # how much a text's length counts against it
REPLACED = " (replaced since)"
SAID_BY = (Role.USER, Role.ASSISTANT)  # what stands beside an answer: not what instructs, nor what a tool printed
RELEVANCE_MIN = 0.25  # of the best passage's, to be recalled for a question
RELEVANCE_MIN_OF_WORK = 0.7  # the same where a message asks nothing
QUERY_CHARS = 2_000
FEW_WORDS = 3  # a message of fewer is asked with what was said before it
REDUCED, ABSTRACT = 1_200, 300  # characters of a text in a message that is shown shorter
_SIGNS = re.compile(r"\w[\w./@#'’_-]*", re.UNICODE)
_ASKING = re.compile(r"\b(?:what|which|who|whose|where|when|why|how|again|current)\b|\?", re.IGNORECASE)
_OPERATORS = frozenset(("OR", "AND", "NOT"))


Untold = Callable[[Sequence[int]], frozenset[int]]


class RecalledTexts(NamedTuple):
    """What answers a message: facts that were claimed, passages, how many pages answer, and what was done for it."""

    facts: list[PromptCandidate]
    passages: list[PromptCandidate]
    total: int
    note: str


def tokens_in(text: str) -> int:
    """The estimated tokens of a text."""
    return estimate(text.encode("utf-8", "surrogatepass"), Modality.TEXT) if text else 0


def words_of(message: str, before: Sequence[str] = ()) -> str:
    """What a message is looked for with: its words alone; with few of them, those said just before too."""
    words = _words(message)
    for text in before if len(words) < FEW_WORDS else ():
        words += _words(text)
    return " ".join(words)[:QUERY_CHARS]


def asks(message: str) -> bool:
    """Whether a message asks for something that was said: by its form, or by a word of asking anywhere in it."""
    return signals.asks(message) or _ASKING.search(signals.read(message)) is not None


def _words(text: str) -> list[str]:
    read = "\n".join(bounded(without_controls(text)))
    return [word.lower() if word in _OPERATORS else word for word in _SIGNS.findall(read)]


def conversation(
    turns: Sequence[Sequence[SpokenMessage]], values: Mapping[int, Sequence[Any]], tags: TagHistory
) -> list[PromptCandidate]:
    """The chains of some turns; one that lacks a result, or the call of one, is none."""
    candidates = []
    for turn in turns:
        spoken = [(message, value) for message in turn for value in values.get(message.message, ())]
        for order, chain in enumerate(chains([value for _, value in spoken])):
            of = [spoken[place] for place in chain]
            if not is_whole([value for _, value in of]):
                continue
            messages = list(dict.fromkeys(message for message, _ in of))
            whole = [value for _, value in of]
            forms = [
                _form(0, whole),
                *(_form(at, shortened(whole, most)) for at, most in ((1, REDUCED), (2, ABSTRACT))),
            ]
            tokens = sum(message.tokens - MESSAGE_TOKENS for message in messages)
            candidates.append(
                PromptCandidate(
                    name=f"m{messages[0].message}",
                    part=PromptPart.CONVERSATION,
                    form=CandidateForm(0, max(tokens, forms[0].tokens), whole),
                    others=tuple(form for form in forms[1:] if form.tokens < forms[0].tokens),
                    turn=messages[0].turn,
                    order=order,
                    pages=tuple(page for message in messages for page in message.pages),
                    tags=tuple(sorted(tags.of(messages[0].turn))),
                    at_us=messages[0].at_us,
                    first=not order,
                )
            )
    return candidates


def _form(level: int, values: Any) -> CandidateForm:
    characters = len(json.dumps(values, ensure_ascii=False))
    return CandidateForm(level, -(-characters // CHARACTERS_PER_TOKEN), values)


def text_candidate(name: str, part: PromptPart, text: str, **fields: Any) -> PromptCandidate:
    """A candidate that is one text, on a line of its own."""
    return PromptCandidate(name=name, part=part, form=CandidateForm(0, tokens_in(text) + 1, text), **fields)


def earlier(
    ns: Namespace, lane: Branch, position: int, turns: Sequence[Sequence[SpokenMessage]], tokens: int, untold: Untold
) -> list[PromptCandidate]:
    """What users said before a conversation, the last first, a line each: it changes when that begins elsewhere."""
    if not turns or tokens <= 0:
        return []
    with ns.asking():
        said = said_by_users(lane, turns[0][0].message - 1, tokens)
    pages = [page for message in said for page in message.pages]
    out = untold(pages)
    with ns.asking():
        texts = dict(texts_of(ns.log, lane, {lane.session: position}, [page for page in pages if page not in out]))
    candidates = []
    for message in said:
        text = " ".join(harmless(texts[page]) for page in message.pages if page in texts)
        if text.strip():
            line = f"- {cut(' '.join(text.split()), ABSTRACT)}"
            fields = {"turn": message.turn, "order": message.message, "pages": message.pages, "at_us": message.at_us}
            name = f"m{message.message}"
            candidates.append(text_candidate(name, PromptPart.EARLIER, line, score=float(message.turn), **fields))
    return candidates


def recalled_texts(
    ns: Namespace,
    own: Moments,
    others: Moments,
    message: str,
    query: str,
    shown: frozenset[int],
    untold: Untold,
    tokens: int,
    known: FactsAtHand,
) -> RecalledTexts:
    """What the memory holds of a message: claims as facts, all else as passages; what is in the conversation is out."""
    if not query.strip() or tokens <= 0:
        return RecalledTexts([], [], 0, "")
    hits, total, note = [], 0, ""
    looked_at = max(HITS_MIN, min(HITS_MAX, tokens // TEXT_TOKENS))
    for moments in (own, others):
        if not moments:
            continue
        answer = found(ns, moments, query, looked_at, OF_CONVERSATION)
        if moments is others:
            answer = weighed(ns, answer, message, ns.clock.now())
        best = max((hit.score for hit in answer.hits), default=1.0) or 1.0
        hits += [hit._replace(score=hit.score / best) for hit in answer.hits]
        total, note = total + answer.total, note or answer.note
    lane = own[0][1].session
    out = untold([hit.page for hit in hits if hit.lane.session == lane])
    hits = [hit for hit in hits if hit.lane.session != lane or (hit.page not in out and hit.page not in shown)]
    hits.sort(key=lambda hit: -hit.score)
    with ns.asking():
        types = types_of(hits)
        over = _superseded(hits, {lane.session: position for _, lane, position in (*own, *others)})
        over |= _of_replaced(hits, {lane.session: name for name, lane, _ in (*own, *others)}, known)
    claims = [hit for hit in hits if types[hit.lane.session, hit.page][0] == PageType.CLAIM]
    talk = [hit for hit in hits if types[hit.lane.session, hit.page][0] in _SPOKEN]
    names = {lane.session: name for name, lane, _ in (*own, *others)}
    facts = []
    for hit in claims:
        place = names[hit.lane.session], hit.page
        if (hit.lane.session, hit.page) not in over and (place in known.current or place not in known.ever):
            facts.append(_fact(known.current.get(place), hit, place))
    facts += _successors(hits, names, known)
    least = RELEVANCE_MIN if asks(message) else RELEVANCE_MIN_OF_WORK
    top = talk[0].score if talk else 1.0
    near = [hit for hit in folded(talk)[0] if hit.score >= least * top]
    positions = {lane.session: position for _, lane, position in (*own, *others)}
    with ns.asking():
        passages = _evidence(ns, near, positions, query, names, shown, known.replaced)
    return RecalledTexts(sorted(facts, key=lambda fact: -fact.score)[:FACTS_MAX], passages, total, note)


def anchors(known: FactsAtHand) -> list[PromptCandidate]:
    """Who the user is: the facts with a strength, the strongest first."""
    strong = [(place, fact) for place, fact in known.current.items() if fact.strength > 0 and fact.text]
    return [
        text_candidate(
            fact.page if place[0] == fact.session else f"{fact.session}/{fact.page}",
            PromptPart.IDENTITY,
            f"- {plain(fact.text or '')}",
            score=fact.strength,
            subject=_says(fact),
            session=fact.session,
            pages=(place[1],),
            at_us=fact.at_us or 0,
            tags=tuple(fact.tags),
        )
        for place, fact in strong
    ]


def _says(fact: KnownFact) -> str:
    return " ".join(f"{fact.subject} {fact.attribute or fact.verb} {fact.what}".lower().split())


def _fact(fact: KnownFact | None, hit: RankedText, place: tuple[str, int]) -> PromptCandidate:
    """A claim that answers the message, since when it holds where that is known."""
    said = plain(hit.text if fact is None else fact.text or hit.text)
    since = "" if fact is None or fact.valid_from_us is None else f" (since {day(fact.valid_from_us)})"
    return text_candidate(
        page_name(hit.page),
        PromptPart.FACTS,
        f"- {said}{since}",
        score=hit.score,
        pages=(hit.page,),
        subject=" ".join(hit.text.lower().split()) if fact is None else _says(fact),
        session=place[0],
        tags=() if fact is None else tuple(fact.tags),
    )


def _successors(hits: Sequence[RankedText], names: Mapping[int, str], known: FactsAtHand) -> list[PromptCandidate]:
    """What holds now in the place of what some hits state: who asks where somebody lives wants the last home too."""
    found: dict[tuple[str, int], PromptCandidate] = {}
    for hit in hits:
        fact = known.successors.get((names[hit.lane.session], hit.page))
        if fact is not None:
            place = fact.session, int(fact.page[1:])
            found.setdefault(place, _fact(fact, hit._replace(page=place[1]), place))
    return list(found.values())


def _evidence(
    ns: Namespace,
    hits: Sequence[RankedText],
    positions: Mapping[int, int],
    query: str,
    names: Mapping[int, str],
    shown: frozenset[int],
    replaced: frozenset[tuple[str, int]],
) -> list[PromptCandidate]:
    """What of some hits answers a message, the best with what was said beside them; long texts by their sentences."""
    if not hits:
        return []
    evidence = AnswerSentences(terms(query), [hit.text for hit in hits])
    known = page_facts(hits, 0)
    made: dict[tuple[int, int], PromptCandidate] = {}
    said: list[tuple[RankedText, PlacedText]] = []
    for hit in hits:
        origin = known[hit.lane.session, hit.page]
        said.append((hit, PlacedText(hit.page, origin.role, origin.at, hit.text, 0, hit.score)))
    for hit, beside in neighbours(ns.log, positions, hits[:BESIDE_MAX]):
        said += [(hit, text._replace(score=hit.score * BESIDE)) for text in beside if _stands_beside(text, shown)]
    for hit, text in sorted(said, key=lambda pair: -(pair[1].score or 0.0)):
        place = hit.lane.session, text.page
        if place not in made:
            name = names[hit.lane.session]
            past = REPLACED if (name, text.page) in replaced else ""
            sentences = evidence.of(text.text, PICKED_TOKENS)
            if sentences:
                made[place] = _line(
                    text, name, f"{Role(text.role).word}{past}", [sentences, shorter(sentences, LEAST_TOKENS)]
                )
    return list(made.values())


def _line(text: PlacedText, session: str, who: str, texts: Sequence[str]) -> PromptCandidate:
    lines = [f"{who}: {harmless(each)}" for each in texts if each]
    forms = [CandidateForm(level, tokens_in(line) + 1, line) for level, line in enumerate(lines)]
    assert text.score is not None, "what was found, or stands beside it, has a score"
    return PromptCandidate(
        name=page_name(text.page),
        part=PromptPart.RECALLED,
        form=forms[0],
        others=tuple(form for form in forms[1:] if form.tokens < forms[0].tokens),
        score=text.score * (DENSE / (DENSE + forms[0].tokens)) ** DENSITY,
        order=text.page,
        pages=(text.page,),
        session=session,
        at_us=text.at,
    )


def _stands_beside(text: PlacedText, shown: frozenset[int]) -> bool:
    """Whether what stands beside an answer is told with it: words of a person or a model the prompt has not got."""
    return text.role in SAID_BY and text.page not in shown and text.text.lstrip()[:1] not in ("{", "[")


def _superseded(hits: Sequence[RankedText], positions: Mapping[int, int]) -> set[tuple[int, int]]:
    """Those of some pages that hold no more."""
    over = set()
    for lane in {hit.lane.session: hit.lane for hit in hits}.values():
        pages = [hit.page for hit in hits if hit.lane.session == lane.session]
        for page, note in notes_of(lane, positions[lane.session], pages).items():
            if note.status in (Standing.SUPERSEDED, Standing.ABANDONED):
                over.add((lane.session, page))
    return over


def _of_replaced(hits: Sequence[RankedText], names: Mapping[int, str], known: FactsAtHand) -> set[tuple[int, int]]:
    """The claims among some hits that were made of a text whose facts hold no more: no fact says that of a claim."""
    if not known.replaced:
        return set()
    over = set()
    for hit in hits:
        sources = hit.lane.db.execute(_MADE_OF, (hit.lane.owner(hit.page), hit.page)).fetchall()
        if any((names[hit.lane.session], source) in known.replaced for (source,) in sources):
            over.add((hit.lane.session, hit.page))
    return over


_MADE_OF = f"SELECT target FROM links WHERE session = ? AND source = ? AND kind = {int(LinkKind.DERIVES)}"
_SPOKEN = (PageType.TRANSCRIPT, PageType.ARTIFACT, PageType.SUMMARY)
