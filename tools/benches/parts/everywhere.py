"""All real sessions in one store, and what a person looks for there.

The looks are ours, in `tests/relevance/looks.jsonl`: what somebody would type, and the pages of which each alone is
what they want. They were written from the sessions before any of them was searched; every second one taught no weight.
The questions of LoCoMo and the coding recalls are asked of everything too, so that weights can be learned from them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import vmstore
from benches.parts.yardsticks import CATEGORIES, CODING, DATA, HASH_CHARS, LINE, ROOT, Recall, Yardstick
from vmstore.relevance.texts import Texts

LOOKS = ROOT / "tests" / "relevance" / "looks.jsonl"
KINDS = (".jsonl", ".json", ".af", ".traj")


class Everywhere(NamedTuple):
    """The texts of all sessions, and the row of each page."""

    texts: Texts
    rows: dict[tuple[str, str], int]
    """By session and page."""
    hints: dict[tuple[str, str], str]
    """By session and the name of a line in it, its page."""


def everywhere(folder: Path = DATA, questions: bool = False) -> Everywhere:
    """All sessions of a folder; with what LoCoMo says and asks of its own conversations only if `questions`."""
    store = vmstore.memory_store()
    for file in sorted(folder.rglob("*")):
        if file.suffix in KINDS:
            store.import_file(file)
    hints: dict[tuple[str, str], str] = {}
    names, moments = [], []
    for info in store.sessions():
        session = store.session(info.session)
        lines = {page.hint: page for page in session.pages() if page.hint and LINE.fullmatch(page.hint)}
        hints |= {(info.session, hint): page.page for hint, page in lines.items()}
        last = info.position if questions or not lines else max(page.position for page in lines.values())
        names.append(info.session)
        moments.append((session._lane(), last))
    texts = store._ns.texts(moments)
    every = np.arange(texts.count)
    places = zip(texts.lanes(every).tolist(), texts.columns(every).page.tolist(), strict=True)
    return Everywhere(texts, {(names[lane], f"p{page}"): row for row, (lane, page) in enumerate(places)}, hints)


def looks(there: Everywhere, held_out: bool, file: Path = LOOKS) -> Yardstick:
    """The half of the looks that taught no weight, or the other."""
    asked = (json.loads(line) for line in file.read_text("utf-8").splitlines())
    half = (look for look in asked if (look["half"] == "held") == held_out)
    recalls = [Recall(look["query"], _rows(there, look["pages"]), look["id"], not held_out) for look in half]
    return Yardstick(f"looks {'held' if held_out else 'open'}", there.texts, recalls)


def _rows(there: Everywhere, pages: dict[str, list[int]]) -> tuple[int, ...]:
    places = ((session, f"p{page}") for session, some in pages.items() for page in some)
    rows = tuple(sorted(there.rows[place] for place in places if place in there.rows))
    if not rows:
        raise ValueError(f"none of the pages {pages} has a text")
    return rows


def asked_everywhere(there: Everywhere, folder: Path = DATA) -> Yardstick:
    """The questions of LoCoMo and the coding recalls, asked of all sessions."""
    return Yardstick("everything", there.texts, [*_conversations(there, folder), *_coding(there)])


def _conversations(there: Everywhere, folder: Path) -> Iterable[Recall]:
    for sample in json.loads(next((folder / "locomo").glob("*.json")).read_text("utf-8")):
        name: str = sample["sample_id"]
        for fields in sample["qa"]:
            lines: list[str] = LINE.findall(" ".join(map(str, fields.get("evidence") or ())))
            pages = (there.hints.get((name, line)) for line in lines)
            rows = {there.rows[name, page] for page in pages if page}
            if rows and (kind := CATEGORIES[fields["category"]]) != "adversarial":
                yield Recall(fields["question"], tuple(sorted(rows)), kind)


def _coding(there: Everywhere) -> Iterable[Recall]:
    rows: dict[str, list[int]] = {}
    every: Any = np.arange(there.texts.count)
    for row, text in enumerate(there.texts.texts(every)):
        rows.setdefault(hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS], []).append(row)
    for number, line in enumerate(CODING.read_text("utf-8").splitlines()):
        scope, question, hashes = line.split("|")
        answering = {row for each in hashes.split(",") for row in rows.get(each, ())}
        if answering and scope != "demo":
            yield Recall(question, tuple(sorted(answering)), scope, number % 2 == 0)
