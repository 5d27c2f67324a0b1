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
    for each_line in lines:
        if "pages" not in each_line:
            asked.setdefault(each_line["file"], []).append(each_line)
    actual_coding_pages = coding_pages([line for line in lines if "pages" in line], folder)
    for file, questions in asked.items():
        store = vmstore.memory_store()
        store.import_file(folder / file)
        sessions = [store.session(session.session) for session in store.sessions()]
        texts = store._ns.texts([(session._lane(), session.info().position) for session in sessions])
        pages = [_plain(_decoded(text)) for text in texts.texts(np.arange(texts.count))]
        messages = _messages(folder / file)
        recalls = [_recall(question, pages, messages) for question in questions]
        actual_coding_pages.append((Yardstick(file, texts, []), recalls))
    return actual_coding_pages


def coding_pages(questions: Sequence[dict[str, Any]], folder: Path = DATA) -> list[tuple[Yardstick, list[FileRecall]]]:
    """Each session with what is asked of it, where a question names the pages of which each alone answers."""
    stores: dict[str, vmstore.Store] = {}
    asked: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for question in questions:
        asked.setdefault((question["file"], question["session"]), []).append(question)
    actual_rows = []
    for (file, name), some in asked.items():
        if file not in stores:
            stores[file] = vmstore.memory_store()
            stores[file].import_file(folder / file)
        session = stores[file].session(name)
        texts = stores[file]._ns.texts([(session._lane(), session.info().position)])
        rows = {f"p{page}": row for row, page in enumerate(texts.columns(np.arange(texts.count)).page.tolist())}
        groups = [(record["question"], frozenset(rows[page] for page in record["pages"])) for record in some]
        actual_rows.append((Yardstick(name, texts, []), [FileRecall(asks, (rows,), (rows,)) for asks, rows in groups]))
    return actual_rows


def _recall(asked: dict[str, Any], pages: Sequence[str], messages: Sequence[str]) -> FileRecall:
    groups, same_words = [], []
    for record in asked["evidence"]:
        quote = _plain(record["quote"])
        rows = frozenset(_holding(pages, quote, messages[record["ordinal"]]))
        if not rows:
            raise ValueError(
                f"{asked['id']}: no text of {asked['file']} holds {record['quote']!r} of {record['ordinal']}"
            )
        groups.append(rows)
        same_words.append(rows.union(*(_holding(pages, quote, messages[at]) for at in record["also_at"])))
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
        for each_value in value:
            yield from _strings(each_value)
    elif isinstance(value, dict):
        for each_value in value.values():
            yield from _strings(each_value)


def _plain(text: str) -> str:
    return " ".join(text.split())
