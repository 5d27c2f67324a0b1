"""Asks a person before something is done that is not taken back."""

from __future__ import annotations

import argparse
import sys

from vmstore.errors import InputError


def consent(arguments: argparse.Namespace, question: str) -> bool:
    """Whether to go on: told with --yes, or asked for; InputError where nobody is there to ask."""
    if arguments.yes:
        return True
    if arguments.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError("nobody is there to ask; look at it with --dry-run, then give --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
