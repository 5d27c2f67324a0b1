"""What recall is measured with: texts as of a moment, questions about them, and the texts that answer each.

LoCoMo (CC BY-NC) and the sessions of coding agents lie outside the repository, in `../shared/data`; who has them
not measures nothing. What is asked of the sessions is ours, in `coding_recalls.txt`: a question a line, with the
texts that answer it named by the beginning of their SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import vmstore
from vmstore.relevance.texts import Texts

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT.parent / "shared" / "data"
CODING = Path(__file__).with_name("coding_recalls.txt")
LINE = re.compile(r"D\d+:\d+")
HASH_CHARS = 12
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
SCOPES = {
    "pi": ("pi/before-compaction.jsonl",),
    "demo": ("vmstore/shell/demo.jsonl",),
    "swe": ("swe-agent/i_got_id_demo.traj", "swe-agent/katy.traj", "swe-agent/marshmallow-1867_function_calling.traj"),
    "tau": ("tau-bench/airline_even_tasks.json",),
    "claude": ("claude-code/edge_cases.jsonl", "claude-code/representative_messages.jsonl"),
}


class Recall(NamedTuple):
    """A question, the rows that answer it, what kind it is; whether weights may be learned from it."""

    question: str
    rows: tuple[int, ...]
    category: str
    tuned: bool = True


class Yardstick(NamedTuple):
    """Some texts and what is asked of them."""

    name: str
    texts: Texts
    recalls: list[Recall]


def locomo(path: Path | None = None, together: bool = False, observations: bool = False) -> list[Yardstick]:
    """Each conversation as of its last line, or all in one; asked the dataset's questions, or what it observed."""
    path = path or next((DATA / "locomo").glob("*.json"))
    store = vmstore.memory_store()
    store.import_file(path)
    samples = json.loads(path.read_text("utf-8"))
    moments, lines = [], []
    for sample in samples:
        session = store.session(sample["sample_id"])
        pages = {page.hint: page for page in session.pages() if page.hint and LINE.fullmatch(page.hint)}
        end = max(page.position for page in pages.values())
        moments.append((session._lane(), end))
        lines.append({hint: page.page for hint, page in pages.items()})
    asked = _observed if observations else _asked
    if together:
        recalls: list[Recall] = []
        texts = store._ns.texts(moments)
        for number, (sample, known) in enumerate(zip(samples, lines, strict=True)):
            recalls += _recalls(asked(sample), _rows(texts, known, number))
        return [Yardstick("all conversations", texts, recalls)]
    yardsticks = []
    for sample, moment, known in zip(samples, moments, lines, strict=True):
        texts = store._ns.texts([moment])
        yardsticks.append(Yardstick(sample["sample_id"], texts, _recalls(asked(sample), _rows(texts, known, 0))))
    return yardsticks


def _rows(texts: Any, known: dict[str, str], lane: int) -> dict[str, int]:
    """The row of each line."""
    every = np.arange(texts.count)
    pages, lanes = texts.columns(every).page.tolist(), texts.lanes(every).tolist()
    rows = {f"p{page}": row for row, (page, place) in enumerate(zip(pages, lanes, strict=True)) if place == lane}
    return {hint: rows[page] for hint, page in known.items()}


def _recalls(asked: Iterable[tuple[str, str, str]], rows: dict[str, int]) -> list[Recall]:
    recalls = []
    for question, evidence, category in asked:
        known = {rows[line] for line in LINE.findall(evidence) if line in rows}
        if known:
            recalls.append(Recall(question, tuple(sorted(known)), category))
    return recalls


def _asked(sample: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for fields in sample["qa"]:
        yield fields["question"], " ".join(map(str, fields.get("evidence") or ())), CATEGORIES[fields["category"]]


def _observed(sample: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for speakers in (sample.get("observation") or {}).values():
        for entries in speakers.values():
            for text, *rest in entries:
                yield text, " ".join(map(str, rest)), "statement"


def coding() -> list[Yardstick]:
    """The sessions of coding agents, those of one kind together; every second question is held out."""
    asked: dict[str, list[tuple[str, list[str], bool]]] = {name: [] for name in SCOPES}
    for number, line in enumerate(CODING.read_text("utf-8").splitlines()):
        scope, question, hashes = line.split("|")
        asked[scope].append((question, hashes.split(","), number % 2 == 0))
    yardsticks = []
    for name, files in SCOPES.items():
        store = vmstore.memory_store()
        for file in files:
            store.import_file(ROOT / file if file.startswith("vmstore") else DATA / file)
        sessions = [
            session.session for session in store.sessions() if name != "tau" or session.session.endswith("trial0")
        ]
        moments = [(session._lane(), session.info().position) for session in map(store.session, sessions)]
        texts = store._ns.texts(moments)
        rows: dict[str, list[int]] = {}
        for row, text in enumerate(texts.texts(np.arange(texts.count))):
            rows.setdefault(hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS], []).append(row)
        recalls = [
            Recall(
                question, tuple(sorted({row for each_hash in hashes for row in rows.get(each_hash, ())})), name, tuned
            )
            for question, hashes, tuned in asked[name]
        ]
        yardsticks.append(Yardstick(name, texts, [recall for recall in recalls if recall.rows]))
    return yardsticks


def with_typo(question: str, chance: random.Random) -> str:
    """A question with one letter of a longer word missing, doubled, or changed with its neighbour."""
    words = list(re.finditer(r"[a-z]{5,}", question))
    if not words:
        return question
    word = chance.choice(words)
    at = chance.randrange(word.start() + 1, word.end() - 1)
    kind = chance.randrange(3)
    if kind == 0:
        return question[:at] + question[at + 1 :]
    if kind == 1:
        return question[:at] + question[at] + question[at:]
    return question[:at] + question[at + 1] + question[at] + question[at + 2 :]
