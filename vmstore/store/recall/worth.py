"""What recall was worth: how often a session recalled, what it was given, and how much of that was used."""

from __future__ import annotations

from vmstore.core.decision import Recaller
from vmstore.store.recall.results import RecallWorth
from vmstore.views.branch import Branch
from vmstore.views.reads.recalls import recalls_at


def worth(lane: Branch, position: int) -> list[RecallWorth]:
    """One row for each way of asking, up to a position; a page that was found is used where answers after it use it."""
    sums: dict[int, list[int]] = {}
    for recall in recalls_at(lane, position):
        total = sums.setdefault(recall.recaller, [0, 0, 0, 0, 0])
        counts = (1, len(recall.pages), len(recall.used), int(bool(recall.used)), recall.tokens)
        for place, count in enumerate(counts):
            total[place] += count
    return [RecallWorth(Recaller(number).word, *counts) for number, counts in sorted(sums.items())]
