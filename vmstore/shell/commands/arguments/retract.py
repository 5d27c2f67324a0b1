"""The arguments that name the cause of a retraction; nothing here loads the store, so help answers at once."""

from __future__ import annotations

import argparse


def add_retract(parser: argparse.ArgumentParser) -> None:
    """What went wrong, why, and whether to go on without asking."""
    parser.add_argument("store", metavar="STORE", help="the store's folder, like agent.vms")
    cause = parser.add_mutually_exclusive_group(required=True)
    cause.add_argument("--page", metavar="P", help="a page: a name like p17, a hint, or s1/p17")
    cause.add_argument("--session", metavar="S", help="every page that a session made")
    cause.add_argument(
        "--actor", metavar="A", help="every page made by them: whom pages name, a role, a session's user or agent"
    )
    cause.add_argument("--tool", metavar="T", help="every result of a tool")
    parser.add_argument("--in-session", metavar="S", help="look for the cause in this session alone")
    parser.add_argument("--reason", metavar="TEXT", help="why, in your words; kept with every page that is marked")
    parser.add_argument(
        "--rebuild", action="store_true", help="make anew, from what is left, what can be: claims and summaries"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be marked, and what speaks against")
    parser.add_argument("--yes", action="store_true", help="do not ask")
