"""What a session remembers: its pages by words, by time, by what they say, within the tokens a prompt has room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from msgspec.structs import replace

from vmstore.core.address import page_name
from vmstore.core.asof import AsOf, Moment, When, one_moment
from vmstore.core.clock import within as within_time
from vmstore.core.decision import Recaller
from vmstore.core.page import Modality, Tier
from vmstore.core.times import zone_of
from vmstore.errors import InputError
from vmstore.facts.addition import Addition
from vmstore.facts.fact import StatedFact
from vmstore.namespace.page_rows import described
from vmstore.store.host import SessionHost
from vmstore.store.reads.search import Moments
from vmstore.store.recall import fact_reads, tiers
from vmstore.store.recall.assembly.results import AssembledPrompt
from vmstore.store.recall.cold import others, weighed
from vmstore.store.recall.fact_finder import find_facts
from vmstore.store.recall.fact_model import FactExtractor, FactModel
from vmstore.store.recall.overview import overview
from vmstore.store.recall.periods import Bound, Period, period
from vmstore.store.recall.quotes import quotes
from vmstore.store.recall.recall import (
    QUERY_CHARS_MAX,
    FoundTexts,
    found,
    of_time,
    recalled,
    taken_back,
    within,
    without,
)
from vmstore.store.recall.results import (
    FactGraph,
    FactsFound,
    FoundPage,
    FoundPages,
    FoundQuotes,
    KnownFact,
    Overview,
    RecallAnswer,
    RecallWorth,
)
from vmstore.store.recall.searches import log_prompt, worth
from vmstore.store.recall.segments import SegmentInfo, ancestors_of, descendants_of, segments_at
from vmstore.store.recall.tag_model import TagModel, TurnTagger
from vmstore.store.recall.tags import AliasSuggestion, TagInfo, give, rename, show, suggestions, tags_at
from vmstore.store.recall.tiers import ColdPage, NearTurn
from vmstore.store.recall.turns.turn_summary import TurnModel, TurnSummaries, summarize_turns
from vmstore.store.recall.turns.turn_tags import tag_turns
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.turn_tiers import written_at
from vmstore.vm.assembly.selector import PROTECTED_TURNS
from vmstore.vm.assembly.selector import TOKENS as PROMPT_TOKENS
from vmstore.vm.assembly.tag_rules import TagRule
from vmstore.vm.compressors.callback import TIMEOUT_S

TOKENS = 1_000
OVERVIEW_TOKENS = 2_900
PAGES_MAX = 100
HINT_CHARS = 80


class SessionMemory:
    """What a session remembers: `session.memory`. Nothing asked here changes what is in the prompt.

    What a live session asks of now is logged as a search, with what it was given.
    """

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def recall(
        self, query: str, at: When | None = None, *, tokens: int = TOKENS, **moment: Unpack[Moment]
    ) -> RecallAnswer:
        """What answers a query, best first, each with what was said beside it, in at most so many tokens."""
        moments = self._moments(at, moment)
        recall = recalled(self._session._ns, moments, self._found(moments, query), tokens, untold=self._untold)
        self._note(Recaller.RECALL, query, pages_of(recall), recall, at, moment)
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
        self._note(Recaller.SEARCH_PAGES, query, [page.page_id for page in pages.results], pages, at, moment)
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
        self._note(Recaller.FIND_QUOTE, text, [quote.page for quote in answer.quotes], answer, at, moment)
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
        self._note(Recaller.REMEMBER_WHEN, query or "", pages_of(recall), recall, at, moment)
        return _timed(recall, asked, zone)

    def recall_all(
        self, at: When | None = None, *, tokens: int = OVERVIEW_TOKENS, **moment: Unpack[Moment]
    ) -> Overview:
        """All that the session is about, oldest first: summaries and topics, in at most so many tokens."""
        all_of_it = overview(self._session._ns, self._moments(at, moment), tokens, self._session._untold)
        pages = [page for topic in all_of_it.topics for page in topic.pages]
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

    def state_fact(
        self, subject: str, verb: str, what: str, *, attribute: str | None = None, text: str = "",
        fact_type: str = "general", status: str = "active", one: bool | None = None, valid_from_us: int | None = None,
        valid_to_us: int | None = None, precision: str = "unknown", confidence: float = 1.0, strength: float = 0.0,
        sources: str | int | Iterable[str | int] = (), supersedes: str | int | None = None,
        links: Iterable[tuple[str, str | int]] = (), tags: Iterable[str] = (), at_us: int | None = None,
    ) -> str:  # fmt: skip
        """States a fact as a claim page with its `sources`; its name.

        Of an `attribute` that has one value at a time (`one`; by default as `vmstore.facts.address` lists it) it ends
        the value before it when it begins. `strength` over 0 makes it an anchor of who the subject is. `links` are
        pairs of a kind, as part_of, and a page; `supersedes` names the fact it replaces wherever that is held.
        """
        named = [*links, *([] if supersedes is None else [("supersedes", supersedes)])]
        pairs = [(fact_reads.link_kind(kind), fact_reads.numbers(self._session, page)[0]) for kind, page in named]
        given = StatedFact(
            subject=subject, verb=verb, what=what, text=text, attribute=attribute, one=one, valid_from=valid_from_us,
            valid_to=valid_to_us, sources=fact_reads.numbers(self._session, sources), links=tuple(pairs),
            tags=tuple(tags),
        )  # fmt: skip
        fact = fact_reads.stated(given, status, fact_type, precision, (confidence, strength))
        (page,) = self._session._add_facts([Addition(fact, None)], within_time("at", at_us))
        return page_name(page)

    def find_facts(
        self, model: FactModel | None = None, *, language: str | None = None, consolidate: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> list[str]:  # fmt: skip
        """Finds facts in what was said and states those that are new; the names of their pages. Again it finds none.

        Without a model the patterns of `language` find them, by default of that which the namespace declares. `model`
        is a function from a prompt to a text, or a text model as `vmstore.OpenAIModel`: it is asked about each message
        once and, with `consolidate`, how the new facts hang together with the others. Each answer is logged with what
        was made of it; where one cannot be read, the patterns stand in.
        """
        if model is None:
            return [page_name(page) for page in find_facts(self._session, language)]
        extractor = FactExtractor(model, timeout_s, language)
        pages = extractor.signals(self._session)
        if consolidate:
            extractor.consolidate(self._session)
        return [page_name(page) for page in pages]

    def facts(
        self, at: When | None = None, *, valid_at_us: int | None = None, ever: bool = False, whole_user: bool = False,
        **moment: Unpack[Moment],
    ) -> list[KnownFact]:  # fmt: skip
        """What is known at a moment, of this session or of all its user's: facts that hold then and were not replaced.

        `valid_at_us` asks what held at another time in the world, by what was known at the moment; `ever` adds what
        holds no more, with what replaced it.
        """
        return self._known(one_moment(at, moment), valid_at_us, ever, whole_user)

    def query_facts(
        self, subject: str | None = None, verb: str | None = None, object_contains: str | None = None,
        status: str | None = None, fact_type: str | None = None, at: When | None = None, *,
        ever: bool = False, whole_user: bool = False, limit: int = fact_reads.FOUND_MAX, **moment: Unpack[Moment],
    ) -> FactsFound:  # fmt: skip
        """The facts of a subject, a verb or one that says the same, an object; each with the pages linked to it.

        Where fewer than three fit, those that say something like it come after them, and `note` says so.
        """
        when = one_moment(at, moment)
        wanted = fact_reads.FactFilter(subject, verb, object_contains, status, fact_type)
        found = fact_reads.chosen(self._known(when, None, ever, whole_user), wanted, limit)
        with self._session._ns.asking():
            lane = self._session._lane()
            position = basis(lane, when).position
            own = [fact.session == self._session.name for fact in found.facts]
            near = fact_reads.linked(
                [fact for fact, mine in zip(found.facts, own, strict=True) if mine], lane, position
            )
        with_links = iter(near)
        listed = [next(with_links) if mine else fact for fact, mine in zip(found.facts, own, strict=True)]
        return FactsFound(listed, found.total, found.note)

    def fact_graph(
        self, page: str | int, at: When | None = None, *, depth: int = 2, kinds: Iterable[str] | None = None,
        **moment: Unpack[Moment],
    ) -> FactGraph:  # fmt: skip
        """What hangs together with a fact: breadth first, in both directions, over links of some `kinds` or of all."""
        when = one_moment(at, moment)
        every = self._known(when, None, True, False)
        with self._session._ns.asking():
            lane = self._session._lane()
            start, found = self._session._resolve(lane, page, when)
            return fact_reads.graph(every, lane, start, found.position, depth, kinds)

    def _known(self, when: AsOf, valid_at_us: int | None, ever: bool, whole_user: bool) -> list[KnownFact]:
        user = self._session.info().user if whole_user else None
        if whole_user and user is None:
            raise InputError(f"{self._session.name!r} has no user; a session gets one when it is created: user='ada'")
        name = None if whole_user else self._session.name
        return fact_reads.known(self._session._ns, name, user, when, valid_at_us=valid_at_us, ever=ever)

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

    def tags(self, at: When | None = None, **moment: Unpack[Moment]) -> list[TagInfo]:
        """What the session is about: the tags of its pages, and names that count as one, in the order of the names."""
        with self._session._ns.asking():
            lane = self._session._lane()
            return tags_at(lane, basis(lane, one_moment(at, moment)).position)

    def tag(self, page: str | int, *tags: str, remove: Iterable[str] = ()) -> list[str]:
        """Gives a page, or each page of a message (`m4`), tags, and takes those to `remove` away: the pages meant."""
        return give(self._session, page, tags, remove)

    def tag_turns(self, tagger: TagModel | None = None, *, timeout_s: float = TIMEOUT_S) -> int:
        """Tags the turns that have none: how many. A second time it finds none.

        By their words; or by a `tagger`: a function from a prompt to a text, a text model as `vmstore.OpenAIModel`,
        or an embedder, which takes the closest of the tags there are. Where it fails the words decide.
        """
        return tag_turns(self._session, None if tagger is None else TurnTagger(tagger, timeout_s))

    def summarize_turns(self, model: TurnModel | None = None, *, timeout_s: float = TIMEOUT_S) -> TurnSummaries:
        """Says each older turn in one sentence, for cold recall; those that say who somebody is stay as they are.

        `model`, a function from a prompt to a text or a text model, is asked which are critical and for the sentences;
        what it answers is logged. Without one, and where it fails, the first sentences stand in. A second time it
        finds no turn.
        """
        return summarize_turns(self._session, model, timeout_s)

    def alias(self, name: str, canonical: str | None) -> None:
        """Has a name count as another tag from here on; as itself again where that is None."""
        rename(self._session, name, canonical)

    def expand(self, tag: str, depth: str = "full") -> None:
        """Has a prompt show more of a tag from here on: `segments` or `full`; it stays so until it is collapsed."""
        show(self._session, tag, depth)

    def collapse(self, tag: str, depth: str = "summary") -> None:
        """Has a prompt show less of a tag from here on: `segments`, `summary` or `none`."""
        show(self._session, tag, depth)

    def suggest_aliases(self, at: When | None = None, **moment: Unpack[Moment]) -> list[AliasSuggestion]:
        """Names of tags that may mean the same: plurals, slips, short forms; `alias` says that they do."""
        with self._session._ns.asking():
            lane = self._session._lane()
            return suggestions(lane, basis(lane, one_moment(at, moment)).position)

    def segments(self, at: When | None = None, **moment: Unpack[Moment]) -> list[SegmentInfo]:
        """The stretches of the session about one thing, in order, said or summed up; then the summaries of tags."""
        with self._session._ns.asking():
            ((name, lane, position),) = self._moments(at, moment)
            return segments_at(lane, name, position)

    def ancestors(
        self, segment: int | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SegmentInfo]:
        """The segments before one, by default before the last, oldest first.

        Those of the sessions that this one goes on from are among them.
        """
        with self._session._ns.asking():
            ((name, lane, position),) = self._moments(at, moment)
            return ancestors_of(self._session._ns, lane, name, position, segment)

    def descendants(
        self, segment: int | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SegmentInfo]:
        """The segments after one, by default after the first, in order.

        Those of the sessions that go on from this one are among them.
        """
        with self._session._ns.asking():
            ((name, lane, position),) = self._moments(at, moment)
            return descendants_of(self._session._ns, lane, name, position, segment)

    def hot(self, at: When | None = None, *, current: str = "", **moment: Unpack[Moment]) -> list[NearTurn]:
        """The last turns: five at most, 1,500 tokens, 2,000 with the `current` message; none of a session over."""
        ns, (_, lane, position) = self._session._ns, self._moments(at, moment)[0]
        with ns.asking():
            return tiers.hot(ns, lane, position, self._when(lane, position, at, moment), len(current) // 4)

    def warm(self, query: str = "", at: When | None = None, **moment: Unpack[Moment]) -> list[NearTurn]:
        """The fifty turns before those, 15,000 tokens at most, and older ones referred to just now.

        With a query those that have a word of it come first.
        """
        ns, (_, lane, position) = self._session._ns, self._moments(at, moment)[0]
        with ns.asking():
            return tiers.warm(ns, lane, position, self._when(lane, position, at, moment), query)

    def cold(self, query: str, *, limit: int = tiers.COLD_FOUND) -> list[ColdPage]:
        """What all sessions of the user hold of a query, this one included; each with the values of its score."""
        ns = self._session._ns
        user = self._session.info().user
        own = self._moments(None, {})
        with ns.asking():
            moments = [*own, *(others(ns, user, own[0][1]) if user is not None else ())]
        return tiers.cold(ns, moments, query, ns.clock.now(), limit)

    def _when(self, lane: Branch, position: int, at: When | None, moment: Moment) -> int:
        """The time a question is asked at: now, or when what it is asked of was written last."""
        if at is None and not moment:
            return self._session._ns.clock.now()
        return written_at(lane, position)

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
        pages: Sequence[str],
        answer: MemoryAnswer,
        at: When | None,
        moment: Moment,
    ) -> None:
        """Tells a live session what it recalled; of the past nobody recalls anything."""
        if at is None and not moment:
            tokens = getattr(answer, "tokens", 0)
            numbers = [int(page[1:]) for page in pages]
            self._session._searched(recaller, query[:QUERY_CHARS_MAX], numbers, answer.total_available, tokens)

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


def _timed(recall: RecallAnswer, asked: Period, zone: str) -> RecallAnswer:
    return replace(recall, from_us=asked.from_us, to_us=asked.to_us, zone=zone)
