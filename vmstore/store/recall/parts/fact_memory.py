"""What a session knows: facts that were stated, found in what was said, and how they hang together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from vmstore.core.address import page_name
from vmstore.core.aliases import FormerMethod
from vmstore.core.asof import AsOf, Moment, When, one_moment
from vmstore.core.clock import within
from vmstore.errors import InputError
from vmstore.facts.addition import Addition
from vmstore.facts.fact import StatedFact
from vmstore.store.host import SessionHost
from vmstore.store.recall import fact_reads
from vmstore.store.recall.fact_finder import find_facts
from vmstore.store.recall.fact_model import FactExtractor, FactModel
from vmstore.store.recall.results import FactGraph, FactsFound, KnownFact
from vmstore.views.reads.resolve_asof import basis
from vmstore.vm.compressors.callback import TIMEOUT_S


class FactMemory(FormerMethod):
    """The facts of a session: `session.memory.facts`."""

    _former = "SessionMemory.facts"

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def all(
        self, at: When | None = None, *, valid_at_us: int | None = None, ever: bool = False, whole_user: bool = False,
        **moment: Unpack[Moment],
    ) -> list[KnownFact]:  # fmt: skip
        """What is known at a moment, of this session or of all its user's: facts that hold then and were not replaced.

        `valid_at_us` asks what held at another time in the world, by what was known at the moment; `ever` adds what
        holds no more, with what replaced it.
        """
        return self._known(one_moment(at, moment), valid_at_us, ever, whole_user)

    def query(
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

    def graph(
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

    def state(
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
        (page,) = self._session._add_facts([Addition(fact, None)], within("at", at_us))
        return page_name(page)

    def extract(
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

    def _known(self, when: AsOf, valid_at_us: int | None, ever: bool, whole_user: bool) -> list[KnownFact]:
        user = self._session.info().user if whole_user else None
        if whole_user and user is None:
            raise InputError(f"{self._session.name!r} has no user; a session gets one when it is created: user='ada'")
        name = None if whole_user else self._session.name
        return fact_reads.known(self._session._ns, name, user, when, valid_at_us=valid_at_us, ever=ever)
