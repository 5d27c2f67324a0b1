"""Coding recalls of a file that is not in the repository: questions over agents' sessions by somebody else.

A line is a JSON object with `file` under `../shared/data`, `question` and `evidence`, a list of what has to be found:
`ordinal`, the number of the line in the file from 0 on (of a SWE-agent run, the index in its history), `quote`, words
of it, and `also_at`, other places that hold the same words. Or it has `session` and `pages`, its pages of which each
alone answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import vmstore
from benches.parts.yardsticks import DATA, Yardstick

HEAD_CHARS = 80


class FileRecall(NamedTuple):
    """A question; for each thing that answers it the rows that hold it, and those that hold the same words."""

    question: str
    groups: tuple[frozenset[int], ...]
    same_words: tuple[frozenset[int], ...]

    def share(self, rows: Sequence[int], same_words: bool = False) -> float:
        """How much of what answers is among some rows."""
        groups = self.same_words if same_words else self.groups
        return sum(not group.isdisjoint(rows) for group in groups) / len(groups)


def coding_file(path: Path, folder: Path = DATA) -> list[tuple[Yardstick, list[FileRecall]]]:
    """Each session with what is asked of it; ValueError where evidence is in no text of it."""
    asked: dict[str, list[dict[str, Any]]] = {}
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for one in lines:
        if "pages" not in one:
            asked.setdefault(one["file"], []).append(one)
    found = coding_pages([one for one in lines if "pages" in one], folder)
    for file, questions in asked.items():
        store = vmstore.memory_store()
        store.import_file(folder / file)
        sessions = [store.session(one.session) for one in store.sessions()]
        texts = store._ns.texts([(session._lane(), session.info().position) for session in sessions])
        pages = [_plain(_decoded(text)) for text in texts.texts(np.arange(texts.count))]
        messages = _messages(folder / file)
        recalls = [_recall(one, pages, messages) for one in questions]
        found.append((Yardstick(file, texts, []), recalls))
    return found


def coding_pages(questions: Sequence[dict[str, Any]], folder: Path = DATA) -> list[tuple[Yardstick, list[FileRecall]]]:
    """Each session with what is asked of it, where a question names the pages of which each alone answers."""
    stores: dict[str, vmstore.Store] = {}
    asked: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in questions:
        asked.setdefault((one["file"], one["session"]), []).append(one)
    found = []
    for (file, name), some in asked.items():
        if file not in stores:
            stores[file] = vmstore.memory_store()
            stores[file].import_file(folder / file)
        session = stores[file].session(name)
        texts = stores[file]._ns.texts([(session._lane(), session.info().position)])
        rows = {f"p{page}": row for row, page in enumerate(texts.columns(np.arange(texts.count)).page.tolist())}
        groups = [(one["question"], frozenset(rows[page] for page in one["pages"])) for one in some]
        found.append((Yardstick(name, texts, []), [FileRecall(asks, (rows,), (rows,)) for asks, rows in groups]))
    return found


def _recall(asked: dict[str, Any], pages: Sequence[str], messages: Sequence[str]) -> FileRecall:
    groups, same_words = [], []
    for one in asked["evidence"]:
        quote = _plain(one["quote"])
        rows = frozenset(_holding(pages, quote, messages[one["ordinal"]]))
        if not rows:
            raise ValueError(f"{asked['id']}: no text of {asked['file']} holds {one['quote']!r} of {one['ordinal']}")
        groups.append(rows)
        same_words.append(rows.union(*(_holding(pages, quote, messages[at]) for at in one["also_at"])))
    return FileRecall(asked["question"], tuple(groups), tuple(same_words))


def _holding(pages: Sequence[str], quote: str, message: str) -> Iterator[int]:
    """The rows with the words that are texts of a message."""
    return (row for row, text in enumerate(pages) if quote in text and text[:HEAD_CHARS] in message)


def _messages(file: Path) -> list[str]:
    """All that each message of a file says."""
    text = file.read_text("utf-8")
    read = json.loads(text)["history"] if file.suffix == ".traj" else map(json.loads, text.splitlines())
    return [_plain("\n".join(_strings(message))) for message in read]


def _decoded(text: str) -> str:
    """A page's text; of a call of a tool, which is kept as JSON, what its strings say."""
    if text.startswith("{"):
        with suppress(ValueError):
            return "\n".join(_strings(json.loads(text)))
    return text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)


def _plain(text: str) -> str:
    return " ".join(text.split())
