"""Adversarial: 28 prompts in other words than a hundred turns, answered by what fits a window of 3,000 tokens.

Each prompt is asked after the last turn, and scored by what can be read in the window without the prompt itself.
`recall` is `session.memory.recall` alone; BM25 is whole messages by `score@1` until the budget is full; the windows
are those of the bench `memory`. Tokens are four characters each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean

import vmstore
from benches.parts.adversarial import AdversarialSet, Prompt, Verdict, adversarial_set, record_turns, verdicts
from benches.parts.rivals import RIVALS, Rival
from benches.parts.rounds import LOWER, Bench, Goal, Row, row

CHARS_A_TOKEN = 4
SYSTEM = "You help with several projects at once."
RECALL = Goal("recall in 3,000 tokens: prompts answered, of 28", 27)
RECALL_1000 = Goal("recall in 1,000 tokens: prompts answered, of 28")
SHARE = Goal("recall in 3,000 tokens: share of what the prompts need")
STALE = Goal("recall in 3,000 tokens: prompts with only what no longer holds", better=LOWER)
BM25 = Goal("BM25 (score@1) in 3,000 tokens: prompts answered")
BM25_1000 = Goal("BM25 (score@1) in 1,000 tokens: prompts answered")
WINDOWS = {name: Goal(f"{name} in 3,000 tokens: prompts answered") for name in RIVALS if name != "window halved"}
GOALS = (RECALL, RECALL_1000, SHARE, STALE, BM25, BM25_1000, *WINDOWS.values())


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; the set is so small that a quick run is the whole."""
    asked = adversarial_set()
    with vmstore.memory_store() as store:
        session = store.session("hundred", create=True)
        record_turns(session, asked.turns)
        by_tokens = {
            tokens: verdicts(asked.prompts, recalled(session, tokens)) for tokens in (asked.window_tokens, 1_000)
        }
        for tokens, by_token in by_tokens.items():
            bench.say(f"  recall {tokens:,}: {kinds(asked, by_token)}")
        ours = by_tokens[asked.window_tokens]
        yield row(RECALL, [answered(ours)])
        yield row(RECALL_1000, [answered(by_tokens[1_000])])
        yield row(SHARE, [fmean(item.share for item in ours)])
        yield row(STALE, [float(sum(item.stale for item in ours))])
        for goal, tokens in ((BM25, asked.window_tokens), (BM25_1000, 1_000)):
            by_token = verdicts(asked.prompts, by_words(session, tokens))
            bench.say(f"  BM25 {tokens:,}: {kinds(asked, by_token)}")
            yield row(goal, [answered(by_token)])
    for name, goal in WINDOWS.items():
        by_token = verdicts(asked.prompts, partial(windowed, asked, RIVALS[name]))
        bench.say(f"  {name} {asked.window_tokens:,}: {kinds(asked, by_token)}")
        yield row(goal, [answered(by_token)])


def answered(actual_verdicts: list[Verdict]) -> float:
    """How many prompts are answered."""
    return float(sum(actual_verdict.answered for actual_verdict in actual_verdicts))


def kinds(asked: AdversarialSet, actual_verdicts: list[Verdict]) -> str:
    """How many prompts of each kind are answered."""
    names = list(dict.fromkeys(prompt.kind for prompt in asked.prompts))
    texts = []
    for name in names:
        some = [
            actual_verdict.answered
            for prompt, actual_verdict in zip(asked.prompts, actual_verdicts, strict=True)
            if prompt.kind == name
        ]
        texts.append(f"{name} {sum(some)} of {len(some)}")
    return ", ".join(texts)


def recalled(session: vmstore.Session, tokens: int) -> Callable[[Prompt], str]:
    """The window of a prompt by recall alone."""

    def window(prompt: Prompt) -> str:
        answer = session.memory.recall(prompt.text, tokens=tokens)
        text = "\n".join(text.text for passage in answer.passages for text in passage.texts)
        return text[: tokens * CHARS_A_TOKEN]

    return window


def by_words(session: vmstore.Session, tokens: int) -> Callable[[Prompt], str]:
    """The window of a prompt by the plain score: the best messages, whole, as long as they fit."""

    def window(prompt: Prompt) -> str:
        room, kept = tokens * CHARS_A_TOKEN, []
        for hit in session.search(prompt.text, limit=100, score="score@1"):
            text = session.content(hit.page).decode()
            if len(text) <= room:
                room -= len(text)
                kept.append(text)
        return "\n".join(kept)

    return window


def windowed(asked: AdversarialSet, kind: type[Rival], prompt: Prompt) -> str:
    """The window of a prompt by what people build without a store, without the prompt itself."""
    rival = kind(asked.window_tokens, SYSTEM)
    for turn in asked.turns:
        rival.user(turn.user)
        rival.assistant(turn.assistant)
    rival.user(prompt.text)
    messages = rival.request()["messages"]
    return json.dumps(messages[:-1], ensure_ascii=False)
