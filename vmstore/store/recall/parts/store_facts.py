"""The facts of all sessions of a store, or of a user's."""

from __future__ import annotations

from typing import Unpack

from vmstore.core.aliases import FormerMethod
from vmstore.core.asof import Moment, When, one_moment
from vmstore.namespace.namespace import Namespace
from vmstore.store.recall.fact_reads import FOUND_MAX, FactFilter, chosen, known
from vmstore.store.recall.results import FactsFound, KnownFact


class StoreFacts(FormerMethod):
    """The facts of all sessions, or of a user's: `store.memory.facts`. A moment is a `time` or a `logged_time`."""

    _former = "StoreMemory.facts"

    def __init__(self, namespace: Namespace) -> None:
        self._ns = namespace

    def all(
        self, at: When | None = None, *, user: str | None = None, valid_at_us: int | None = None, ever: bool = False,
        **moment: Unpack[Moment],
    ) -> list[KnownFact]:  # fmt: skip
        """What is known of a user, or in all sessions: facts that hold and were not replaced, by session.

        `valid_at_us` asks what held at another time; `ever` adds what holds no more, with what replaced it.
        """
        return known(self._ns, None, user, one_moment(at, moment), valid_at_us=valid_at_us, ever=ever)

    def query(
        self, subject: str | None = None, verb: str | None = None, object_contains: str | None = None,
        status: str | None = None, fact_type: str | None = None, *, user: str | None = None, ever: bool = False,
        limit: int = FOUND_MAX,
    ) -> FactsFound:  # fmt: skip
        """The facts of a subject, a verb or one that says the same, an object, in the sessions of a user or all."""
        facts = known(self._ns, None, user, one_moment(None, {}), ever=ever)
        return chosen(facts, FactFilter(subject, verb, object_contains, status, fact_type), limit)
