"""Whatever is asked, the answer is nodes or a query error."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from vmstore.testing import queries
from vmstore.vmql.diagnostics.complete import completions
from vmstore.vmql.parse import parse, statements
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import Statement
from vmstore.vmql.syntax.printer import show

FRAGMENTS = (
    *("PAGES", "WHERE", "AS OF", "AS", "OF", "IN", "SESSION", "BETWEEN", "AND", "OR", "NOT", "(", ")", ",", ";"),
    *("==", "<>", "!=", "=", "'a'", "'", '"a"', '"', "--", "\n", "42", "-1", "0.5", "1e9", "$p", ":p", "*"),
    *("SELECT", "FROM", "count", "count(", "LIMIT", "0,5", "ORDER BY", "TURN", "CALL", "HEAD", "TIME", "CONTEXT"),
    *("MATCHES", "LIKE", "IS", "NULL", "2026-01-01", "vm://a/b", "p17@turn:3", "é", "😀", "\u00a0", "{x}", "`"),
    *("&&", "[", "\u017f", "\u0131", "AT", "MUTATIONS", "WATCH", "FORK", "WHY", "EXPLAIN", "SET", "DIFF", "TO"),
)


def take(text: Any) -> None:
    """Reads a text each way there is; only a query error may come of it, and it can be shown."""
    try:
        read = parse(text)
        assert isinstance(read, Statement)
        assert parse(show(read)) == read
    except QueryError as error:
        assert error.code and str(error) and isinstance(error.pointed(), str)
        assert error.span.start <= error.span.end
    with contextlib.suppress(QueryError):
        list(statements(text))
    if isinstance(text, str):
        completions(text)


@settings(max_examples=5 * settings.default.max_examples)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12), st.sampled_from((" ", "", "\n")))
@example(["PAGES", "AS", "OF"], " ")
@example(["PAGES", "'"], " ")
def test_words_in_any_order_are_read_or_refused(words: list[str], joint: str) -> None:
    """Words and signs of VMQL and of other languages, in any order, are nodes or a query error."""
    take(joint.join(words))


@settings(max_examples=5 * settings.default.max_examples)
@given(queries.statements(), st.data())
def test_a_mutated_statement_is_read_or_refused(statement: Statement, data: st.DataObject) -> None:
    """A statement with parts cut out, doubled, swapped or replaced is nodes or a query error."""
    text = show(statement)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        piece = data.draw(st.sampled_from(("", text[start:end] * 2, *FRAGMENTS)))
        text = text[:start] + piece + text[end:]
    take(text)


@settings(max_examples=5 * settings.default.max_examples)
@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_text_and_any_bytes_are_read_or_refused(text: str | bytes) -> None:
    """Any text, and any bytes however they are decoded, are nodes or a query error."""
    take(text)
    if isinstance(text, bytes):
        take(text.decode("latin-1"))
        take(text.decode("utf-8", "surrogateescape"))


@settings(max_examples=2 * settings.default.max_examples)
@given(st.text(max_size=40))
def test_any_text_can_be_quoted(text: str) -> None:
    """Any text that can be stored can be asked for, in quotes."""
    asked = "SEARCH '" + text.replace("'", "''") + "'"
    try:
        assert parse(asked).query.value == text  # type: ignore[union-attr]
    except QueryError as error:
        assert error.code == "not-text"
