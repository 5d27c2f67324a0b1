"""What an embedder of the caller's choice adds to recall: the same questions by words, by closeness, and by both.

The embedder is a function, named `module:function`, that gives each of some texts a list of numbers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benches.parts.rounds import Goal, MissingError, Row, row
from benches.parts.yardsticks import Recall, Yardstick, coding
from vmstore.relevance.closeness import Closeness, RowVectors, VectorMatrix
from vmstore.relevance.measures import FEATURES
from vmstore.relevance.query import parse_query
from vmstore.relevance.question import question_of
from vmstore.relevance.score import last_us, scored
from vmstore.relevance.weights import CANDIDATES, weights
from vmstore.search.blend import added
from vmstore.search.rank import RankedPage

PLUGGED = "--embedder, LoCoMo, other conversations' weights"
AT = {
    5: Goal(f"{PLUGGED}: evidence among the first 5"),
    10: Goal(f"{PLUGGED}: among the first 10", 0.90),
    20: Goal(f"{PLUGGED}: among the first 20"),
}
HOPS = Goal(f"{PLUGGED}: among the first 10, multi-hop", 0.55)
ALONE = Goal("--embedder, LoCoMo by closeness alone: among the first 10")
CODE = Goal("--embedder, coding sessions, held-out half: among the first 10")
GOALS = (*AT.values(), HOPS, ALONE, CODE)
Embed = Callable[[list[str]], Sequence[Sequence[float]]]
Weights = Callable[[Yardstick], Sequence[float]]


def embedder(name: str) -> Embed:
    """The function that a `module:function` names."""
    module, _, function = name.partition(":")
    try:
        embed: Embed = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise MissingError(f"--embedder {name!r} cannot be had ({error}); name it as module:function") from error
    return embed


def by_meaning(name: str, talks: Sequence[Yardstick], learned: Weights) -> Iterator[Row]:
    """Recall with an embedder: conversations with weights that never saw them, and the held-out coding recalls."""
    embed = embedder(name)
    orders = [
        (recall, *both)
        for talk in talks
        for recall, both in zip(talk.recalls, _orders(embed, talk, learned), strict=True)
    ]
    for most, goal in AT.items():
        yield row(goal, [_mean([_share(recall, order[:most]) for recall, order, _ in orders])])
    hops = [_share(recall, order[:10]) for recall, order, _ in orders if recall.category == "multi-hop"]
    yield row(HOPS, [_mean(hops)])
    yield row(ALONE, [_mean([_share(recall, alone[:10]) for recall, _, alone in orders])])
    held_out = [item._replace(recalls=[recall for recall in item.recalls if not recall.tuned]) for item in coding()]
    shares = [
        _share(recall, order[:10])
        for item in held_out
        for recall, (order, _) in zip(item.recalls, _orders(embed, item, None), strict=True)
    ]
    yield row(CODE, [_mean(shares)])


def _orders(embed: Embed, item: Yardstick, learned: Weights | None) -> Iterator[tuple[list[int], list[int]]]:
    """Of each question the rows by words and closeness together, and by closeness alone."""
    texts = item.texts
    matrix = np.asarray(embed(list(texts.texts(np.arange(texts.count)))), np.float32)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    rows = np.arange(texts.count, dtype=np.int64)
    vectors = RowVectors(VectorMatrix(matrix), rows, rows, texts.count, "embedder", texts.lanes(rows))
    for recall, vector in zip(item.recalls, embed([recall.question for recall in item.recalls]), strict=True):
        closeness = vectors.to(np.asarray(vector) / max(float(np.linalg.norm(vector)), 1e-9))
        by_words = _by_words(item, recall.question, learned)
        pages = added(texts, by_words, closeness.nearest().tolist(), closeness)
        pages.sort(key=lambda page: (-page.score, page.row))
        yield [page.row for page in pages], _alone(closeness, texts.count)


def _alone(closeness: Closeness, count: int) -> list[int]:
    order: list[int] = np.argsort(-closeness.cosines(np.arange(count)), kind="stable").tolist()
    return order


def _by_words(item: Yardstick, question: str, learned: Weights | None) -> list[RankedPage]:
    asked = question_of(parse_query(question, item.texts.analyzer), last_us(item.texts))
    if not asked.needles:
        return []
    rows, values, work = scored(item.texts, asked, CANDIDATES)
    known = weights(work=work)
    weighed = [known.get(name, 0.0) for name in FEATURES] if learned is None else learned(item)
    sums = values @ np.asarray(weighed)
    return [RankedPage(float(value), int(at), 0, 0, 0, 0, 0, {}) for at, value in zip(rows, sums, strict=True)]


def _share(recall: Recall, rows: Sequence[int]) -> float:
    return len(set(recall.rows).intersection(rows)) / len(recall.rows)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
