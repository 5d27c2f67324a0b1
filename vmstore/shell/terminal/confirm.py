"""Asks a person before something is done that is not taken back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from vmstore.errors import InputError


def consent(arguments: argparse.Namespace, question: str) -> bool:
    """Returns whether to go on, by --yes or by asking; raises InputError without a terminal."""
    if arguments.yes:
        return True
    if arguments.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError("nobody is there to ask; look at it with --dry-run, then give --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def asker(arguments: argparse.Namespace) -> bool | Callable[[Sequence[str]], bool]:
    """Returns whether foreign settings and erasures may take effect: by --yes, or by asking with the list of them.

    Where nobody is there to ask nobody agrees, and the refusal says what it would do.
    """
    if arguments.yes or arguments.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return bool(arguments.yes)

    def asked(effects: Sequence[str]) -> bool:
        from vmstore.core.text.visible import visible

        sys.stderr.write("\n" + "".join(f"  {visible(effect)}\n" for effect in effects))
        return consent(arguments, "let all of this happen?")

    return asked
