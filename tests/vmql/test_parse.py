"""From text to nodes: scripts, spans, limits, and time in proportion to the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from tests import refusals
from tests.growing import grows_at_most
from vmstore.testing import queries
from vmstore.vmql.parse import TEXT_CHARS_MAX, parse, statements
from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.lalr import NESTING_MAX
from vmstore.vmql.syntax.printer import show


def refusal(text: Any) -> QueryError:
    """Why a text is refused."""
    with pytest.raises(QueryError) as refused:
        parse(text)
    return refused.value


# ---- scripts


def test_a_script_is_read_statement_by_statement() -> None:
    """Statements are divided by semicolons outside of quotes and comments, and each says where it stands."""
    text = "PAGES WHERE text = 'a;b' -- not; here\n LIMIT 5 ; CONTEXT ;\nSESSIONS -- the end\n"
    actual_statements = list(statements(text))
    assert [show(statement) for statement, _ in actual_statements] == [
        "PAGES WHERE text = 'a;b' LIMIT 5",
        "CONTEXT",
        "SESSIONS",
    ]
    assert [text[span.start : span.end] for _, span in actual_statements] == [text[:46], "CONTEXT", "SESSIONS"]


def test_what_stands_before_a_mistake_is_given_first() -> None:
    """A script with a mistake gives the statements before it, and then the mistake, placed in the script."""
    script = statements("PAGES; CALLS;\nTURNS WHER x = 1; LINKS")
    assert [show(next(script)[0]), show(next(script)[0])] == ["PAGES", "CALLS"]
    with pytest.raises(QueryError) as refused:
        next(script)
    assert refused.value.pointed() == "line 2: TURNS WHER x = 1; LINKS\n              ^^^^"


def test_a_semicolon_before_a_clause_is_told() -> None:
    """In a script a clause that begins a statement is told of the semicolon before it."""
    script = statements("PAGES;\nWHERE type = claim")
    next(script)
    with refusals.refused("stray-semicolon", QueryError) as refused:
        next(script)
    assert refused.value.span == (5, 6)


@pytest.mark.parametrize("text", ["", " \n", "-- nothing", "\t-- nothing\n"])
def test_nothing_is_no_statement(text: str) -> None:
    """A text of blanks and comments holds no statements, and is refused where one is asked."""
    assert list(statements(text)) == []
    assert refusal(text).code == "empty"


def test_a_repeated_text_is_not_read_again() -> None:
    """The same text gives the very same nodes."""
    assert parse("PAGES WHERE tokens > 77") is parse("PAGES WHERE tokens > 77")


# ---- spans


def nodes(node: Any) -> Iterator[s.Node]:
    """A node and all within it."""
    if isinstance(node, s.Node):
        yield node
        for field in node.__struct_fields__:
            yield from nodes(getattr(node, field))
    elif isinstance(node, tuple) and not isinstance(node, s.SourceSpan):
        for each in node:
            yield from nodes(each)


@settings(max_examples=5 * settings.default.max_examples)
@given(queries.statements())
def test_a_span_holds_what_its_node_says(statement: s.Statement) -> None:
    """The stretch of a canonical text that a node came from is the canonical text of that node."""
    text = show(statement)
    for node in nodes(parse(text)):
        if not isinstance(node, s.Tail):
            assert text[node.span.start : node.span.end] == show(node)


def test_a_span_is_found_in_a_loose_text() -> None:
    """Spans count the characters of the text as it was given, comments and all."""
    text = "pages -- é😀\n where   tokens>1 and ( Type = 'a' ) ;"
    actual = parse(text).tail.where  # type: ignore[union-attr]
    assert [text[part.span.start : part.span.end] for part in actual.parts] == ["tokens>1", "Type = 'a'"]


# ---- limits


def nested(depth: int) -> str:
    """A condition in parentheses so deep."""
    return f"PAGES WHERE {'(' * depth}tokens > 1{')' * depth}"


def test_deep_nesting_meets_a_stated_limit() -> None:
    """Parentheses up to the limit are read, one more is refused with the limit, and so are a hundred thousand."""
    assert show(parse(nested(NESTING_MAX))) == "PAGES WHERE tokens > 1"
    for depth in (NESTING_MAX + 1, 100_000):
        assert refusal(nested(depth)).code == "too-deep"
        assert str(NESTING_MAX) in refusal(nested(depth)).message


def test_what_is_within_the_limit_can_be_walked() -> None:
    """The deepest condition there can be is printed, compared and hashed."""
    level = "a = 1 OR b = 2 AND NOT ("
    text = f"PAGES WHERE {level * NESTING_MAX}c = 3{')' * NESTING_MAX}"
    read = parse(text)
    assert parse(show(read)) == read and hash(read) == hash(parse(show(read)))


@pytest.mark.parametrize("text", ["PAGES WHERE " + "NOT " * 50_000 + "a", "(" * 50_000, "EXPLAIN " * 50_000])
def test_nothing_else_nests(text: str) -> None:
    """What cannot nest does not, however often it is written."""
    assert refusal(text).code in ("unexpected", "unfinished", "too-deep")


def test_a_long_text_is_refused_with_the_limit() -> None:
    """A text over the limit is refused by its length, without being read."""
    error = refusal("PAGES WHERE a = '" + "x" * TEXT_CHARS_MAX + "'")
    assert error.code == "too-long" and "1,000,000" in error.message and error.text == ""


@pytest.mark.parametrize(
    "text", [b"PAGES", None, 7, "PAGES\x00", "PAGES \x1b[0m", "PAGES '\ud800'", "\x89PNG\r\n\x1a\n"]
)
def test_what_is_no_text_is_refused(text: Any) -> None:
    """Bytes, control characters and halves of characters are refused."""
    assert refusal(text).code == "not-text"
    with pytest.raises(QueryError):
        list(statements(text))


# ---- time

GROWING = {
    "a long list": lambda n: f"PAGES WHERE tokens IN ({', '.join(['1'] * n)})",
    "many conditions": lambda n: "PAGES WHERE " + " AND ".join(["a = 1"] * n),
    "many columns": lambda n: "PAGES " + ", ".join(["a"] * n),
    "a long word": lambda n: "PAGES " + "a" * n * 5,
    "a long word of parts": lambda n: "PAGES " + "a." * n + "a",
    "a long text": lambda n: f"SEARCH '{'its ' * n}'",
    "an open quote": lambda n: f"SEARCH '{'its ' * n}",
    "many quotes": lambda n: "SEARCH " + "'" * (2 * n + 1),
    "blanks": lambda n: "PAGES " + " " * n * 5 + "!",
    "comments": lambda n: "PAGES " + "--\n" * n + "!",
    "a long comment": lambda n: "PAGES --" + "-" * n * 5,
    "slashes": lambda n: "HISTORY OF a" + "/a" * n + "/",
    "percents": lambda n: "HISTORY OF a" + "%a" * n + "@",
    "digits": lambda n: "PAGES LIMIT " + "1" * n * 5,
    "dashes": lambda n: "PAGES a" + "-a" * n + "-",
    "semicolons": lambda n: "PAGES" + ";" * n,
    "open parentheses": lambda n: "PAGES WHERE " + "(" * n,
    "strange signs": lambda n: "PAGES " + '"' * n * 3,
    "double quotes": lambda n: 'PAGES WHERE a = "' + 'b" "' * n,
    "equal signs": lambda n: "PAGES WHERE a " + "=" * n,
    "wrong words": lambda n: "PAGES WHERE a = 1 " + "ORDR BY x " * n,
    "selects": lambda n: "SELECT a FROM pages " + "WHERE a == 1 " * n,
}


def reading(text: str) -> Callable[[], object]:
    """What reads a text, or refuses it with a place."""

    def work() -> None:
        try:
            list(statements(text))
        except QueryError as error:
            assert str(error) and error.pointed() is not None

    return work


@pytest.mark.parametrize("grown", GROWING.values(), ids=GROWING.keys())
def test_time_grows_with_the_text_and_no_faster(grown: Callable[[int], str]) -> None:
    """A text eight times as long takes less than 32 times as long to read or to refuse, where the square is 64."""
    assert grows_at_most(reading(grown(1_000)), reading(grown(8_000)), 32)
