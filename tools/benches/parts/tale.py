"""A story of a project: decisions among work, some taken back, and questions about them at the end.

Decisions are worded in thirds: plainly, in other people's ways, and as a proposal that is agreed to. Questions come
in the decision's words and in others that share only the part of the project with it. The same seed tells the same.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PARTS = (
    "billing", "checkout", "search", "catalog", "shipping", "reviews", "profile", "inventory", "pricing", "support",
    "analytics", "orders",
)  # fmt: skip
KINDS = {  # what is decided: its options, and how somebody asks who does not recall the word
    "database": (("Postgres", "MySQL", "SQLite", "CockroachDB", "MariaDB"), "Where does {} keep its rows"),
    "queue": (("Kafka", "RabbitMQ", "NATS", "Pulsar", "ActiveMQ"), "What carries messages between the workers of {}"),
    "cache": (("Redis", "Memcached", "Hazelcast", "Varnish", "Dragonfly"), "What holds the hot values of {}"),
    "pipeline": (("Jenkins", "Buildkite", "Drone", "TeamCity", "CircleCI"), "What builds and ships {}"),
    "language": (("Rust", "Go", "Kotlin", "Elixir", "Scala"), "What is {} written in"),
    "theme": (("indigo", "teal", "crimson", "amber", "slate"), "Which colour do the pages of {} have"),
    "login": (("passkeys", "magic links", "SAML", "passwords", "OAuth"), "How do people get into {}"),
    "hosting": (("Hetzner", "Fly", "Render", "Heroku", "Linode"), "On whose machines does {} run"),
    "retention": (("30 days", "90 days", "14 days", "one year", "7 days"), "How long do we hold on to records of {}"),
    "timeout": (("5 seconds", "12 seconds", "2 seconds", "40 seconds", "900 ms"), "After how long does {} give up"),
    "format": (("Avro", "Protobuf", "JSON lines", "Thrift", "CBOR"), "In which encoding does {} send what it knows"),
    "checks": (("pytest", "nose", "Robot", "Behave", "Cucumber"), "What runs before a change of {} is merged"),
}  # fmt: skip
REASONS = (
    "it lost two of our shards in the drill", "the licence changed under our feet", "the invoices tripled in a month",
    "nobody on call knows it", "it fell over at nine hundred writers", "legal does not want it", "it needs a patch "
    "that was never merged", "the vendor was bought", "half of the clients cannot speak it", "it drops what comes late",
)  # fmt: skip
PLAIN = ("Let's use {v} for {s}.", "We decided to use {v} for {s}.", "We'll go with {v} for {s}.")
NATURAL = (
    "I talked to Dana about {s}: it'll be {v}.", "After the meeting on {s} everybody was for {v}, so that is that.",
    "{v} it is then, as far as {s} is concerned.", "Put {v} down for {s}, please.",
    "For {s} the choice fell on {v}.",
)  # fmt: skip
AGREED = (
    "For {s} I suggest {v}, which the team knows best. Shall I go ahead?",
    "My proposal for {s} is {v}: it is the one with the fewest moving parts. What do you think?",
    "I would take {v} for {s}; the others cost more to run.",
)
YES = ("ok", "Yes, do that.", "Sounds good.", "Fine with me.", "go for it", "agreed")
BACK_PLAIN = ("Actually, let's use {v} instead of {o} for {s}, because {r}.",)
BACK_NATURAL = (
    "Bad news about {s}: {r}. So {o} is out and {v} is in.", "We had to give {o} up for {s}, since {r}; it is {v} now.",
    "{o} did not work out for {s} ({r}). {v} takes over from today.",
)  # fmt: skip
BACK_AGREED = ("About {s}: {r}, so I would move from {o} to {v}. All right?",)
NOW_SAME = ("What did we settle on for {s}?", "Which choice holds for {s}?", "Remind me what we use for {s}.")
THEN_SAME = ("What did we have for {s} before, and why was that changed?",)
WORK = (
    "Run the tests of {p} and tell me what fails.", "Why is the {p} page slow?", "Look at the logs of {p} from Monday.",
    "The {k} of {p} gave a warning, please look.", "Write a note about {p} for the new colleague.",
    "Rename the helper in {p}.", "How many people used {p} last week?", "Check whether the {k} of {p} is up to date.",
)  # fmt: skip
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
    statements: list[Statement]


def tale(seed: int, turns: int, decisions: int, held_out: Path | None = None) -> Tale:
    """A story of so many turns; with `held_out` its decisions are the talks of that file's test half."""
    chance = random.Random(seed)
    if held_out is None:
        made = [_decide(chance, number, pair) for number, pair in enumerate(_pairs(chance, decisions))]
    else:
        made = _talks(chance, held_out, decisions)
    talks = [talk for talk, _ in made]
    first = len(talks)
    if held_out is None:
        for number, (_, decided) in enumerate(chance.sample(made, first // 3)):
            talks.append(_take_back(chance, number, decided))
    places = sorted(chance.sample(range(turns), first))
    later = sorted(chance.sample(range(places[first // 3], turns), len(talks) - first))
    at: dict[int, list[list[Deed]]] = {}
    backs = {id(talk): talk for talk in talks[first:]}
    for place, talk in zip(places, talks[:first], strict=True):
        at.setdefault(place, []).append(talk)
    # What is taken back was decided earlier: each takes a place after its decision's.
    decided_at = {decided.subject: place for place, (_, decided) in zip(places, made, strict=True)}
    owners = [decided for _, decided in made if len(decided.statements) > 1]
    for talk, place in zip(backs.values(), later, strict=True):
        owner = next(one for one in owners if one.statements[-1].texts[0] in {t for d in talk for t in d.texts})
        where = max(place, decided_at[owner.subject] + 1)
        at.setdefault(where, []).append(talk)
    deeds: list[Deed] = []
    for turn in range(turns + 2):
        for talk in at.get(turn, []):
            deeds += talk
        if turn < turns:
            deeds += _work(chance)
    questions = [one for number, (_, decided) in enumerate(made) for one in _questions(chance, number, decided)]
    chance.shuffle(questions)
    return Tale(deeds, questions)


def _pairs(chance: random.Random, count: int) -> list[tuple[str, str]]:
    pairs = [(part, kind) for part in PARTS for kind in KINDS]
    return chance.sample(pairs, count)


def _decide(chance: random.Random, number: int, pair: tuple[str, str]) -> tuple[list[Deed], _Decided]:
    part, kind = pair
    subject, value = f"the {part} {kind}", chance.choice(KINDS[kind][0])
    wording = ("plain", "natural", "agreed")[number % 3]
    given = {"s": subject, "v": value}
    if wording == "agreed":
        said = chance.choice(AGREED).format(**given)
        talk = [Deed("user", (f"What should we take for {subject}?",)), Deed("assistant", (said,))]
        talk += [Deed("user", (chance.choice(YES),)), Deed("assistant", ("Noted.",))]
    else:
        said = chance.choice(PLAIN if wording == "plain" else NATURAL).format(**given)
        talk = [Deed("user", (said,)), Deed("assistant", ("Noted.",))]
    return talk, _Decided(subject, part, kind, wording, [Statement(value, (said,))])


def _take_back(chance: random.Random, number: int, decided: _Decided) -> list[Deed]:
    old = decided.statements[-1].value
    value = chance.choice([one for one in KINDS[decided.kind][0] if one != old])
    told = {"s": decided.subject, "v": value, "o": old, "r": chance.choice(REASONS)}
    if number % 3 == 2:
        said = chance.choice(BACK_AGREED).format(**told)
        talk = [Deed("user", (f"Anything new on {decided.part}?",)), Deed("assistant", (said,))]
        talk += [Deed("user", (chance.choice(YES),)), Deed("assistant", ("Changed.",))]
    else:
        said = chance.choice(BACK_PLAIN if number % 3 == 0 else BACK_NATURAL).format(**told)
        talk = [Deed("user", (said,)), Deed("assistant", ("Changed.",))]
    decided.statements.append(Statement(value, (said,)))
    return talk


def _questions(chance: random.Random, number: int, decided: _Decided) -> list[Question]:
    now, old = decided.statements[-1], decided.statements[:-1]
    same = number % 2 == 0
    other = KINDS[decided.kind][1].format(decided.part) if decided.kind in KINDS else ""
    same = same or not other
    text = chance.choice(NOW_SAME).format(s=decided.subject) if same else f"{other}?"
    found = [Question(text, decided.subject, now, None, tuple(old), same, decided.wording)]
    if old:
        text = chance.choice(THEN_SAME).format(s=decided.subject) if same else f"{other} once, and why was it changed?"
        found.append(Question(text, decided.subject, now, old[-1], (), same, decided.wording))
    return found


def _talks(chance: random.Random, path: Path, count: int) -> list[tuple[list[Deed], _Decided]]:
    """Decisions in the words of somebody else: talks of a file, each of a subject of its own."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["half"] == "test" and len(row["held"]) == 1]
    chance.shuffle(rows)
    made: dict[str, tuple[list[Deed], _Decided]] = {}
    for row in rows:
        (held,) = row["held"]
        at, talk = held["at"], [(said["role"], said["text"]) for said in row["talk"]]
        texts = [text for _, text in talk]
        # A short answer says nothing without what it answers.
        reads = (texts[at],) if held["value"].casefold() in texts[at].casefold() or at == 0 else (texts[at - 1],)
        deeds = [Deed(role, (text,)) for role, text in talk]
        deeds += [Deed("assistant", ("Noted.",))] if deeds[-1].role == "user" else []
        statements = [Statement(held["value"], reads)]
        made.setdefault(held["subject"].casefold(), (deeds, _Decided(held["subject"], "", "", row["kind"], statements)))
    return list(made.values())[:count]


def _work(chance: random.Random) -> list[Deed]:
    """A turn of work: a request, one or two calls of tools with their results, an answer."""
    part, kind = chance.choice(PARTS), chance.choice(list(KINDS))
    deeds = [Deed("user", (chance.choice(WORK).format(p=part, k=kind),))]
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2))):
        deeds.append(Deed("tool", tuple(_result(chance, part) for _ in range(chance.choice((1, 1, 2))))))
    nouns = chance.sample(NOUNS, 3)
    deeds.append(Deed("assistant", (f"Done with {part}: the {nouns[0]} and the {nouns[1]} are fine, see {nouns[2]}.",)))
    return deeds


def _result(chance: random.Random, part: str) -> str:
    tokens = min(3_200, chance.lognormvariate(math.log(SIZES[0]), SIZES[1]))
    lines: list[str] = []
    while sum(map(len, lines)) < 4 * tokens:
        told = {
            "at": chance.randrange(24), "sec": chance.randrange(60), "number": chance.randrange(10**4),
            "part": chance.choice((part, part, chance.choice(PARTS))), "noun": chance.choice(NOUNS),
            "other": chance.choice(NOUNS), "verb": chance.choice(("ended", "failed", "waited", "began", "closed")),
            "ms": chance.randrange(5_000),
        }  # fmt: skip
        lines.append(LINE.format(**told))
    return "\n".join(lines)[: int(4 * tokens) + 1]


def wordings(questions: Sequence[Question]) -> list[str]:
    """The wordings of the decisions that are asked for."""
    return sorted({one.wording for one in questions})
