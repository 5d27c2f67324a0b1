"""What the text before the cursor could go on with: keywords as the parser takes them, names as the store has them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from vmstore.core.page import LinkKind
from vmstore.errors import VmstoreError
from vmstore.shell.vmql import favourites
from vmstore.shell.vmql.commands import COMMANDS
from vmstore.shell.vmql.desk import Desk
from vmstore.shell.vmql.modes import MODES
from vmstore.shell.vmql.script import MARKS, PLAIN, pieces
from vmstore.shell.vmql.settings import AUTO, NAMES, SETTINGS
from vmstore.shell.vmql.tour import quoted
from vmstore.vm.policies.registry import names as policies
from vmstore.vm.settings import Settings
from vmstore.vmql.catalog import DESCRIBED, RELATIONS
from vmstore.vmql.complete import Expect, completions
from vmstore.vmql.expected import SPOKEN
from vmstore.vmql.functions import AGGREGATES
from vmstore.vmql.relation import Relation
from vmstore.vmql.tables import load

MOST = 50  # names of one kind
BARE = re.compile(r"\d*[^\W\d]\w*([.-]\w+)*")


class Candidate(NamedTuple):
    """A way to go on: its text, how many characters before the cursor it takes the place of, what it is."""

    text: str
    replaces: int
    about: str = ""


class Completer:
    """Candidates at a desk."""

    def __init__(self, desk: Desk) -> None:
        words = (*load().fixed, *(word for pair in SPOKEN.values() for word in pair.split()))
        self.keywords = frozenset(word for word in words if word.isalpha())
        self._desk = desk

    def candidates(self, before: str) -> list[Candidate]:
        """What the text before the cursor could go on with, the likeliest first; nothing where nobody knows."""
        last = [*pieces(before)][-1:]
        if last and last[0].command and last[0].text not in PLAIN:
            return [] if before.endswith("\n") else _of_command(self._desk, last[0].text + _blank(before))
        statement = last[0].text if last and not last[0].closed else ""
        with contextlib.suppress(VmstoreError):
            return self._of_statement(statement)
        return []

    def _of_statement(self, statement: str) -> list[Candidate]:
        expect = completions(statement)
        replaces = len(statement) - expect.start
        begun = expect.prefix.casefold()
        found = (Candidate(text, replaces, about) for text, about in self._ways(expect))
        return list(dict.fromkeys(one for one in found if one.text.strip("'").casefold().startswith(begun)))

    def _ways(self, expect: Expect) -> Iterator[tuple[str, str]]:
        """What can stand here, with what it is: names and values before keywords."""
        for kind in expect.names:
            yield from self._named(kind, expect)
        if "text" in expect.values and expect.quoted and "value" not in expect.names:
            yield from self._values(expect)
        for keyword in expect.keywords:
            yield keyword, "keyword"

    def _named(self, kind: str, expect: Expect) -> Iterator[tuple[str, str]]:
        """The names of one kind, with what they are."""
        relation = _relation(expect)
        if kind == "column" and relation is not None:
            yield from ((field.name, field.meaning) for field in relation.fields.values())
        elif kind == "function":
            yield from ((f"{name}(", one.meaning) for name, one in AGGREGATES.items())
        elif kind == "value":
            yield from self._values(expect)
        elif kind in NAMED:
            yield from self._asked(NAMED[kind], expect, kind)
        elif kind in FIXED:
            yield from ((name, kind) for name in FIXED[kind])

    def _values(self, expect: Expect) -> Iterator[tuple[str, str]]:
        """What a column can hold: the words of an enumeration, or what the store has."""
        if (expect.statement, expect.column) == ("REPLAY", "policy"):
            yield from ((quoted(name) if expect.quoted else name, "policy") for name in policies())
        relation = _relation(expect)
        field = None if relation is None or expect.column is None else relation.fields.get(expect.column)
        if relation is None or field is None:
            return
        if field.form.words is not None:
            yield from ((quoted(one.word) if expect.quoted else one.word, field.name) for one in field.form.words)
        elif field.form.type == "text" and not field.asked and relation.name in RELATIONS.keys() - DEAR:
            statement = f"{relation.name} {field.name} WHERE {field.name} LIKE $begins BY {field.name} LIMIT {MOST}"
            yield from self._asked(statement, expect, field.name)

    def _asked(self, statement: str, expect: Expect, about: str) -> Iterator[tuple[str, str]]:
        """Names that the store answers a statement with."""
        found = self._desk.store.query(statement, session=self._desk.settings.session, begins=f"{expect.prefix}%")
        for name, *_ in found:
            if name is not None:
                yield name if BARE.fullmatch(name) and not expect.quoted else quoted(name), about


def _relation(expect: Expect) -> Relation | None:
    """The relation whose columns are meant."""
    statement = expect.statement or ""
    return DESCRIBED.get(ROWS_OF.get(statement, statement))


DEAR = frozenset(("METRICS",))  # every session is folded anew for each answer
# By kind of name: the statement whose answer they are.
NAMED = {
    "session": f"SESSIONS session WHERE session LIKE $begins LIMIT {MOST}",
    "user": f"SESSIONS user WHERE user LIKE $begins BY user LIMIT {MOST}",
    "page": f"PAGES hint WHERE hint LIKE $begins ORDER BY position DESC LIMIT {MOST}",
}
ROWS_OF = {"SOURCES": "LINEAGE", "DERIVED": "LINEAGE", "WATCH": "MUTATIONS"}
FIXED = {
    "kind of link": tuple(kind.word for kind in LinkKind),
    "setting": NAMES,
    "choice": ("policy", "budget", *Settings.__struct_fields__),
    "subject": ("relations", "functions", SETTINGS, *NAMES),
    "relation": tuple(DESCRIBED),
}


def _of_command(desk: Desk, text: str) -> list[Candidate]:
    """What a command could go on with: its name, then what it takes."""
    name, blank, argument = text.partition(" ")
    if not blank:
        return [
            Candidate(f"\\{one.name}", len(name), one.summary)
            for one in COMMANDS.values()
            if one.name.startswith(name.lstrip("".join(MARKS)))
        ]
    takers: dict[str, Callable[[], list[str]]] = {
        "mode": lambda: [AUTO, *MODES],
        "last": lambda: [AUTO, *MODES],
        "timing": lambda: ["on", "off"],
        "pager": lambda: ["on", "off"],
        "session": lambda: [info.session for info in desk.store.sessions()],
        "fav": lambda: [one for one, _ in favourites.every()],
        "forget": lambda: [one for one, _ in favourites.every()],
        "help": lambda: list(COMMANDS),
        "read": lambda: _paths(argument),
        "output": lambda: _paths(argument),
        "once": lambda: _paths(argument),
        "open": lambda: _paths(argument),
    }
    found = takers.get(name.lstrip("".join(MARKS)), list[str])()
    return [Candidate(one, len(argument)) for one in found if one.startswith(argument)]


def _paths(argument: str) -> list[str]:
    folder, slash, begun = argument.rpartition("/")
    with contextlib.suppress(OSError):
        found = sorted(Path(folder + slash or ".").expanduser().iterdir())[:MOST]
        names = [one.name + "/" * one.is_dir() for one in found if one.name.startswith(begun)]
        return [f"{folder}{slash}{name}" for name in names]
    return []


def _blank(before: str) -> str:
    """The blanks at the end, which say that a command's name is finished."""
    return before[len(before.rstrip(" ")) :]
