"""Commands that hand on: sessions out as files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, BinaryIO

from vmstore.errors import InputError
from vmstore.namespace.reports import Exported
from vmstore.namespace.results import to_json
from vmstore.shell.open_store import moment_of, open_to_ask
from vmstore.shell.terminal.format import count, listing, size
from vmstore.shell.terminal.layout import Line, Span
from vmstore.shell.terminal.render import Screen

STDOUT = "-"
NOTHING = "nothing is masked in it"


def export(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes sessions to a file or to stdout."""
    piped = arguments.out == STDOUT
    if piped and arguments.json:
        raise InputError("stdout cannot hold both the bundle and the answer; name a file with --out, or drop --json")
    if piped and arguments.export_format != "jsonl":
        raise InputError(f"{arguments.export_format} is no stream; name the path it shall have with --out")
    if piped and screen.terminal:
        raise InputError("a bundle is no reading for a terminal; name a file with --out, or send it to one with >")
    with open_to_ask(arguments) as store, screen.progress("exporting") as tell:
        told: dict[str, Any] = {"format": arguments.export_format, "at": moment_of(arguments), "progress": tell}
        told |= {"exact": arguments.exact, "redact": not arguments.no_redact}
        out: Path | BinaryIO = sys.stdout.buffer if piped else Path(arguments.out)
        found = store.export(out, arguments.sessions or None, **told)
    if arguments.no_redact:
        screen.warn("nothing is masked: whatever secrets and personal data the sessions hold are in the export")
    if arguments.json:
        screen.json({**to_json(found), "out": arguments.out})
    elif piped:
        screen.note(_exported(found, "stdout"))
        screen.note(_masked(found))
    elif not screen.quiet:
        screen.show(_exported(found, arguments.out), _masked(found))
    return 0


def _masked(found: Exported) -> str:
    """What was masked: how often of each kind, never a value."""
    if not found.redacted:
        return f"nothing is masked in it, as {listing(found.approved)} approved" if found.approved else NOTHING
    kinds = ", ".join(f"{kind} {times}" for kind, times in found.masked.items()) or "nothing was found that had to be"
    unseen = f"; {count(found.unseen, 'content')} left out that cannot be read" if found.unseen else ""
    return f"masked: {kinds}{unseen}"


def _exported(found: Exported, place: str) -> Line:
    amount = f"{count(found.commits, 'commit')}, {count(found.mutations, 'mutation')}, {size(found.bytes)}"
    past = f", with the past of {listing(found.ancestors)}" if found.ancestors else ""
    return (Span("exported", "good"), f" {listing(found.sessions)}{past} to {place}: {amount}")
