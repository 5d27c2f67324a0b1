"""Commands that look after a store's files: compact, sweep, upgrade."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments import Command, Parser, add_store, whole_number
from vmstore.shell.open_store import namespace_of, open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

TABLES = "its tables are made by the version that opens it"


def compact(arguments: argparse.Namespace, screen: Screen) -> int:
    """Packs the contents of the log, and cuts column segments from it."""
    with open_to_change(arguments) as store, screen.progress("packing") as tell:
        report = store.admin.compact(tell)
    if arguments.json:
        screen.json(report)
    elif not screen.quiet:
        rows = f"{report.frames_before:,} rows of cells became {report.frames_after:,}"
        room = f"the log took {report.bytes_before:,} bytes and takes {report.bytes_after:,}"
        screen.show((StyledText("packed", "good"), f": {rows}; {room}"))
        if report.segments:
            screen.show(
                (
                    StyledText("cut", "good"),
                    f": {count(report.segments, 'column segment')}, up to commit {report.columns}",
                )
            )
    return 0


def sweep(arguments: argparse.Namespace, screen: Screen) -> int:
    """Deletes files of large contents that no commit names, or objects of a cold tier that no manifest does."""
    if arguments.store.partition("://")[0] in ("s3", "cold"):
        return _sweep_tier(arguments, screen)
    open_as_needed = open_to_ask if arguments.dry_run else open_to_change
    with open_as_needed(arguments) as store:
        report = store.admin.collect_garbage(grace_s=arguments.grace, dry_run=arguments.dry_run)
    verb = "deleted" if report.deleted else "would delete"
    return screen.answer(
        arguments,
        report,
        f"{verb} {count(len(report.files), 'file')} of {report.bytes:,} bytes that no commit names",
        *(StyledText(file, "dim") for file in report.files),
    )


def _sweep_tier(arguments: argparse.Namespace, screen: Screen) -> int:
    from vmstore.core.clock import SystemClock
    from vmstore.maintenance.publish import sweep_tier

    report = sweep_tier(
        arguments.store,
        namespace_of(arguments),
        SystemClock().now(),
        grace_s=arguments.grace,
        dry_run=arguments.dry_run,
    )
    verb = "deleted" if report.deleted else "would delete"
    return screen.answer(
        arguments,
        report,
        f"{verb} {count(len(report.files), 'object')} of {report.bytes:,} bytes that no manifest names",
        *(StyledText(name, "dim") for name in report.files),
    )


def upgrade(arguments: argparse.Namespace, screen: Screen) -> int:
    """Upgrades a log of an older format, or rehearses the upgrade on a copy."""
    from vmstore.maintenance.upgrade import upgrade as upgrade_log
    from vmstore.namespace.backends.address import path_of

    if arguments.rehearse:
        return _rehearse(arguments, screen)
    with screen.progress("upgrading") as tell:
        report = upgrade_log(path_of(arguments.store, TABLES), namespace_of(arguments), tell)
    if arguments.json:
        screen.json(
            {"format_before": report.before, "format": report.now, "commits": report.commits, "kept": report.kept}
        )
    elif not screen.quiet and report.kept is None:
        screen.show(f"{arguments.store} has format {report.now} already")
    elif not screen.quiet:
        formats = f" from format {report.before} to {report.now}"
        screen.show(
            (
                StyledText("upgraded", "good"),
                f"{formats}: {count(report.commits, 'commit')}; the old log is {report.kept}",
            )
        )
    return 0


def _rehearse(arguments: argparse.Namespace, screen: Screen) -> int:
    from vmstore.maintenance.upgrade import rehearse
    from vmstore.namespace.backends.address import path_of

    with screen.progress("rehearsing") as tell:
        report = rehearse(path_of(arguments.store, TABLES), namespace_of(arguments), tell)
    if arguments.json:
        screen.json(report)
    elif report.format_before == report.format and not screen.quiet:
        screen.show(f"{arguments.store} has format {report.format} already")
    elif not screen.quiet:
        same = f"{count(report.commits, 'commit')} with their cells and {report.views} views are the same"
        screen.show(
            (StyledText("rehearsed", "good"), f" from format {report.format_before} to {report.format}: {same}")
        )
        room = f"{report.bytes:,} bytes more, of {report.bytes_free:,} that are free"
        screen.show(f"it takes {report.seconds:.1f} s and {room}; nothing was changed")
    return 0 if report.ready else 1


def _add_sweep(parser: Parser) -> None:
    parser.add_argument(
        "--grace",
        type=whole_number,
        metavar="S",
        default=3600,
        help="spare files of the last S seconds (default: 3600)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be deleted")


def _add_upgrade(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument("--rehearse", action="store_true", help="do it on a copy, say what it takes, and leave nothing")


COMMANDS = (
    Command(
        "compact",
        "maintain",
        "pack the contents of the log",
        "Packs the contents of the log, so that it takes less room. It happens by itself as a store is\n"
        "written; this packs what is left, and cuts much that is new into column segments where the extra\n"
        "for them is installed. Others may read and write meanwhile.",
        ("vmstore compact agent.vms",),
        compact,
        (add_store,),
    ),
    Command(
        "sweep",
        "maintain",
        "delete files that a crash left behind",
        "Deletes files of large contents that no commit names, as a crash between the two leaves them; of a\n"
        "cold tier objects that no manifest of the last seconds names, and manifests replaced before that.",
        ("vmstore sweep agent.vms --dry-run", "vmstore sweep agent.vms --grace 0", "vmstore sweep s3://team/cold"),
        sweep,
        (add_store, _add_sweep),
    ),
    Command(
        "upgrade",
        "maintain",
        "bring a store of an older format up to date",
        "Rewrites the log of an older format, beside it, checks it against the old one and puts it in\n"
        "its place; the old one is kept beside it. Hashes, positions and answers stay the same.",
        ("vmstore upgrade agent.vms --rehearse", "vmstore upgrade agent.vms"),
        upgrade,
        (_add_upgrade,),
    ),
)
