"""What a story is told in: the parts of a project, what is decided of them, and every way of saying it."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What is decided: its options, how somebody asks who does not recall the word, and how it is said without."""

    options: tuple[str, ...]
    other: str
    oblique: str = ""


class Wordings(NamedTuple):
    """A set of wordings: {s} the subject, {p} its part of the project, {k} its kind, {v} {o} values, {r} a reason."""

    parts: tuple[str, ...]
    kinds: dict[str, Kind]
    classes: tuple[str, ...]
    plain: tuple[str, ...]
    natural: tuple[str, ...]
    asked: tuple[str, ...]
    agreed: tuple[str, ...]
    yes: tuple[str, ...]
    back_plain: tuple[str, ...]
    back_natural: tuple[str, ...]
    back_asked: tuple[str, ...]
    back_agreed: tuple[str, ...]
    now_same: tuple[str, ...]
    then_same: tuple[str, ...]
    then_other: str
    reasons: tuple[str, ...]
    work: tuple[str, ...]
    budgets: tuple[int, ...]


FIRST = Wordings(
    parts=(
        "billing", "checkout", "search", "catalog", "shipping", "reviews", "profile", "inventory", "pricing",
        "support", "analytics", "orders",
    ),
    kinds={
        "database": Kind(("Postgres", "MySQL", "SQLite", "CockroachDB", "MariaDB"), "Where does {} keep its rows"),
        "queue": Kind(("Kafka", "RabbitMQ", "NATS", "Pulsar", "ActiveMQ"),
            "What carries messages between the workers of {}"),
        "cache": Kind(("Redis", "Memcached", "Hazelcast", "Varnish", "Dragonfly"), "What holds the hot values of {}"),
        "pipeline": Kind(("Jenkins", "Buildkite", "Drone", "TeamCity", "CircleCI"), "What builds and ships {}"),
        "language": Kind(("Rust", "Go", "Kotlin", "Elixir", "Scala"), "What is {} written in"),
        "theme": Kind(("indigo", "teal", "crimson", "amber", "slate"), "Which colour do the pages of {} have"),
        "login": Kind(("passkeys", "magic links", "SAML", "passwords", "OAuth"), "How do people get into {}"),
        "hosting": Kind(("Hetzner", "Fly", "Render", "Heroku", "Linode"), "On whose machines does {} run"),
        "retention": Kind(("30 days", "90 days", "14 days", "one year", "7 days"),
            "How long do we hold on to records of {}"),
        "timeout": Kind(("5 seconds", "12 seconds", "2 seconds", "40 seconds", "900 ms"),
            "After how long does {} give up"),
        "format": Kind(("Avro", "Protobuf", "JSON lines", "Thrift", "CBOR"),
            "In which encoding does {} send what it knows"),
        "checks": Kind(("pytest", "nose", "Robot", "Behave", "Cucumber"), "What runs before a change of {} is merged"),
    },
    classes=("plain", "natural", "agreed"),
    plain=(
        "Let's use {v} for {s}.", "We decided to use {v} for {s}.", "We'll go with {v} for {s}.",
    ),
    natural=(
        "I talked to Dana about {s}: it'll be {v}.",
        "After the meeting on {s} everybody was for {v}, so that is that.",
        "{v} it is then, as far as {s} is concerned.", "Put {v} down for {s}, please.",
        "For {s} the choice fell on {v}.",
    ),
    asked=("What should we take for {s}?",),
    agreed=(
        "For {s} I suggest {v}, which the team knows best. Shall I go ahead?",
        "My proposal for {s} is {v}: it is the one with the fewest moving parts. What do you think?",
        "I would take {v} for {s}; the others cost more to run.",
    ),
    yes=(
        "ok", "Yes, do that.", "Sounds good.", "Fine with me.", "go for it", "agreed",
    ),
    back_plain=(
        "Actually, let's use {v} instead of {o} for {s}, because {r}.",
    ),
    back_natural=(
        "Bad news about {s}: {r}. So {o} is out and {v} is in.",
        "We had to give {o} up for {s}, since {r}; it is {v} now.",
        "{o} did not work out for {s} ({r}). {v} takes over from today.",
    ),
    back_asked=("Anything new on {p}?",),
    back_agreed=(
        "About {s}: {r}, so I would move from {o} to {v}. All right?",
    ),
    now_same=(
        "What did we settle on for {s}?", "Which choice holds for {s}?", "Remind me what we use for {s}.",
    ),
    then_same=(
        "What did we have for {s} before, and why was that changed?",
    ),
    then_other="{} once, and why was it changed?",
    reasons=(
        "it lost two of our shards in the drill", "the licence changed under our feet",
        "the invoices tripled in a month", "nobody on call knows it", "it fell over at nine hundred writers",
        "legal does not want it", "it needs a patch that was never merged", "the vendor was bought",
        "half of the clients cannot speak it", "it drops what comes late",
    ),
    work=(
        "Run the tests of {p} and tell me what fails.", "Why is the {p} page slow?",
        "Look at the logs of {p} from Monday.", "The {k} of {p} gave a warning, please look.",
        "Write a note about {p} for the new colleague.", "Rename the helper in {p}.",
        "How many people used {p} last week?", "Check whether the {k} of {p} is up to date.",
    ),
    budgets=(8_000, 4_000, 16_000),
)  # fmt: skip
