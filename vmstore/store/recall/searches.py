"""Searches in the log: what a session's memory was asked, what an assembled prompt was chosen of, and their worth."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from vmstore.core.decision import PromptContest, PromptPart, Recaller, Search
from vmstore.core.recalls import ppm
from vmstore.store.host import SessionHost
from vmstore.store.recall.assembly.results import AssembledPrompt
from vmstore.store.recall.pen import Pen, write
from vmstore.store.recall.results import RecallWorth
from vmstore.views.branch import Branch
from vmstore.views.reads.recalls import recalls_at

REMEMBERED = (PromptPart.IDENTITY, PromptPart.SUMMARIES, PromptPart.FACTS, PromptPart.RECALLED, PromptPart.EXPANDED)


def log_search(session: SessionHost, query: str, search: Search) -> None:
    """Logs a search, in a live session and in one that was recorded alike; nothing by who may only read."""

    def do(pen: Pen) -> None:
        pen.add(replace(search, query=pen.cell(query.encode("utf-8", "backslashreplace"))))

    access = session._ns.access
    if not session._ns.readonly and (access is None or access.may_write()):
        write(session, do)


def log_prompt(session: SessionHost, message: str, prompt: AssembledPrompt) -> None:
    """Logs what an assembled prompt brings back, by part, with the contest within each and its nearest losers."""
    shown = [choice for choice in prompt.chosen if PromptPart.of(choice.part) in REMEMBERED]
    pages: dict[PromptPart, list[int]] = {part: [] for part in REMEMBERED}
    listed: set[int] = set()
    for part, own in pages.items():
        for choice in shown:
            if choice.part == part.word and choice.session == session.name:
                own += [page for page in dict.fromkeys(int(page[1:]) for page in choice.pages) if page not in listed]
                listed.update(own)
    found = tuple(page for own in pages.values() for page in own)
    tokens = sum(choice.tokens for choice in shown)
    scores = {int(page[1:]): choice.score for choice in reversed(shown) for page in choice.pages}
    search = Search(
        0,
        found,
        len(shown) + len(prompt.left),
        int(Recaller.ASSEMBLE),
        tokens,
        _contests(prompt, pages),
        tuple(ppm(scores[page]) for page in found),
    )
    log_search(session, message, search)


def _contests(prompt: AssembledPrompt, pages: Mapping[PromptPart, list[int]]) -> tuple[PromptContest, ...]:
    """The contest of each part that something is brought back in, in the order of the pages found."""
    made = {contest.part: contest for contest in prompt.contests}
    return tuple(
        PromptContest(
            int(part),
            len(own),
            contest.candidates,
            contest.tokens,
            prompt.budget,
            ppm(contest.cutoff),
            tuple((ppm(score), int(page[1:])) for page, score in contest.losers),
        )
        for part, own in pages.items()
        if (contest := made.get(part.word)) is not None
    )


def worth(lane: Branch, position: int) -> list[RecallWorth]:
    """One row for each way of asking, up to a position; a page that was found is used where answers after it use it."""
    sums: dict[int, list[int]] = {}
    for recall in recalls_at(lane, position):
        total = sums.setdefault(recall.recaller, [0, 0, 0, 0, 0])
        counts = (1, len(recall.pages), len(recall.used), int(bool(recall.used)), recall.tokens)
        for place, count in enumerate(counts):
            total[place] += count
    return [RecallWorth(Recaller(number).word, *counts) for number, counts in sorted(sums.items())]
