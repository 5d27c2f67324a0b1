"""What people build without a store: a sliding window, with a running summary or a search beside it.

Each makes a request of what it was told, within its budget at four characters a token of the whole request.
"""

from __future__ import annotations

import json
import re
from typing import Any

from vmstore.core.text.stems import terms
from vmstore.vm.recall.postings import Postings, windows

SHARE = 0.4  # of the budget for what is beside the window
DECIDING = re.compile(r"\b(?:decided?|let's|use|will|go(?:es)? with|instead|suggest|agreed|proposal|it is|now)\b", re.I)


class Rival:
    """A sliding window over the messages."""

    def __init__(self, budget: int, system: str) -> None:
        self.chars = budget * 4
        self.system = {"role": "system", "content": system}
        self.said: list[tuple[dict[str, Any], int]] = []  # each message with its length as JSON

    def user(self, text: str) -> None:
        """A person speaks."""
        self._add({"role": "user", "content": text})

    def assistant(self, text: str) -> None:
        """The model answers."""
        self._add({"role": "assistant", "content": text})

    def tools(self, texts: tuple[str, ...]) -> None:
        """The model calls tools, which answer."""
        ids = [f"call_{len(self.said)}_{nth}" for nth in range(len(texts))]
        function = {"name": "read", "arguments": '{"path": "notes"}'}
        calls = [{"id": each_name, "type": "function", "function": function} for each_name in ids]
        self._add({"role": "assistant", "content": None, "tool_calls": calls})
        for name, text in zip(ids, texts, strict=True):
            self._add({"role": "tool", "tool_call_id": name, "content": text})

    def request(self) -> dict[str, Any]:
        """What is sent: the newest messages that fit, no result without its call."""
        return {"messages": [self.system, *self._window(self.chars - 200)]}

    def _window(self, chars: int) -> list[dict[str, Any]]:
        kept: list[dict[str, Any]] = []
        for message, length in reversed(self.said):
            chars -= length
            if chars < 0:
                break
            kept.append(message)
        while kept and kept[-1]["role"] == "tool":
            kept.pop()
        return kept[::-1]

    def _add(self, message: dict[str, Any]) -> None:
        self.said.append((message, len(json.dumps(message, ensure_ascii=False)) + 2))


class Halved(Rival):
    """A window that goes on as it begins until it is full, and is then cut to its newest half."""

    def __init__(self, budget: int, system: str) -> None:
        super().__init__(budget, system)
        self._first = 0

    def request(self) -> dict[str, Any]:
        """What was there the last time, and what came since, where that still fits."""
        room = self.chars - 200
        if sum(length for _, length in self.said[self._first :]) > room:
            self._first = len(self.said) - len(self._window(room // 2))
        return {"messages": [self.system, *(message for message, _ in self.said[self._first :])]}


class Summary(Rival):
    """A window and a running summary: of what was said the sentences that decide something, the newest that fit."""

    def request(self) -> dict[str, Any]:
        """The summary stands before the window."""
        room = int(self.chars * SHARE)
        window = self._window(self.chars - 200 - room)
        lines: list[str] = []
        for number, (message, _) in enumerate(reversed(self.said[: len(self.said) - len(window)])):
            if message["role"] == "tool" or not message["content"]:
                continue
            for sentence in re.split(r"(?<=[.!?]) ", message["content"]):
                if DECIDING.search(sentence):
                    line = f"[{len(self.said) - len(window) - number}] {sentence}"
                    room -= len(line) + 4
                    lines.append(line)
            if room < 400:
                break
        fields = {"role": "user", "content": "Summary so far:\n\n" + "\n\n".join(lines[::-1])}
        return {"messages": [self.system, fields, *window]}


class Bm25(Rival):
    """A window, and the passages of what left it that answer the last message best, by BM25 over stems."""

    def __init__(self, budget: int, system: str) -> None:
        super().__init__(budget, system)
        self._postings = Postings()
        self._passages: list[tuple[int, str]] = [(0, "")]

    def _add(self, message: dict[str, Any]) -> None:
        super()._add(message)
        for passage in windows(message["content"] or ""):
            if passage.strip():
                self._postings.add(len(self._passages), passage)
                self._passages.append((len(self.said) - 1, passage))

    def request(self) -> dict[str, Any]:
        """The passages stand before the last message of the user, oldest first."""
        room = int(self.chars * SHARE)
        window = self._window(self.chars - 200 - room)
        first = len(self.said) - len(window)
        asked = next((m["content"] for m, _ in reversed(self.said) if m["role"] == "user"), "")
        matches = self._postings.matches(
            dict.fromkeys(terms(asked), 1.0), lambda value: self._passages[value][0] < first
        )
        chosen: list[int] = []
        for entry, _ in sorted(matches.items(), key=lambda item: (-item[1].score, -item[0])):
            length = len(json.dumps(self._passages[entry][1], ensure_ascii=False)) + 12
            if length <= room:
                room -= length
                chosen.append(entry)
            elif room < 400:
                break
        texts = [
            f"[{self._passages[each_chosen][0]}] {self._passages[each_chosen][1]}" for each_chosen in sorted(chosen)
        ]
        fields = {"role": "user", "content": "From earlier:\n\n" + "\n\n".join(texts)}
        at = next((n for n in range(len(window) - 1, -1, -1) if window[n]["role"] == "user"), 0)
        return {"messages": [self.system, *window[:at], fields, *window[at:]]}


RIVALS = {"window": Rival, "window halved": Halved, "window+summary": Summary, "window+bm25": Bm25}
