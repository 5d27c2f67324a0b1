"""Commands that look after a store's files: compact, sweep, upgrade."""

from __future__ import annotations

import argparse
from pathlib import Path

from vmstore.maintenance.upgrade import rehearse
from vmstore.maintenance.upgrade import upgrade as upgrade_log
from vmstore.namespace.results import to_json
from vmstore.shell.open_store import namespace_of, open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Span
from vmstore.shell.terminal.render import Screen


def compact(arguments: argparse.Namespace, screen: Screen) -> int:
    """Packs the contents of the log, and cuts column segments from it."""
    with open_to_change(arguments) as store, screen.progress("packing") as tell:
        found = store.admin.compact(tell)
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        rows = f"{found.frames_before:,} rows of cells became {found.frames_after:,}"
        room = f"the log took {found.bytes_before:,} bytes and takes {found.bytes_after:,}"
        screen.show((Span("packed", "good"), f": {rows}; {room}"))
        if found.segments:
            screen.show(
                (Span("cut", "good"), f": {count(found.segments, 'column segment')}, up to commit {found.columns}")
            )
    return 0


def sweep(arguments: argparse.Namespace, screen: Screen) -> int:
    """Deletes files of large contents that no commit names."""
    opened = open_to_ask if arguments.dry_run else open_to_change
    with opened(arguments) as store:
        found = store.admin.collect_garbage(grace_s=arguments.grace, dry_run=arguments.dry_run)
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        told = "deleted" if found.deleted else "would delete"
        screen.show(f"{told} {count(len(found.files), 'file')} of {found.bytes:,} bytes that no commit names")
        screen.show(*(Span(file, "dim") for file in found.files))
    return 0


def upgrade(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes a log of an older format anew, or only tries it on a copy."""
    if arguments.rehearse:
        return _rehearse(arguments, screen)
    with screen.progress("upgrading") as tell:
        found = upgrade_log(Path(arguments.store), namespace_of(arguments), tell)
    if arguments.json:
        screen.json({"format_before": found.before, "format": found.now, "commits": found.commits, "kept": found.kept})
    elif not screen.quiet and found.kept is None:
        screen.show(f"{arguments.store} has format {found.now} already")
    elif not screen.quiet:
        text = (
            f" from format {found.before} to {found.now}: {count(found.commits, 'commit')}; the old log is {found.kept}"
        )
        screen.show((Span("upgraded", "good"), text))
    return 0


def _rehearse(arguments: argparse.Namespace, screen: Screen) -> int:
    with screen.progress("rehearsing") as tell:
        found = rehearse(Path(arguments.store), namespace_of(arguments), tell)
    if arguments.json:
        screen.json(to_json(found))
    elif found.format_before == found.format and not screen.quiet:
        screen.show(f"{arguments.store} has format {found.format} already")
    elif not screen.quiet:
        same = f"{count(found.commits, 'commit')} with their cells and {found.views} views are the same"
        screen.show((Span("rehearsed", "good"), f" from format {found.format_before} to {found.format}: {same}"))
        room = f"{found.bytes:,} bytes more, of {found.bytes_free:,} that are free"
        screen.show(f"it takes {found.seconds:.1f} s and {room}; nothing was changed")
    return 0 if found.ready else 1
