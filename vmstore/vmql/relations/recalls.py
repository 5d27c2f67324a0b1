"""RECALLS: what sessions asked their memory, what each page of an answer cost, and whether it was used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from vmstore.core.decision import Recaller, Search
from vmstore.core.mutation import decode
from vmstore.core.recalls import PPM, TalliedRecall
from vmstore.log.port import Log
from vmstore.views.cell_resolver import CellResolver
from vmstore.views.log_reader import LogReader
from vmstore.views.projectors.residency import stays
from vmstore.views.reads.reasons import word_of
from vmstore.views.reads.recalls import recalls_at
from vmstore.views.reads.resolve_asof import moment_at
from vmstore.views.reads.tags import tokens_of
from vmstore.vmql.relations.relation import ScopedSession

ASKED = frozenset({"query", "total"})  # what the log alone has


def recalls_of(log: Log, lanes: Iterable[ScopedSession], wanted: Collection[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of RECALLS: one for each page that was given, by its rank; one without a page where none was."""
    for own in lanes:
        name, cellar = own.writers(), CellResolver(log, own.lane.db)
        for recall in recalls_at(own.lane, own.until):
            if recall.position > max(own.low, own.since):
                query, total = _asked(log, own, cellar, recall.position) if ASKED & {*wanted} else (None, None)
                place = (recall.position, name(recall.position), *moment_at(own.lane, recall.position))
                asked = (word_of(Recaller, recall.recaller), query)
                entered = _entered(own, recall) if "entered" in wanted else set()
                for page in _pages(own, recall):
                    yield (*place, *asked, *page, recall.tokens, total, int(page[0] in entered))


def _pages(own: ScopedSession, recall: TalliedRecall) -> Iterator[tuple[float | None, ...]]:
    """Of each page its rank, the score it was returned with, its tokens, whether it was used and where."""
    tokens = tokens_of(own.lane, set(recall.pages), recall.position)
    for rank, page in enumerate(recall.pages, 1):
        score = recall.scores.get(page)
        scored = None if score is None else score / PPM
        yield page, rank, scored, tokens.get(page), int(page in recall.used), recall.used.get(page)
    if not recall.pages:
        yield None, None, None, None, 0, None


def _entered(own: ScopedSession, recall: TalliedRecall) -> set[int]:
    """The pages of a recall that came into the prompt after it, before its turn was over."""
    stayed = stays(own.lane, own.until, recall.pages) if recall.pages else {}
    came = {(f, page) for (f, page), (_, _, since, _) in stayed.items() if f == since and f > recall.position}
    return {page for f, page in came if moment_at(own.lane, f)[0] == recall.turn}


def _asked(log: Log, own: ScopedSession, cellar: CellResolver, position: int) -> tuple[str | None, int | None]:
    """What was asked, and how many pages there were, by the log."""
    commit = LogReader(log, own.lane.db).holding(own.lane.owner(position), position)
    search = None if commit is None else decode(commit.body)[position - commit.first]
    if commit is None or not isinstance(search, Search):
        return None, None
    query = cellar.content(commit, search.query)
    return "[erased]" if query is None else query.decode("utf-8", "replace"), search.total
