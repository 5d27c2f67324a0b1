"""Recall, how fast and how large: made chat texts, searched in natural words, at sizes of a hundred to one.

A page is a line of chat of some 140 bytes; its words are drawn as English draws them, the few most
frequent being English's own, so that a question in natural words meets lists as long as in life.
"""

from __future__ import annotations

import random
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from bootstrap import ROOT

from benches.parts import doors
from benches.parts.rounds import LOWER, Bench, Goal, Row, cpu, percentile, row
from vmstore.core.mutation import Create, Message
from vmstore.core.page import Modality, PageType, Role, Slot

SIZES = ((10_000, 1_000), (100_000, 3_000), (1_000_000, 10_000))  # pages: full, quick
QUESTIONS = {100_000: 5, 1_000_000: 20}
ASKED = 60
NEW = {1: 15, 1_000: 4}  # pages that are new, and how often
MADE = Goal("text index made, pages a CPU second, {:,} pages", 30_000)
BYTES = Goal("bytes of the text index for a page of 140, {:,} pages", 80, LOWER)
QUESTION = Goal("a question in natural words, CPU ms p50, {:,} pages", better=LOWER)
WORD = Goal("one rare word, CPU ms p50, {:,} pages", 0.5, LOWER)
GROWTH = Goal("a question at the most pages, against one at a hundredth of them", 5, LOWER)
SOON = {
    1: Goal("first texts of a moment after 1 new page, CPU ms p50, {:,} pages", 2, LOWER),
    1_000: Goal("first texts of a moment after 1,000 new pages, CPU ms p50, {:,} pages", 20, LOWER),
}
MEMORY = Goal("resident memory of a process that searches, MB, {:,} pages", 300, LOWER)
ASKS = """
import sys
import vmstore
with vmstore.open(sys.argv[1]) as store:
    for question in sys.argv[2:]:
        store.session("s0").search(question)
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""

AT = 1_760_000_000_000_000  # microseconds since 1970
AT_STEP = 41_000_000
ENVELOPES = {
    Role.USER: b'{"role":"user","content":{"\\u0000t":0}}',
    Role.ASSISTANT: b'{"role":"assistant","content":{"\\u0000t":0}}',
}
PAGES_A_COMMIT = 50
VOCABULARY = 200_000
RARE = 6_000  # words of a higher rank are rarer than Zipf's law has them
_FREQUENT = """
the to and a i of in it is you that was for on my have with we so be this me but at your are not they do what just
like about up all can it's out had if get did one she he her were really from know think there time as been an or
don't how by i'm would good some more when go then will day who our him them no going could us right see back want
which too last make over where any after because well much need why year week first other than
"""
_SYLLABLES = """
ka lo mi ren ta so vel dor ni pa shu gre bon li tra mon est al ur qui ber col den fen gar hol jan ker lum mar nor
ost pel rud sim tor umb ver wil yor zan bra cle dru fla e u y ei ou ba ce di fo gu
"""
FREQUENT, SYLLABLES = tuple(_FREQUENT.split()), tuple(_SYLLABLES.split())
ENDINGS = ("", "", "", "", "s", "s", "ed", "ing", "er", "ly", "ment")


class Chat:
    """Lines of chat without end, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.words = [*FREQUENT, *_made(random.Random(5), VOCABULARY - len(FREQUENT))]
        self._weights = list(accumulate(map(_weight, range(1, VOCABULARY + 1))))

    def line(self) -> str:
        """A line of some 26 words, one to three sentences."""
        chance, top = self._chance, self._weights[-1]
        many = max(2, round(chance.lognormvariate(3.16, 0.5)))
        words = [self.words[bisect_left(self._weights, chance.random() * top)] for _ in range(many)]
        for at in range(0, many, 11):
            words[at] = words[at].capitalize()
            words[min(at + 10, many - 1)] += chance.choice("." * 3 + "?!")
        return " ".join(words)

    def question(self) -> str:
        """A question in natural words: five of the frequent, and four that say what is sought."""
        chance = self._chance
        frequent = [self.words[chance.randrange(90)] for _ in range(5)]
        sought = [self.words[int(120 * (VOCABULARY / 120) ** (chance.random() ** 1.6 * 0.8))] for _ in range(4)]
        mixed = [*frequent[1:], *sought]
        chance.shuffle(mixed)
        return " ".join([frequent[0].capitalize(), *mixed]) + "?"


def _weight(rank: int) -> float:
    """How often a word is said: Zipf's law, the function words above it, the rare words below, as in English."""
    if rank <= len(FREQUENT):
        return 2.4 / (rank + 2.7)
    return 1 / rank if rank < RARE else RARE / rank**2


def _made(chance: random.Random, count: int) -> list[str]:
    """Made words, each once, the shorter ones more often among the first."""
    fields: dict[str, None] = {}
    while len(fields) < count:
        syllables = chance.choice((1, 2)) if len(fields) < 20_000 else chance.choice((2, 3))
        word = "".join(chance.choice(SYLLABLES) for _ in range(syllables)) + chance.choice(ENDINGS)
        fields.setdefault(word)
    return list(fields)


def written(path: Path, pages: int, *, sessions: int = 1, seed: int = 1) -> None:
    """Writes a store of so many pages, in as many sessions, in turns of one commit each."""
    chat = Chat(seed)
    with doors.opened(path) as store:
        opened = [store.session(f"s{n}", create=True) for n in range(sessions)]
        for commit in range(0, pages, PAGES_A_COMMIT):
            session = opened[commit // PAGES_A_COMMIT % sessions]
            tell(session, [chat.line() for _ in range(min(PAGES_A_COMMIT, pages - commit))], AT + AT_STEP * commit)
        store.admin.follow()


def tell(session: doors.Session, lines: Sequence[str], at: int) -> None:
    """Adds lines to a session as one commit, said in turns by its user and the model."""
    with doors.batch(session, at) as batch:
        for n, line in enumerate(lines):
            role = Role.USER if n % 2 == 0 else Role.ASSISTANT
            message = batch.add(Message(role, Slot.MESSAGES, batch.cell(ENVELOPES[role]), 0))
            content = line.encode()
            cell = batch.cell(content)
            batch.add(
                Create(PageType.TRANSCRIPT, Modality.TEXT, role, message, 0, cell, len(content), len(content) // 4)
            )


def questions(seed: int, count: int) -> Iterator[str]:
    """So many questions in natural words."""
    chat = Chat(seed)
    return (chat.question() for _ in range(count))


def measure(bench: Bench) -> Iterator[Row]:
    """All rows, each size in a store of its own, in memory."""
    medians = []
    for full, quick in SIZES:
        pages = bench.size(full, quick)
        path = bench.memory / f"chat{pages}.vms"
        written(path, pages)
        with doors.opened(path) as store:
            yield from _of(bench, store, path, pages, full)
            medians.append(percentile(_asked(store, list(questions(8, ASKED))), 0.5))
    yield row(GROWTH, [medians[-1] / medians[0]])


def _of(bench: Bench, store: Any, path: Path, pages: int, full: int) -> Iterator[Row]:
    """The rows of one size, named by that of a full run; a store that was never searched."""
    made = bench.time("vmstore", lambda: store.session("s0").search("time"))
    yield row(_named(MADE, full), [pages / made])
    files = (path / "default" / "text").glob("*")
    yield row(_named(BYTES, full), [sum(file.stat().st_size for file in files) / pages])
    rare = Chat(1).words[RARE * 8 : RARE * 8 + ASKED]
    yield row(_named(QUESTION, full), [percentile(_asked(store, list(questions(7, ASKED))), 0.5)])
    yield row(_named(WORD, full), [percentile(_asked(store, rare), 0.5)])
    if sys.platform == "linux":
        command = [sys.executable, "-c", ASKS, str(path), *questions(9, 20)]
        kilobytes = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        yield row(_named(MEMORY, full), [int(kilobytes) / 1_024])
    yield from _followed(store, pages, full)


def _followed(store: Any, pages: int, full: int) -> Iterator[Row]:
    """How soon a moment's texts are there after something was written."""
    chat, session, at = Chat(99), store.session("s0"), AT + AT_STEP * pages
    for new, times in NEW.items():
        taken = []
        for _ in range(times):
            for first in range(0, new, PAGES_A_COMMIT):
                at += AT_STEP
                tell(session, [chat.line() for _ in range(min(PAGES_A_COMMIT, new - first))], at)
            store.admin.follow()
            taken.append(1e3 * _cpu(lambda: doors.texts(session).postings("time")))
        yield row(_named(SOON[new], full), [percentile(taken, 0.5)])


def _asked(store: Any, texts: Sequence[str]) -> list[float]:
    """How long each search of the session took, in milliseconds."""
    session = store.session("s0")
    return [1e3 * _cpu(lambda text=text: session.search(text)) for text in texts]


def _cpu(act: Callable[[], Any]) -> float:
    started = cpu()
    act()
    return cpu() - started


def _named(goal: Goal, pages: int) -> Goal:
    """A goal of one size; how long a question may take is stated for the two larger ones."""
    named = goal._replace(name=goal.name.format(pages))
    return named._replace(goal=QUESTIONS.get(pages, "")) if goal is QUESTION else named


GOALS = (
    *(_named(goal, full) for full, _ in SIZES for goal in (MADE, BYTES, QUESTION, WORD, MEMORY, *SOON.values())),
    GROWTH,
)
