"""Learns the weights of `score@3`: `python3 tools/relevance_weights.py [--check]`.

The texts that answer a question are told from the others by a listwise softmax over the score, a linear sum of
features: the weights are those that make the answers of all questions likeliest, drawn a little towards zero.
`score@3` weighs as `score@2` does, which was learned from the conversations of LoCoMo and every second recall of the
coding sessions in `../shared/data`; what counts beside tools is learned from the recalls alone, so that conversations
are ranked as before. Writes vmstore/relevance/weights.json; with `--check` it says whether that is what it would write.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import numpy as np  # noqa: E402
from benches.parts.yardsticks import Yardstick, coding  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from vmstore.relevance.measures import AGENT, FEATURES  # noqa: E402
from vmstore.relevance.query import parse_query  # noqa: E402
from vmstore.relevance.question import question_of  # noqa: E402
from vmstore.relevance.score import last_us, scored  # noqa: E402
from vmstore.relevance.weights import VERSION, WEIGHTS  # noqa: E402

Floats = NDArray[np.float64]
CANDIDATES = 100  # texts a question is learned from, beside those that answer it
RIDGE = 3.0
CODING_WEIGHT = 1.5  # of a coding recall, where one of a conversation counts 1
STEPS = 20


class Lesson(NamedTuple):
    """One question: the features of the texts it is learned from, and which of them answer it."""

    values: Floats
    answers: NDArray[np.bool_]
    weight: float


def lessons(yardstick: Yardstick, weight: float) -> Iterator[Lesson]:
    """What the recalls of a yardstick teach that may be learned from."""
    texts = yardstick.texts
    now = last_us(texts)
    near, cover = list(FEATURES).index("near"), list(FEATURES).index("language")
    for recall in yardstick.recalls:
        if recall.tuned:
            question = question_of(parse_query(recall.question, texts.analyzer), now)
            rows, values, _ = scored(texts, question, None)
            answers = np.isin(rows, recall.rows)
            if answers.any() and len(rows) > 1:
                order = np.argsort(-(2 * values[:, near] + values[:, cover]), kind="stable")
                kept = np.union1d(order[:CANDIDATES], np.flatnonzero(answers))
                yield Lesson(values[kept], answers[kept], weight)


def learned(taught: Sequence[Lesson], everywhere: Floats | None = None) -> Floats:
    """The weights: first of what counts everywhere, unless that is given, then of what counts where tools work."""
    agent = np.isin(list(FEATURES), AGENT)
    found = np.zeros(len(FEATURES))
    if everywhere is None:
        everywhere = _fitted([one._replace(values=one.values[:, ~agent]) for one in taught])
    found[~agent] = everywhere
    by_tools = [one for one in taught if one.values[:, agent].any()]
    if by_tools:
        before = np.concatenate([one.values @ found for one in by_tools])
        found[agent] = _fitted([one._replace(values=one.values[:, agent]) for one in by_tools], before)
    return found


def _fitted(taught: Sequence[Lesson], before: Floats | float = 0.0) -> Floats:
    """Weights by Newton's method, added to a score before; features are scaled to one deviation meanwhile."""
    values = np.concatenate([one.values for one in taught])
    spread = values.std(axis=0)
    spread[spread < 1e-9] = 1.0
    values = (values - values.mean(axis=0)) / spread
    sizes = np.array([len(one.values) for one in taught])
    starts, whose = np.concatenate([[0], np.cumsum(sizes)[:-1]]), np.repeat(np.arange(len(taught)), sizes)
    share = np.concatenate([one.answers / one.answers.sum() for one in taught])
    counts = np.array([one.weight for one in taught])
    share = share * counts[whose]

    def chances(weights: Floats) -> tuple[Floats, Floats, float]:
        sums = before + values @ weights
        sums -= np.maximum.reduceat(sums, starts)[whose]
        powers = np.exp(sums)
        totals = np.add.reduceat(powers, starts)
        loss = counts @ np.log(totals) - share @ sums + RIDGE / 2 * weights @ weights
        return powers / totals[whose], sums, float(loss)

    weights = np.zeros(values.shape[1])
    chance, _, loss = chances(weights)
    for _ in range(STEPS):
        weighed = chance * counts[whose]
        slope = RIDGE * weights - values.T @ (share - weighed)
        means = np.add.reduceat(values * chance[:, None], starts)
        bend = (values * weighed[:, None]).T @ values - (means * counts[:, None]).T @ means
        step = np.linalg.solve(bend + RIDGE * np.eye(len(weights)), slope)
        while np.abs(step).max() > 1e-6:
            chance, _, next_loss = chances(weights - step)
            if next_loss < loss:
                break
            step = step / 2
        else:
            break
        weights, gained, loss = weights - step, loss - next_loss, next_loss
        if gained < 1e-3:
            break
    return np.asarray(weights / spread)


def main(arguments: Sequence[str]) -> int:
    """Learns, and writes the weights."""
    recipes = json.loads(Path(WEIGHTS).read_text("utf-8"))
    code = [lesson for one in coding() for lesson in lessons(one, CODING_WEIGHT)]
    before = recipes["score@2"]["weights"]
    found = learned(code, np.array([before[name] for name in FEATURES if name not in AGENT]))
    recipes[VERSION] = {
        "recipe": "tools/relevance_weights.py",
        "questions": recipes["score@2"]["questions"],
        "weights": {name: round(float(weight), 4) for name, weight in zip(FEATURES, found, strict=True)},
    }
    text = json.dumps(recipes, indent=2) + "\n"
    text = json.dumps(recipes, indent=2) + "\n"
    if "--check" in arguments:
        same = Path(WEIGHTS).read_text("utf-8") == text
        print("the weights are what the recipe learns" if same else "the recipe learns other weights")
        return 0 if same else 1
    Path(WEIGHTS).write_text(text, "utf-8")
    print(f"learned from {len(code)} coding recalls: {WEIGHTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
