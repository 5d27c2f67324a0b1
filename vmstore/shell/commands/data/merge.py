"""The command that brings the sessions of one store into another."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import Command, Parser
from vmstore.shell.open_store import key_named
from vmstore.shell.terminal.confirm import asker
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import MergeReport

SAID = {
    "new": "new",
    "grew": "grew",
    "same": "the same",
    "behind": "longer here",
    "parted": "parted",
    "taken": "name taken",
    "orphan": "no past here",
}


def merge(arguments: argparse.Namespace, screen: Screen) -> int:
    """Brings the sessions of another store into one; 1 where any is in conflict."""
    with screen.progress("merging") as tell:
        report = vmstore.merge(
            arguments.store,
            arguments.other,
            namespace=arguments.namespace,
            dry_run=arguments.dry_run,
            agreed=asker(arguments),
            key=key_named(arguments.store_key),
            progress=tell,
        )
    if arguments.json:
        screen.json(report)
    elif not screen.quiet or report.conflicts:
        _show_report(report, screen)
    return 1 if report.conflicts else 0


def _show_report(report: MergeReport, screen: Screen) -> None:
    rows = [
        (session.session, SAID[session.outcome], f"{session.commits:,}", session.namespace)
        for session in report.sessions
        if session.commits
    ]
    if rows:
        columns = (
            TableColumn("session", style="name"),
            TableColumn(""),
            TableColumn("commits", right=True),
            TableColumn("namespace"),
        )
        screen.show(TextTable(columns, rows))
    for effect in (effect for session in report.sessions for effect in session.effects):
        screen.show((StyledText("done here" if report.done else "would happen here", "warn"), f": {effect}"))
    outcomes = Counter(SAID[session.outcome] for session in report.sessions)
    amounts = ", ".join(f"{number} {word}" for word, number in outcomes.items())
    done = "merged" if report.done else "would merge"
    screen.show(
        (StyledText(done, "good"), f": {count(len(report.sessions), 'session')} looked at: {amounts or 'none'}")
    )
    for session in report.sessions:
        if session.why is not None:
            screen.show((StyledText("conflict", "bad"), f": {session.session}: {session.why}"))


def _add_merge(parser: Parser) -> None:
    parser.add_argument("store", metavar="INTO", help="the store that gains")
    parser.add_argument("other", metavar="FROM", help="the store, or an archive, whose sessions come; it is only read")
    parser.add_argument("--dry-run", action="store_true", help="only say what would come, and what it would do here")
    parser.add_argument("--yes", action="store_true", help="let erasures and settings that come along take effect here")


COMMANDS = (
    Command(
        "merge",
        "maintain",
        "bring the sessions of another store into one",
        "Brings every session of another store, or of the namespace named, into a store, its chain kept: one\n"
        "that is not there whole, of one that both have what is missing. Where both went on differently,\n"
        "or a name is taken, nothing of it is written and the remedy is named; exits with 1 then.",
        ("vmstore merge agent.vms laptop.vms --dry-run", "vmstore merge agent.vms laptop.vms"),
        merge,
        (_add_merge,),
    ),
)
