"""What is offered is what can be written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmstore.testing import queries
from vmstore.vmql.diagnostics.complete import completions
from vmstore.vmql.diagnostics.lookahead import relations
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.lalr import ParseFailure, run
from vmstore.vmql.syntax.nodes import Statement
from vmstore.vmql.syntax.printer import show

TAIL = {
    "ACROSS",
    "ALL",
    "AS OF",
    "BETWEEN",
    "BY",
    "HAVING",
    "IN SESSION",
    "LIMIT",
    "ORDER BY",
    "PER",
    "SINCE",
    "UNTIL",
    "VALID AT",
    "WHERE",
}
SUBQUERIES = relations() | {"SEARCH", "CONTEXT"}
MOMENTS = {"CALL", "HEAD", "LOGGED", "POSITION", "TIME", "TURN"}
CASES = [
    ("PAGES ", TAIL, ("column", "function")),
    ("PAGES WH", TAIL, ("column", "function")),
    ("PAGES page, ", set(), ("column", "function")),
    ("PAGES page ", TAIL | {"AS"}, ()),
    ("PAGES page AS ", {"OF"}, ("column name",)),
    ("PAGES AS OF ", MOMENTS, ()),
    ("PAGES BETWEEN ", MOMENTS - {"HEAD"}, ()),
    ("PAGES BETWEEN TURN 1 AND ", MOMENTS, ()),
    ("PAGES IN SESSION ", set(), ("session",)),
    ("PAGES ACROSS SESSIONS OF USER ", set(), ("user",)),
    ("PAGES ORDER ", TAIL | {"AS"}, ()),
    ("PAGES WHERE ", {"CONTEXT MATCHES", "NOT", "NULL", "TRUE", "FALSE"}, ("column", "function")),
    ("PAGES role BY role HAVING ", {"CONTEXT MATCHES", "NOT", "NULL", "TRUE", "FALSE"}, ("column", "function")),
    ("PAGES count(", {"DISTINCT", "NULL", "TRUE", "FALSE", "NOT", "CONTEXT MATCHES"}, ("column", "function")),
    ("PAGES WHERE page IN (", SUBQUERIES | {"NULL", "TRUE", "FALSE"}, ("value",)),
    ("PAGES WHERE page IN (LINKS ", set(), ("column", "function")),
    ("PAGES WHERE page IN (LINKS target ", TAIL | {"AS"}, ()),
    ("CONTEXT AT TURN 3 ", TAIL | {"AT", "RENDER", "MESSAGES"}, ()),
    ("CONTEXT AT CALL (", SUBQUERIES, ()),
    ("CALLS sum(cost) PER ", {"CALL", "TURN"}, ()),
    ("HISTORY OF ", set(), ("page",)),
    ("PATH FROM p17 TO ", set(), ("page",)),
    ("WHY ", {"NOT"}, ("page",)),
    ("WHY p17 IN ", {"CONTEXT"}, ()),
    ("SOURCES OF p17 VIA ", set(), ("kind of link",)),
    ("FORK AS ", set(), ("new session",)),
    ("SET ", set(), ("setting",)),
    ("SHOW ", set(), ("subject",)),
    ("DESCRIBE ", set(), ("relation",)),
    ("PAGES LIMIT ", set(), ()),
    ("PAGES; TURNS -- all\n ", TAIL, ("column", "function")),
    ("PAGES WHERE = = ", set(), ()),
    ("SEARCH 'x' WITHIN 1000 ", {"TOKENS"}, ()),
]


@pytest.mark.parametrize(("text", "keywords", "names"), CASES, ids=[text for text, _, _ in CASES])
def test_what_can_stand_here_is_offered(text: str, keywords: set[str], names: tuple[str, ...]) -> None:
    """At each place exactly the keywords and kinds of names are offered that can stand there."""
    here = completions(text)
    assert (set(here.keywords), here.names) == (keywords, names)


STATEMENTS = {"CONTEXT", "DERIVED", "DESCRIBE", "DIFF", "EXPLAIN", "FORK", "HISTORY", "PATH", "REPLAY", "SEARCH"}
STATEMENTS |= {"SET", "SHOW", "SOURCES", "VERIFY", "WATCH", "WHY"}


def test_every_statement_is_offered_at_the_beginning() -> None:
    """Where nothing is written yet every first word is offered, and the end is not."""
    here = completions("")
    assert set(here.keywords) == relations() | STATEMENTS and not here.ends


COMPARED = {
    "PAGES WHERE type = ": "type",
    "PAGES WHERE type IN (claim, ": "type",
    "PAGES WHERE a.b LIKE ": "a.b",
    "PAGES WHERE a = 1 AND tier != ": "tier",
    "PAGES WHERE t NOT IN (": "t",
    "PAGES WHERE t BETWEEN 1 AND ": "t",
    "PAGES WHERE t NOT BETWEEN ": "t",
    "SET session = ": "session",
    "PAGES WHERE count(": None,
    "PAGES WHERE ": None,
    "PAGES WHERE a = 1 AND ": None,
    "PAGES page, ": None,
}


@pytest.mark.parametrize(("text", "column"), COMPARED.items())
def test_a_value_is_offered_for_its_column(text: str, column: str | None) -> None:
    """Where a value is wanted the column that it is compared with is told."""
    here = completions(text)
    assert here.column == column
    assert ("value" in here.names) == (column is not None)


def test_the_word_being_written_is_told() -> None:
    """What is written already of a word, or of a text in quotes, is told with its place."""
    here = completions("PAGES WHERE type = cla")
    assert (here.prefix, here.start, here.quoted, here.statement) == ("cla", 19, False, "PAGES")
    here = completions("EXPLAIN ANALYZE PAGES IN SESSION 'pla")
    assert (here.prefix, here.start, here.quoted, here.statement) == ("pla", 33, True, "PAGES")
    assert here.names == ("session",) and here.keywords == ()
    here = completions("PAGES ")
    assert (here.prefix, here.start) == ("", 6)


@settings(max_examples=2 * settings.default.max_examples)
@given(queries.statements(), st.data())
def test_every_keyword_offered_is_taken(statement: Statement, data: st.DataObject) -> None:
    """Wherever a statement is cut, the keywords offered can all follow, and the one that did is among them."""
    text = show(statement)
    cut = data.draw(st.sampled_from([place + 1 for place, sign in enumerate(text) if sign == " "] or [0]))
    before, after = text[:cut], text[cut:].split(" ")[0]
    here = completions(before)
    for word in here.keywords:
        assert taken(before[: here.start] + word + " "), (before, word)
    if after.isupper() and after.isalpha() and not here.quoted and taken(before + after) and not here.names:
        assert any(after in word.split() for word in here.keywords), (before, after)


def taken(text: str) -> bool:
    """Whether the parser comes to the end of a text."""
    texts = [text]
    if begun := re.search(r"\bBETWEEN (TURN |CALL |POSITION |TIME |LOGGED |LOGGED TIME )?$", text):
        # What tells this keyword from its namesake stands after it.
        after = {None: "TURN 1", "LOGGED ": "TIME 'x'", "TIME ": "'x'", "LOGGED TIME ": "'x'"}
        texts.append(text + after.get(begun[1], "1"))
    return any(map(comes_to_its_end, texts))


def comes_to_its_end(text: str) -> bool:
    """Whether nothing in a text stops the parser."""
    try:
        run(text)
    except ParseFailure as stuck:
        return stuck.token.kind in ("$END", "BAD")
    except QueryError:
        pass
    return True
