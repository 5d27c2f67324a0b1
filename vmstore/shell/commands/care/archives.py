"""Commands that move the contents of sessions to archives, and back."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import Command, Parser, add_store, whole_number
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import ArchiveReport


def archive(arguments: argparse.Namespace, screen: Screen) -> int:
    """Moves the contents of sessions that rest to one file each."""
    if arguments.list:
        return _list_archives(arguments, screen)
    open_as_needed = open_to_ask if arguments.dry_run else open_to_change
    with open_as_needed(arguments) as store, screen.progress("archiving") as tell:
        report = vmstore.archive(
            store,
            arguments.sessions,
            older_than_s=arguments.older_than,
            grace_s=arguments.grace,
            to=arguments.to,
            dry_run=arguments.dry_run,
            progress=tell,
        )
    return _show_report(report, "archived" if report.done else "would archive", arguments, screen)


def unarchive(arguments: argparse.Namespace, screen: Screen) -> int:
    """Moves the contents of archived sessions back into the log."""
    with open_to_change(arguments) as store:
        report = vmstore.unarchive(store, arguments.sessions)
    return _show_report(report, "brought back", arguments, screen)


def _list_archives(arguments: argparse.Namespace, screen: Screen) -> int:
    from vmstore.maintenance.archive import archived_sessions

    with open_to_ask(arguments) as store:
        files = archived_sessions(store)
    paths = {name: Path(file) for name, file in files.items()}
    sizes = {name: path.stat().st_size if path.exists() else None for name, path in paths.items()}
    if arguments.json:
        rows = [{"session": name, "file": str(path), "file_bytes": sizes[name]} for name, path in files.items()]
        screen.json({"archived": rows})
    elif not files:
        screen.show("no session is archived")
    else:
        rows_shown = [
            (name, _size_of(sizes[name], outside=isinstance(file, str)), str(file)) for name, file in files.items()
        ]
        screen.show(
            TextTable(
                (TableColumn("session", style="name"), TableColumn("bytes", right=True), TableColumn("file")),
                rows_shown,
            )
        )
    return 0


def _size_of(size: int | None, *, outside: bool) -> str:
    if size is None:
        return "" if outside else "missing"
    return f"{size:,}"


def _show_report(report: ArchiveReport, done: str, arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.json:
        screen.json(report)
    elif not screen.quiet:
        for moved in report.sessions:
            size = f", {moved.file_bytes:,} bytes" if moved.file_bytes else ""
            screen.show(
                (StyledText(done, "good"), f": {count(moved.cells, 'cell')} of {moved.session}; {moved.file}{size}")
            )
        for skipped in report.skipped:
            screen.show((StyledText("left alone", "dim"), f": {skipped.session}, {skipped.why}"))
        if not report.sessions and not report.skipped:
            screen.show("there is no session that old")
        if report.done and report.left_to:
            screen.show(f"their contents lie at {report.left_to}, and are fetched from there when they are asked for")
        if report.done and report.sessions:
            screen.show(
                f"log, long contents and archives took {report.bytes_before:,} bytes and take {report.bytes_after:,}"
            )
    return 0


def _add_archive(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument(
        "sessions", metavar="SESSION", nargs="*", help="which sessions; or say how old with --older-than"
    )
    parser.add_argument(
        "--older-than", type=age, metavar="AGE", help="those in which nothing happened for so long: 90d, 12w, 36h"
    )
    parser.add_argument(
        "--grace",
        type=whole_number,
        metavar="S",
        default=3600,
        help="one written to in the last S seconds is open (3600)",
    )
    parser.add_argument(
        "--to",
        metavar="ADDRESS",
        help="publish them to a cold tier, s3://bucket/prefix or a folder, and leave them there",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would move")
    parser.add_argument("--list", action="store_true", help="list what is archived instead")
    parser.wrong = _misuse_of_archive


def _misuse_of_archive(arguments: argparse.Namespace) -> str | None:
    """Returns the message for arguments of `archive` that exclude each other."""
    choices = (bool(arguments.sessions), arguments.older_than is not None, arguments.list)
    return None if sum(choices) == 1 else "name sessions, or give --older-than or --list"


def age(text: str) -> float:
    """Seconds of an age as an option says it: 90d, 12w, 36h."""
    hours = {"h": 1, "d": 24, "w": 168}.get(text[-1:])
    if hours is None or not text[:-1].isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no age like 90d, 12w or 36h")
    return int(text[:-1]) * hours * 3600.0


def _add_unarchive(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument("sessions", metavar="SESSION", nargs="+", help="which sessions")


COMMANDS = (
    Command(
        "archive",
        "maintain",
        "move the contents of old sessions to one file each",
        "Moves the contents of sessions that rest to one dense file each, in the folder archive/ of the\n"
        "namespace. Their commits stay in the log: views, hashes, seals and every answer stay the same, and\n"
        "contents are read from the file when asked for. The file can be asked alone: `vmql FILE.archive`.\n"
        "With --to the file goes to a cold tier and is fetched from there when it is asked for.",
        (
            "vmstore archive agent.vms planning-220",
            "vmstore archive agent.vms --older-than 90d --to s3://team/cold",
            "vmstore archive agent.vms --list",
        ),
        archive,
        (_add_archive,),
    ),
    Command(
        "unarchive",
        "maintain",
        "bring archived sessions back",
        "Moves the contents of archived sessions back into the log, and deletes their archives.",
        ("vmstore unarchive agent.vms planning-220",),
        unarchive,
        (_add_unarchive,),
    ),
)
