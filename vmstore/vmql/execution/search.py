"""Which pages hold words, and in which calls they were seen.

What a call showed is found by reading every content that can be seen, and looking where those that
hold the words stayed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from vmstore.core.text.explanation import SearchExplanation
from vmstore.core.text.tokenizer import readable
from vmstore.search.blend import answers
from vmstore.search.explanation import explained
from vmstore.search.passages import passages, ranked_texts
from vmstore.views.branch import Branch
from vmstore.views.erased_cells import erased_at, seen
from vmstore.vmql.functions import matches
from vmstore.vmql.host import Host
from vmstore.vmql.planner.scope import OneSession, Params, Scope, given
from vmstore.vmql.relations.ctes import TABLES
from vmstore.vmql.relations.relation import ACROSS
from vmstore.vmql.syntax.nodes import Param, Value, Word

READ_AT_ONCE = 200  # contents
Place = tuple[int, int]
"""The session that wrote a content, and its position."""


class FoundRow(NamedTuple):
    """Who wrote a page, the page, its score, and its place where the order is not that of the scores.

    `features` and `words` say why it was found, as JSON, where that was asked for.
    """

    session: int
    page: int
    score: float | None
    place: int = 0
    features: str | None = None
    words: str | None = None


class BestPages(NamedTuple):
    """Each page that answers, best first; a note on vectors; what was looked for, where it was asked."""

    rows: list[FoundRow]
    vectors: str | None
    about: SearchExplanation | None


class WatchedTexts:
    """Texts of which `check` may end the reading, whenever some are read or looked up."""

    def __init__(self, texts: Any, check: Callable[[], object]) -> None:
        self._texts, self._check = texts, check

    def __getattr__(self, name: str) -> Any:
        self._check()
        return getattr(self._texts, name)


def best(scope: Scope, query: str, check: Callable[[], object], explain: bool) -> BestPages:
    """Each page that answers the words, with an embedder by closeness too; if `explain`, why."""
    moments = _moments(scope)
    texts: Any = WatchedTexts(scope.world.texts(moments), check)
    closeness, note = scope.world.closeness(query, moments, texts)
    vectors = closeness.coverage if note is None and closeness is not None else note
    hits = answers(texts, moments, query, closeness=closeness)
    rows = [FoundRow(moments[hit.lane][0].owner(hit.page), hit.page, hit.score) for hit in hits]
    if not explain:
        return BestPages(rows, vectors, None)
    about, reasons = explained(texts, query, hits, None, None, vectors)
    best_pages = [
        row._replace(features=_json(why.features), words=_json(why.words))
        for row, why in zip(rows, reasons, strict=True)
    ]
    return BestPages(best_pages, vectors, about)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def fitting(
    scope: Scope, query: str, tokens_max: int, allowed: set[Place] | None, check: Callable[[], object]
) -> list[FoundRow]:
    """The best pages that so many tokens have room for, those allowed alone, each between its neighbours."""
    moments = _moments(scope)
    texts: Any = WatchedTexts(scope.world.texts(moments), check)
    closeness, _ = scope.world.closeness(query, moments, texts)
    hits, _ = ranked_texts(texts, moments, query, allowed, closeness)
    chosen = passages(scope.world.log, {lane.session: position for lane, position in moments}, hits, tokens_max)
    rows = [(part.lane.owner(text.page), text.page, text.score) for part in chosen.passages for text in part.texts]
    return [FoundRow(*row, place) for place, row in enumerate(rows, 1)]


def _moments(scope: Scope) -> list[tuple[Branch, int]]:
    if isinstance(scope, OneSession):
        return [(own.lane, scope.at.position) for own in scope.lanes()]
    return [(own.lane.alone(), own.high) for own in scope.lanes()]


def calls_showing(
    scope: Scope,
    pattern: Value | Param | Word,
    params: Params,
    check: Callable[[], object],
    untold: Container[int] = (),
) -> str:
    """The calls in whose context a page holds all words of a pattern, as JSON of "session.call".

    Cells that are `untold` hold none.
    """
    words = given(pattern, params)
    contents = (content for content in _contents(scope) if content[1] not in untold)
    held = texts(scope.world, contents, check)
    showing = [place for place, text in held if matches(text, words)]
    sql = f"WITH {scope.lane_sql}, {TABLES['stays'][scope.shape]} {_ACROSS if scope.shape == ACROSS else _ONE}"
    values = {**scope.values, "contents": json.dumps(showing), "head": scope.values.get("head")}
    return json.dumps([key for (key,) in scope.world.views.execute(sql, values)])


_CALL = """CROSS JOIN calls c ON c.session = lane.session AND c.position > lane.low AND c.position <= lane.high
  AND c.position >= r.f AND (r.t IS NULL OR c.position < r.t)"""
_ONE = f"""SELECT DISTINCT c.session || '.' || c.call FROM json_each(:contents) m
 CROSS JOIN stays r ON r.content = m.value ->> 1 CROSS JOIN lane {_CALL}"""
_ACROSS = f"""SELECT DISTINCT c.session || '.' || c.call FROM json_each(:contents) m
 CROSS JOIN stays r ON r.content = m.value ->> 1 AND vm_owner(r.session, r.content) = m.value ->> 0
 CROSS JOIN lane ON lane.session = r.session {_CALL}"""


def _stretches(scope: Scope) -> dict[int, int]:
    """Every session that wrote something the scope can see, and up to where."""
    found: dict[int, int] = {}
    for own in scope.lanes():
        end = scope.at.position if isinstance(scope, OneSession) else own.high
        for stretch in own.lane.upto(end):
            found[stretch.session] = max(found.get(stretch.session, 0), stretch.high)
    return found


Content = tuple[Place, int | None, bytes | None]


def _contents(scope: Scope) -> Iterator[Content]:
    """Every content that can be seen: whose it is, its cell and commitment."""
    for session, high in _stretches(scope).items():
        rows: list[Any] = scope.world.views.execute(_ALL, (session, high)).fetchall()
        for position, cell, commitment in rows:
            yield (session, position), cell, commitment


_ALL = "SELECT position, cell, commitment FROM versions WHERE session = ? AND position <= ?"


def texts(world: Host, contents: Iterable[Content], check: Callable[[], object]) -> Iterator[tuple[Place, str]]:
    """The text of each content that is one, many read at once; what was erased is left out."""
    waiting = iter(contents)
    while some := list(islice(waiting, READ_AT_ONCE)):
        check()
        cells = seen(world.log, world.views, (cell for _, cell, _ in some if cell is not None))
        for place, number, commitment in some:
            cell = None if number is None else cells.get(number)
            if number is not None and cell is not None and cell.erased:
                erased_at(world.log, world.views, number)  # one that nobody recorded is damage
            if cell is not None and commitment is not None and cell.keeps(commitment):
                text = readable(cell.content)
                if text is not None:
                    yield place, text
