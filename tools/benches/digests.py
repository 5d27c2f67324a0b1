"""Digests: what a task costs at each depth, and what cards of earlier sessions tell of failures that come later.

Nobody's real sessions hold plans of vmstore. So tasks are made of real ones: the first message of each session is the
title, its sentences are the steps. Cards are held to the 100 runs of tau-bench taken as one user's, in the order of
their names: before each run cards are made of all runs before it, and a failure of the run counts as told where the
text holds its reason, word for word but for ids and numbers. Beside them stand texts of as many tokens: the newest
pages of the runs before, and the end of the last run as it stood. No model is asked, so what an agent would make of
a card is not measured.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

import vmstore
from benches.guards import AIRLINE, _imported
from benches.parts.rounds import LOWER, Bench, Goal, MissingError, Row, row
from benches.parts.yardsticks import DATA
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.work.calls import past_calls
from vmstore.work import plan
from vmstore.work.digest import CARDS, card, chosen_cards, digest, guard_weight
from vmstore.work.observation import tokens
from vmstore.work.past_call import PastCall
from vmstore.work.skill import skills
from vmstore.work.watch import CallWatch

FIRST = Goal("tokens of a task at step 0, of titles and steps of real sessions, at most", 20, LOWER)
SECOND = Goal("tokens of its paragraph, at most", 200, LOWER)
TOLD = Goal("failures of tau-bench whose reason six cards of the runs before tell, share")
NEWEST = Goal("the newest pages of the runs before instead, as many tokens, share")
WINDOW = Goal("the end of the last run instead, as many tokens, share")
SIZE = Goal("tokens of six cards, mean")
PACKED = Goal("a session of 1,296 pages packed into 500 tokens, ms CPU")
GOALS = (FIRST, SECOND, TOLD, NEWEST, WINDOW, SIZE, PACKED)

_SENTENCES = re.compile(r"(?<=[.!?\n])\s+")
_VARIES = re.compile(r"[\d#]+|\b\w*\d\w*\b")
REASON_CHARS = 60
RUNS = 5


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; a quick run holds cards to fewer runs."""
    if not DATA.is_dir():
        raise MissingError(f"{DATA} is not there: digests are measured on the sessions where they lie")
    with _imported(["swe-agent", "tau-bench", "pi"]) as store:
        made = [digest("p7", _task(store, info.session)) for info in store.sessions()]
        yield row(FIRST, [float(max(item.costs[0] for item in made))])
        yield row(SECOND, [float(max(item.costs[1] for item in made))])
        names = sorted(info.session for info in store.sessions() if info.session.startswith(AIRLINE))
        yield from _cards(store, names[: bench.size(len(names), 30)])
    store = vmstore.memory_store()
    store.import_file(SHIPPED)
    (info,) = store.sessions()
    digests = store.session(info.session).work.digests
    digests.pack(500)
    yield row(PACKED, [_spent(digests) for _ in range(RUNS)])
    store.close()


def _task(store: vmstore.Store, name: str) -> plan.PlanContent:
    """A task of the first thing that a person said in a session."""
    session = store.session(name)
    first = next(page for page in session.pages(type="transcript") if page.role == "user")
    text = session.content(first.page).decode("utf-8", "replace")
    sentences = dict.fromkeys(" ".join(word.split())[: plan.TEXT_CHARS_MAX] for word in _SENTENCES.split(text))
    steps = [sentence for sentence in sentences if sentence][: plan.STEPS_MAX]
    return plan.made(steps[0], [], steps)


def _cards(store: vmstore.Store, names: Sequence[str]) -> Iterator[Row]:
    """How many failures each kind of text tells of, run after run."""
    watch = CallWatch()
    weighed: list[tuple[float, str]] = []
    calls: list[PastCall] = []
    fields = {"cards": 0, "newest": 0, "window": 0}
    failures, sizes, texts = 0, [], list[str]()
    for name in names:
        chosen = chosen_cards([*reversed(weighed), *_learned(calls)], CARDS)
        size = tokens("\n\n".join(chosen)) if chosen else 0
        sizes.append(float(size))
        rivals = {
            "cards": "\n\n".join(chosen),
            "newest": "\n\n".join(_within(texts[::-1], size)),
            "window": "\n\n".join(texts)[-4 * size :] if size else "",
        }
        run = past_calls(store.session(name))
        for call in (call for call in run if call.failed and call.reason):
            failures += 1
            for rival, text in rivals.items():
                fields[rival] += _plain(call.reason)[:REASON_CHARS] in _plain(text)
        for call in run:
            weighed += [(guard_weight(alarm.times), card(alarm.text)) for alarm in watch.take(call)]
        calls += run
        texts = [text for text in _texts(store, name) if text] or texts
    yield row(TOLD, [fields["cards"] / failures])
    yield row(NEWEST, [fields["newest"] / failures])
    yield row(WINDOW, [fields["window"] / failures])
    yield row(SIZE, [sum(sizes) / len(sizes)])


def _learned(calls: Sequence[PastCall]) -> list[tuple[float, str]]:
    return [
        (skill.importance / 1e6, f"{' → '.join(skill.tools)} succeeded {skill.successes} of {skill.tries} times.")
        for skill in skills(calls)
    ]


def _texts(store: vmstore.Store, name: str) -> list[str]:
    session = store.session(name)
    pages = session.pages()
    return [session.content(page.page).decode("utf-8", "replace") for page in pages if page.message is not None]


def _within(newest: Sequence[str], size: int) -> list[str]:
    """The newest texts, whole, as far as so many tokens go."""
    kept: list[str] = []
    for text in newest:
        if tokens("\n\n".join([*kept, text])) <= size:
            kept.append(text)
    return kept


def _plain(text: str) -> str:
    return " ".join(_VARIES.sub("#", text.casefold()).split())


def _spent(digests: vmstore.Digests) -> float:
    began = time.process_time()
    digests.pack(500)
    return 1_000 * (time.process_time() - began)
