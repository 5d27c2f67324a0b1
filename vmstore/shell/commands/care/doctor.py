"""The command that looks at a store and says what is to be done."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import key_named
from vmstore.shell.terminal.format import count, size
from vmstore.shell.terminal.layout import Span
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import Health


def doctor(arguments: argparse.Namespace, screen: Screen) -> int:
    """Looks at a store; 1 where something is to be done."""
    with screen.progress("looking") as tell:
        key = key_named(arguments.store_key)
        found = vmstore.doctor(
            arguments.store, namespace=arguments.namespace, full=arguments.full, key=key, progress=tell
        )
    if arguments.json:
        screen.json(found)
    elif not screen.quiet or not found.ok:
        _show(found, screen)
    return 0 if found.ok else 1


def _show(found: Health, screen: Screen) -> None:
    screen.show(Span(", ".join(f"{name} {told or 'not installed'}" for name, told in found.versions.items()), "dim"))
    for ward in found.namespaces:
        commits = "a log that cannot be opened" if ward.commits is None else count(ward.commits, "commit")
        late = max(ward.behind.values(), default=0)
        archives = f", {count(ward.archives, 'archive')}" if ward.archives else ""
        told = f": {commits} of format {ward.format}, {size(ward.bytes)}{archives}; views {late:,} behind"
        screen.show((Span(ward.namespace, "name"), told))
        for one in ward.held:
            screen.show((Span("in use", "dim"), f": {one.file} by process {one.pid}, {one.command}"))
    for symptom in found.symptoms:
        screen.show((Span(symptom.kind, "bad"), f": {symptom.where}: {symptom.what}"))
        screen.show(("  ", Span(symptom.remedy, "bold")))
    if found.ok:
        checked = "all that verify checks" if found.full else "the log's structure, chain and seals; --full checks all"
        screen.show((Span("healthy", "good"), f": nothing to do; looked at {checked}"))


def _add_doctor(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument("--full", action="store_true", help="check all that `vmstore verify` checks")


COMMANDS = (
    Command(
        "doctor",
        "keep",
        "look at a store and say what is to be done",
        "Looks at a store and says what is to be done, each with the command that does it: damage, seals that\n"
        "do not hold, views behind the log, strays and leftovers, unfinished imports, missing archives, a full\n"
        "disk, who uses it. It writes nothing. Leaves with 0 where there is nothing to do, with 1 otherwise.",
        ("vmstore doctor agent.vms", "vmstore doctor agent.vms --full --json"),
        doctor,
        (_add_doctor,),
    ),
)
