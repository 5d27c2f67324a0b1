"""What is shipped is what the grammar says, and it reads as Lark does."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from lark import Lark, Token, Tree
from lark.exceptions import GrammarError, LarkError, LexError

import grammar
from vmstore.testing.queries import statements
from vmstore.vmql.parse import parse
from vmstore.vmql.parse import statements as statements_of
from vmstore.vmql.syntax import lalr
from vmstore.vmql.syntax.build import MAKERS
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import NOWHERE, Statement
from vmstore.vmql.syntax.printer import show

TEXT = grammar.GRAMMAR.read_text(encoding="utf-8")
EXAMPLES = grammar.GRAMMAR.parent / "examples"
VALID = [line.partition("  # ")[0] for line in (EXAMPLES / "valid.vmql").read_text().splitlines()]
INVALID = [line.partition("  # ") for line in (EXAMPLES / "invalid.vmql").read_text().splitlines()]
# What Lark takes and vmstore refuses: numbers and clauses are looked at when nodes are made of them.
MADE = ("number-too-large", "clause-twice", "null-compared")


@functools.cache
def reference() -> Lark:
    """Lark's own parser of the grammar, in its strictest mode."""
    return grammar.lark(TEXT, strict=True)


@functools.cache
def rules() -> list[tuple[str, int, str, list[int]]]:
    """The rules as the tables have them."""
    rows: list[tuple[str, int, str, list[int]]] = grammar.tables(TEXT)["rules"]
    return rows


def read_by_lark(text: str) -> Any:
    """What Lark's own LALR parser and contextual lexer make of a text."""
    return made(reference().parse(text.rstrip().removesuffix(";")))


def made(tree: Tree[Token] | Token) -> Any:
    """The nodes of a tree of Lark's."""
    if isinstance(tree, Token):
        return str(tree)
    return MAKERS[str(tree.data)](NOWHERE, *map(made, tree.children))


# ---- what is made of the grammar


def test_what_is_made_of_the_grammar_is_up_to_date() -> None:
    """The tables and the reference are those that the grammar makes today."""
    assert grammar.main(["--check"]) == 0


def test_a_changed_grammar_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the grammar the check fails and names what is stale, and the tool mends it."""
    changed = tmp_path / "vmql.lark"
    changed.write_text(TEXT.replace('"DESCRIBE"', '"EXPLORE"'))
    tables, page = tmp_path / "tables.json", tmp_path / "vmql.md"
    shutil.copy(grammar.TABLES, tables)
    shutil.copy(grammar.REFERENCE, page)
    for name, path in (("GRAMMAR", changed), ("TABLES", tables), ("REFERENCE", page), ("CHECKOUT", tmp_path)):
        monkeypatch.setattr(grammar, name, path)
    assert grammar.main(["--check"]) == 1
    assert grammar.main([]) == 0
    assert grammar.main(["--check"]) == 0
    assert "EXPLORE" in tables.read_text() and "EXPLORE" in page.read_text()


def test_lark_is_not_needed_to_parse() -> None:
    """Parsing, printing, completing and refusing load neither Lark nor what its strict mode needs."""
    code = (
        "import sys; from vmstore.vmql.parse import parse; from vmstore.vmql.diagnostics.complete import completions\n"
        "from vmstore.vmql.syntax.errors import QueryError\n"
        "parse('PAGES LIMIT 5'); completions('PAGES ')\n"
        "try: parse('SELECT 1')\n"
        "except QueryError: pass\n"
        "print([name for name in ('lark', 'interegular', 'rapidfuzz', 'numpy', 'apsw') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_the_reference_has_every_rule_once() -> None:
    """Each rule of the grammar stands in the reference, in one place."""
    page = grammar.REFERENCE.read_text(encoding="utf-8")
    shown = [name for mark in grammar.MARK.finditer(page) for name in mark["names"].split()]
    assert sorted([*shown, "start"]) == sorted(grammar.rules(TEXT))


# ---- the grammar itself


def test_the_grammar_is_strictly_lalr() -> None:
    """Lark finds no conflict between rules and no two tokens that can be taken for each other."""
    assert reference().options.strict


def test_strictness_bites() -> None:
    """A rule that means two things, and a token that is also another, are refused."""
    with pytest.raises(GrammarError, match=r"[Cc]ollision|[Cc]onflict"):
        grammar.lark(TEXT.replace("?clause: scope", '?clause: scope | "WHERE" word -> other'), strict=True)
    with pytest.raises(LexError, match=r"[Cc]ollision"):
        grammar.lark(
            TEXT.replace('"DEPTH" number', '"DEPTH" (number | EXTENT)') + "\nEXTENT.-1: /[0-9]+m?/\n", strict=True
        )


def test_no_rule_is_empty() -> None:
    """No rule has no parts: the parser takes the end of a node from its last part."""
    assert min(size for _, size, _, _ in rules()) > 0


def test_every_rule_is_made_into_something() -> None:
    """Each rule and each name after an arrow has its maker, and no maker is for a rule that is gone."""
    named = {built for _, _, built, _ in rules()} - {"", "["}
    assert named == set(MAKERS)


def test_no_token_is_anonymous() -> None:
    """Every token has a name that a message can be made of."""
    assert [terminal.name for terminal in reference().terminals if terminal.name.startswith("__ANON")] == []


@pytest.mark.parametrize("text", VALID)
def test_lark_reads_the_examples_alike(text: str) -> None:
    """Lark and vmstore make the same nodes of every valid example."""
    assert read_by_lark(text) == parse(text)


@pytest.mark.parametrize("text", [text for text, _, other_text in INVALID if not other_text.startswith(MADE)])
def test_lark_refuses_the_examples_alike(text: str) -> None:
    """Lark refuses every invalid example too."""
    with pytest.raises(LarkError):
        reference().parse(text)


@settings(max_examples=5 * settings.default.max_examples)
@given(statements())
def test_lark_reads_any_statement_alike(statement: Statement) -> None:
    """Lark and vmstore make the same nodes of any statement."""
    text = show(statement)
    assert read_by_lark(text) == parse(text) == statement


# ---- traps


NUMBERS = {"0": 0, "7": 7, "-7": -7, "007": 7, "9223372036854775807": 2**63 - 1, "100000000000000000000.0": 1e20}
NUMBERS |= {"0.5": 0.5, "-0.5": -0.5, "1.5e3": 1500.0, "1.0e-3": 0.001}


@pytest.mark.parametrize(("text", "value"), NUMBERS.items())
def test_a_number_is_read_as_it_is(text: str, value: float) -> None:
    """Whole numbers are whole, others are not, and the sign belongs to them."""
    read = parse(f"PAGES WHERE importance >{text}").tail.where.right.value  # type: ignore[union-attr]
    assert (read, type(read)) == (value, type(value))


COLUMNS = "page tokens type turn call position session model status text kind time user head at to of from as_of"


@pytest.mark.parametrize("name", [*COLUMNS.split(), "desc", "depth", "via", "pages", "select", "name", "int", "string"])
def test_a_word_of_the_language_can_be_a_column(name: str) -> None:
    """A column can be called as a keyword is, shown, compared, grouped by and ordered by."""
    text = f"CALLS {name}, count(*) WHERE {name} > 3 AND {name} IN (1, {name}) BY {name} ORDER BY {name} DESC"
    assert show(parse(text)) == text


@pytest.mark.parametrize(
    "name", ["where", "order", "limit", "null", "turn", "in", "as", "render", "session", "p-1", "7a"]
)
def test_a_word_of_the_language_can_be_a_session(name: str) -> None:
    """A session can be called as any keyword is, without quotes."""
    assert show(parse(f"PAGES IN SESSION {name} LIMIT 3")) == f"PAGES IN SESSION {name} LIMIT 3"


def test_keywords_are_found_in_any_case() -> None:
    """The case of a keyword does not matter, that of a name does."""
    assert show(parse("pAgEs As oF tUrN 3 WHERE Type = Claim")) == "PAGES AS OF TURN 3 WHERE Type = Claim"


# ---- faults planted in what is run


def planted(monkeypatch: pytest.MonkeyPatch, built: str, fault: Callable[[Any], Any]) -> None:
    """Has the parser run with a fault in the rules that build something."""
    sound = lalr.automaton()
    broken = [fault(rule) if rule[2] is MAKERS[built] else rule for rule in sound.rules]
    assert broken != sound.rules
    monkeypatch.setattr(lalr, "automaton", lambda: sound._replace(rules=broken))


@pytest.mark.parametrize(("built", "text"), [("between", "PAGES WHERE a BETWEEN 1 AND 2"), ("columns", "PAGES a, b")])
def test_parts_in_the_wrong_order_are_seen(monkeypatch: pytest.MonkeyPatch, built: str, text: str) -> None:
    """A parser that takes the parts of a rule in another order does not read as Lark does."""
    planted(monkeypatch, built, lambda rule: (*rule[:3], tuple(reversed(rule[3]))))
    (read,) = [statement for statement, _ in statements_of(text)]
    assert read != read_by_lark(text)


def test_a_lexer_that_reserves_words_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lexer that takes a word for a keyword wherever it stands refuses what Lark reads."""
    sound = lalr.automaton()
    states = [{symbol: to for symbol, to in actions.items() if symbol != "NAME"} for actions in sound.states]
    monkeypatch.setattr(lalr, "automaton", lambda: sound._replace(states=states))
    text = "CALLS turn WHERE call > 3"
    assert read_by_lark(text)
    with pytest.raises(QueryError):
        list(statements_of(text))
