"""Commands that keep a store safe: backup and restore."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import key_named
from vmstore.shell.terminal.confirm import asker
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Line, StyledText
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import Backup, RestoreReport


def backup(arguments: argparse.Namespace, screen: Screen) -> int:
    """Copies a store to a new folder while others may write to it."""
    with screen.progress("backing up") as tell:
        key = key_named(arguments.store_key)
        report = vmstore.backup(arguments.store, arguments.to, namespace=arguments.namespace, key=key, progress=tell)
    return _show_report(report, "backed up and verified", arguments, screen)


def restore(arguments: argparse.Namespace, screen: Screen) -> int:
    """Makes a store of a backup where none is."""
    with screen.progress("restoring") as tell:
        report = vmstore.restore(
            arguments.backup,
            arguments.store,
            key=key_named(arguments.store_key),
            erasures=arguments.erasures,
            public_key=arguments.public_key,
            agreed=asker(arguments),
            dry_run=arguments.dry_run,
            progress=tell,
        )
    code = _show_report(report, "restored and verified" if report.done else "would restore", arguments, screen)
    if not (arguments.json or screen.quiet):
        for effect in report.effects:
            screen.show((StyledText("takes effect" if report.done else "would take effect", "warn"), f": {effect}"))
        screen.show(_erased_again(report))
    return code


def _erased_again(report: RestoreReport) -> Line:
    """Formats the erasures that were applied again, or that no certificate was found."""
    if not report.certificates:
        return (
            StyledText("no certificates of erasures were found", "warn"),
            f"; {report.path}.erasures is where they lie",
        )
    proof = f"by {count(report.certificates, 'certificate')} of erasures, {report.signed} signed by the key named"
    done = "erased again" if report.done else "would be erased again"
    return (StyledText(done, "good"), f": {count(report.erased, 'cell')}, {proof}")


def _show_report(report: Backup, done: str, arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.json:
        screen.json(report)
    elif not screen.quiet:
        for part in report.namespaces:
            amounts = ((part.sessions, "session"), (part.commits, "commit"), (part.mutations, "mutation"))
            sizes = ", ".join(count(number, noun) for number, noun in amounts)
            line: Line = (StyledText(done, "good"), f": {sizes} of namespace {part.namespace} in {report.path}")
            screen.show(line)
    return 0


def _add_backup(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument("to", metavar="DEST", help="the backup's folder; nothing may stand there yet")


def _add_restore(parser: Parser) -> None:
    parser.add_argument("backup", metavar="BACKUP", help="a folder that `vmstore backup` made")
    parser.add_argument("store", metavar="STORE", help="the store's folder; nothing may stand there yet")
    parser.add_argument("--erasures", metavar="FOLDER", help="certificates to hold it to, besides STORE.erasures")
    parser.add_argument("--public-key", metavar="KEY", help="obey certificates that this key signed: hex, or a file")
    parser.add_argument("--dry-run", action="store_true", help="prove it and say what would happen; nothing is left")
    parser.add_argument(
        "--yes", action="store_true", help="obey other certificates too, and the grants, rules and approvals in it"
    )


COMMANDS = (
    Command(
        "backup",
        "maintain",
        "a verified copy, while others write",
        "Copies a store, or the namespace named, to a new folder, while others may write to it. Each log\n"
        "is copied as it stood at one moment and verified in full; the folder appears when it is whole.\n"
        "Views are left out: they are folded again.",
        ("vmstore backup agent.vms /backups/agent-monday", "vmstore backup agent.vms nightly --namespace default"),
        backup,
        (_add_backup,),
    ),
    Command(
        "restore",
        "maintain",
        "a store from a backup",
        "Makes a store of a backup where none is: compares every byte and verifies the log in full.",
        ("vmstore restore /backups/agent-monday agent.vms",),
        restore,
        (_add_restore,),
    ),
)
