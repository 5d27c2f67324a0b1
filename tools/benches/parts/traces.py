"""Traces of references: a family made from seeds, and what can be read out of real sessions."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import vmstore
from vmstore.core.page import IMPORTANCE, Modality, PageType
from vmstore.store.session import Session
from vmstore.vm.recall.used_pages import WrittenPage, references

TOPICS = 30
PAGES_A_TOPIC = 20
HOT_PAGES = 12
RECENT = 40
TURN_REFERENCES = 10
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


class Sort(NamedTuple):
    """What is known of a page before it is used: its tokens, its importance in parts per million, what it is."""

    tokens: int
    importance: int
    type: PageType = PageType.TRANSCRIPT
    modality: Modality = Modality.TEXT


class Trace(NamedTuple):
    """References in order, each a turn and a page; and the pages."""

    asked: list[tuple[int, int]]
    pages: dict[int, Sort]

    def footprint(self) -> int:
        """The tokens of all pages that are referenced."""
        return sum(self.pages[page].tokens for page in sorted({page for _, page in self.asked}))


class _Made:
    """The pages of the family while it is told; what attracts references is drawn from a Pareto law."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.tokens: list[int] = []
        self.pulls: list[float] = []
        self._topics: list[list[int]] = [[] for _ in range(TOPICS)]
        self._sums: dict[int, list[float]] = {}

    def page(self, topic: int) -> int:
        """A new page: some 200 tokens, by a log-normal law."""
        self.tokens.append(int(min(2000, max(30, self.chance.lognormvariate(5.2, 0.8)))))
        self.pulls.append(self.chance.paretovariate(1.3))
        page = len(self.tokens) - 1
        self._topics[topic].append(page)
        self._sums.pop(topic, None)
        return page

    def of(self, topic: int) -> int:
        """A page of a topic, by what it attracts."""
        pages = self._topics[topic]
        if topic not in self._sums:
            self._sums[topic] = list(accumulate(self.pulls[page] for page in pages))
        sums = self._sums[topic]
        return pages[min(bisect_left(sums, self.chance.random() * sums[-1]), len(pages) - 1)]


def family(seed: int, count: int) -> Trace:
    """Topics that change every 50 references, within one what attracts most, and what was just used.

    12 % of the references make a page, 25 % go to one of the last 40, 8 % to twelve pages that are
    always wanted, the others to the topic. Importance is a hint: what a page attracts, with noise.
    The draws are those of the script that the goals were set by, so the traces are, too.
    """
    made = _Made(seed)
    chance = made.chance
    for topic in range(TOPICS):
        for _ in range(PAGES_A_TOPIC):
            made.page(topic)
    hot = [made.page(0) for _ in range(HOT_PAGES)]
    recent: deque[int] = deque(maxlen=RECENT)
    asked: list[tuple[int, int]] = []
    topic = 0
    for at in range(count):
        if chance.random() < 0.02:
            topic = min(int(chance.paretovariate(0.9)) - 1 + chance.randrange(3), TOPICS - 1)
        kind = chance.random()
        if kind < 0.12:
            page = made.page(topic)
        elif kind < 0.37 and recent:
            page = recent[-1 - min(int(chance.expovariate(0.15)), len(recent) - 1)]
        elif kind < 0.45:
            page = chance.choice(hot)
        else:
            page = made.of(topic)
        recent.append(page)
        asked.append((1 + at // TURN_REFERENCES, page))
    wanted = frozenset(hot)
    pages = {
        page: Sort(tokens, int(1_000_000 * min(1, _hint(pull, page in wanted) + chance.random() * 0.35)))
        for page, (tokens, pull) in enumerate(zip(made.tokens, made.pulls, strict=True))
    }
    return Trace(asked, pages)


def _hint(pull: float, hot: bool) -> float:
    return 0.5 * min(1, pull / 6) + (0.4 if hot else 0)


def real(folder: Path) -> Iterator[Trace]:
    """The sessions of every file in a folder, imported into a store in memory and read; smallest files first."""
    for path in sorted(folder.iterdir(), key=lambda path: (path.stat().st_size, path.name)):
        if path.suffix in (".jsonl", ".traj", ".json"):
            with vmstore.memory_store() as store:
                store.import_file(path)
                for info in store.sessions():
                    yield _read(store.session(info.session))


def _read(session: Session) -> Trace:
    """A session's pages in order, each after the earlier pages it uses; without system prompts, which always stay."""
    pages = [page for page in session.pages() if page.role != "system"]
    sorts = {
        page.position: Sort(
            page.tokens,
            int(page.importance * 2 * IMPORTANCE),
            PageType[page.type.upper()],
            Modality[page.modality.upper()],
        )
        for page in pages
    }
    turns = {page.position: page.created_turn for page in pages}
    written = [WrittenPage(page.position, _text(session, page.position, sorts[page.position])) for page in pages]
    uses: dict[int, list[int]] = {}
    for use in references(written):
        uses.setdefault(use.by, []).append(use.page)
    asked = [(turns[page.position], used) for page in pages for used in (*uses.get(page.position, ()), page.position)]
    return Trace(asked, sorts)


def _text(session: Session, page: int, sort: Sort) -> str:
    if sort.modality not in (Modality.TEXT, Modality.STRUCTURED):
        return ""
    try:
        return session.content(page).decode("utf-8", "replace")
    except vmstore.UnknownError:  # its source never held it
        return ""
