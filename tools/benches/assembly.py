"""Assembly: what an assembled prompt answers, what it takes, what it voids of the one before, and how long it takes.

The adversarial set of a hundred turns is told turn by turn, a prompt assembled for each message; then its 28 prompts
are asked, and each is scored by what can be read in the request without the prompt itself. With `--topics FILE`
a set of dated sessions and their questions is told and asked instead.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import vmstore
from benches.adversarial import answered, by_words, windowed
from benches.parts.adversarial import MODEL, AdversarialSet, Prompt, adversarial_set, verdicts
from benches.parts.rivals import RIVALS
from benches.parts.rounds import LOWER, Bench, Goal, Row, row
from vmstore.core.clock import ManualClock
from vmstore.core.times import microseconds

CHARS_A_TOKEN = 4
BUDGETS = (4_000, 8_000, 16_000)
TOPICS_TOKENS = 8_000
TURNS = 10_000
TALK = "Carriage {} of the train has {} windows, and its doors are painted {}."
COLOURS = ("green", "amber", "violet", "ochre", "white", "maroon", "teal")
ANSWERED = Goal("adversarial, 3,000 tokens: prompts answered, of 28", 27)
MEAN = Goal("adversarial, 3,000 tokens: mean tokens of a call", 1_150, LOWER)
LARGEST = Goal("adversarial, 3,000 tokens: largest call", 3_000, LOWER)
VOIDED = Goal("adversarial, 3,000 tokens: of a prompt voided at the next call", 0.1, LOWER)
VOIDED_AT = {
    tokens: Goal(f"adversarial, {tokens:,} tokens: of a prompt voided at the next call", 0.1, LOWER)
    for tokens in BUDGETS[1:]
}
AT = {tokens: Goal(f"adversarial, {tokens:,} tokens: prompts answered") for tokens in BUDGETS}
RIVAL = {
    (name, tokens): Goal(f"{name}, {tokens:,} tokens: prompts answered")
    for tokens in BUDGETS
    for name in (*RIVALS, "BM25 (score@1)")
}
TOPIC = {
    "current": Goal("--topics FILE, 8,000 tokens: current values, share", 0.95),
    "earlier": Goal("--topics FILE, 8,000 tokens: earlier values and why, share", 0.9),
    "who": Goal("--topics FILE, 8,000 tokens: who, share"),
    "when": Goal("--topics FILE, 8,000 tokens: when, share"),
}
SPEED = Goal("from a session of 10,000 turns, ms CPU", 20, LOWER)
GOALS = (ANSWERED, MEAN, LARGEST, VOIDED, *VOIDED_AT.values(), *AT.values(), *RIVAL.values(), *TOPIC.values(), SPEED)


class TellingCost(NamedTuple):
    """What telling a set took: the tokens of each call, and of the one before what each voided."""

    tokens: list[int]
    voided: list[int]

    @property
    def share(self) -> float:
        """What is voided of a prompt."""
        return fmean(self.voided) / fmean(self.tokens)


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; a quick run tells the whole set too, and asks of a shorter session how long it takes."""
    if bench.topics is not None:
        yield from _topics(bench, bench.topics)
        return
    asked = adversarial_set()
    with vmstore.memory_store() as store:
        session = store.session("hundred", create=True)
        other_row = tell(session, asked, asked.window_tokens)
        window = partial(read, session, asked.window_tokens, other_row)
        actual_verdicts = verdicts(asked.prompts, window)
        bench.say(
            "  not answered: "
            + ", ".join(str(p.number) for p, v in zip(asked.prompts, actual_verdicts, strict=True) if not v[0])
        )
        yield row(ANSWERED, [answered(actual_verdicts)])
        yield row(MEAN, [fmean(other_row.tokens)])
        yield row(LARGEST, [float(max(other_row.tokens))])
        yield row(VOIDED, [other_row.share])
        for tokens, goal in VOIDED_AT.items():
            yield row(goal, [tell(store.session(f"hundred at {tokens}", create=True), asked, tokens).share])
        for tokens in BUDGETS:
            yield row(AT[tokens], [answered(verdicts(asked.prompts, partial(read, session, tokens, None)))])
            yield row(RIVAL["BM25 (score@1)", tokens], [answered(verdicts(asked.prompts, by_words(session, tokens)))])
            for name, kind in RIVALS.items():
                rival = partial(windowed, asked._replace(window_tokens=tokens), kind)
                yield row(RIVAL[name, tokens], [answered(verdicts(asked.prompts, rival))])
    yield row(SPEED, _speed(bench.size(TURNS, 10)))


def tell(session: vmstore.Session, asked: AdversarialSet, tokens: int) -> TellingCost:
    """Tells the turns of a set, a prompt assembled for each."""
    messages: list[dict[str, Any]] = []
    prompts: list[vmstore.AssembledPrompt] = []
    for turn in asked.turns:
        prompts.append(session.memory.assemble(turn.user, tokens=tokens))
        messages.append({"role": "user", "content": turn.user})
        answer = {"role": "assistant", "content": turn.assistant}
        session.record({"model": MODEL, "messages": list(messages)}, {"choices": [{"message": answer}]})
        messages.append(answer)
    texts = ["".join(json.dumps(message, ensure_ascii=False) for message in prompt.messages) for prompt in prompts]
    return TellingCost(
        [prompt.tokens for prompt in prompts], [_voided(before, text) for before, text in pairwise(texts)]
    )


def _voided(before: str, text: str) -> int:
    same = next((at for at, (first, other) in enumerate(zip(before, text, strict=False)) if first != other), None)
    return 0 if same is None else (len(before) - same) // CHARS_A_TOKEN


def read(session: vmstore.Session, tokens: int, value: TellingCost | None, prompt: Prompt) -> str:
    """What can be read in the request that is assembled for a prompt, but for the prompt itself."""
    made = session.memory.assemble(prompt.text, tokens=tokens)
    if value is not None:
        value.tokens.append(made.tokens)
    return json.dumps([made.prepend, made.messages[:-1], made.beside], ensure_ascii=False)


def _topics(bench: Bench, path: Path) -> Iterator[Row]:
    """A set of dated sessions of one user, asked after the last."""
    value = json.loads(path.read_text("utf-8"))
    last = max(_at(each["date"]) for each in value["turns"])
    with vmstore.memory_store(clock=ManualClock(last + 3_600_000_000, 0)) as store:
        session = store.session("topics", create=True, user=value["user"])
        messages: list[dict[str, Any]] = []
        for turn in value["turns"]:
            messages.append({"role": "user", "content": turn["user"]})
            answer = {"role": "assistant", "content": turn["assistant"]}
            called = {"model": MODEL, "messages": list(messages)}
            session.record(called, {"choices": [{"message": answer}]}, at_us=_at(turn["date"]) + turn["turn"])
            messages.append(answer)
        for kind, goal in TOPIC.items():
            prompts = [
                Prompt(each["n"], kind, each["text"], tuple(tuple(group["any_of"]) for group in each["all_of"]), ())
                for each in value["questions"]
                if each["kind"].startswith(kind)
            ]
            actual_verdicts = verdicts(prompts, partial(read, session, TOPICS_TOKENS, None))
            out = [
                prompt.number
                for prompt, actual_verdict in zip(prompts, actual_verdicts, strict=True)
                if not actual_verdict.answered
            ]
            bench.say(f"  {kind}: not answered {out}")
            if prompts:
                yield row(goal, [answered(actual_verdicts) / len(prompts)])


def _at(date: str) -> int:
    return microseconds(datetime.fromisoformat(f"{date}T12:00:00+00:00"))


def _speed(turns: int) -> list[float]:
    """Milliseconds of CPU that assembling takes from a long session, its index made."""
    with vmstore.memory_store() as store:
        session = store.live_session("long", l0_tokens_max=8_000, rules="passive")
        for first in range(0, turns, 250):
            with session.turn():
                for at in range(first, min(first + 250, turns)):
                    session.user(TALK.format(at, at % 97, COLOURS[at % 7]))
                    session.pack()
                    session.assistant(f"Noted for carriage {at}.")
        session.memory.assemble("Which carriage has violet doors and 41 windows?", turn=turns)
        taken = []
        for at in range(10):
            before = time.process_time()
            session.memory.assemble(f"What of carriage {at * 31}, and its {COLOURS[at % 7]} doors?", turn=turns)
            taken.append((time.process_time() - before) * 1_000)
        return taken
