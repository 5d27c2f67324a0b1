"""What the text before the cursor could go on with: keywords as the parser takes them, names as the store has them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vmstore.errors import VmstoreError
from vmstore.shell.vmql import favourites
from vmstore.shell.vmql.commands import COMMANDS
from vmstore.shell.vmql.output.formats import MODES
from vmstore.shell.vmql.repl import Repl
from vmstore.shell.vmql.script import MARKS, PLAIN, pieces
from vmstore.shell.vmql.settings import AUTO, NAMES, SETTINGS
from vmstore.store.completions import Candidate, Candidates
from vmstore.store.fleet.fleet import Fleet
from vmstore.vmql.diagnostics.lookahead import SPOKEN
from vmstore.vmql.fleet.relation import PLACES
from vmstore.vmql.syntax.grammar_tables import load

MOST = 50  # paths


class Completer:
    """Candidates at a desk."""

    def __init__(self, desk: Repl) -> None:
        words = (*load().fixed, *(word for pair in SPOKEN.values() for word in pair.split()))
        self.keywords = frozenset(word for word in words if word.isalpha())
        self._desk = desk
        before = [PLACES[name] for name in desk.store.columns] if isinstance(desk.store, Fleet) else []
        self._candidates = Candidates(self._ask, NAMES, ("relations", "functions", SETTINGS, *NAMES), before)

    def candidates(self, before: str) -> list[Candidate]:
        """What the text before the cursor could go on with, the likeliest first; nothing where nobody knows."""
        last = [*pieces(before)][-1:]
        if last and last[0].command and last[0].text not in PLAIN:
            return [] if before.endswith("\n") else _of_command(self._desk, last[0].text + _blank(before))
        statement = last[0].text if last and not last[0].closed else ""
        with contextlib.suppress(VmstoreError):
            return self._candidates.of(statement)
        return []

    def _ask(self, statement: str, begins: str) -> Iterable[tuple[Any, ...]]:
        store = self._desk.store
        if isinstance(store, Fleet):
            return store.query(statement, begins=begins)
        return store.query(statement, session=self._desk.settings.session, begins=begins)


def _of_command(desk: Repl, text: str) -> list[Candidate]:
    """What a command could go on with: its name, then what it takes."""
    name, blank, argument = text.partition(" ")
    if not blank:
        return [
            Candidate(f"\\{entry.name}", len(name), entry.summary)
            for entry in COMMANDS.values()
            if entry.name.startswith(name.lstrip("".join(MARKS)))
        ]
    if name.lstrip("".join(MARKS)) == "sql":
        return _of_sql(argument)
    takers: dict[str, Callable[[], list[str]]] = {
        "mode": lambda: [AUTO, *MODES],
        "last": lambda: [AUTO, *MODES],
        "timing": lambda: ["on", "off"],
        "pager": lambda: ["on", "off"],
        "session": lambda: [] if isinstance(desk.store, Fleet) else [info.session for info in desk.store.sessions()],
        "fav": lambda: [entry for entry, _ in favourites.every()],
        "forget": lambda: [entry for entry, _ in favourites.every()],
        "help": lambda: list(COMMANDS),
        "read": lambda: _paths(argument),
        "output": lambda: _paths(argument),
        "once": lambda: _paths(argument),
        "open": lambda: _paths(argument),
    }
    found = takers.get(name.lstrip("".join(MARKS)), list[str])()
    return [Candidate(entry, len(argument)) for entry in found if entry.startswith(argument)]


def _of_sql(text: str) -> list[Candidate]:
    """Tables and their columns whose name begins as the last word does."""
    from vmstore.vmql.execution.sql_tables import TABLES

    word = re.split(r"\W", text)[-1].lower()
    named = [relation for name, relation in TABLES.items() if re.search(rf"\b{name}\b", text, re.IGNORECASE)]
    columns = {name: field.meaning for relation in named for name, field in relation.fields.items()}
    tables = {name: relation.meaning for name, relation in TABLES.items()}
    known = {**columns, **tables}
    return [Candidate(name, len(word), known[name]) for name in known if name.startswith(word)]


def _paths(argument: str) -> list[str]:
    folder, slash, begun = argument.rpartition("/")
    with contextlib.suppress(OSError):
        entries = sorted(Path(folder + slash or ".").expanduser().iterdir())[:MOST]
        names = [entry.name + "/" * entry.is_dir() for entry in entries if entry.name.startswith(begun)]
        return [f"{folder}{slash}{name}" for name in names]
    return []


def _blank(before: str) -> str:
    """The blanks at the end, which say that a command's name is finished."""
    return before[len(before.rstrip(" ")) :]
