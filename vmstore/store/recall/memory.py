"""What a session remembers: its pages by words, by time, by what they say, within the tokens a prompt has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Unpack

from msgspec.structs import replace

from vmstore.core.aliases import Aliased
from vmstore.core.asof import Moment, When, one_moment
from vmstore.core.decision import Recaller
from vmstore.core.page import Modality, Tier
from vmstore.core.times import zone_of
from vmstore.errors import InputError
from vmstore.namespace.page_rows import described
from vmstore.store.host import SessionHost
from vmstore.store.reads.search import Moments
from vmstore.store.recall.assembly.results import AssembledPrompt
from vmstore.store.recall.cold import others, weighed
from vmstore.store.recall.overview import overview
from vmstore.store.recall.parts.fact_memory import FactMemory
from vmstore.store.recall.parts.segment_memory import SegmentMemory
from vmstore.store.recall.parts.tag_memory import TagMemory
from vmstore.store.recall.parts.turn_memory import TurnMemory
from vmstore.store.recall.periods import Bound, Period, period
from vmstore.store.recall.quotes import quotes
from vmstore.store.recall.recall import (
    QUERY_CHARS_MAX,
    FoundTexts,
    found,
    named_times,
    of_time,
    recalled,
    taken_back,
    within,
    without,
)
from vmstore.store.recall.results import (
    FoundPage,
    FoundPages,
    FoundQuotes,
    NamedTimes,
    Overview,
    RecallAnswer,
    RecallWorth,
)
from vmstore.store.recall.searches import log_prompt, worth
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.vm.assembly.selector import PROTECTED_TURNS
from vmstore.vm.assembly.selector import TOKENS as PROMPT_TOKENS
from vmstore.vm.assembly.tag_rules import TagRule

TOKENS = 1_000
OVERVIEW_TOKENS = 2_900
PAGES_MAX = 100
TIMES, TIMES_MAX = 100, 100_000
HINT_CHARS = 80


class SessionMemory(Aliased):
    """What a session remembers: `session.memory`. Nothing asked here changes what is in the prompt.

    What a live session asks of now is logged as a search, with what it was given.
    """

    _aliases: ClassVar[Mapping[str, str]] = {
        "state_fact": "facts.state",
        "find_facts": "facts.extract",
        "query_facts": "facts.query",
        "fact_graph": "facts.graph",
        "tag": "tags.give",
        "alias": "tags.alias",
        "suggest_aliases": "tags.suggest_aliases",
        "expand": "tags.expand",
        "collapse": "tags.collapse",
        "ancestors": "segments.ancestors",
        "descendants": "segments.descendants",
        "hot": "turns.hot",
        "warm": "turns.warm",
        "cold": "turns.cold",
        "tag_turns": "turns.tag",
        "summarize_turns": "turns.summarize",
    }

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    @property
    def facts(self) -> FactMemory:
        """Facts: what is known, what replaced it, and how it hangs together."""
        return FactMemory(self._session)

    @property
    def tags(self) -> TagMemory:
        """Tags: what pages are about, names that count as one, how much a prompt shows of each."""
        return TagMemory(self._session)

    @property
    def segments(self) -> SegmentMemory:
        """Segments: stretches about one thing, and those before and after."""
        return SegmentMemory(self._session)

    @property
    def turns(self) -> TurnMemory:
        """Turns near and far: hot, warm and cold ones, their tags and their summaries."""
        return TurnMemory(self._session)

    def recall(
        self, query: str, at: When | None = None, *, tokens: int = TOKENS, **moment: Unpack[Moment]
    ) -> RecallAnswer:
        """What answers a query, best first, each with what was said beside it, in at most so many tokens."""
        moments = self._moments(at, moment)
        recall = recalled(self._session._ns, moments, self._found(moments, query), tokens, untold=self._untold)
        self._note(Recaller.RECALL, query, scored_pages(recall), recall, at, moment)
        return recall

    def search_pages(
        self, query: str, at: When | None = None, *, modality: str | None = None, limit: int = 5,
        **moment: Unpack[Moment],
    ) -> FoundPages:  # fmt: skip
        """The pages that answer a query, best first: what they are, never all they say; and how many there are."""
        kind = next((each for each in Modality if each.word == modality), None)
        if modality is not None and kind is None:
            raise InputError(f"{modality!r:.60} is no modality; there are {', '.join(m.word for m in Modality)}")
        if type(limit) is not int or not 1 <= limit <= PAGES_MAX:
            raise InputError(f"limit {limit!r:.60} is no number of pages from 1 to {PAGES_MAX}")
        moments = self._moments(at, moment)
        pages = self._described(moments, self._found(moments, query), kind, limit)
        scored = [(page.page_id, page.relevance) for page in pages.results]
        self._note(Recaller.SEARCH_PAGES, query, scored, pages, at, moment)
        return pages

    def _counted(self, query: str, modality: Modality | None) -> int:
        """How many pages answer a query now; the question is not logged."""
        moments = self._moments(None, {})
        try:
            return self._described(moments, self._found(moments, query), modality, 1).total_available
        except InputError:
            return 0

    def find_quote(self, text: str, at: When | None = None, **moment: Unpack[Moment]) -> FoundQuotes:
        """Where something was said in these words, then where most of them were: twenty at most, exact ones first."""
        moments = self._moments(at, moment)
        answer = quotes(self._session._ns, moments, self._found(moments, text), text)
        scored = [(quote.page, quote.relevance) for quote in answer.quotes]
        self._note(Recaller.FIND_QUOTE, text, scored, answer, at, moment)
        return answer

    def remember_when(
        self, query: str | None = None, at: When | None = None, *, preset: str | None = None,
        start: Bound | None = None, end: Bound | None = None, tokens: int = TOKENS, zone: str | None = None,
        **moment: Unpack[Moment],
    ) -> RecallAnswer:  # fmt: skip
        """What was said in a time, earliest first: a preset like last_week, bounds, or words like 'in August'.

        With a query, of that what answers it, and what speaks of that time. Without a time it is all of it.
        Days begin and end where a clock of `zone` says so, like 'Europe/Berlin': by default the setting of a session
        that manages its memory, else UTC.
        """
        ns = self._session._ns
        zone = self._session._zone() if zone is None else zone
        asked = period(preset, start, end, ns.clock.now(), zone_of(zone))
        moments = self._moments(at, moment)
        if query is None:
            answer = without(of_time(ns, moments, asked), self._untold)
        else:
            answer = within(ns, self._found(moments, query), asked)
        windows = query is not None
        recall = recalled(ns, moments, answer, tokens, earliest_first=True, windows=windows, untold=self._untold)
        scored = scored_pages(recall) if windows else [(page, None) for page in pages_of(recall)]
        self._note(Recaller.REMEMBER_WHEN, query or "", scored, recall, at, moment)
        return _timed(recall, asked, zone)

    def times(
        self, at: When | None = None, *, preset: str | None = None, start: Bound | None = None,
        end: Bound | None = None, zone: str | None = None, limit: int = TIMES, **moment: Unpack[Moment],
    ) -> NamedTimes:  # fmt: skip
        """The times that user and assistant spoke of, the earliest first: those in a time, or without one all.

        'yesterday' is the day before it was said. The time is given as to `remember_when`.
        """
        if type(limit) is not int or not 1 <= limit <= TIMES_MAX:
            raise InputError(f"limit {limit!r:.60} is no number of times from 1 to {TIMES_MAX:,}")
        ns = self._session._ns
        zone_there = zone_of(self._session._zone() if zone is None else zone)
        asked = period(preset, start, end, ns.clock.now(), zone_there)
        moments = self._moments(at, moment)
        said = without(of_time(ns, moments, Period(None, None, zone_there)), self._untold)
        return named_times(ns, moments, said, asked, limit)

    def recall_all(
        self, at: When | None = None, *, tokens: int = OVERVIEW_TOKENS, **moment: Unpack[Moment]
    ) -> Overview:
        """All that the session is about, oldest first: summaries and topics, in at most so many tokens."""
        all_of_it = overview(self._session._ns, self._moments(at, moment), tokens, self._session._untold)
        pages = [(page, None) for topic in all_of_it.topics for page in topic.pages]
        self._note(Recaller.RECALL_ALL, "", pages, all_of_it, at, moment)
        return all_of_it

    def recall_user(self, query: str, *, tokens: int = TOKENS) -> RecallAnswer:
        """What the other sessions of the session's user hold of a query, the recent and the important first."""
        ns = self._session._ns
        user = self._session.info().user
        if user is None:
            raise InputError(f"{self._session.name!r} has no user; a session gets one when it is created: user='ada'")
        with ns.asking():
            moments = others(ns, user, self._session._lane())
        untold = taken_back(ns)
        answer = FoundTexts([], f"{user!r} has no other session")
        if moments:
            answer = weighed(ns, without(found(ns, moments, query), untold), query, ns.clock.now())
        recall = recalled(ns, moments, answer, tokens, untold=untold)
        self._note(Recaller.RECALL_USER, query, [], recall, None, {})
        return recall

    def assemble(
        self, message: str | None = None, at: When | None = None, *, tokens: int = PROMPT_TOKENS,
        rules: Sequence[TagRule] | None = None, protected: int = PROTECTED_TURNS, across: bool = False,
        rounds: int = 0, shape: str | None = None, **moment: Unpack[Moment],
    ) -> AssembledPrompt:  # fmt: skip
        """A prompt for a message, or to go on: what instructs, the newest turns, and what the memory holds of it.

        It takes at most so many tokens. `rules` order topics by tag, `protected` turns give way last, `across` looks
        into the user's other sessions too, `rounds` says in the hint how often tools may be called, `shape` is
        another provider's. The message is logged by its speaker, not here.
        """
        from vmstore.store.recall.assembly.assemble import assembled, options_of

        if message is not None and (not isinstance(message, str) or not message.strip()):
            raise InputError(
                f"a message is a text, and {message!r:.40} is none; leave it out to go on with the last one"
            )
        options = options_of(tokens, rules, protected=protected, across=across, rounds=rounds, shape=shape)
        with self._session._ns.asking():
            position = basis(self._session._lane(), one_moment(at, moment))
        prompt = assembled(self._session, position, message, options)
        if at is None and not moment:
            log_prompt(self._session, (message or "")[:QUERY_CHARS_MAX], prompt)
        return prompt

    def worth(self, at: When | None = None, **moment: Unpack[Moment]) -> list[RecallWorth]:
        """What a live session's recalls were worth: by the way of asking, what they gave and what was used of it."""
        with self._session._ns.asking():
            lane = self._session._lane()
            return worth(lane, basis(lane, one_moment(at, moment)).position)

    def _found(self, moments: Moments, query: str) -> FoundTexts:
        return without(found(self._session._ns, moments, query), self._untold)

    def _untold(self, lane: Branch, pages: Sequence[int]) -> frozenset[int]:
        return self._session._untold(pages)

    def _note(
        self,
        recaller: Recaller,
        query: str,
        pages: Sequence[tuple[str, float | None]],
        answer: MemoryAnswer,
        at: When | None,
        moment: Moment,
    ) -> None:
        """Tells a live session what it recalled; of the past nobody recalls anything."""
        if at is None and not moment:
            tokens = getattr(answer, "tokens", 0)
            numbers, scores = [int(page[1:]) for page, _ in pages], [score for _, score in pages if score is not None]
            self._session._searched(recaller, query[:QUERY_CHARS_MAX], numbers, answer.total_available, tokens, scores)

    def _moments(self, at: When | None, moment: Moment) -> Moments:
        with self._session._ns.asking():
            lane = self._session._lane()
            return [(self._session.name, lane, basis(lane, one_moment(at, moment)).position)]

    def _described(self, moments: Moments, answer: FoundTexts, kind: Modality | None, limit: int) -> FoundPages:
        ((name, lane, position),) = moments
        word = None if kind is None else kind.word
        wanted = [hit.page for hit in (answer.hits if kind else answer.hits[:limit])]
        with self._session._ns.asking():
            pages = described(lane, position, wanted)
        fitting = [page for page in pages if word in (None, page.modality)]
        scores = {hit.page: hit.score for hit in answer.hits}
        best = max(scores.values(), default=1.0) or 1.0
        texts = {hit.page: " ".join(hit.text.split()) for hit in answer.hits[:limit]}
        results = [
            FoundPage(
                page.page,
                name,
                page.modality,
                Tier(page.tier).name,
                [page.level],
                page.hint or texts.get(page.position, "")[:HINT_CHARS],
                round(scores[page.position] / best, 6),
            )
            for page in fitting[:limit]
        ]
        note = answer.note
        if kind is not None and answer.hits and not fitting:
            note = f"of {len(answer.hits)} pages that answer the query none is {word}"
        return FoundPages(results, len(fitting) if kind else answer.total, note)


MemoryAnswer = RecallAnswer | FoundPages | FoundQuotes | Overview


def pages_of(recall: RecallAnswer) -> list[str]:
    """The pages that were found, the best passage's first; those beside them are not among them."""
    return [text.page for passage in recall.passages for text in passage.texts if text.found]


def scored_pages(recall: RecallAnswer) -> list[tuple[str, float | None]]:
    """The pages that were found, each with the relevance of its passage."""
    return [(text.page, passage.relevance) for passage in recall.passages for text in passage.texts if text.found]


def _timed(recall: RecallAnswer, asked: Period, zone: str) -> RecallAnswer:
    return replace(recall, from_us=asked.from_us, to_us=asked.to_us, zone=zone)
