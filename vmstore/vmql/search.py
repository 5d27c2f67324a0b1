"""Which pages hold words, and in which calls they were seen.

Every content that can be seen is read and its words counted, so an answer depends on nothing but
the log: the counts and lengths are those of the pages there were at the moment, in the sessions
that are asked.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from vmstore.vmql.common import TABLES
from vmstore.vmql.functions import as_text, matches, words_of
from vmstore.vmql.relation import ACROSS
from vmstore.vmql.scope import OneSession, Params, Scope, given
from vmstore.vmql.syntax import Param, Value, Word
from vmstore.vmql.world import World

READ_AT_ONCE = 200  # contents
K1, B = 1.2, 0.75  # BM25: how soon a repeated word counts no more, how much a long page loses

Place = tuple[int, int]
"""The session that wrote a page or a content, and its position."""


def best(scope: Scope, query: str) -> list[tuple[int, int, float]]:
    """Session, page and score of each page that holds one of the words, by BM25."""
    wanted = list(dict.fromkeys(words_of(query)))
    counts: dict[Place, Counter[str]] = {}
    total = pages = 0
    held: Counter[str] = Counter()
    for place, text in texts(scope.world, _last(scope)):
        words = words_of(text)
        pages += 1
        total += len(words)
        found = Counter(word for word in words if word in wanted)
        if found:
            counts[place] = Counter({**found, "": len(words)})
            held.update(found.keys())
    mean = total / pages if pages else 1.0
    rarity = {word: math.log(1 + (pages - held[word] + 0.5) / (held[word] + 0.5)) for word in wanted}
    return [(*place, score(found, wanted, rarity, mean)) for place, found in counts.items()]


def score(found: Counter[str], wanted: Iterable[str], rarity: dict[str, float], mean: float) -> float:
    """BM25 of one page: its words by count, and under "" how many it has."""
    longer = K1 * (1 - B + B * found[""] / mean)
    return sum(rarity[word] * found[word] * (K1 + 1) / (found[word] + longer) for word in wanted if found[word])


def calls_showing(scope: Scope, pattern: Value | Param | Word, params: Params) -> str:
    """The calls in whose context a page holds all words of a pattern, as JSON of "session.call"."""
    words = given(pattern, params)
    showing = [place for place, text in texts(scope.world, _contents(scope)) if matches(text, words)]
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


def _last(scope: Scope) -> Iterator[Content]:
    """The full content of every page as it was last."""
    for own in scope.lanes():
        one = isinstance(scope, OneSession)
        end = scope.at.position if isinstance(scope, OneSession) else own.high
        last: dict[int, tuple[int | None, bytes | None]] = {}
        stretches = own.lane.upto(end)[::-1] if one else own.lane.upto(end)[:1]
        for stretch in stretches:
            bounds = (stretch.session, stretch.low, stretch.high)
            for page, cell, commitment in scope.world.views.execute(_FULL, bounds):
                if one or page > stretch.low:
                    last[page] = (cell, commitment)
        for page, (cell, commitment) in last.items():
            yield (own.lane.owner(page), page), cell, commitment


_ALL = "SELECT position, cell, commitment FROM versions WHERE session = ? AND position <= ?"
_FULL = """SELECT page, cell, commitment FROM versions WHERE session = ? AND position > ? AND position <= ?
  AND level = 0 ORDER BY position"""


def texts(world: World, contents: Iterable[Content]) -> Iterator[tuple[Place, str]]:
    """The text of each content that is one, many read at once; what was erased is left out."""
    waiting = iter(contents)
    while some := list(islice(waiting, READ_AT_ONCE)):
        cells = world.log.cells([cell for _, cell, _ in some if cell is not None])
        for place, number, commitment in some:
            cell = None if number is None else cells.get(number)
            if cell is not None and commitment is not None and cell.keeps(commitment):
                text = as_text(cell.content)
                if text is not None:
                    yield place, text
