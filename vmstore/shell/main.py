"""The `vmstore` command: finds the command, runs it, and turns what happens into an exit code."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from vmstore.errors import CorruptError, VmstoreError
from vmstore.shell.arguments import USAGE, Parser, add_common
from vmstore.shell.commands import COMMANDS, nearest, overview
from vmstore.shell.render import Screen

INTERRUPTED = 130
PIPE_CLOSED = 141  # what a shell reports for a program that SIGPIPE ended

Run = Callable[[argparse.Namespace, Screen], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `vmstore` with these arguments, by default the process's; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a lone surrogate must not end the answer
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except SystemExit as left:  # argparse leaves this way
        return left.code if isinstance(left.code, int) else USAGE
    except BrokenPipeError:
        _forget_stdout()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED


def _dispatch(words: list[str]) -> int:
    common, words = _leading(words)
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[0] == "help" and words[1] in COMMANDS:
            COMMANDS[words[1]].parser().print_help()
        else:
            print(overview())
        return 0 if words else USAGE
    if words[0] in ("-V", "--version"):
        return _run(("vmstore.shell.about", "print_versions"), common, words[1:])
    if words[0] == "_complete":
        return _run(("vmstore.shell.complete", "complete"), common, words[1:])
    command = COMMANDS.get(words[0])
    if command is None:
        known = f"the nearest is {nearest(words[0])!r}; `vmstore --help` lists them all"
        kind = "option" if words[0].startswith("-") else "command"
        print(f"vmstore: there is no {kind} {words[0]!r}; {known}", file=sys.stderr)
        return USAGE
    arguments = command.parser().parse_intermixed_args(words[1:], common)
    return _guarded(command.run, arguments)


def _leading(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The common options that stand before the command, and what follows them."""
    parser = Parser("vmstore", "", add_help=False)
    add_common(parser)
    split = 0
    while split < len(words) and words[split].partition("=")[0] in ("--namespace", "--json", "--quiet"):
        split += 2 if words[split] == "--namespace" else 1
    return parser.parse_args(words[:split]), words[split:]


def _run(target: tuple[str, str], common: argparse.Namespace, words: list[str]) -> int:
    common.words = words
    return _guarded(target, common)


def _guarded(target: tuple[str, str], arguments: argparse.Namespace) -> int:
    """Runs a command; what vmstore refuses becomes one line on stderr and exit code 1."""
    screen = Screen(quiet=arguments.quiet)
    try:
        return _load(target)(arguments, screen)
    except VmstoreError as error:
        screen.warn(str(error))
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        damage = _damage(error, arguments)
        if damage is None:
            raise
        screen.warn(damage)
    return 1


def _load(target: tuple[str, str]) -> Run:
    module, function = target
    return cast(Run, getattr(importlib.import_module(module), function))


def _damage(error: Exception, arguments: argparse.Namespace) -> str | None:
    """What to say of an error that damaged or unreachable files cause; None for one of our own making."""
    kinds: tuple[type[BaseException], ...] = (OSError,)
    for name, kind in (("apsw", "Error"), ("msgspec", "MsgspecError")):
        if name in sys.modules:
            kinds += (cast(Any, getattr(sys.modules[name], kind)),)
    if not isinstance(error, kinds):
        return None
    store = getattr(arguments, "store", None)
    if isinstance(error, OSError) or store is None:
        return f"{error}; check the path and its permissions"
    return str(CorruptError(f"{store} could not be read ({error}); `vmstore verify {store}` names what is damaged"))


def _forget_stdout() -> None:
    """Points stdout at nothing, so that the interpreter does not complain of the closed pipe at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
