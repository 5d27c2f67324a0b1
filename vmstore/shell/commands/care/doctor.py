"""The command that looks at a store and says what is to be done."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import key_named
from vmstore.shell.terminal.format import count, size
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import Health


COLUMNS = (TableColumn("backend", style="name"), TableColumn(""), TableColumn("what"))


def doctor(arguments: argparse.Namespace, screen: Screen) -> int:
    """Looks at a store; 1 where something is to be done."""
    with screen.progress("looking") as tell:
        key = key_named(arguments.store_key)
        health = vmstore.doctor(
            arguments.store, namespace=arguments.namespace, full=arguments.full, key=key, progress=tell
        )
    if arguments.json:
        screen.json(health)
    elif not screen.quiet or not health.ok:
        _show_health(health, screen)
    return 0 if health.ok else 1


def _show_health(health: Health, screen: Screen) -> None:
    screen.show(
        StyledText(
            ", ".join(f"{name} {version or 'not installed'}" for name, version in health.versions.items()), "dim"
        )
    )
    for namespace in health.namespaces:
        commits = "a log that cannot be opened" if namespace.commits is None else count(namespace.commits, "commit")
        behind = max(namespace.behind.values(), default=0)
        archives = f", {count(namespace.archives, 'archive')}" if namespace.archives else ""
        version = (
            f": {commits} of format {namespace.format}, {size(namespace.bytes)}{archives}; views {behind:,} behind"
        )
        screen.show((StyledText(namespace.namespace, "name"), version))
        if (vectors := namespace.vectors) is not None:
            share = f": {vectors.embedded:,} of {count(vectors.texts, 'text')} have a vector of {vectors.model}"
            screen.show((StyledText("vectors", "dim"), share))
        for user in namespace.held:
            screen.show((StyledText("in use", "dim"), f": {user.file} by process {user.pid}, {user.command}"))
    screen.show(
        TextTable(COLUMNS, [(each.name, "yes" if each.can else "no", each.what) for each in health.capabilities])
    )
    for symptom in health.symptoms:
        screen.show((StyledText(symptom.kind, "bad"), f": {symptom.where}: {symptom.what}"))
        screen.show(("  ", StyledText(symptom.remedy, "bold")))
    if health.ok:
        checked = "all that verify checks" if health.full else "the log's structure, chain and seals; --full checks all"
        screen.show((StyledText("healthy", "good"), f": nothing to do; looked at {checked}"))


def _add_doctor(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument("--full", action="store_true", help="check all that `vmstore verify` checks")


COMMANDS = (
    Command(
        "doctor",
        "maintain",
        "look at a store and say what is to be done",
        "Looks at a store and says what is to be done, each with the command that does it: damage, seals that\n"
        "do not hold, views behind the log, strays and leftovers, unfinished imports, missing archives, a full\n"
        "disk, who uses it; in a database a right that is missing, tables of another version, commits that are not\n"
        "flushed, a clock that is off. A table says what the store's backend can do. It writes nothing.\n"
        "Leaves with 0 where there is nothing to do, with 1 otherwise.",
        (
            "vmstore doctor agent.vms",
            "vmstore doctor agent.vms --full --json",
            "vmstore doctor 'postgresql://team@db.example/agents'",
        ),
        doctor,
        (_add_doctor,),
    ),
)
