"""A statement and its canonical text say the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from vmstore.testing.queries import reads_back, statements
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax import printer
from vmstore.vmql.syntax.nodes import Statement, Word
from vmstore.vmql.syntax.printer import named, show


@settings(max_examples=5 * settings.default.max_examples)
@given(statements())
def test_every_statement_reads_back(statement: Statement) -> None:
    """The canonical text of any statement parses to that statement, and is its own canonical text."""
    reads_back(statement)


def test_a_printer_that_forgets_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A printer that leaves out a parenthesis does not read back."""
    statement = parse("PAGES WHERE (a = 1 OR b = 2) AND c = 3")
    whole = printer.show
    monkeypatch.setattr(printer, "show", lambda node, within=0: whole(node))
    with pytest.raises(AssertionError, match="PAGES WHERE a = 1 OR b = 2 AND c = 3"):
        reads_back(statement)


def test_one_way_to_write_each() -> None:
    """Case, blanks, comments, the order of clauses and needless parentheses are not part of what is said."""
    loose = "pages  limit 5 -- five\n order by tokens asc where ((a = 1)) and not b like 'x%' since turn 3 ;"
    assert show(parse(loose)) == "PAGES SINCE TURN 3 WHERE a = 1 AND NOT b LIKE 'x%' ORDER BY tokens LIMIT 5"


@pytest.mark.parametrize("name", ["planning-220", "a b", "p17@turn:3", "it's", "", "über", "2026-01-01", "a/b", "a--b"])
def test_a_name_is_quoted_where_it_must_be(name: str) -> None:
    """A name of any spelling, as the printer writes it, names that page."""
    page = parse(f"HISTORY OF {named(name)}").page  # type: ignore[union-attr]
    assert (".".join(page.path) if isinstance(page, Word) else page.value) == name  # type: ignore[union-attr]
