"""Learns the weights of `score@4` from FILE, or those of `score@5`.

    python3 tools/relevance_weights.py FILE [--check]
    python3 tools/relevance_weights.py --several [--check]

The texts that answer a question are told from the others by a listwise softmax over the score, a linear sum of
features: the weights are those that make the answers of all questions likeliest, drawn a little towards zero.
Conversations and single words weigh as by `score@3`, which was learned from LoCoMo and every second recall of the
coding sessions in `../shared/data`. What counts for a sentence about work with tools and code is learned from these
recalls and from FILE, questions in words that do not stand in what answers them (`benches/parts/coding_file.py`
says its form). What `score@5` adds where several sessions are searched is learned as a change of those weights, from
all of `../shared/data` in one store: LoCoMo's questions, the recalls and every second look of a person's
(`benches/parts/everywhere.py`). Writes vmstore/relevance/weights.json; with `--check` it says whether that is what it
would write.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import numpy as np  # noqa: E402
from benches.parts.coding_file import FileRecall, coding_file  # noqa: E402
from benches.parts.everywhere import asked_everywhere, everywhere, looks  # noqa: E402
from benches.parts.yardsticks import SCOPES, Recall, Yardstick, coding  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from vmstore.relevance.measures import FEATURES  # noqa: E402
from vmstore.relevance.query import parse_query  # noqa: E402
from vmstore.relevance.question import question_of  # noqa: E402
from vmstore.relevance.score import last_us, scored  # noqa: E402
from vmstore.relevance.weights import WEIGHTS, weights  # noqa: E402

Floats = NDArray[np.float64]
CANDIDATES = 100  # texts a question is learned from, beside those that answer it
RIDGE = 3.0
CODING_WEIGHT = 1.5  # of a coding recall, where one of a conversation counts 1
STEPS = 20
WORK_VERSION, SEVERAL_VERSION = "score@4", "score@5"
SEVERAL_RIDGE = 30.0
LOOK_WEIGHT = 3.0
LOOKED_AT = 400  # texts that are scored for a question of all sessions, as in a store
OF_WORDS = {
    "own", "own_best", "cover", "share", "near", "near_exact", "near_best", "window_cover", "around", "around_cover",
    "language", "language_best",
}  # fmt: skip
OF_TURNS = {
    "length", "user", "assistant", "result", "code", "error_asked", "amount_asked", "first", "follows", "name_asked",
    "call", "user_asked", "end_asked",
}  # fmt: skip
WORK = frozenset(OF_WORDS | OF_TURNS)
"""The features that count in work with tools and code."""


class Lesson(NamedTuple):
    """One question: the features of the texts it is learned from, and which of them answer it."""

    values: Floats
    answers: NDArray[np.bool_]
    weight: float
    sums: Floats
    """What they score already; the weights learned are added to those that make it."""


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
                yield Lesson(values[kept], answers[kept], weight, np.zeros(len(kept)))


def changes(yardstick: Yardstick, weight: float) -> Iterator[Lesson]:
    """What the recalls of a yardstick teach beside the weights of one session."""
    now = last_us(yardstick.texts)
    for recall in yardstick.recalls:
        if recall.tuned:
            question = question_of(parse_query(recall.question, yardstick.texts.analyzer), now)
            rows, values, work = scored(yardstick.texts, question, LOOKED_AT)
            known = weights(WORK_VERSION, work)
            sums = values @ np.array([known.get(name, 0.0) for name in FEATURES])
            answers = np.isin(rows, recall.rows)
            if answers.any() and not answers.all():
                kept = np.union1d(np.argsort(-sums, kind="stable")[:CANDIDATES], np.flatnonzero(answers))
                code = CODING_WEIGHT if recall.category in SCOPES else 1.0
                yield Lesson(values[kept], answers[kept], weight * code, sums[kept])


def learned(taught: Sequence[Lesson], names: Iterable[str], ridge: float = RIDGE) -> Floats:
    """The weights of all features, of which those with a name are learned and the others are nothing."""
    some = np.isin(list(FEATURES), list(names))
    actual = np.zeros(len(FEATURES))
    actual[some] = _fitted([item._replace(values=item.values[:, some]) for item in taught], ridge)
    return actual


def _fitted(taught: Sequence[Lesson], ridge: float) -> Floats:
    """Weights by Newton's method; features are scaled to one deviation meanwhile."""
    before = np.concatenate([fields.sums for fields in taught])
    values = np.concatenate([fields.values for fields in taught])
    spread = values.std(axis=0)
    spread[spread < 1e-9] = 1.0
    values = (values - values.mean(axis=0)) / spread
    sizes = np.array([len(fields.values) for fields in taught])
    starts, whose = np.concatenate([[0], np.cumsum(sizes)[:-1]]), np.repeat(np.arange(len(taught)), sizes)
    share = np.concatenate([item.answers / item.answers.sum() for item in taught])
    counts = np.array([item.weight for item in taught])
    share = share * counts[whose]

    def chances(some: Floats) -> tuple[Floats, Floats, float]:
        sums = values @ some + before
        sums -= np.maximum.reduceat(sums, starts)[whose]
        powers = np.exp(sums)
        totals = np.add.reduceat(powers, starts)
        loss = counts @ np.log(totals) - share @ sums + ridge / 2 * some @ some
        return powers / totals[whose], sums, float(loss)

    fitted = np.zeros(values.shape[1])
    chance, _, loss = chances(fitted)
    for _ in range(STEPS):
        weighed = chance * counts[whose]
        slope = ridge * fitted - values.T @ (share - weighed)
        means = np.add.reduceat(values * chance[:, None], starts)
        bend = (values * weighed[:, None]).T @ values - (means * counts[:, None]).T @ means
        step = np.linalg.solve(bend + ridge * np.eye(len(fitted)), slope)
        while np.abs(step).max() > 1e-6:
            chance, _, next_loss = chances(fitted - step)
            if next_loss < loss:
                break
            step = step / 2
        else:
            break
        fitted, gained, loss = fitted - step, loss - next_loss, next_loss
        if gained < 1e-3:
            break
    return np.asarray(fitted / spread)


def conversation() -> list[str]:
    """The names of the features that count in conversations."""
    return list(json.loads(Path(WEIGHTS).read_text("utf-8"))["score@2"]["weights"])


def main(arguments: Sequence[str]) -> int:
    """Learns, and writes the weights."""
    (file, *options) = arguments
    recipes = json.loads(Path(WEIGHTS).read_text("utf-8"))
    if file == "--several":
        recipes[SEVERAL_VERSION], many = _several(recipes)
        return _written(recipes, many, "--check" in options)
    asked = [_learned_from(yardstick, recalls) for yardstick, recalls in coding_file(Path(file))]
    taught = [lesson for case in (*coding(), *asked) for lesson in lessons(case, 1.0)]
    fields = dict(zip(FEATURES, learned(taught, WORK).tolist(), strict=True))
    recipes[WORK_VERSION] = {
        "recipe": "tools/relevance_weights.py",
        "questions": recipes["score@2"]["questions"],
        "weights": recipes["score@3"]["weights"],
        "work_questions": len(taught),
        "work": {name: round(fields[name], 4) for name in FEATURES if name in WORK},
    }
    recipes[SEVERAL_VERSION] |= {name: recipes[WORK_VERSION][name] for name in ("weights", "work")}
    return _written(recipes, len(taught), "--check" in options)


def _several(recipes: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The weights of `score@5`: those of `score@4`, and what is added where several sessions are searched."""
    there = everywhere()
    taught = [*changes(asked_everywhere(there), 1.0), *changes(looks(there, held_out=False), LOOK_WEIGHT)]
    more = dict(zip(FEATURES, learned(taught, FEATURES, SEVERAL_RIDGE).tolist(), strict=True))
    several = {"several_questions": len(taught), "several": {name: round(weight, 4) for name, weight in more.items()}}
    return {**recipes[WORK_VERSION], **several}, len(taught)


def _written(recipes: dict[str, Any], many: int, check: bool) -> int:
    """Writes the weights, or says whether they are those that are there."""
    text = json.dumps(recipes, indent=2) + "\n"
    if check:
        same = Path(WEIGHTS).read_text("utf-8") == text
        print("the weights are what the recipe learns" if same else "the recipe learns other weights")
        return 0 if same else 1
    Path(WEIGHTS).write_text(text, "utf-8")
    print(f"learned from {many} questions: {WEIGHTS}")
    return 0


def _learned_from(yardstick: Yardstick, recalls: Sequence[FileRecall]) -> Yardstick:
    """What is asked of a session, as something to learn from."""
    rows = (tuple(sorted(frozenset().union(*recall.groups))) for recall in recalls)
    asked = [Recall(recall.question, some, "file") for recall, some in zip(recalls, rows, strict=True)]
    return yardstick._replace(recalls=asked)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
