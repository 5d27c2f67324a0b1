"""The `vmstore` command: finds the command, runs it, and turns what happens into an exit code."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Sequence
from typing import cast

from vmstore.shell.commands.arguments import TAKING, USAGE, Parser, Run, add_common
from vmstore.shell.commands.registry import COMMANDS, nearest, overview
from vmstore.shell.terminal.exit_codes import leaving, refusal
from vmstore.shell.terminal.render import Screen

MEANT = {
    **{"ls": "sessions", "list": "sessions", "show": "context", "log": "history", "rm": "erase"},
    # As other memories call them.
    **{"status": "info", "domains": "tags", "aliases": "tags", "recall": "search", "retrieve": "search"},
    **{"transform": "assemble", "telemetry": "cost", "config": "presets", "onboard": "daemon", "service": "daemon"},
}
GARBAGE_MIN = 100_000  # objects made since the last search: long work still frees its cycles
ASKS = "query"  # the group of the commands that answer questions
SEARCHED = "vmstore search STORE 'some words' finds them"
WHY = "vmql STORE -c \"WHY NOT p51 IN CONTEXT AT CALL 174 IN SESSION 'NAME'\" says it, WHY of what is there"
ASKED = "vmql STORE -c \"PAGES page, role, line IN SESSION 'NAME' LIMIT 20\" is how one asks"
ELSEWHERE = {
    **dict.fromkeys(("find", "grep"), SEARCHED),
    **dict.fromkeys(("why", "why-not"), WHY),
    **dict.fromkeys(("query", "ask", "sql", "select", "vmql", "messages", "mutations"), ASKED),
}


def run() -> int:
    """The process: `main`, without looking for garbage while modules load, nor at its end, where there is none."""
    gc.set_threshold(GARBAGE_MIN)
    code = main()
    gc.freeze()
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `vmstore` with these arguments, by default the process's; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    return leaving(lambda: _dispatch(words), USAGE)


def _dispatch(words: list[str]) -> int:
    common, words = _leading(words)
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[0] == "help" and words[1] in COMMANDS:
            COMMANDS[words[1]].parser().print_help()
        else:
            print(overview())
        return 0 if words else USAGE
    if words[0] in ("-V", "--version"):
        return _run_words("vmstore.shell.versions", "print_versions", common, words[1:])
    if words[0] == "_complete":
        return _run_words("vmstore.shell.commands.completion", "complete", common, words[1:])
    command = COMMANDS.get(words[0])
    if command is None:
        meant = MEANT.get(words[0].lower()) or nearest(words[0])
        hint = f"the nearest is {meant!r}; `vmstore --help` lists them all" if meant else "`vmstore --help` lists them"
        if words[0].lower() in ELSEWHERE:
            hint = f"{ELSEWHERE[words[0].lower()]}; `vmql --help` says what else"
        kind = "option" if words[0].startswith("-") else "command"
        print(f"vmstore: there is no {kind} {words[0]!r}; {hint}", file=sys.stderr)
        return USAGE
    arguments = command.parser().parse_intermixed_args(words[1:], common)
    return _run(command.run, arguments, paged=command.group == ASKS)


def _leading(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The common options that stand before the command, and what follows them."""
    parser = Parser("vmstore", "", add_help=False)
    add_common(parser)
    split = 0
    while split < len(words) and words[split].partition("=")[0] in (*TAKING, "--json", "--quiet"):
        split += 2 if words[split] in TAKING else 1
    return parser.parse_args(words[:split]), words[split:]


def _run_words(module: str, function: str, common: argparse.Namespace, words: list[str]) -> int:
    """Runs a function that takes plain words and is no command of the table."""
    common.words = words
    return _run(cast(Run, getattr(importlib.import_module(module), function)), common)


def _run(run: Run, arguments: argparse.Namespace, *, paged: bool = False) -> int:
    """Runs a command; an error that vmstore raises becomes one line on stderr and exit code 1."""
    screen = _screen(arguments, paged=paged)
    try:
        if paged and sys.stderr.isatty():
            screen.wait("reading the store")
        code = run(arguments, screen)
        screen.finish()
        return code
    except Exception as error:
        message = refusal(error, getattr(arguments, "store", None))
        if message is None:
            raise
        screen.warn(message)
    finally:
        screen.awake()
    return 1


def _screen(arguments: argparse.Namespace, *, paged: bool) -> Screen:
    """Where the answer goes: a terminal with somebody at it is filled a page at a time, by PAGER where that is set."""
    if not paged or arguments.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Screen(quiet=arguments.quiet)
    from vmstore.shell.terminal.pager import PagedTerminal, height, read_key

    return PagedTerminal(read_key, height(), quiet=arguments.quiet)


if __name__ == "__main__":
    sys.exit(main())
