"""Every word of the vocabulary that a mutation may hold is written by something, or is called reserved."""

from __future__ import annotations

import ast
from enum import Enum
from pathlib import Path

import vmstore
from tests.prose import section, tables
from vmstore.core import decision, page
from vmstore.core.decision import Cause, Denial, FaultReason, Holder, Load, PromptPart, Recaller, Signal, Use
from vmstore.core.page import Fidelity, Level, LinkKind, Modality, Origin, PageType, Role, Slot, Standing, Status, Tier

SOURCE = Path(vmstore.__file__).parent
SPEC = SOURCE.parent / "specs" / "mutations.md"
DECIDED: tuple[type[Enum], ...] = (
    *(Use, Signal, Denial, Cause, Holder, Load, PromptPart, Recaller),
    *(Fidelity, Level, Modality, Origin, Role, Slot, Status, Tier),
)
"""What vmstore itself writes: each word by its name, somewhere."""

CHOSEN: tuple[type[Enum], ...] = (FaultReason, LinkKind, PageType, Standing)
"""What a person, a source or a model chooses: any word of them is taken at a door, by its name."""


ASKED_FOR = (ast.Compare, ast.Tuple, ast.Set, ast.List, ast.BinOp)
"""Where a word is looked for, not made."""


class Written(ast.NodeVisitor):
    """The words that a module names where a value is made: not where one is compared, listed or looked up by."""

    def __init__(self) -> None:
        self.words: set[tuple[str, str]] = set()

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ASKED_FOR):
            super().visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self.words.add((node.value.id, node.attr))
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for value in node.values:
            self.visit(value)

    def visit_match_case(self, node: ast.match_case) -> None:
        for statement in node.body:
            self.visit(statement)


def written() -> set[tuple[str, str]]:
    """Every word that something in the package writes."""
    actual = Written()
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] not in ("testing", "shell", "debug", "vmql"):
            actual.visit(ast.parse(path.read_text()))
    return actual.words


def reserved() -> set[tuple[str, str]]:
    """The words that the page on mutations calls reserved."""
    (rows,) = tables(section(SPEC.read_text(), "Reserved words"))
    return {(row[0].strip("`"), word.strip("` ")) for row in rows for word in row[1].split(",")}


def test_every_word_has_a_producer_or_is_reserved() -> None:
    """The words that nothing writes are those that are called reserved; that there is no signal is none of them."""
    made = written()
    words = [(words.__name__, word.name) for words in DECIDED for word in words if word is not Signal.NONE]
    assert {(name, word.lower()) for name, word in words if (name, word) not in made} == reserved()


def test_every_vocabulary_is_looked_at() -> None:
    """The vocabularies of pages and decisions are all held to this, those of content types and methods apart."""
    known = {
        words for module in (page, decision) for words in vars(module).values() if _is_words(words, module.__name__)
    }
    assert {words.__name__ for words in known} - {"Mime", "Method"} == {words.__name__ for words in (*DECIDED, *CHOSEN)}


def test_what_somebody_chooses_is_taken_by_its_name() -> None:
    """A vocabulary that persons choose from has a door that reads its words."""
    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert [words.__name__ for words in CHOSEN if f"{words.__name__}.of(" not in source] == []


def _is_words(words: object, module: str) -> bool:
    return isinstance(words, type) and issubclass(words, Enum) and words.__module__ == module and len(words) > 0
