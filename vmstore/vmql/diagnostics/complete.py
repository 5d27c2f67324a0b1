"""What can be written next, from the state the parser is in: for a shell that completes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from vmstore.vmql.diagnostics.lookahead import SPOKEN, asked, at, column_before, following
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.lalr import ParseFailure, automaton, run

# Tokens that may be continued where the text ends; a word in them is completed, not followed.
OPEN: Final = frozenset(("NAME", "REFERENCE", *SPOKEN))
# BETWEEN is distinguished from its namesake in conditions by the moment after it, which is not written yet.
UNSETTLED: Final = re.compile(r"\bBETWEEN(\s+(?:(?:LOGGED\s+)?\w*\s*))$", re.IGNORECASE)
PAIRS: Final = [tuple(words.split()) for words in SPOKEN.values() if " " in words]


class Expect(NamedTuple):
    """What can stand where a text ends.

    `keywords` are whole words, signs not among them. `names` are the kinds of names wanted: column,
    function, value (of `column`), page, session, user, setting, choice (a setting of the session),
    relation, "kind of link", "new session", "column name", subject (of SHOW). `values` are number,
    text, parameter. `statement` is its first word, None before there is one. `prefix` is what is
    written already of what stands here, from `start` on; `quoted` where that is within quotes, which
    are not part of the prefix.
    """

    keywords: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    ends: bool = False
    statement: str | None = None
    column: str | None = None
    prefix: str = ""
    start: int = 0
    quoted: bool = False


def completions(text: str) -> Expect:
    """What can stand where the text ends, which is where the cursor is; nothing after a mistake."""
    place, start, prefix, quoted = _last(text)
    settled = _settled(text, place, start)
    try:
        run(settled, place, start)
    except QueryError:
        return Expect(prefix=prefix, start=start, quoted=quoted)
    except ParseFailure as stuck:
        second = _second_words(text, place, start)
        if stuck.token.kind != "HERE":
            return Expect(keywords=tuple(second), prefix=prefix, start=start, quoted=quoted)
        here = at(stuck.states, stuck.values)
        # A BETWEEN that begins at HEAD would have no end.
        keywords = {*here.keywords, *second} - ({"HEAD"} if settled != text[:start] else set())
        return Expect(
            keywords=() if quoted else tuple(sorted(keywords)),
            names=here.names,
            values=here.values,
            ends=here.ends,
            statement=asked(stuck.values),
            column=column_before(stuck.values),
            prefix=prefix,
            start=start,
            quoted=quoted,
        )
    raise AssertionError("a parser that is asked to stop does so")


def _last(text: str) -> tuple[int, int, str, bool]:
    """Where the last statement begins, where what is being written does, what that is, whether in quotes."""
    match = automaton().match
    statement = place = 0
    while True:
        found = match(text, place)
        kind = found.lastgroup
        start, end = found.span(kind)
        if kind == "END":
            return statement, start, "", False
        if kind == "BAD" and text[start] == "'":
            return statement, start, text[start + 1 :], True
        if end == len(text) and kind in OPEN:
            return statement, start, text[start:], False
        if kind == "STOP":
            statement = end
        place = end


def _settled(text: str, place: int, start: int) -> str:
    """The text up to `start`, with a last BETWEEN that begins a clause written as a clause like it."""
    before = text[:start]
    found = UNSETTLED.search(before, place)
    if found is None:
        return before
    keywords = following(text, place, found.start()).keywords
    # Where IN can stand too there is a condition, and it is the other BETWEEN.
    begins = "BETWEEN" in keywords and "IN" not in keywords
    return f"{before[: found.start()]}SINCE  {found[1]}" if begins else before


def _second_words(text: str, place: int, start: int) -> set[str]:
    """The second words of keywords of two, where the first has been written."""
    found = set()
    for first, second in PAIRS:
        written = re.compile(rf"\b{first}\s+$", re.IGNORECASE).search(text[:start], place)
        if written and f"{first} {second}" in following(text, place, written.start()).keywords:
            found.add(second)
    return found
