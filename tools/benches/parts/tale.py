"""A story of a project: decisions among work, some taken back, and questions about them at the end.

Decisions are worded in equal shares: plainly, in other people's ways, as a proposal that is agreed to, and where the
set has it by what the thing does. Questions come in the decision's words and in others that share only the part of the
project with it. The same seed tells the same.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benches.parts.wordings import FIRST, Wordings

NOUNS = (
    "handler", "module", "request", "record", "field", "worker", "button", "column", "migration", "session", "price",
    "customer", "address", "ticket", "warning", "branch", "release", "server", "thread", "socket", "buffer", "retry",
)  # fmt: skip
SIZES = (120, 1.28)  # tokens of a tool's result: the median, and the deviation of its logarithm: p90 is 620
LINE = "{at:02d}:{sec:02d} {part} {noun} {number}: {other} {verb} after {ms} ms"


class Deed(NamedTuple):
    """Something that happens: who speaks; for `tool`, how many results, whose texts these are."""

    role: str
    texts: tuple[str, ...]


class Statement(NamedTuple):
    """Where a decision can be read: all of these texts stand together."""

    value: str
    texts: tuple[str, ...]


class Question(NamedTuple):
    """What is asked at the end: what holds (`then` is None), or what held before and why that changed."""

    text: str
    subject: str
    now: Statement
    then: Statement | None
    stale: tuple[Statement, ...]
    same: bool
    wording: str


class Tale(NamedTuple):
    """The deeds in order, the questions, and the subjects with their values."""

    deeds: list[Deed]
    questions: list[Question]


class _Decided(NamedTuple):
    subject: str
    part: str
    kind: str
    wording: str
    same: bool
    statements: list[Statement]


def tale(seed: int, turns: int, decisions: int, held_out: Path | None = None, words: Wordings = FIRST) -> Tale:
    """A story of so many turns in a set's words; with `held_out` decisions are that file's talks of the test half."""
    chance = random.Random(seed)
    if held_out is None:
        made = [_decide(chance, words, number, pair) for number, pair in enumerate(_pairs(chance, words, decisions))]
    else:
        made = _talks(chance, held_out, decisions)
    talks = [talk for talk, _ in made]
    first = len(talks)
    if held_out is None:
        for number, (_, decided) in enumerate(chance.sample(made, first // 3)):
            talks.append(_take_back(chance, words, number, decided))
    places = sorted(chance.sample(range(turns), first))
    later = sorted(chance.sample(range(places[first // 3], turns), len(talks) - first))
    at: dict[int, list[list[Deed]]] = {}
    backs = {id(talk): talk for talk in talks[first:]}
    for place, talk in zip(places, talks[:first], strict=True):
        at.setdefault(place, []).append(talk)
    # What is taken back was decided earlier: each takes a place after its decision's.
    decided_at = {decided.statements[0].texts[0]: place for place, (_, decided) in zip(places, made, strict=True)}
    owners = [decided for _, decided in made if len(decided.statements) > 1]
    for talk, place in zip(backs.values(), later, strict=True):
        owner = next(owner for owner in owners if owner.statements[-1].texts[0] in {t for d in talk for t in d.texts})
        where = max(place, decided_at[owner.statements[0].texts[0]] + 1)
        at.setdefault(where, []).append(talk)
    deeds: list[Deed] = []
    for turn in range(turns + 2):
        for talk in at.get(turn, []):
            deeds += talk
        if turn < turns:
            deeds += _work(chance, words)
    questions = [question for _, decided in made for question in _questions(chance, words, decided)]
    chance.shuffle(questions)
    return Tale(deeds, questions)


def _pairs(chance: random.Random, words: Wordings, count: int) -> list[tuple[str, str]]:
    pairs = [(part, kind) for part in words.parts for kind in words.kinds]
    return chance.sample(pairs, count)


def _decide(chance: random.Random, words: Wordings, number: int, pair: tuple[str, str]) -> tuple[list[Deed], _Decided]:
    part, kind = pair
    subject, value = f"the {part} {kind}", chance.choice(words.kinds[kind].options)
    turn, place = divmod(number, len(words.classes))
    wording = words.classes[place]
    same = (number if len(words.classes) % 2 else turn) % 2 == 0  # each class is asked for in both ways
    fields = {"s": subject, "v": value, "p": part, "k": kind}
    if wording == "agreed":
        text = chance.choice(words.agreed).format(**fields)
        talk = [Deed("user", (_asked(chance, words.asked).format(**fields),)), Deed("assistant", (text,))]
        talk += [Deed("user", (chance.choice(words.yes),)), Deed("assistant", ("Noted.",))]
    else:
        ways = {"plain": words.plain, "natural": words.natural}.get(wording)
        text = (words.kinds[kind].oblique if ways is None else chance.choice(ways)).format(**fields)
        talk = [Deed("user", (text,)), Deed("assistant", ("Noted.",))]
    # Somebody who never said the word for what is decided is read rightly where the part and the value stand.
    return talk, _Decided(
        subject if wording != "oblique" else part, part, kind, wording, same, [Statement(value, (text,))]
    )


def _asked(chance: random.Random, ways: Sequence[str]) -> str:
    return ways[0] if len(ways) == 1 else chance.choice(ways)


def _take_back(chance: random.Random, words: Wordings, number: int, decided: _Decided) -> list[Deed]:
    old = decided.statements[-1].value
    value = chance.choice([option for option in words.kinds[decided.kind].options if option != old])
    fields = {"s": f"the {decided.part} {decided.kind}", "v": value, "o": old, "r": chance.choice(words.reasons)}
    fields |= {"p": decided.part, "k": decided.kind}
    if number % 3 == 2:
        text = chance.choice(words.back_agreed).format(**fields)
        talk = [Deed("user", (_asked(chance, words.back_asked).format(**fields),)), Deed("assistant", (text,))]
        talk += [Deed("user", (chance.choice(words.yes),)), Deed("assistant", ("Changed.",))]
    else:
        text = chance.choice(words.back_plain if number % 3 == 0 else words.back_natural).format(**fields)
        talk = [Deed("user", (text,)), Deed("assistant", ("Changed.",))]
    decided.statements.append(Statement(value, (text,)))
    return talk


def _questions(chance: random.Random, words: Wordings, decided: _Decided) -> list[Question]:
    now, old = decided.statements[-1], decided.statements[:-1]
    same = decided.same
    other = words.kinds[decided.kind].other.format(decided.part) if decided.kind in words.kinds else ""
    same = same or not other
    fields = {"s": f"the {decided.part} {decided.kind}" if decided.kind else decided.subject}
    fields |= {"p": decided.part, "k": decided.kind}
    now_same, then_same = (words.now_same, words.then_same) if decided.kind else (FIRST.now_same, FIRST.then_same)
    text = chance.choice(now_same).format(**fields) if same else f"{other}?"
    questions = [Question(text, decided.subject, now, None, tuple(old), same, decided.wording)]
    if old:
        text = chance.choice(then_same).format(**fields) if same else words.then_other.format(other)
        questions.append(Question(text, decided.subject, now, old[-1], (), same, decided.wording))
    return questions


def _talks(chance: random.Random, path: Path, count: int) -> list[tuple[list[Deed], _Decided]]:
    """Decisions in the words of somebody else: talks of a file, each of a subject of its own."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["half"] == "test" and len(row["held"]) == 1]
    chance.shuffle(rows)
    made: dict[str, tuple[list[Deed], _Decided]] = {}
    for row in rows:
        (record,) = row["held"]
        at, talk = record["at"], [(message["role"], message["text"]) for message in row["talk"]]
        texts = [text for _, text in talk]
        # A short answer says nothing without what it answers.
        reads = (texts[at],) if record["value"].casefold() in texts[at].casefold() or at == 0 else (texts[at - 1],)
        deeds = [Deed(role, (text,)) for role, text in talk]
        deeds += [Deed("assistant", ("Noted.",))] if deeds[-1].role == "user" else []
        statements = [Statement(record["value"], reads)]
        made.setdefault(
            record["subject"].casefold(), (deeds, _Decided(record["subject"], "", "", row["kind"], True, statements))
        )
    return list(made.values())[:count]


def _work(chance: random.Random, words: Wordings) -> list[Deed]:
    """A turn of work: a request, one or two calls of tools with their results, an answer."""
    part, kind = chance.choice(words.parts), chance.choice(list(words.kinds))
    deeds = [Deed("user", (chance.choice(words.work).format(p=part, k=kind),))]
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2))):
        deeds.append(Deed("tool", tuple(_result(chance, words, part) for _ in range(chance.choice((1, 1, 2))))))
    nouns = chance.sample(NOUNS, 3)
    deeds.append(Deed("assistant", (f"Done with {part}: the {nouns[0]} and the {nouns[1]} are fine, see {nouns[2]}.",)))
    return deeds


def _result(chance: random.Random, words: Wordings, part: str) -> str:
    tokens = min(3_200, chance.lognormvariate(math.log(SIZES[0]), SIZES[1]))
    lines: list[str] = []
    while sum(map(len, lines)) < 4 * tokens:
        fields = {
            "at": chance.randrange(24), "sec": chance.randrange(60), "number": chance.randrange(10**4),
            "part": chance.choice((part, part, chance.choice(words.parts))), "noun": chance.choice(NOUNS),
            "other": chance.choice(NOUNS), "verb": chance.choice(("ended", "failed", "waited", "began", "closed")),
            "ms": chance.randrange(5_000),
        }  # fmt: skip
        lines.append(LINE.format(**fields))
    return "\n".join(lines)[: int(4 * tokens) + 1]


def wordings(questions: Sequence[Question]) -> list[str]:
    """The wordings of the decisions that are asked for."""
    return sorted({question.wording for question in questions})
