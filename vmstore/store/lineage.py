"""Questions about single pages of a session: sources, dependents, history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from vmstore.core.asof import Head, Moment, Position, When, one_moment
from vmstore.core.page import LinkKind
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.page_rows import relations
from vmstore.namespace.results import Affinity, Compaction, Event, PageLink, Version
from vmstore.store.host import SessionHost
from vmstore.store.reads.compactions import compactions_of
from vmstore.store.reads.evidence import SourceEvidence, evidence_of
from vmstore.store.reads.history import history_of
from vmstore.store.reads.versions import affinity_of, versions_of
from vmstore.views.projectors.lineage import walk
from vmstore.views.reads.resolve_asof import basis, begin_of, end_of


class Lineage:
    """The past of single pages: `session.lineage`."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def history(self, page: str | int, at: When | None = None, **moment: Unpack[Moment]) -> list[Event]:
        """Events of a page: made, changed, linked, used, entered, left, and decisions about it."""
        with self._session._ns.asking():
            lane = self._session._lane()
            number, when = self._session._resolve(lane, page, one_moment(at, moment))
            return history_of(lane, number, when.position)

    def versions(
        self, page: str | int, at: When | None = None, *, delta: bool = False, **moment: Unpack[Moment]
    ) -> list[Version]:
        """Every content a page was given, up to a moment, in order; with `delta` what changed as a unified diff."""
        with self._session._ns.asking():
            lane = self._session._lane()
            number, when = self._session._resolve(lane, page, one_moment(at, moment))
            return versions_of(lane, self._session._ns.log, number, when.position, delta=delta)

    def affinity(
        self, page: str | int, at: When | None = None, *, limit: int | None = 20, **moment: Unpack[Moment]
    ) -> list[Affinity]:
        """The pages that were in the context together with a page, those it shared most calls with first.

        Costs one pass over all stays of the session up to the moment.
        """
        with self._session._ns.asking():
            lane = self._session._lane()
            number, when = self._session._resolve(lane, page, one_moment(at, moment))
            return affinity_of(lane, self._session._ns.log, number, when.position, limit)

    def evidence(self, page: str | int, *, limit: int | None = 3) -> list[SourceEvidence]:
        """Ranks the pages an answer or call of the model's may have come from, where nobody logged it.

        Of the pages in the prompt of its call those that were new to it and those whose words it repeats. It is
        evidence and no link: `ancestors` has what was logged, and nothing of this. Empty of what the model did not say.
        """
        with self._session._ns.asking():
            lane = self._session._lane()
            number, _ = self._session._resolve(lane, page, Head())
            return evidence_of(lane, self._session._ns.log, number, limit)

    def compactions(self, at: When | None = None, **moment: Unpack[Moment]) -> list[Compaction]:
        """The compactions up to a moment: each summary that replaced pages of the prompt, what left and came back."""
        with self._session._ns.asking():
            lane = self._session._lane()
            return compactions_of(lane, self._session._ns.log, basis(lane, one_moment(at, moment)).position)

    def ancestors(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[PageLink]:
        """The sources of a page: links followed towards what it was made from."""
        return self._walk(page, depth, kinds, up=True)

    def descendants(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[PageLink]:
        """The dependents of a page: links followed towards what was made from it."""
        return self._walk(page, depth, kinds, up=False)

    def _walk(self, page: str | int, depth: int | None, kinds: Iterable[str] | None, *, up: bool) -> list[PageLink]:
        with self._session._ns.asking():
            lane = self._session._lane()
            number, when = self._session._resolve(lane, page, Head())
            if depth is not None and (type(depth) is not int or depth < 1):
                raise InputError(f"depth {depth!r} is no number of steps from 1 up", code="not-a-limit")
            wanted = None if kinds is None else [_kind(word) for word in kinds]
            edges = walk(lane, number, when.position, up=up, depth=depth, kinds=wanted)
            return relations(lane, self._session._ns.log, edges, when.position, up=up)

    def position_of(self, page: str | int) -> int:
        """The position that made a page, which its name says; raises UnknownError naming the nearest."""
        with self._session._ns.asking():
            return self._session._resolve(self._session._lane(), page, Head())[0]

    def moment_of(self, page: str | int, *, before: bool = False) -> Position:
        """The moment right after a page came to be, or right before: where a fork can begin."""
        with self._session._ns.asking():
            lane = self._session._lane()
            number, _ = self._session._resolve(lane, page, Head())
            return Position(begin_of(lane, number) - 1 if before else end_of(lane, number))


def _kind(word: str) -> int:
    kind = LinkKind.of(word)
    if kind is None:
        words = ", ".join(k.word for k in LinkKind)
        raise UnknownError(f"there is no kind of link {word!r}; the kinds are {words}", code="no-kind-of-link")
    return int(kind)
