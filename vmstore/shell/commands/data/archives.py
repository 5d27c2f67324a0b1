"""Commands that move the contents of sessions to archives, and back."""

from __future__ import annotations

import argparse

from vmstore.maintenance.archive import archive as move
from vmstore.maintenance.archive import archived_sessions
from vmstore.maintenance.archive import unarchive as bring_back
from vmstore.namespace.reports import Archived
from vmstore.namespace.results import to_json
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Column, Span, Table
from vmstore.shell.terminal.render import Screen


def archive(arguments: argparse.Namespace, screen: Screen) -> int:
    """Moves the contents of sessions that rest to one file each."""
    if arguments.list:
        return _listed(arguments, screen)
    opened = open_to_ask if arguments.dry_run else open_to_change
    with opened(arguments) as store, screen.progress("archiving") as tell:
        found = move(
            store,
            arguments.sessions,
            older_than_s=arguments.older_than,
            grace_s=arguments.grace,
            dry_run=arguments.dry_run,
            progress=tell,
        )
    return _told(found, "archived" if found.done else "would archive", arguments, screen)


def unarchive(arguments: argparse.Namespace, screen: Screen) -> int:
    """Moves the contents of archived sessions back into the log."""
    with open_to_change(arguments) as store:
        found = bring_back(store, arguments.sessions)
    return _told(found, "brought back", arguments, screen)


def _listed(arguments: argparse.Namespace, screen: Screen) -> int:
    with open_to_ask(arguments) as store:
        found = archived_sessions(store)
    sizes = {name: path.stat().st_size if path.exists() else None for name, path in found.items()}
    if arguments.json:
        rows = [{"session": name, "file": str(path), "file_bytes": sizes[name]} for name, path in found.items()]
        screen.json({"archived": rows})
    elif not found:
        screen.show("no session is archived")
    else:
        told = [(name, "missing" if (size := sizes[name]) is None else f"{size:,}", str(found[name])) for name in found]
        screen.show(Table((Column("session", style="name"), Column("bytes", right=True), Column("file")), told))
    return 0


def _told(found: Archived, done: str, arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        for one in found.sessions:
            size = f", {one.file_bytes:,} bytes" if one.file_bytes else ""
            screen.show((Span(done, "good"), f": {count(one.cells, 'cell')} of {one.session}; {one.file}{size}"))
        for left in found.skipped:
            screen.show((Span("left alone", "dim"), f": {left.session}, {left.why}"))
        if not found.sessions and not found.skipped:
            screen.show("there is no session that old")
        if found.done and found.sessions:
            screen.show(
                f"log, long contents and archives took {found.bytes_before:,} bytes and take {found.bytes_after:,}"
            )
    return 0
