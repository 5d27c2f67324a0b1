"""The arguments commands take, and a parser that says what is wrong with them.

Nothing here loads the store, so help answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from vmstore.core.text.suggest import suggest
from vmstore.shell.terminal.render import Screen

USAGE = 2
MOMENTS = ("turn", "call", "position")
TAKING = ("--namespace", "--store-key", "--wait")  # what every command has that takes a value
SECONDS_MAX = 1_000_000


class Parser(argparse.ArgumentParser):
    """A parser whose errors name the remedy and leave with 2."""

    def __init__(self, prog: str, description: str, epilog: str = "", *, add_help: bool = True) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            add_help=add_help,
            allow_abbrev=False,  # a later option must not change what a script's short form means
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

        self.wrong: Callable[[argparse.Namespace], str | None] = lambda arguments: None

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The parsed arguments; exits where they contradict each other."""
        arguments = super().parse_intermixed_args(args, namespace)
        if (wrong := self.wrong(arguments)) is not None:
            self.error(wrong)
        return arguments

    def error(self, message: str) -> NoReturn:
        """Says what is wrong with the arguments, and leaves."""
        option = message.removeprefix("unrecognized arguments: ").split(" ")[0].partition("=")[0]
        if message.startswith("unrecognized") and option.startswith("-"):
            close = suggest(option, self._option_string_actions)
            message = f"there is no option {option}" + (f"; the nearest is {close}" if close else "")
            if option == "--session" and any(action.dest == "session" for action in self._actions):
                message = (
                    f"there is no option --session: the session's name follows the store's, {self.prog} STORE NAME"
                )
        self.exit(USAGE, f"vmstore: {message}; `{self.prog} --help` shows how\n")


Run = Callable[[argparse.Namespace, Screen], int]


class Command(NamedTuple):
    """One command: its arguments, the function that runs it, and what it says of itself."""

    name: str
    group: str
    summary: str
    description: str
    examples: tuple[str, ...]
    run: Run
    arguments: tuple[Callable[[Parser], None], ...]

    def parser(self) -> Parser:
        """The command's own parser."""
        examples = "examples:\n" + "\n".join(f"  {example}" for example in self.examples)
        parser = Parser(f"vmstore {self.name}", self.description, examples)
        for add in self.arguments:
            add(parser)
        add_common(parser)
        return parser


STORE_HELP = "the store's folder, like agent.vms, or its address, like postgresql://user@host/database"


def add_common(parser: Parser) -> None:
    """The options every command has."""
    options = parser.add_argument_group("common options")
    if not any(action.dest == "namespaces" for action in parser._actions):
        options.add_argument("--namespace", metavar="NS", help="which namespace of the store (default: default)")
    options.add_argument("--store-key", metavar="FILE", help="the key of an encrypted store (or VMSTORE_KEY_FILE)")
    options.add_argument(
        "--wait", type=_seconds, metavar="S", help="how long to wait for another process at work (default: 30 seconds)"
    )
    options.add_argument("--json", action="store_true", help="answer with one JSON object")
    options.add_argument("--quiet", action="store_true", help="only the answer: no remarks, no progress")


def add_store(parser: Parser) -> None:
    """Which store."""
    parser.add_argument("store", metavar="STORE", help=STORE_HELP)


def add_session(parser: Parser) -> None:
    """Which session."""
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="its name, the beginning of it, or - for the newest; may be left out where there is only one",
    )


def add_prices(parser: Parser) -> None:
    """Which prices."""
    parser.add_argument("--prices", metavar="FILE", help="estimate by the prices in this JSON file")


def add_page(parser: Parser) -> None:
    """Which page."""
    parser.add_argument("page", metavar="PAGE", help="a name like p17, a hint, or vm://default/session/p17@turn:3")


def add_moment(parser: Parser) -> None:
    """As of when."""
    group = parser.add_argument_group("as of (default: now)").add_mutually_exclusive_group()
    group.add_argument("--turn", type=int, metavar="N", help="the end of turn N")
    group.add_argument("--call", type=int, metavar="N", help="the moment of call N, before its answer")
    group.add_argument("--position", type=int, metavar="N", help="the session's mutation N")
    group.add_argument("--time", metavar="T", help="a time like 2026-11-21T22:55:01Z, or yesterday")


def positive_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to {SECONDS_MAX:,}")
    return value


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return int(text)


def port_number(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)


def add_workers(parser: Parser) -> None:
    """Who does the work, and where what is done is kept."""
    group = parser.add_argument_group("done by many")
    group.add_argument(
        "--workers", metavar="W", help="so many processes, ray, or ray://host:port (default: one process a core)"
    )
    group.add_argument("--results", metavar="FILE", help="keep what is done in FILE, and go on from there")


def add_namespaces(parser: Parser) -> None:
    """Which namespaces."""
    parser.add_argument("--namespaces", metavar="NS,NS", help="these namespaces of the store, or * for all")


def add_owner(parser: Parser) -> None:
    """Whose sessions."""
    parser.add_argument("--user", metavar="U", help="only sessions of this user")
    parser.add_argument("--agent", metavar="A", help="only sessions of this agent")
