"""The scenario of the measure of the whole: what was decided long ago is found again, cited, within the budget.

Sixty decisions over five topics, twenty of them reversed later, claims worth twice the budget, and a
hundred unrelated turns. A scripted reader then asks for each decision; it sees what a model would
see, the request as packed and the answers of the tools, and nothing else.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any, NamedTuple

import vmstore
from vmstore.core.page import Modality
from vmstore.core.text.token_estimate import estimate
from vmstore.store.live.live_session import Live

TOPICS = {
    "storage": ("the {} database", ("Postgres", "MySQL", "SQLite", "MongoDB", "CockroachDB", "DynamoDB", "Cassandra")),
    "deploy": ("the {} pipeline", ("GitHub Actions", "Jenkins", "CircleCI", "Buildkite", "Drone", "TeamCity", "Argo")),
    "language": ("the {} service", ("Rust", "Go", "Kotlin", "Python", "Elixir", "TypeScript", "Scala")),
    "queue": ("the {} queue", ("Kafka", "RabbitMQ", "NATS", "Pulsar", "Redis Streams", "ActiveMQ", "Kinesis")),
    "colour": ("the {} theme", ("indigo", "teal", "crimson", "amber", "slate", "emerald", "coral")),
}
THINGS = (
    "orders", "billing", "search", "catalog", "shipping", "reviews", "profile", "inventory", "pricing", "support",
    "analytics", "checkout",
)  # fmt: skip
SMALL_TALK = (
    "How long does the night train to Tokyo take?",
    "Please shorten this sentence for me: the weather was fine and the road was long.",
    "What does the word quixotic mean?",
    "Give me three names for a grey cat.",
    "How many grams are in an ounce?",
)
NOISE = "The stations along the coast were listed by the hour, with their platforms, their clocks and their keepers. "


class Decision(NamedTuple):
    """What was decided of a thing, as the question will name it."""

    subject: str
    choice: str


class Score(NamedTuple):
    """How it went: `peak` is the fullest prompt, `sent` the longest request with all that stands beside pages."""

    asked: int
    right: int
    cited: int
    turns: int
    faults: int
    faults_a_turn: int
    thrash: float
    peak: int
    sent: int
    claims: int


def play(store: vmstore.Store, budget: int, *, seed: int = 1, policy: str = "default") -> Score:
    """Plays the whole scenario within a budget."""
    chance = random.Random(seed)
    session = store.live_session("north", l0_tokens_max=budget, policy=policy, system="You help a team build a shop.")
    decisions = _decide(session, chance)
    facts = _tell_facts(session, chance, 2 * budget)
    for turn in range(100):
        session.user(chance.choice(SMALL_TALK))
        session.pack()
        session.assistant(f"About that: {NOISE * chance.randint(1, 6)} ({turn})")
    right = cited = sent = 0
    for decision in chance.sample(decisions, len(decisions)):
        session.user(f"As we decided earlier, what did we choose for {decision.subject}?")
        reader = Reader(decision.subject)
        ran = session.run(reader)
        right += decision.choice in ran.text
        cited += _cites(session, ran.text, decision)
        sent = max(sent, reader.sent)
    measures = session.stats()
    return Score(
        len(decisions), right, cited, measures.turns, measures.model_faults, measures.faults_a_turn_max,
        measures.thrash_peak, measures.l0_peak, sent, facts,
    )  # fmt: skip


def _decide(session: Live, chance: random.Random) -> list[Decision]:
    """Sixty decisions in a hundred and twenty turns or less, twenty taken back; what holds at the end."""
    subjects = [(topic, thing) for thing in THINGS for topic in TOPICS]
    choices: dict[tuple[str, str], str] = {}
    chance.shuffle(subjects)
    for number, (topic, thing) in enumerate(subjects):
        pattern, options = TOPICS[topic]
        first, second = chance.sample(options, 2)
        session.user(f"Should we use {first} or {second} for {pattern.format(thing)}?")
        session.pack()
        if number % 3:
            session.assistant(f"Both would do. Let's use {first} for {pattern.format(thing)}.")
        else:
            session.assistant(f"{first} fits better here. Shall we use {first} for {pattern.format(thing)}?")
            session.user("Yes, let's do that.")
            session.pack()
            session.assistant("Noted.")
        choices[topic, thing] = first
    for topic, thing in chance.sample(subjects, 20):
        pattern, options = TOPICS[topic]
        other = chance.choice([option for option in options if option != choices[topic, thing]])
        session.user(f"Actually, let's use {other} instead for {pattern.format(thing)}.")
        session.pack()
        session.assistant("Changed.")
        choices[topic, thing] = other
    return [Decision(TOPICS[topic][0].format(thing), choice) for (topic, thing), choice in choices.items()]


def _tell_facts(session: Live, chance: random.Random, tokens: int) -> int:
    """States facts as claims until the session's claims are worth that many tokens."""
    total = sum(page.tokens for page in session.pages(type="claim"))
    number = 0
    while total < tokens:
        text = f"Fact {number}: the {chance.choice(THINGS)} team meets in room {chance.randint(1, 900)}. " + NOISE * 2
        session.claim(text, name=f"fact_{number}")
        total += estimate(text.encode(), Modality.TEXT)
        number += 1
    return total


class Reader:
    """A model that reads and does not think: it looks for the subject's line, then asks its memory for it."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.sent = 0
        self._asked: set[str] = set()

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        """The response to a request as packed."""
        self.sent = max(self.sent, estimate(json.dumps(request, ensure_ascii=False).encode(), Modality.TEXT))
        row = self._read(request)
        if row is not None:
            return _says(f"{row[1]} [ref: {row[0]}]")
        call = self._next(request)
        return call if call is not None else _says("I don't have that in the mapped context.")

    def _read(self, request: dict[str, Any]) -> tuple[str, str] | None:
        """The page and the choice, from what stands in the request: of two lines the one whose page has a name."""
        text = "\n".join(_words(message.get("content")) for message in request["messages"])
        lines = re.findall(
            rf"(\w+)(?:, \w+)?\)?\]?:? \"?Decision: use ([^\"\n]+?) (?:instead )?for {re.escape(self.subject)}", text
        )
        named = [line for line in lines if line[0].startswith("claim_")]
        return (named or lines or [None])[-1]

    def _next(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Asks for the page whose hint names the subject; where none does, searches."""
        name = "claim_" + self.subject.removeprefix("the ").replace(" ", "_")
        known = self._results(request)
        for page in known:
            if page == name and page not in self._asked:
                self._asked.add(page)
                return _calls("page_fault", {"page_id": page, "target_level": 0})
        if "search" not in self._asked:
            self._asked.add("search")
            return _calls("search_pages", {"query": f"decision {self.subject}", "limit": 5})
        return None

    @staticmethod
    def _results(request: dict[str, Any]) -> list[str]:
        answers = [json.loads(message["content"]) for message in request["messages"] if message["role"] == "tool"]
        return [result["page_id"] for answer in answers for result in answer.get("results", [])]


def _words(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content or ())


def _says(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def _calls(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"id": f"call_{tool}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"choices": [{"message": message, "finish_reason": "tool_calls"}]}


def _cites(session: Live, text: str, decision: Decision) -> bool:
    """Whether the answer cites the page that holds the decision as it stands."""
    hits = re.search(r"\[ref: (\w+)\]", text)
    if hits is None:
        return False
    (page,) = [page.page for page in session.pages(type="claim") if page.hint == hits[1] and page.status != "abandoned"]
    return decision.choice in session.content(page).decode()
