"""The candidates of a prompt: turns read back, summaries, what is known, and what answers the message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from vmstore.core.address import page_name
from vmstore.core.page import Modality, PageType, Standing
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN, estimate
from vmstore.core.times import iso
from vmstore.namespace.namespace import Namespace
from vmstore.search.passages import RankedText, texts_of
from vmstore.store.reads.search import Moments
from vmstore.store.recall.cold import weighed
from vmstore.store.recall.recall import FoundTexts, found, recalled, types_of
from vmstore.store.recall.results import Passage, RecalledText
from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import TYPED
from vmstore.views.reads.annotations import notes_of
from vmstore.views.reads.spoken_turns import MESSAGE_TOKENS, SpokenMessage
from vmstore.vm import signals
from vmstore.vm.assembly.blocks import harmless, plain
from vmstore.vm.assembly.candidate import CandidateForm, PromptCandidate, PromptPart
from vmstore.vm.assembly.history import chains, is_whole
from vmstore.vm.assembly.message_cut import cut, shortened
from vmstore.vm.recall.text_pieces import bounded, without_controls

HITS = 96  # texts of the best answers that are looked at
FACTS_MAX = 24
SAID_BY = ("user", "assistant")  # what stands beside an answer: not what instructs, nor what a tool printed
SUMMARIES_MAX = 12
SUMMARY_TOKENS = 200
RELEVANCE_MIN = 0.35  # of the best passage's, to be recalled for a question
RELEVANCE_MIN_OF_WORK = 0.7  # the same where a message asks nothing
QUERY_CHARS = 2_000
FEW_WORDS = 3  # a message of fewer is asked with what was said before it
REDUCED, ABSTRACT = 1_200, 300  # characters of a text in a message that is shown shorter
_SIGNS = re.compile(r"\w[\w./@#'’_-]*", re.UNICODE)
_OPERATORS = frozenset(("OR", "AND", "NOT"))


Untold = Callable[[Sequence[int]], frozenset[int]]


class FactLine(NamedTuple):
    """A fact that holds: the page that states it, in one sentence, and what it is about; its strength as an anchor.

    `score` says how well it answers the message, from 0 to 1; `subject` is the same for facts that say the same.
    """

    page: int
    session: str
    text: str
    score: float
    subject: str = ""
    strength: float = 0.0
    at_us: int = 0
    tags: tuple[str, ...] = ()


class FactSource(Protocol):
    """Where facts come from."""

    def known_facts(self, message: str, position: int) -> Iterable[FactLine]:
        """The facts that hold at a position and may matter for a message, and who the user is."""
        ...


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


def _words(text: str) -> list[str]:
    read = "\n".join(bounded(without_controls(text)))
    return [word.lower() if word in _OPERATORS else word for word in _SIGNS.findall(read)]


def conversation(
    turns: Sequence[Sequence[SpokenMessage]], values: Mapping[int, Sequence[Any]], tags: Mapping[int, Sequence[str]]
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
            tokens = sum(message.tokens for message in messages)
            candidates.append(
                PromptCandidate(
                    name=f"m{messages[0].message}",
                    part=PromptPart.CONVERSATION,
                    form=CandidateForm(0, max(tokens, forms[0].tokens), whole),
                    others=tuple(form for form in forms[1:] if form.tokens < forms[0].tokens),
                    turn=messages[0].turn,
                    order=order,
                    pages=tuple(page for message in messages for page in message.pages),
                    tags=tuple(tags.get(messages[0].turn, ())),
                    at_us=messages[0].at_us,
                    first=not order,
                )
            )
    return candidates


def _form(level: int, values: Any) -> CandidateForm:
    characters = len(json.dumps(values, ensure_ascii=False))
    return CandidateForm(level, -(-characters // CHARACTERS_PER_TOKEN) + MESSAGE_TOKENS, values)


def text_candidate(name: str, part: PromptPart, text: str, **fields: Any) -> PromptCandidate:
    """A candidate that is one text, on a line of its own."""
    return PromptCandidate(name=name, part=part, form=CandidateForm(0, tokens_in(text) + 1, text), **fields)


def summaries(ns: Namespace, lane: Branch, position: int, out: frozenset[int]) -> list[PromptCandidate]:
    """The newest summaries that no later one stands for, each in so many tokens at most."""
    rows: list[Any] = []
    inner: set[int] = set()
    for stretch in lane.upto(position):
        rows += lane.db.execute(_SUMMARIES, (stretch.session, stretch.low, stretch.high)).fetchall()
    for page, *_ in rows:
        inner.update(_targets(lane, page, position))
    wanted = [row for row in sorted(rows, reverse=True) if row[0] not in inner and row[0] not in out][:SUMMARIES_MAX]
    texts = dict(texts_of(ns.log, lane, {lane.session: position}, [page for page, *_ in wanted]))
    candidates = []
    for page, turn, at in wanted:
        text = plain(texts.get(page, ""))
        if not text:
            continue
        lines = [f"[Session: {_minute(at)}] {cut(text, most)}" for most in (SUMMARY_TOKENS * 4, ABSTRACT)]
        forms = [CandidateForm(level, tokens_in(line) + 1, line) for level, line in enumerate(lines)]
        candidates.append(
            PromptCandidate(
                name=page_name(page),
                part=PromptPart.SUMMARIES,
                form=forms[0],
                others=tuple(forms[1:]),
                score=float(turn),
                turn=turn,
                pages=(page,),
                at_us=at,
            )
        )
    return candidates


def _targets(lane: Branch, page: int, position: int) -> list[int]:
    rows = lane.db.execute(_STANDS_FOR, (lane.owner(page), page, position))
    return [target for (target,) in rows]


def _minute(at_us: int) -> str:
    return iso(at_us)[:16].replace("T", " ")


def recalled_texts(
    ns: Namespace,
    own: Moments,
    others: Moments,
    message: str,
    query: str,
    shown: frozenset[int],
    untold: Any,
    tokens: int,
) -> RecalledTexts:
    """What the memory holds of a message: claims as facts, all else as passages; what is in the conversation is out."""
    if not query.strip() or tokens <= 0:
        return RecalledTexts([], [], 0, "")
    hits, total, note = [], 0, ""
    for moments in (own, others):
        if not moments:
            continue
        answer = found(ns, moments, query, HITS)
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
    claims = [hit for hit in hits if types[hit.lane.session, hit.page][0] == PageType.CLAIM]
    talk = [hit for hit in hits if types[hit.lane.session, hit.page][0] in _SPOKEN]
    names = {lane.session: name for name, lane, _ in (*own, *others)}
    facts = [
        text_candidate(
            page_name(hit.page), PromptPart.FACTS, f"- {plain(hit.text)}", score=hit.score, pages=(hit.page,),
            subject=" ".join(hit.text.lower().split()), session=names[hit.lane.session],
        )
        for hit in claims[:FACTS_MAX]
        if (hit.lane.session, hit.page) not in over
    ]  # fmt: skip
    least = RELEVANCE_MIN if signals.asks(message) else RELEVANCE_MIN_OF_WORK
    top = talk[0].score if talk else 1.0
    near = [hit for hit in talk if hit.score >= least * top]
    best_of = recalled(ns, [*own, *others], FoundTexts(near, ""), tokens).passages if near else []
    passages = [_passage(one, order, shown) for order, one in enumerate(best_of)]
    return RecalledTexts(facts, passages, total, note)


def _passage(passage: Passage, order: int, shown: frozenset[int]) -> PromptCandidate:
    """A passage as it is recalled: with what was said beside it as far as the prompt has not got that, or without."""
    beside = [
        text for text in passage.texts if text.found or (int(text.page[1:]) not in shown and text.role in SAID_BY)
    ]
    both = [text for text in beside if text.found], beside
    lines = ["\n".join(f"{text.role}: {harmless(text.text).strip()}" for text in texts) for texts in both]
    forms = [CandidateForm(level, tokens_in(text) + 2, text) for level, text in enumerate(reversed(lines))]
    return PromptCandidate(
        name=beside[0].page if len(beside) == 1 else f"{beside[0].page}-{beside[-1].page}",
        part=PromptPart.RECALLED,
        form=forms[0],
        others=tuple(forms[1:]),
        score=passage.relevance,
        order=order,
        pages=tuple(int(text.page[1:]) for text in beside),
        session=passage.session,
        at_us=passage.at_us,
    )


def _is_told_with(text: RecalledText, shown: frozenset[int]) -> bool:
    """Whether what stands beside an answer is told with it: words of a person or a model the prompt has not got."""
    is_data = text.text.lstrip()[:1] in ("{", "[")
    return text.role in SAID_BY and int(text.page[1:]) not in shown and not is_data


def _superseded(hits: Sequence[RankedText], positions: Mapping[int, int]) -> set[tuple[int, int]]:
    """Those of some pages that hold no more."""
    over = set()
    for lane in {hit.lane.session: hit.lane for hit in hits}.values():
        pages = [hit.page for hit in hits if hit.lane.session == lane.session]
        for page, note in notes_of(lane, positions[lane.session], pages).items():
            if note.status in (Standing.SUPERSEDED, Standing.ABANDONED):
                over.add((lane.session, page))
    return over


_SPOKEN = (PageType.TRANSCRIPT, PageType.ARTIFACT, PageType.SUMMARY)
_SUMMARIES = f"""SELECT page, turn, at FROM pages INDEXED BY pages_type
  WHERE {TYPED} AND type = {int(PageType.SUMMARY)} AND session = ? AND page > ? AND page <= ?"""
_STANDS_FOR = """SELECT l.target FROM links l JOIN pages p ON p.session = l.session AND p.page = l.target
  WHERE l.session = ? AND l.source = ? AND l.position <= ? AND p.type = """ + str(int(PageType.SUMMARY))
