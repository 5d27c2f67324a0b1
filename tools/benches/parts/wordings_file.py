"""A story of a file that is not in the repository: decisions, reversals and questions in somebody else's words.

A JSON object with `turns`, each a `user` text and the `assistant`'s reply, and `topics`: what was `decided` and perhaps
`reversed` (values, reasons), what was named and `never_decided`, and `questions` of a kind: `current`, `paraphrase`,
`reason` or `earlier_and_why`, with the strings of which a text that answers has one.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benches.parts.tale import Deed

RIGHT, WRONG = "right", "wrong"
CLAIMS_FROM = 1e9  # a claim is read before all that was said
CLAIM = re.compile(r"Decision: (.*)", re.DOTALL)
Line = tuple[float, str]


class Sought(NamedTuple):
    """A question of the file, and the strings that texts are read by."""

    text: str
    wording: str
    same: bool
    answers: tuple[str, ...]
    then: tuple[str, ...] | None
    """For what held before and why: the strings of the reason; None where what holds now is asked for."""
    stale: tuple[str, ...]
    """What held before and no longer does."""
    never: tuple[str, ...]
    """What was named for it and never decided."""
    values: tuple[str, ...]
    """All that was ever decided of it."""

    def read(self, lines: Sequence[Line]) -> str | None:
        """What a reader of some texts answers: rightly, wrongly, or nothing; of two statements the later holds."""
        lines = [_placed(number, line) for number, line in enumerate(lines) if self.text not in line[1]]
        if self.then is not None:
            about = [text for _, text in lines if _has(text, self.values)]
            reasoned = any(_has(text, self.then) for text in about)
            return RIGHT if reasoned and any(_has(text, self.answers) for text in about) else None
        now = max((at for at, text in lines if _has(text, self.answers)), default=None)
        past = [at for at, text in lines if _has(text, self.stale) and not _has(text, self.answers)]
        named = [at for at, text in lines if _has(text, self.never) and not _has(text, self.answers)]
        if now is None:
            return WRONG if past or named else None
        # Who reads what was only thought about knows that; a claim of it is another matter.
        wrong = [*past, *(at for at in named if at >= CLAIMS_FROM)]
        return RIGHT if max(wrong, default=0.0) <= now else WRONG


class FileTale(NamedTuple):
    """The deeds in order and the questions."""

    deeds: list[Deed]
    questions: list[Sought]


def file_tale(path: Path, seed: int, most: int | None = None) -> FileTale:
    """The story of a file, its questions in the order of a seed; at most so many of them."""
    read = json.loads(path.read_text("utf-8"))
    deeds = [Deed(role, (turn[role],)) for turn in read["turns"] for role in ("user", "assistant")]
    questions = [_sought(topic, question) for topic in read["topics"] for question in topic["questions"]]
    random.Random(seed).shuffle(questions)
    return FileTale(deeds, questions[:most])


def _sought(topic: dict[str, Any], fields: dict[str, Any]) -> Sought:
    changed = topic["reversed"]
    values = (*topic["decided"]["value"], *(changed["value"] if changed else ()))
    asks_then = fields["kind"] in ("reason", "earlier_and_why")
    # What asks only for the reason is answered by it beside any value of the topic.
    answers = values if fields["kind"] == "reason" else tuple(fields["answer_any"])
    reasons = tuple(fields.get("reason_any") or ()) if asks_then else None
    wrong = tuple(fields["stale"])
    never = () if asks_then else (topic["never_decided"],)
    return Sought(
        fields["text"],
        fields["kind"],
        fields["kind"] != "paraphrase",
        answers,
        reasons,
        wrong if changed else (),
        never,
        values,
    )


def _placed(number: int, line: Line) -> Line:
    claim = CLAIM.search(line[1])
    return line if claim is None else (CLAIMS_FROM + number, claim[1])


def _has(text: str, strings: Iterable[str]) -> bool:
    """Whether one of some strings stands in a text, as words of their own."""
    return any(re.search(rf"(?<!\w){re.escape(each_text)}(?!\w)", text, re.IGNORECASE) for each_text in strings)
