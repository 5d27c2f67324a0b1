"""How a mistake is told: where it stands, and what was probably meant."""

from __future__ import annotations

import pytest

from tests import refusals
from vmstore.errors import VmstoreError
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax.errors import QueryError, near
from vmstore.vmql.syntax.nodes import SourceSpan

WORDS = ("WHERE", "ORDER", "LIMIT", "SINCE", "SESSION", "tokens", "importance", "created_turn")


SLIPS = {"wher": "WHERE", "ODER": "ORDER", "limti": "LIMIT", "sesion": "SESSION", "Tokens": "tokens"}
SLIPS |= {"tokns": "tokens", "importence": "importance", "createdturn": "created_turn"}


@pytest.mark.parametrize(("written", "meant"), SLIPS.items())
def test_a_near_word_is_found(written: str, meant: str) -> None:
    """A slip of the finger finds the word that was meant, whatever its case."""
    assert near(written, WORDS) == meant


@pytest.mark.parametrize("written", ["banana", "x", "", "nosuch", "pg_sequences", "o" * 10_000])
def test_no_absurd_word_is_guessed(written: str) -> None:
    """A word that is like none finds none."""
    assert near(written, WORDS) is None


def pointed(text: str, start: int, end: int) -> str:
    """The lines that show a place."""
    return QueryError("no", code="x", text=text, span=SourceSpan(start, end)).pointed()


def test_the_caret_stands_under_the_place() -> None:
    """The line of the mistake is shown with its number and carets under it, tabs kept and long lines cut."""
    assert pointed("PAGES\nWHERE x", 12, 13) == "line 2: WHERE x\n              ^"
    assert pointed("\tPAGES x", 7, 8) == "line 1: \tPAGES x\n        \t      ^"
    assert pointed("PAGES", 5, 5) == "line 1: PAGES\n             ^"
    assert pointed("", 0, 0) == ""
    line, caret = pointed("a" * 500 + "!" + "b" * 500, 500, 501).split("\n")
    assert line[caret.index("^")] == "!" and len(line) < 120


def test_a_mistake_over_lines_is_shown_on_its_first() -> None:
    """Carets never run past the line that is shown."""
    assert pointed("ab\ncd", 1, 5) == "line 1: ab\n         ^"


def test_no_control_character_is_shown_as_it_is() -> None:
    """The line over the caret holds a visible sign for each control character, and the caret stays under its place."""
    line, caret = pointed("a\x1b[31m\x7f\u202e! b", 8, 9).split("\n")
    assert line.isprintable() and line == "line 1: a\u241b[31m\ufffd\ufffd! b"
    assert line[caret.index("^")] == "!"


def test_no_control_character_is_said_as_it_is() -> None:
    """What an error says of a text holds a visible sign for each control character of it too."""
    error = QueryError("unexpected `\x9b[31m`\nhere", code="x", hint="write 'a\u202eb'")
    assert str(error) == "unexpected `\ufffd[31m`\nhere; write 'a\ufffdb'"


def test_a_query_error_is_one_of_the_store() -> None:
    """A query error can be caught as any other of vmstore's, and says its words and its hint."""
    with refusals.refused("no-statement", VmstoreError):
        parse("PAGE")


def test_what_was_expected_is_a_list_of_words() -> None:
    """A refusal lists all that can stand at the place, names first."""
    with pytest.raises(QueryError) as refused:
        parse("HISTORY OF")
    assert refused.value.expected == ("a page", "a number", "a text in quotes", "$name")
    with pytest.raises(QueryError) as refused:
        parse("PAGES WHERE type = claim ORDR BY x")
    assert {"ORDER BY", "WHERE", "AND", "the end"} <= set(refused.value.expected)


def test_a_habit_is_found_among_others() -> None:
    """Several habits in one statement are mended together, quotes within quotes included."""
    text = 'select page, count() from mesages where a == "it\'s" && b <> 3 group by page limit 10 offset 5'
    with pytest.raises(QueryError) as refused:
        parse(text)
    assert refused.value.hint == "write MESSAGES page, count(*) WHERE a = 'it''s' AND b != 3 BY page LIMIT 10"


def test_a_habit_in_quotes_is_left_alone() -> None:
    """What looks like a habit within a text in quotes is not one."""
    with pytest.raises(QueryError) as refused:
        parse("PAGES WHERE text = 'a == b' AND type == claim")
    assert refused.value.hint == "write PAGES WHERE text = 'a == b' AND type = claim"
    assert refused.value.span == (37, 39)
