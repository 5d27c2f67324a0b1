"""The command line of `vmql`: its options as data, what it says of itself, and how it is read.

Read by hand and not by argparse, which alone takes longer to load than help may take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from vmstore.core.text.suggest import suggest

PROG = "vmql"
USAGE = 2


class Option(NamedTuple):
    """One option: its names, what it takes (nothing for a switch), what it does."""

    names: tuple[str, ...]
    takes: str
    summary: str


OPTIONS = (
    Option(("-c", "--command"), "TEXT", "ask this and leave; may be given again, in order with -f"),
    Option(("-f", "--file"), "FILE", "ask what a file holds and leave; - is standard input"),
    Option(("--sql",), "", "what is asked is SQL over the relations, one statement each -c and -f"),
    Option(("--json",), "", "one object a line for each statement: basis, columns, rows, elapsed_ms"),
    Option(("--jsonl",), "", "one object a line for each row"),
    Option(("--csv",), "", "comma-separated values under their titles"),
    Option(("--markdown",), "", "a table in Markdown"),
    Option(("--table",), "", "a table, also where an answer has a drawing of its own"),
    Option(("--line",), "", "each row upright, a value a line"),
    Option(("--session",), "NAME", "the session of statements that name none"),
    Option(("--turn",), "N", "the turn that statements are about which name no moment"),
    Option(("--param",), "NAME=VALUE", "what $NAME stands for; may be given again"),
    Option(("--timeout",), "SECONDS", "what each statement may take; one that takes longer is an error"),
    Option(("--rows",), "N", "rows that each answer may have; more are an error, nothing is cut off"),
    Option(("--memory",), "BYTES", "what each statement may keep in memory, as 64MB"),
    Option(("--prices",), "FILE", "estimate costs by the prices in this JSON file"),
    Option(("--namespace",), "NS", "which namespace of the store (default: default)"),
    Option(
        ("--namespaces",),
        "NS,NS",
        "ask these, or * for all, as one, each row with its namespace; of several STOREs too",
    ),
    Option(("--store-key",), "FILE", "the key of an encrypted store (or VMSTORE_KEY_FILE)"),
    Option(("--read-only",), "", "write nothing at all: no views, no FORK, no history"),
    Option(("--no-history",), "", "keep nothing that is asked"),
    Option(("--timing",), "", "say how long each answer took"),
    Option(("--quiet",), "", "only answers and errors"),
    Option(("--no-rc",), "", "do not read the rc file"),
    Option(("--card",), "", "print the language on one page"),
    Option(("-h", "--help"), "", "print this"),
    Option(("-V", "--version"), "", "print the versions at work"),
)
EXAMPLES = (
    "vmql agent.vms",
    "vmql agent.vms -c 'CONTEXT AT CALL 317'",
    "vmql agent.vms -c 'PAGES count(*), sum(tokens) BY type' --json",
    "vmql agent.vms --csv -c 'CALLS call, tokens, cost WHERE status = failed' > failed.csv",
    "vmql agent.vms --sql -c 'SELECT type, sum(tokens) FROM pages GROUP BY type'",
    "vmql agent.vms --namespaces '*' -c 'CALLS sum(cost) BY namespace'",
    "vmql agent.vms -f questions.vmql",
)


class CommandLine(NamedTuple):
    """A command line as it was read: what is asked in order, the values of options, the store."""

    inputs: tuple[tuple[str, str], ...]  # ("-c", text) or ("-f", path)
    values: dict[str, list[str]]
    store: str | None
    others: tuple[str, ...] = ()  # more stores, asked with the first as one

    def has(self, name: str) -> bool:
        """Whether a switch is given."""
        return name in self.values

    def last(self, name: str) -> str | None:
        """The value of an option, the last one where it is given again."""
        return self.values[name][-1] if name in self.values else None

    @property
    def mode(self) -> str | None:
        """The mode asked for, the last one of several."""
        return next((name[2:] for name in reversed(self.values) if name[2:] in MODES), None)


OF_ONE = ("--namespace", "--session", "--turn")
MODES = ("table", "line", "json", "jsonl", "csv", "markdown")


class UsageError(Exception):
    """A command line that cannot be read; the message says why."""


def read(words: list[str]) -> CommandLine:
    """Reads a command line; raises UsageError naming what is wrong."""
    known = {name: option for option in OPTIONS for name in option.names}
    inputs: list[tuple[str, str]] = []
    values: dict[str, list[str]] = {}
    plain: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name == "--":
            plain += rest
        elif not word.startswith("-") or word == "-":
            plain.append(word)
        elif name not in known:
            raise UsageError(f"there is no option {name}{_nearest(name, list(known))}")
        else:
            option = known[name]
            value = _value(option, name, value if equals else None, rest)
            if option.names[0] in ("-c", "-f"):
                inputs.append((option.names[0], value))
            else:
                earlier = values.pop(option.names[-1], [])  # the last of several modes is the last one here
                values[option.names[-1]] = [*earlier, value]
    if len(plain) > 1 and "--namespaces" not in values:
        raise UsageError(f"unexpected argument {plain[1]!r}; put the query after -c")
    if "--namespaces" in values and (one := next((name for name in OF_ONE if name in values), None)):
        raise UsageError(f"--namespaces asks many, and {one} is of one; leave one of them out")
    return CommandLine(tuple(inputs), values, plain[0] if plain else None, tuple(plain[1:]))


def _value(option: Option, name: str, given: str | None, rest: Iterator[str]) -> str:
    """The value of an option, from behind its `=` or from the next word; nothing for a switch."""
    if not option.takes and given is not None:
        raise UsageError(f"{name} takes no value")
    if not option.takes:
        return ""
    value = next(rest, "") if given is None else given
    if not value:
        raise UsageError(f"{name} needs a value: {name} {option.takes}")
    return value


def _nearest(name: str, known: list[str]) -> str:
    near = suggest(name, known)
    return f"; the nearest is {near}" if near else ""


def help_text() -> str:
    """What `vmql --help` prints."""
    rows = [
        (", ".join(option.names) + (f" {option.takes}" if option.takes else ""), option.summary) for option in OPTIONS
    ]
    left = max(len(names) for names, _ in rows)
    lines = [
        f"usage: {PROG} [OPTIONS] STORE",
        "",
        "Asks a store in VMQL: what was in the context at any call, what changed, where a page came from, and why.",
        "Without -c, -f and a pipe on standard input it is a shell: statements end with ;, \\help lists commands.",
        "",
        "options:",
        *(f"  {names:<{left}}  {summary}" for names, summary in rows),
        "",
        "examples:",
        *(f"  {example}" for example in EXAMPLES),
        "",
        "Answers go to stdout, all else to stderr. Exit codes: 0, 1 refused, 2 usage, 130 Ctrl-C.",
    ]
    return "\n".join(lines)
