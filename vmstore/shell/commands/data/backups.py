"""Commands that keep a store safe: backup and restore."""

from __future__ import annotations

import argparse

from vmstore.maintenance.backup import backup as make
from vmstore.maintenance.backup import restore as put_back
from vmstore.namespace.reports import Backup, Restored
from vmstore.namespace.results import to_json
from vmstore.shell.open_store import key_named
from vmstore.shell.terminal.confirm import asker
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Line, Span
from vmstore.shell.terminal.render import Screen


def backup(arguments: argparse.Namespace, screen: Screen) -> int:
    """Copies a store to a new folder while others may write to it."""
    with screen.progress("backing up") as tell:
        told = key_named(arguments.store_key)
        found = make(arguments.store, arguments.to, namespace=arguments.namespace, key=told, progress=tell)
    return _tell(found, "backed up and verified", arguments, screen)


def restore(arguments: argparse.Namespace, screen: Screen) -> int:
    """Makes a store of a backup where none is."""
    with screen.progress("restoring") as tell:
        found = put_back(
            arguments.backup,
            arguments.store,
            key=key_named(arguments.store_key),
            erasures=arguments.erasures,
            public_key=arguments.public_key,
            agreed=asker(arguments),
            dry_run=arguments.dry_run,
            progress=tell,
        )
    told = _tell(found, "restored and verified" if found.done else "would restore", arguments, screen)
    if not (arguments.json or screen.quiet):
        for effect in found.effects:
            screen.show((Span("takes effect" if found.done else "would take effect", "warn"), f": {effect}"))
        screen.show(_again(found))
    return told


def _again(found: Restored) -> Line:
    """What was erased again, or that nobody says what was."""
    if not found.certificates:
        return (Span("no certificates of erasures were found", "warn"), f"; {found.path}.erasures is where they lie")
    looked = f"by {count(found.certificates, 'certificate')} of erasures, {found.signed} signed by the key named"
    done = "erased again" if found.done else "would be erased again"
    return (Span(done, "good"), f": {count(found.erased, 'cell')}, {looked}")


def _tell(found: Backup, done: str, arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        for part in found.namespaces:
            amounts = ((part.sessions, "session"), (part.commits, "commit"), (part.mutations, "mutation"))
            told = ", ".join(count(number, noun) for number, noun in amounts)
            line: Line = (Span(done, "good"), f": {told} of namespace {part.namespace} in {found.path}")
            screen.show(line)
    return 0
