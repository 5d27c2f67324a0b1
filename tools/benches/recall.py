"""Recall: how much of what answers a question is among the first texts found, on conversations and coding sessions.

LoCoMo is measured as of each conversation's last line, with weights learned from the other conversations; what is
named shipped is measured with the weights that ship, which have seen these conversations. A recall is the share of
the evidence found; of what a person looks for in all real sessions at once, whether a page they want is there. Beside
it stand plain BM25 over the same terms (`score@1`), SQLite FTS5 with its Porter stemmer and, where it is installed,
tantivy with its English stemmer.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from benches.parts import by_meaning
from benches.parts.coding_file import coding_file
from benches.parts.everywhere import everywhere, looks
from benches.parts.rounds import Bench, Goal, MissingError, Row, row
from benches.parts.yardsticks import DATA, Recall, Yardstick, coding, locomo, with_typo

AT_5 = Goal("LoCoMo, other conversations' weights: evidence among the first 5", 0.76)
AT_10 = Goal("among the first 10", 0.84)
AT_20 = Goal("among the first 20", 0.88)
WITHIN_1000 = Goal("within 1,000 tokens", 0.89)
HOPS_1000 = Goal("within 1,000 tokens, multi-hop", 0.62)
WITHIN_2000 = Goal("within 2,000 tokens", 0.93)
HOPS_2000 = Goal("within 2,000 tokens, multi-hop", 0.73)
KINDS = tuple(
    Goal(f"among the first 10, {kind}")
    for kind in ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
)
TOGETHER = Goal("all conversations in one store, shipped weights, among the first 10", 0.80)
TYPO = Goal("a typo in each question, among the first 10", 0.79)
STATEMENTS = Goal("statements as queries, among the first 10", 0.94)
PLAIN = Goal("LoCoMo by BM25 (score@1), among the first 10")
FTS5 = Goal("LoCoMo by SQLite FTS5, porter, among the first 10")
TANTIVY = Goal("LoCoMo by tantivy, en_stem, among the first 10")
CODE = Goal("coding sessions, held-out half, among the first 10", 0.85)
CODE_ANY = Goal("coding sessions, held-out half: any answer among the first 10")
CODE_AHEAD = Goal("coding sessions, held-out half: ahead of BM25, among the first 10", 0.1)
# Of a file of recalls that lies outside the repository, so that who works on the score has not seen it.
PLACES = (5, 10, 20)
FILE_GOALS = {5: "", 10: 0.85, 20: ""}
FILE = {most: Goal(f"--coding FILE, among the first {most}", FILE_GOALS[most]) for most in PLACES}
FILE_SAME = Goal("--coding FILE, among the first 10, other places with the same words too")
FILE_BM25 = {most: Goal(f"--coding FILE, BM25 (score@1), among the first {most}") for most in PLACES}
FILE_FTS5 = {most: Goal(f"--coding FILE, SQLite FTS5, among the first {most}") for most in PLACES}
FILE_TANTIVY = {most: Goal(f"--coding FILE, tantivy, among the first {most}") for most in PLACES}
FILE_AHEAD = Goal("--coding FILE, ahead of BM25, among the first 10", 0.1)
LOOKED_FOR = "all real sessions in one store, held-out half of the looks"
WITH = "with LoCoMo's own questions among the texts"
LOOK_RANKINGS = ("", ", BM25 (score@1)", ", SQLite FTS5")
LOOK_GOALS = {
    (ranking, questions, most): Goal(
        f"{LOOKED_FOR}{f', {WITH}' if questions else ''}: {'first hit' if most == 1 else 'among the first 10'}{ranking}"
    )
    for questions in (False, True)
    for most in (1, 10)
    for ranking in LOOK_RANKINGS
}
GOALS = (
    AT_5, AT_10, AT_20, *KINDS, WITHIN_1000, HOPS_1000, WITHIN_2000, HOPS_2000, TYPO, STATEMENTS, TOGETHER,
    PLAIN, FTS5, TANTIVY, CODE, CODE_ANY, CODE_AHEAD, *LOOK_GOALS.values(),
    *FILE.values(), FILE_SAME, *FILE_BM25.values(), *FILE_FTS5.values(), *FILE_TANTIVY.values(), FILE_AHEAD,
    *by_meaning.GOALS,
)  # fmt: skip

CHARS_A_TOKEN = 4
DEEP = 120  # texts looked at for a budget
STATEMENTS_ASKED = 400
Ranking = Callable[[Yardstick, str], Sequence[int]]


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; a quick run asks every tenth question."""
    if not DATA.is_dir():
        raise MissingError(f"{DATA} is not there: LoCoMo and the coding sessions are measured where they lie")
    if bench.coding is not None:
        yield from _coding_file(bench)
        return
    every = bench.size(1, 10)
    talks = [yardstick._replace(recalls=yardstick.recalls[::every]) for yardstick in locomo()]
    learned = _left_out(talks)
    if bench.embedder is not None:
        yield from by_meaning.by_meaning(bench.embedder, talks, lambda talk: learned[talk.name])
        return

    def ours(value: Yardstick, question: str) -> Sequence[int]:
        return _ranked(value, question, learned[value.name])

    yield from _conversations(talks, ours)
    chance = random.Random(17)
    typos = [talk._replace(recalls=[_misspelled(recall, chance) for recall in talk.recalls]) for talk in talks]
    yield row(TYPO, [_mean(_recalls(typos, ours, 10))])
    replaces = [yardstick._replace(recalls=yardstick.recalls[::every]) for yardstick in locomo(observations=True)]
    asked = sum(len(item.recalls) for item in replaces)
    step = max(1, asked // STATEMENTS_ASKED)
    yield row(
        STATEMENTS, [_mean(_recalls([item._replace(recalls=item.recalls[::step]) for item in replaces], ours, 10))]
    )
    shipped = partial(_ranked, weights=None)
    together = [yardstick._replace(recalls=yardstick.recalls[::every]) for yardstick in locomo(together=True)]
    yield row(TOGETHER, [_mean(_recalls(together, shipped, 10))])
    yield row(PLAIN, [_mean(_recalls(talks, _bm25, 10))])
    yield row(FTS5, [_mean(_recalls(talks, _fts5, 10))])
    yield from _by_tantivy(talks)
    yield from _coding(shipped)
    yield from _looks(shipped)


def _conversations(talks: Sequence[Yardstick], ours: Ranking) -> Iterator[Row]:
    """Recall by places, kinds of question and budgets."""
    orders = [(talk, recall, ours(talk, recall.question)) for talk in talks for recall in talk.recalls]
    for goal, most in ((AT_5, 5), (AT_10, 10), (AT_20, 20)):
        yield row(goal, [_mean(_share(recall, order[:most]) for _, recall, order in orders)])
    for goal in KINDS:
        kind = goal.name.rpartition(", ")[2]
        actual_shares = [_share(recall, order[:10]) for _, recall, order in orders if recall.category == kind]
        yield row(goal, [_mean(actual_shares)])
    for tokens, goal, hops in ((1_000, WITHIN_1000, HOPS_1000), (2_000, WITHIN_2000, HOPS_2000)):
        shares = [(recall.category, _share(recall, _within(item, order, tokens))) for item, recall, order in orders]
        yield row(goal, [_mean(share for _, share in shares)])
        yield row(hops, [_mean(share for kind, share in shares if kind == "multi-hop")])


def _coding(shipped: Ranking) -> Iterator[Row]:
    """The half of the coding recalls that no weight was learned from."""
    replaces = [
        session._replace(recalls=[recall for recall in session.recalls if not recall.tuned]) for session in coding()
    ]
    ours = _mean(_recalls(replaces, shipped, 10))
    yield row(CODE, [ours])
    numbers = [
        float(_share(recall, shipped(item, recall.question)[:10]) > 0) for item in replaces for recall in item.recalls
    ]
    yield row(CODE_ANY, [_mean(numbers)])
    yield row(CODE_AHEAD, [ours - _mean(_recalls(replaces, _bm25, 10))])


def _looks(shipped: Ranking) -> Iterator[Row]:
    """What of a person's looks is found in all sessions at once, those that taught no weight."""
    for questions in (False, True):
        asked = looks(everywhere(questions=questions), held_out=True)
        asked = asked._replace(name=f"{asked.name} {questions}")
        for name, ranking in zip(LOOK_RANKINGS, (shipped, _bm25, _fts5), strict=True):
            orders = [(frozenset(recall.rows), ranking(asked, recall.question)) for recall in asked.recalls]
            for most in (1, 10):
                shares = [float(not wanted.isdisjoint(order[:most])) for wanted, order in orders]
                yield row(LOOK_GOALS[name, questions, most], [_mean(shares)])


def _coding_file(bench: Bench) -> Iterator[Row]:
    """What of somebody else's recalls is found, with the weights that ship and by what stands beside them."""
    if bench.coding is None or not bench.coding.is_file():
        raise MissingError(f"{bench.coding} is no file")
    asked = coding_file(bench.coding)
    shares: dict[str, list[float]] = {}
    rankings = {
        "vmstore": (partial(_ranked, weights=None), FILE),
        "BM25": (_bm25, FILE_BM25),
        "FTS5": (_fts5, FILE_FTS5),
    }
    tantivy = _tantivy([item for item, _ in asked])
    if tantivy is not None:
        rankings["tantivy"] = (tantivy, FILE_TANTIVY)
    for name, (ranking, goals) in rankings.items():
        orders = [(recall, ranking(item, recall.question)) for item, recalls in asked for recall in recalls]
        for most, goal in goals.items():
            shares[name] = [recall.share(order[:most]) for recall, order in orders]
            yield row(goal, [_mean(shares[name])])
        shares[name] = [recall.share(order[:10]) for recall, order in orders]
        if name == "vmstore":
            yield row(FILE_SAME, [_mean(recall.share(order[:10], same_words=True) for recall, order in orders)])
    yield row(FILE_AHEAD, [_mean(shares["vmstore"]) - _mean(shares["BM25"])])


def _left_out(talks: Sequence[Yardstick]) -> dict[str, Any]:
    """The weights of each conversation, learned from the others and from the tuned half of the coding recalls."""
    from relevance_weights import CODING_WEIGHT, conversation, learned, lessons

    code = [lesson for session in coding() for lesson in lessons(session, CODING_WEIGHT)]
    taught = {talk.name: list(lessons(talk, 1.0)) for talk in talks}
    return {
        name: learned(
            [lesson for other, some in taught.items() if other != name for lesson in some] + code, conversation()
        )
        for name in taught
    }


def _ranked(yardstick: Yardstick, question: str, weights: Any) -> Sequence[int]:
    import numpy as np

    from vmstore.relevance.features import several
    from vmstore.relevance.measures import FEATURES
    from vmstore.relevance.query import parse_query
    from vmstore.relevance.question import question_of
    from vmstore.relevance.score import last_us, scored
    from vmstore.relevance.weights import CANDIDATES
    from vmstore.relevance.weights import weights as shipped

    asked = question_of(parse_query(question, yardstick.texts.analyzer), last_us(yardstick.texts))
    if not asked.needles:
        return []
    rows, values, work = scored(yardstick.texts, asked, CANDIDATES)
    known = shipped(work=work, several=several(yardstick.texts, rows))
    weighed = np.array([known.get(name, 0.0) for name in FEATURES]) if weights is None else weights
    numbers: list[int] = rows[np.argsort(-(values @ weighed), kind="stable")[:DEEP]].tolist()
    return numbers


def _bm25(yardstick: Yardstick, question: str) -> Sequence[int]:
    from vmstore.errors import InputError
    from vmstore.search.rank import by_words

    try:
        return [hit.row for hit in by_words(yardstick.texts, question, DEEP)]  # type: ignore[arg-type]
    except InputError:
        return []


def _fts5(yardstick: Yardstick, question: str) -> Sequence[int]:
    """SQLite's own full text search: any of the words, by its bm25."""
    words = " OR ".join(f'"{word}"' for word in "".join(c if c.isalnum() else " " for c in question).split())
    db = _table(yardstick)
    return [row for (row,) in db.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 120", (words,))]


_TABLES: dict[str, sqlite3.Connection] = {}


def _table(yardstick: Yardstick) -> sqlite3.Connection:
    if yardstick.name not in _TABLES:
        db = sqlite3.connect(":memory:")
        db.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")
        texts = yardstick.texts.texts(range(yardstick.texts.count))
        db.executemany("INSERT INTO t(rowid, text) VALUES (?, ?)", enumerate(texts))
        _TABLES[yardstick.name] = db
    return _TABLES[yardstick.name]


def _by_tantivy(talks: Sequence[Yardstick]) -> Iterator[Row]:
    ranking = _tantivy(talks)
    if ranking is not None:
        yield row(TANTIVY, [_mean(_recalls(talks, ranking, 10))])


def _tantivy(yardsticks: Sequence[Yardstick]) -> Ranking | None:
    """Ranks by tantivy's own score; None where it is not installed."""
    try:
        import tantivy
    except ImportError:
        return None
    indexes = {}
    for yardstick in yardsticks:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="en_stem")
        builder.add_integer_field("row", stored=True)
        index = tantivy.Index(builder.build())
        writer = index.writer(15_000_000, 1)
        for number, text in enumerate(yardstick.texts.texts(range(yardstick.texts.count))):
            writer.add_document(tantivy.Document(text=text, row=number))
        writer.commit()
        index.reload()
        indexes[yardstick.name] = index

    def ranked(each_yardstick: Yardstick, question: str) -> Sequence[int]:
        index = indexes[each_yardstick.name]
        plain = "".join(c if c.isalnum() else " " for c in question)
        searcher = index.searcher()
        hits = searcher.search(index.parse_query(plain, ["text"]), DEEP).hits
        return [searcher.doc(place)["row"][0] for _, place in hits]

    return ranked


def _misspelled(recall: Recall, chance: random.Random) -> Recall:
    return recall._replace(question=with_typo(recall.question, chance))


def _recalls(yardsticks: Iterable[Yardstick], ranking: Ranking, most: int) -> Iterator[float]:
    for yardstick in yardsticks:
        for recall in yardstick.recalls:
            yield _share(recall, ranking(yardstick, recall.question)[:most])


def _share(recall: Recall, rows: Sequence[int]) -> float:
    """How much of what answers is there."""
    return len(set(recall.rows).intersection(rows)) / len(recall.rows)


def _within(yardstick: Yardstick, order: Sequence[int], tokens: int) -> Sequence[int]:
    """The first texts that fit a budget."""
    import numpy as np

    chars = yardstick.texts.columns(np.array(order, np.int64)).chars
    spent = np.cumsum(-(-chars // CHARS_A_TOKEN))
    return order[: int(np.searchsorted(spent, tokens, "right"))]


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every) if every else 0.0
