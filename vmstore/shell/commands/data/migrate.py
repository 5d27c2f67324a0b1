"""The command that copies a store to another place."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import STORE_HELP, Command, Parser
from vmstore.shell.open_store import key_named
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import MigratedNamespace

HASH_SHOWN = 16  # of a hash's digits
COLUMNS = (
    TableColumn("session", style="name"),
    TableColumn("position", right=True),
    TableColumn("hash", style="dim"),
)


def migrate(arguments: argparse.Namespace, screen: Screen) -> int:
    """Copies a store's namespaces into another store, and proves them there."""
    with screen.progress("migrating") as tell:
        report = vmstore.migrate(
            arguments.store,
            arguments.target,
            namespaces=arguments.namespaces or (),
            key=key_named(arguments.store_key),
            progress=tell,
        )
    if arguments.json:
        screen.json(report)
        return 0
    for namespace in report.namespaces:
        _show_namespace(namespace, screen)
    return 0


def _show_namespace(namespace: MigratedNamespace, screen: Screen) -> None:
    rows = [
        (head.name or f"[erased] {head.session[:8]}", f"{head.position:,}", head.hash[:HASH_SHOWN])
        for head in namespace.heads
    ]
    if rows and not screen.quiet:
        screen.show(TextTable(COLUMNS, rows))
    into = "" if namespace.into == namespace.namespace else f" as {namespace.into}"
    said = (
        f": {namespace.namespace}{into}: {count(namespace.commits, 'new commit')}, the same up to ordinal "
        f"{namespace.upto:,} in {count(len(namespace.heads), 'session')}"
    )
    if namespace.documents:
        said += f"; {count(namespace.documents, 'file')} of certificates and seals"
    screen.show((StyledText("migrated", "good"), said))
    if namespace.behind:
        screen.show(
            (
                StyledText("behind", "warn"),
                f": {count(namespace.behind, 'commit')} written there meanwhile; run this again to catch up",
            )
        )


def _add_migrate(parser: Parser) -> None:
    parser.add_argument("store", metavar="FROM", help=f"{STORE_HELP}; it is only read")
    parser.add_argument("target", metavar="INTO", help="the store it comes into, which is made where there is none")
    parser.add_argument(
        "--namespace",
        dest="namespaces",
        metavar="NS",
        action="append",
        help="only this namespace; may be given again (default: all)",
    )


COMMANDS = (
    Command(
        "migrate",
        "maintain",
        "copy a store to another place, into a database or out of it",
        "Copies every namespace of a store into another, commits as they are, with contents, erasures, certificates\n"
        "and seals, verifies the copy and prints where each session stands in both. What INTO holds already has to\n"
        "be the beginning of what FROM does, so a migration that was stopped goes on, and one of a store that is\n"
        "written meanwhile catches up, when it is run again. FROM is only read.",
        (
            "vmstore migrate agent.vms 'postgresql://team@db.example/agents'",
            "vmstore migrate 'postgresql://team@db.example/agents' copy.vms --namespace team-a --json",
        ),
        migrate,
        (_add_migrate,),
    ),
)
