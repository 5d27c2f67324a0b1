"""Completions of a VMQL statement: keywords, columns, words of enumerations, and names in the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vmstore.core.page import LinkKind
from vmstore.vm.kernel.settings import KernelSettings
from vmstore.vm.policies.registry import names as policies
from vmstore.vmql.diagnostics.complete import Expect, completions
from vmstore.vmql.relations.catalog import DESCRIBED, RELATIONS, field_of
from vmstore.vmql.relations.catalog import NAMED as NAMING
from vmstore.vmql.relations.relation import Field, Relation
from vmstore.vmql.scalars import FUNCTIONS
from vmstore.vmql.syntax.printer import quoted

MOST = 50  # names of one kind
BARE = re.compile(r"\d*[^\W\d]\w*([.-]\w+)*")

KEYWORDS = {
    "SEARCH": "pages by their words, best first",
    "CONTEXT": "what a call was sent",
    "DIFF": "what came, went and changed between two contexts or sessions",
    "HISTORY": "what happened to a page",
    "SOURCES": "what a page was made from",
    "DERIVED": "what was made from a page",
    "WHY": "why a page is, or is not, in a context",
    "VERIFY": "whether what is stored matches its hashes",
    "FORK": "a session that goes on from a moment of another",
    "REPLAY": "what another policy or budget would have done",
    "WATCH": "mutations as they come",
    "EXPLAIN": "how a statement is answered",
    "DESCRIBE": "the columns of a relation",
    "SHOW": "the relations, the functions or the settings",
    "SET": "a setting of the shell",
    "WHERE": "only rows that meet a condition",
    "ORDER BY": "in which order",
    "LIMIT": "at most so many rows",
    "AS OF": "as it stood at a moment",
    "IN SESSION": "of one session",
    "ACROSS SESSIONS": "of all sessions",
    "BY": "one row a group",
    "SINCE": "after a moment",
    "UNTIL": "up to a moment",
}
"""What keywords are for, where a menu shows them."""

Ask = Callable[[str, str], Iterable[tuple[Any, ...]]]
"""Answers a statement in which `$begins` stands for a pattern of LIKE."""


class Candidate(NamedTuple):
    """A way to go on: its text, how many characters before the cursor it takes the place of, what it is."""

    text: str
    replaces: int
    about: str = ""


class Candidates:
    """The ways a statement can continue. `settings` and `subjects` (of SHOW) belong to the shell that has settings.

    `before` are the columns that every relation has where many namespaces are asked.
    """

    def __init__(
        self,
        ask: Ask,
        settings: Sequence[str] = (),
        subjects: Sequence[str] = ("relations", "functions"),
        before: Sequence[Field] = (),
    ) -> None:
        self._ask = ask
        self._before = {field.name: field for field in before}
        self._fixed = {**FIXED, "setting": tuple(settings), "subject": tuple(subjects)}

    def of(self, statement: str) -> list[Candidate]:
        """Candidates to continue the text up to the cursor, the likeliest first."""
        expect = completions(statement)
        replaces = len(statement) - expect.start
        begun = expect.prefix.casefold()
        found = (Candidate(text, replaces, about) for text, about in self._ways(expect))
        return list(
            dict.fromkeys(candidate for candidate in found if candidate.text.strip("'").casefold().startswith(begun))
        )

    def _ways(self, expect: Expect) -> Iterator[tuple[str, str]]:
        """Words that can stand here, with their kind: names and values before keywords."""
        for kind in expect.names:
            yield from self._named(kind, expect)
        if "text" in expect.values and expect.quoted and "value" not in expect.names:
            yield from self._values(expect)
        for keyword in expect.keywords:
            relation = RELATIONS.get(keyword)
            yield keyword, KEYWORDS.get(keyword, "keyword") if relation is None else relation.meaning

    def _named(self, kind: str, expect: Expect) -> Iterator[tuple[str, str]]:
        """The names of one kind, with what they are."""
        relation = _relation(expect)
        if kind == "column" and relation is not None:
            yield from ((field.name, field.meaning) for field in (*self._before.values(), *relation.fields.values()))
            yield from _beside(relation, expect.prefix)
        elif kind == "function":
            yield from ((f"{name}(", function.meaning) for name, function in FUNCTIONS.items())
        elif kind == "value":
            yield from self._values(expect)
        elif kind in NAMED:
            yield from self._asked(NAMED[kind], expect, kind)
        elif kind in self._fixed:
            yield from ((name, kind) for name in self._fixed[kind])

    def _values(self, expect: Expect) -> Iterator[tuple[str, str]]:
        """Values of a column: the words of an enumeration, or those the store has."""
        if (expect.statement, expect.column) == ("REPLAY", "policy"):
            yield from ((quoted(name) if expect.quoted else name, "policy") for name in policies())
        relation = _relation(expect)
        field = None if relation is None or expect.column is None else field_of(relation, expect.column)
        if relation is not None and expect.column in self._before:
            statement = f"SESSIONS {expect.column} WHERE {expect.column} LIKE $begins BY {expect.column} LIMIT {MOST}"
            yield from self._asked(statement, expect, expect.column)
        if relation is None or field is None:
            return
        if field.form.words is not None:
            yield from ((quoted(word.word) if expect.quoted else word.word, field.name) for word in field.form.words)
        elif (
            field.form.type == "text"
            and not field.asked
            and field.name == expect.column
            and relation.name in RELATIONS.keys() - DEAR
        ):
            statement = f"{relation.name} {field.name} WHERE {field.name} LIKE $begins BY {field.name} LIMIT {MOST}"
            yield from self._asked(statement, expect, field.name)

    def _asked(self, statement: str, expect: Expect, about: str) -> Iterator[tuple[str, str]]:
        """Names that the store answers a statement with."""
        for name, *_ in self._ask(statement, f"{expect.prefix}%"):
            if name is not None:
                yield name if BARE.fullmatch(name) and not expect.quoted else quoted(name), about


def _beside(relation: Relation, prefix: str) -> Iterator[tuple[str, str]]:
    """The columns of what the column before a dot names: `page.type`."""
    name, dot, _ = prefix.partition(".")
    naming = relation.fields.get(name.lower()) if dot else None
    beside = None if naming is None else NAMING.get(naming.form.name)
    if beside is not None:
        yield from ((f"{name}.{field.name}", field.meaning) for field in beside.fields.values())


def _relation(expect: Expect) -> Relation | None:
    """The relation whose columns are meant."""
    statement = expect.statement or ""
    return DESCRIBED.get(ROWS_OF.get(statement, statement))


DEAR = frozenset(("METRICS", "RECALLS"))  # every session is folded again for each answer, or its log read
# By kind of name: the statement whose answer they are.
NAMED = {
    "session": f"SESSIONS session WHERE session LIKE $begins LIMIT {MOST}",
    "user": f"SESSIONS user WHERE user LIKE $begins BY user LIMIT {MOST}",
    "page": f"PAGES hint WHERE hint LIKE $begins ORDER BY position DESC LIMIT {MOST}",
}
ROWS_OF = {"SOURCES": "LINEAGE", "DERIVED": "LINEAGE", "PATH": "LINEAGE", "WATCH": "MUTATIONS"}
FIXED = {
    "kind of link": tuple(kind.word for kind in LinkKind),
    "choice": ("policy", "budget", *KernelSettings.__struct_fields__),
    "relation": tuple(DESCRIBED),
}
