"""Pages that go with others: what represents a page, and what was derived from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from vmstore.core.page import LinkKind
from vmstore.erasure.cell_uses import CellUseReader

Owned = tuple[int, int]
"""A page by the session that made it, and its number."""

FROM = (LinkKind.DERIVES, LinkKind.REPRESENTS, LinkKind.PART_OF)


class PageLinks:
    """The links of all sessions, each page by its maker."""

    def __init__(
        self,
        reading: CellUseReader,
        rows: Iterable[tuple[int, int, int, int]],
        facts: Iterable[Owned],
        answers: Iterable[Owned],
    ) -> None:
        self._made_of: defaultdict[Owned, dict[Owned, int]] = defaultdict(dict)  # what came of a page, by which link
        self._represents: defaultdict[Owned, set[Owned]] = defaultdict(set)
        self._answers = frozenset(answers)  # each may quote any of the pages it was made from
        facts = self._answers.union(facts)
        for session, source, target, kind in rows:
            if kind == LinkKind.HAS_CAPTION:
                source, target, kind = target, source, LinkKind.REPRESENTS
            if kind in FROM:
                maker, other = reading.owner(session, source), reading.owner(session, target)
                self._made_of[other].setdefault(maker, kind)
                if kind == LinkKind.DERIVES and maker in facts:  # a fact is what its sources say, in other words
                    self._made_of[other][maker] = kind = LinkKind.REPRESENTS
                if kind == LinkKind.REPRESENTS:
                    self._represents[maker].add(other)

    def representing(self, pages: Iterable[Owned]) -> dict[Owned, Owned]:
        """The pages that represent some, or state what some say, and nothing beside them; each with one of those.

        What a model answered goes with any of the pages that it was shown.
        """
        pages = set(pages)
        return {
            other: page
            for page in sorted(pages)
            for other, kind in self._made_of.get(page, {}).items()
            if kind == LinkKind.REPRESENTS
            and other not in pages
            and (other in self._answers or self._represents[other] <= pages)
        }

    def derived(self, pages: Iterable[Owned]) -> dict[Owned, Owned]:
        """All that was made from some pages, and from that, and so on; each with the page it was made from."""
        found: dict[Owned, Owned] = {}
        front = seen = set(pages)
        while front:
            met = {child: page for page in sorted(front) for child in self._made_of.get(page, ()) if child not in seen}
            found.update(met)
            front = set(met)
            seen = seen | front
        return found
