"""What is known across the sessions of a store."""

from __future__ import annotations

from typing import Unpack

from vmstore.core.asof import Moment, When, one_moment
from vmstore.namespace.namespace import Namespace
from vmstore.store.reads.search import Moments, everywhere
from vmstore.store.recall.cold import written_by
from vmstore.store.recall.fact_reads import FOUND_MAX, FactFilter, chosen, known
from vmstore.store.recall.quotes import quotes
from vmstore.store.recall.recall import found, recalled, taken_back, without
from vmstore.store.recall.results import FactsFound, FoundQuotes, KnownFact, RecallAnswer

TOKENS = 1_000


class StoreMemory:
    """What is known across sessions: `store.memory`. A moment is a `time` or a `logged_time`."""

    def __init__(self, namespace: Namespace) -> None:
        self._ns = namespace

    def recall(self, query: str, *, user: str | None = None, tokens: int = TOKENS) -> RecallAnswer:
        """What the sessions of a user, or all, hold of a query, best first, in at most so many tokens."""
        moments, untold = self._moments(user), taken_back(self._ns)
        return recalled(self._ns, moments, without(found(self._ns, moments, query), untold), tokens, untold=untold)

    def find_quote(self, text: str, *, user: str | None = None) -> FoundQuotes:
        """Where something was said in these words in the sessions of a user, or in all: twenty at most, exact first."""
        moments = self._moments(user)
        return quotes(self._ns, moments, without(found(self._ns, moments, text), taken_back(self._ns)), text)

    def facts(
        self, at: When | None = None, *, user: str | None = None, valid_at_us: int | None = None, ever: bool = False,
        **moment: Unpack[Moment],
    ) -> list[KnownFact]:  # fmt: skip
        """What is known of a user, or in all sessions: facts that hold and were not replaced, by session.

        `valid_at_us` asks what held at another time; `ever` adds what holds no more, with what replaced it.
        """
        return known(self._ns, None, user, one_moment(at, moment), valid_at_us=valid_at_us, ever=ever)

    def query_facts(
        self, subject: str | None = None, verb: str | None = None, object_contains: str | None = None,
        status: str | None = None, fact_type: str | None = None, *, user: str | None = None, ever: bool = False,
        limit: int = FOUND_MAX,
    ) -> FactsFound:  # fmt: skip
        """The facts of a subject, a verb or one that says the same, an object, in the sessions of a user or all."""
        facts = known(self._ns, None, user, one_moment(None, {}), ever=ever)
        return chosen(facts, FactFilter(subject, verb, object_contains, status, fact_type), limit)

    def _moments(self, user: str | None) -> Moments:
        with self._ns.asking():
            return everywhere(self._ns) if user is None else written_by(self._ns, user)
