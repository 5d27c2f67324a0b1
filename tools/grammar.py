"""Makes what vmstore carries of its grammar: `python tools/grammar.py [--check]`.

From grammar/vmql.lark, by Lark, the LALR tables that vmstore/vmql/syntax/tables.json holds, and the rules
between the marks of specs/vmql.md. With `--check` nothing is written: exit code 1 says that one of
the two is not what the grammar makes.

The tables are shipped and not built, because Lark takes 50 ms to import and as long again to build
them, which is more than a whole `vmql -c` may take; and they are JSON, because a pickle may do anything.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.grammar import Rule, Symbol
from lark.lexer import PatternStr

CHECKOUT = Path(__file__).resolve().parent.parent
GRAMMAR = CHECKOUT / "grammar" / "vmql.lark"
TABLES = CHECKOUT / "vmstore" / "vmql" / "syntax" / "tables.json"
REFERENCE = CHECKOUT / "specs" / "vmql.md"
WIDTH = 100  # of a rule that stands on one line


def lark(text: str, *, strict: bool = False) -> Lark:
    """The grammar as Lark reads it."""
    return Lark(
        text,
        parser="lalr",
        lexer="contextual",
        postlex=WholeWords(),
        g_regex_flags=re.IGNORECASE,
        strict=strict,
        maybe_placeholders=False,
    )


class WholeWords:
    """Has Lark look for a name everywhere, so that it does not find OR at the beginning of `order`."""

    always_accept = ("NAME",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens as they are."""
        return stream


# ---- the tables


def tables(text: str) -> dict[str, Any]:
    """States, rules and terminals of a grammar, numbered in the order a walk from the start meets them."""
    grammar = lark(text)
    table = grammar.parser.parser._parse_table
    start, end = table.start_states["start"], table.end_states["start"]
    order, rules = [start], dict[Rule, int]()
    numbers = {start: 0}
    for state in order:
        for _, (_, target) in sorted(table.states[state].items()):
            if isinstance(target, Rule):
                rules.setdefault(target, len(rules))
            elif target not in numbers:
                numbers[target] = len(order)
                order.append(target)
    return {
        "fixed": {t.pattern.value: t.name for t in grammar.terminals if isinstance(t.pattern, PatternStr)},
        "patterns": patterns(grammar),
        "ignored": [t.pattern.to_regexp() for t in grammar.terminals if t.name in grammar.ignore_tokens],
        "rules": [shape(rule) for rule in rules],
        "end": numbers[end],
        "states": [
            {name: numbers[target] if target in numbers else ~rules[target] for name, (_, target) in actions}
            for actions in (sorted(table.states[state].items()) for state in order)
        ],
    }


def patterns(grammar: Lark) -> list[tuple[str, str]]:
    """The terminals that are no fixed text, the first to try first."""
    open_ended = [t for t in grammar.terminals if not isinstance(t.pattern, PatternStr)]
    asked = [t for t in open_ended if t.name not in grammar.ignore_tokens]
    return [(t.name, t.pattern.to_regexp()) for t in sorted(asked, key=lambda t: -t.priority)]


def shape(rule: Rule) -> tuple[str, int, str, list[int]]:
    """A rule as (what it makes, how many parts, what is built of it, which parts).

    Built is "" where the one part is passed on, "[" where a list begins or goes on, else the name of
    a function. A part is its place, or ~place where it is a list whose members are parts.
    """
    keep_all = rule.options.keep_all_tokens
    parts = [
        ~place if symbol.name.startswith("__") else place
        for place, symbol in enumerate(rule.expansion)
        if keep_all or kept(symbol)
    ]
    name = rule.origin.name
    if name.startswith("__"):
        built = "["
    elif rule.options.expand1 and not rule.alias and len(parts) == 1:
        built = ""
    else:
        built = rule.alias or name
    return name, len(rule.expansion), built, parts


def kept(symbol: Symbol) -> bool:
    """Whether a part of a rule says anything: a keyword that only marks a place does not."""
    return not (symbol.is_term and (symbol.filter_out or symbol.name.startswith("_")))


def printed(made: dict[str, Any]) -> str:
    """The tables as JSON, a state and a rule a line, so that a change of the grammar can be read in a diff."""
    lines = []
    for key, value in made.items():
        if isinstance(value, list):
            inner = ",\n".join(json.dumps(each, separators=(",", ":")) for each in value)
            lines.append(f'"{key}":[\n{inner}]')
        else:
            lines.append(f'"{key}":{json.dumps(value, separators=(",", ":"))}')
    return "{" + ",\n".join(lines) + "}\n"


# ---- the reference

RULE = re.compile(r"^[?!]?(?P<name>[a-z_]+): *(?P<first>.*)$")
MARK = re.compile(r"(<!-- rules: (?P<names>[a-z_ ]+) -->\n)(?:```\n.*?```\n)?", re.DOTALL)
PAIRS = {
    "_IN_SESSION": '"IN" "SESSION"',
    "_AS_OF": '"AS" "OF"',
    "_VALID_AT": '"VALID" "AT"',
    "_CONTEXT_MATCHES": '"CONTEXT" "MATCHES"',
}
PAIRS |= {"_ORDER_BY": '"ORDER" "BY"', "_BETWEEN_MOMENTS": '"BETWEEN"'}


def rules(text: str) -> dict[str, list[str]]:
    """The alternatives of each rule, as they are read: without arrows, and keywords without quotes."""
    fields: dict[str, list[str]] = {}
    name = ""
    for line in text.split("\n"):
        code = re.sub(r"\s*//.*$|\s*-> *\w+\s*$", "", line)
        if rule := RULE.match(code):
            name = rule["name"]
            fields[name] = [rule["first"]]
        elif name and code.lstrip().startswith("|"):
            fields[name].append(code.lstrip()[1:].strip())
        elif code.strip():
            name = ""
    return {name: [spoken(part) for line in lines for part in alternatives(line)] for name, lines in fields.items()}


def alternatives(line: str) -> list[str]:
    """The alternatives on one line of the grammar."""
    parts, depth = [""], 0
    for sign in re.findall(r'"[^"]*"|.', line):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def spoken(part: str) -> str:
    """One alternative for people: keywords in capitals, signs in quotes, names of rules in small letters."""
    for pair, words in PAIRS.items():
        part = part.replace(pair, words)
    return re.sub(r'"([A-Z]+)"', r"\1", part)


def referred(page: str, text: str) -> str:
    """The reference with the rules of the grammar where it asks for them."""
    known = rules(text)
    return MARK.sub(lambda mark: f"{mark[1]}```\n{drawn(mark['names'].split(), known)}```\n", page)


def drawn(names: list[str], known: dict[str, list[str]]) -> str:
    """Some rules in EBNF, longer alternatives under each other where they do not fit on a line."""
    lines = []
    for name in names:
        parts = known[name]
        line = f"{name} = {' | '.join(parts)}"
        indent = " " * len(name)
        if len(line) > WIDTH and all(" " in part for part in parts):
            lines.append(f"{name} = {parts[0]}")
            lines += [f"{indent} | {part}" for part in parts[1:]]
        else:
            lines += textwrap.wrap(line, WIDTH, subsequent_indent=f"{indent}   ")
    return "".join(f"{line}\n" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Make the tables and the rules that the grammar gives.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where something would change")
    check = parser.parse_args(arguments).check
    text = GRAMMAR.read_text(encoding="utf-8")
    page = REFERENCE.read_text(encoding="utf-8")
    made = {TABLES: printed(tables(text)), REFERENCE: referred(page, text)}
    stale = [path for path, new in made.items() if not path.exists() or path.read_text(encoding="utf-8") != new]
    for path in stale:
        if check:
            print(f"{path.relative_to(CHECKOUT)} is not what the grammar makes; run python tools/grammar.py")
        else:
            path.write_text(made[path], encoding="utf-8")
            print(f"{path.relative_to(CHECKOUT)} written")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
