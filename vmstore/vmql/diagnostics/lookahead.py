"""What the parser can take at a place: keywords, kinds of names, kinds of values."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from vmstore.vmql.syntax.build import spelled
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.grammar_tables import Tables, load
from vmstore.vmql.syntax.lalr import ParseFailure, run
from vmstore.vmql.syntax.nodes import Word

# By the rule that takes a name: what kind of name it is.
KINDS: Final = {
    "word": "column",
    "function": "function",
    "page_name": "page",
    "session_name": "session",
    "new_name": "new session",
    "user_name": "user",
    "column_name": "column name",
    "kind_name": "kind of link",
    "setting": "setting",
    "choice": "choice",
    "subject": "subject",
    "described": "relation",
}
SPOKEN: Final = {
    "_IN_SESSION": "IN SESSION",
    "_AS_OF": "AS OF",
    "_VALID_AT": "VALID AT",
    "_ORDER_BY": "ORDER BY",
    "_CONTEXT_MATCHES": "CONTEXT MATCHES",
    "_BETWEEN_MOMENTS": "BETWEEN",
    "_MINUS": "-",
}
VALUES: Final = {"INT": "number", "STRING": "text", "PARAM": "parameter"}
END: Final = "$END"


class Continuations(NamedTuple):
    """What can stand at a place: keywords and signs, kinds of names, kinds of values; whether it can end there."""

    keywords: tuple[str, ...]
    signs: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[str, ...]
    ends: bool

    @property
    def words(self) -> tuple[str, ...]:
        """All of it in English: names and values, then keywords and signs as they are written."""
        named = [ARTICLES[kind] for kind in (*self.names, *self.values)]
        return (*named, *self.keywords, *self.signs, *(["the end"] if self.ends else []))

    @property
    def said(self) -> tuple[str, ...]:
        """The same for a message, which has room for few: words that come together go by one name."""
        left = dict.fromkeys(self.words)
        found = []
        for name, group in GROUPS.items():
            if group <= left.keys():
                found.append(name)
                left = {word: None for word in left if word not in group and word != "BETWEEN"}
        named = [word for word in left if word in ARTICLES.values()]
        # After any word a ( would make it a function, and a sign go on: true, and no help.
        unsaid = ("the end", "(", *OPERATORS) if self.ends else OPERATORS
        plain = [word for word in left if word not in named and word not in unsaid]
        return (*named, *found, *plain, *(["the end"] if self.ends else []))


STATEMENTS: Final = (
    "CALLS COMPACTIONS CONTEXT DERIVED DESCRIBE DIFF FACTS FAULTS FORK GUARDS HISTORY LINKS MESSAGES METRICS"
    " MOVES MUTATIONS PAGES PATH RECALLS REPLAY RESIDENCIES SEARCH SEGMENTS SESSIONS SET SHOW SKILLS SOURCES TAGS"
    " TOOLS TURNS VECTORS VERIFY VERSIONS WATCH WHY"
)
RELATIONS: Final = (
    "CALLS COMPACTIONS FACTS FAULTS GUARDS LINKS MESSAGES METRICS MOVES MUTATIONS PAGES RECALLS RESIDENCIES"
    " SEARCH SEGMENTS SESSIONS SKILLS TAGS TOOLS TURNS VECTORS VERSIONS"
)
OPERATORS: Final = ("+", "-", "*", "/")
GROUPS: Final = {
    "a statement": frozenset(STATEMENTS.split()),
    "a relation": frozenset(RELATIONS.split()),
    "a value": frozenset(("a number", "a text in quotes", "$name", "TRUE", "FALSE", "NULL")),
    "a comparison": frozenset(
        ["=", "!=", "<", "<=", ">", ">=", "IN", "IS", "LIKE", "MATCHES", "NOT", "BETWEEN", "ENTERS", "LEAVES"]
    ),
    "a clause such as WHERE or LIMIT": frozenset(
        (
            "ACROSS",
            "ALL",
            "AS OF",
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
        )
    ),
    "a moment such as TURN 3": frozenset(("TURN", "CALL", "POSITION", "TIME", "LOGGED", "HEAD")),
}
ARTICLES: Final = {
    "column": "a column",
    "value": "a word",
    "function": "a function",
    "page": "a page",
    "session": "a session",
    "new session": "a name for the new session",
    "user": "a user",
    "column name": "a name for the column",
    "kind of link": "a kind of link",
    "setting": "a setting",
    "choice": "a setting of the session",
    "subject": "what to show",
    "relation": "a relation",
    "number": "a number",
    "text": "a text in quotes",
    "parameter": "$name",
}


NOTHING: Final = Continuations((), (), (), (), False)


def following(text: str, place: int, until: int) -> Continuations:
    """What can stand at `until` of the statement that begins at a place; nothing where it is refused before."""
    try:
        run(text, place, until)
    except ParseFailure as stuck:
        return at(stuck.states, stuck.values) if stuck.token.kind == "HERE" else NOTHING
    except QueryError:
        return NOTHING
    raise AssertionError("a parser that is asked to stop does so")


def at(states: list[int], values: list[Any]) -> Continuations:
    """What can follow a stack of states and values."""
    tables = load()
    signs_by_name = {name: text for text, name in tables.fixed.items()}
    taken = [symbol for symbol in tables.states[states[-1]] if symbol.isupper() and takes(tables, states, symbol)]
    taken = [symbol for symbol in taken if not _is_word(tables, states, symbol)]
    fixed = [SPOKEN.get(symbol) or signs_by_name.get(symbol) for symbol in taken]
    texts = [text for text in fixed if text is not None]
    names = _names(tables, states) if "NAME" in taken else ()
    if column_before(values) is not None:
        names = tuple("value" if name == "column" else name for name in names if name != "function")
    return Continuations(
        keywords=tuple(sorted({text for text in texts if text[0].isalpha()})),
        signs=tuple(text for text in texts if not text[0].isalpha()),
        names=names,
        values=tuple(kind for symbol, kind in VALUES.items() if symbol in taken),
        ends=END in taken,
    )


def takes(tables: Tables, states: list[int], symbol: str) -> bool:
    """Whether a symbol can be the next: whether it is shifted once the reductions it calls for are done."""
    stack = list(states)
    while (action := tables.states[stack[-1]].get(symbol)) is not None and action < 0:
        rule = tables.rules[~action]
        del stack[-rule.size :]
        following = tables.states[stack[-1]][rule.name]
        if following == tables.end:
            return True
        stack.append(following)
    return action is not None


def _names(tables: Tables, states: list[int]) -> tuple[str, ...]:
    """The kinds of name that a word can be here: the rules that would take it next."""
    after = _after(tables, states, "NAME")
    rules = {tables.rules[~action].name for action in after.values() if action < 0}
    return tuple(KINDS[name] for name in KINDS if name in rules)


def _is_word(tables: Tables, states: list[int], symbol: str) -> bool:
    """Whether a keyword is here no more than a name that is spelled so."""
    after = _after(tables, states, symbol)
    return bool(after) and all(action < 0 and tables.rules[~action].name == WORD for action in after.values())


WORD: Final = "relation_word"


def _after(tables: Tables, states: list[int], symbol: str) -> dict[str, int]:
    """What can be done once a symbol is shifted; nothing where it ends all."""
    stack = list(states)
    while (action := tables.states[stack[-1]][symbol]) < 0:
        rule = tables.rules[~action]
        del stack[-rule.size :]
        following = tables.states[stack[-1]][rule.name]
        if following == tables.end:
            return {}
        stack.append(following)
    return tables.states[action]


COMPARING: Final = frozenset(("=", "!=", "<", "<=", ">", ">=", "LIKE", "MATCHES", "BETWEEN"))


def column_before(values: list[Any]) -> str | None:
    """The column, or the setting, a value at this place would be compared with; None where it would not be."""
    spelled = [value.upper() if isinstance(value, str) else value for value in values]
    last = len(spelled) - 1
    if last >= 0 and isinstance(spelled[last], str) and spelled[last] in COMPARING:
        return _spelled(spelled, last - 1)
    if last >= 0 and spelled[last] in ("ENTERS", "LEAVES"):
        return "tier_after"
    if last >= 2 and spelled[last] == "AND" and spelled[last - 2] == "BETWEEN":
        return _spelled(spelled, last - 3)
    if last >= 0 and isinstance(spelled[last], str) and spelled[last] in ("(", ","):
        opened = next(
            (place for place in range(last, -1, -1) if isinstance(spelled[place], str) and spelled[place] == "("), 0
        )
        if opened and isinstance(spelled[opened - 1], str) and spelled[opened - 1] == "IN":
            return _spelled(spelled, opened - 2)
    return None


def _spelled(values: list[Any], place: int) -> str | None:
    if place > 0 and isinstance(values[place], str) and values[place] == "NOT":
        place -= 1
    return spelled(values[place]) if place >= 0 and isinstance(values[place], Word) else None


def asked(values: list[Any]) -> str | None:
    """The word a statement begins with, past EXPLAIN: PAGES, CONTEXT, HISTORY; None before there is one."""
    words = [value.upper() for value in values[:3] if isinstance(value, str)]
    return next((word for word in words if word not in ("EXPLAIN", "ANALYZE")), None)
