"""The pre-pass: which pages a message is likely to need, before the model sees it."""

from __future__ import annotations

import re

from vmstore.integrations.chuk.models.enums import PageType
from vmstore.integrations.chuk.page_table import PageTable
from vmstore.vm.signals import RECALL

TOPIC_CHARACTERS_MIN = 4
DEFAULT_RECALL_SIGNALS: list[str] = [
    *RECALL,
    r"\b(?:you|we) (?:suggested|recommended|proposed)\b",
    r"\brefresh (?:my|our) memor(?:y|ies)\b",
    r"\bwhat did (?:we|you|i)\b",
]
"""What a message says that speaks of what was said before, as regular expressions."""


class DemandPagingPrePass:
    """Looks at a message for signs of recall and for what it is about."""

    def __init__(self, recall_signals: list[str] | None = None, max_prefetch_pages: int = 5) -> None:
        signals = DEFAULT_RECALL_SIGNALS if recall_signals is None else recall_signals
        self._signals = [re.compile(signal, re.IGNORECASE) for signal in signals]
        self._max_prefetch_pages = max_prefetch_pages

    def has_recall_signal(self, message: str) -> bool:
        """Whether a message speaks of what was said before."""
        return any(signal.search(message) for signal in self._signals)

    def extract_topics(self, message: str) -> list[str]:
        """The words of a message of four letters and digits or more, in lower case."""
        words = re.split(r"[^a-z0-9]+", message.lower())
        return [word for word in words if len(word) >= TOPIC_CHARACTERS_MIN]

    def get_prefetch_candidates(
        self, message: str, page_table: PageTable, page_hints: dict[str, str], working_set_ids: set[str]
    ) -> list[str]:
        """The pages to bring in, each once: on recall claims and summaries, then those whose hint has a topic of it."""
        pages: list[str] = []
        if self.has_recall_signal(message):
            kinds = (PageType.CLAIM, PageType.SUMMARY)
            pages += [entry.page_id for kind in kinds for entry in page_table.get_by_type(kind)]
        topics = self.extract_topics(message)
        pages += [
            page_id
            for page_id, hint in page_hints.items()
            if page_id in page_table and any(topic in hint.lower() for topic in topics)
        ]
        missing = [page_id for page_id in dict.fromkeys(pages) if page_id not in working_set_ids]
        return missing[: self._max_prefetch_pages]
