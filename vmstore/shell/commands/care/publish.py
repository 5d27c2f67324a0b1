"""The command that puts sessions of a store into a cold tier."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.commands.care.archives import age
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import PublishReport


def publish(arguments: argparse.Namespace, screen: Screen) -> int:
    """Publishes sessions, then the tables that other engines read where these are asked for."""
    from vmstore.maintenance.publish import publish as publish_sessions

    open_as_needed = open_to_ask if arguments.dry_run else open_to_change
    with open_as_needed(arguments) as store, screen.progress("publishing") as tell:
        report = publish_sessions(
            store,
            arguments.address,
            arguments.sessions,
            older_than_s=arguments.older_than,
            tables=[form for form in ("delta", "iceberg") if getattr(arguments, form)],
            dry_run=arguments.dry_run,
            progress=tell,
        )
    if arguments.json:
        screen.json(report)
    elif not screen.quiet:
        _show(report, screen)
    return 0


def _show(report: PublishReport, screen: Screen) -> None:
    done = "published" if report.done else "would publish"
    for part in report.sessions:
        size = f", {part.bytes:,} bytes" if part.bytes else ""
        new = count(part.commits, "commit")
        screen.show((StyledText(done, "good"), f": {part.session}, {part.why}, {new} more{size}"))
    if report.skipped:
        screen.show((StyledText("left alone", "dim"), f": {count(len(report.skipped), 'session')} there already"))
    if not report.sessions and not report.skipped:
        screen.show("there is no session to publish")
    elif report.manifest:
        segments = f", with {count(report.segments, 'column segment')}" if report.segments else ""
        screen.show(f"{report.address} stands at manifest {report.manifest}{segments}")
    for form, tables in report.tables.items():
        for name, address in tables.items():
            screen.show((StyledText(form, "name"), f" {name}: {address}"))


def _add_publish(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument("address", metavar="ADDRESS", help="the cold tier: s3://bucket/prefix, or a folder")
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="which sessions; all where none is named")
    parser.add_argument(
        "--older-than", type=age, metavar="AGE", help="those in which nothing happened for so long: 90d, 12w, 36h"
    )
    parser.add_argument("--delta", action="store_true", help="also as tables of Delta Lake, over the column segments")
    parser.add_argument("--iceberg", action="store_true", help="also as tables of Apache Iceberg, over the same files")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go there")
    parser.wrong = _misuse


def _misuse(arguments: argparse.Namespace) -> str | None:
    """Returns the message for arguments that exclude each other."""
    named = arguments.sessions and arguments.older_than is not None
    return "name sessions, or give --older-than" if named else None


COMMANDS = (
    Command(
        "publish",
        "maintain",
        "put sessions into a cold tier, in S3 or a folder",
        "Puts each session, and those it was forked from, into a cold tier as an archive, then a manifest that\n"
        "names all there is. The address is then a store that is only read: `vmql s3://team/cold`, and\n"
        "`vmstore COMMAND s3://team/cold` for every command that asks; with ?manifest=17 as it stood then.\n"
        "What is there already is not written again, and after a kill the same command goes on. What is\n"
        "erased in the store is written again there without it, and the former objects are deleted.",
        (
            "vmstore publish agent.vms s3://team/cold",
            "vmstore publish agent.vms s3://team/cold --delta",
            "vmstore publish agent.vms /mnt/cold planning-220",
        ),
        publish,
        (_add_publish,),
    ),
)
