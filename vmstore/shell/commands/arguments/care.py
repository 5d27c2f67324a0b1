"""The arguments of commands that look after stores: archives, merging, doctor, upgrade."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments.arguments import Parser, add_store


def add_archive(parser: argparse.ArgumentParser) -> None:
    """Which sessions rest."""
    add_store(parser)
    parser.add_argument(
        "sessions", metavar="SESSION", nargs="*", help="which sessions; or say how old with --older-than"
    )
    parser.add_argument(
        "--older-than", type=_age, metavar="AGE", help="those in which nothing happened for so long: 90d, 12w, 36h"
    )
    parser.add_argument(
        "--grace", type=_seconds, metavar="S", default=3600, help="one written to in the last S seconds is open (3600)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would move")
    parser.add_argument("--list", action="store_true", help="list what is archived instead")
    if isinstance(parser, Parser):
        parser.wrong = _wrong_archive


def _wrong_archive(told: argparse.Namespace) -> str | None:
    """What does not go together in the arguments of `archive`."""
    ways = (bool(told.sessions), told.older_than is not None, told.list)
    return None if sum(ways) == 1 else "name sessions, or give --older-than or --list"


def _age(text: str) -> float:
    hours = {"h": 1, "d": 24, "w": 168}.get(text[-1:])
    if hours is None or not text[:-1].isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no age like 90d, 12w or 36h")
    return int(text[:-1]) * hours * 3600.0


def _seconds(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return int(text)


def add_unarchive(parser: argparse.ArgumentParser) -> None:
    """Which sessions come back."""
    add_store(parser)
    parser.add_argument("sessions", metavar="SESSION", nargs="+", help="which sessions")


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Which store comes into which."""
    parser.add_argument("store", metavar="INTO", help="the store that gains")
    parser.add_argument("other", metavar="FROM", help="the store, or an archive, whose sessions come; it is only read")
    parser.add_argument("--dry-run", action="store_true", help="only say what would come, and what it would do here")
    parser.add_argument("--yes", action="store_true", help="let erasures and settings that come along take effect here")


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """How closely a store is looked at."""
    add_store(parser)
    parser.add_argument("--full", action="store_true", help="check all that `vmstore verify` checks")


def add_upgrade(parser: argparse.ArgumentParser) -> None:
    """Whether it is only tried."""
    add_store(parser)
    parser.add_argument("--rehearse", action="store_true", help="do it on a copy, say what it takes, and leave nothing")
