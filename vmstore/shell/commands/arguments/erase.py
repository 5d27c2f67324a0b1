"""What `vmstore erase` is told."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments.arguments import Command, add_store

REASONS = ("asked", "retention", "mistake", "secret", "law")


def add_erase(parser: argparse.ArgumentParser) -> None:
    """Whose contents go, what goes with them, why, and whether at all."""
    parser.add_argument("--page", metavar="P", help="a page: all its versions, forms, names and what was said of it")
    parser.add_argument("--session", metavar="S", help="all of a session, by its name or its uid")
    parser.add_argument("--user", metavar="U", help="all sessions of a user")
    parser.add_argument("--where", metavar="VMQL", help="the pages for which a condition on PAGES holds")
    parser.add_argument("--in-session", metavar="S", help="where the page is, or the condition holds")
    parser.add_argument("--derived", action="store_true", help="also pages that were made from it, and from those")
    parser.add_argument("--copies", action="store_true", help="also what says the same, or quotes it whole")
    parser.add_argument("--reason", choices=REASONS, default="asked", help="what the log says of why (default: asked)")
    parser.add_argument("--key", metavar="FILE", help="sign the certificate with this secret key")
    parser.add_argument("--dry-run", action="store_true", help="say what would go and what would stay; write nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask; needed where nobody can be asked")
    parser.add_argument("--finish", action="store_true", help="finish an erasure that was interrupted")


ERASE = Command(
    "erase",
    "keep",
    "destroy contents for good",
    "Destroys contents in the log, its views, its indexes and on every fork, while every hash goes on holding\n"
    "and every other answer stays; whoever asks hears where it was erased. It lists what goes, what hangs on\n"
    "it and stays unless told, and what is beyond reach, then asks. A certificate beside the store says what\n"
    "was destroyed, without a word of it, and keeps backups from bringing it back.",
    (
        "vmstore erase agent.vms --page p17 --in-session planning-220 --dry-run",
        "vmstore erase agent.vms --user ann --derived --copies --yes",
        "vmstore erase agent.vms --where \"tag = 'trial'\" --reason retention --yes",
    ),
    ("vmstore.shell.commands.trust.erase", "erase"),
    (add_store, add_erase),
)
