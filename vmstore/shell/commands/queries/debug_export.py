"""Writes a session with the debugger's page as one file, and tells what was masked in it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from vmstore.debug.export import File, write
from vmstore.debug.export_data import UNSEEN
from vmstore.errors import InputError
from vmstore.redact.mask import Masked
from vmstore.shell.open_store import open_to_ask, session_of
from vmstore.shell.terminal.format import count, listing, number, size
from vmstore.shell.terminal.layout import Block, Column, Span, Table
from vmstore.shell.terminal.render import Screen
from vmstore.transfer.lifted_redaction import lifted

PLACES_MAX = 4  # of one value that are named


def share(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes the file; it appears when it is whole."""
    if arguments.open or arguments.port is not None:
        raise InputError("--export writes a file, and --open and --port are of a server; leave one of them out")
    with open_to_ask(arguments) as store, screen.progress("exporting"):
        session = session_of(store, arguments)
        words = lifted(store._ns, [stretch.session for stretch in session._lane().stretches], "html")
        redact = not arguments.no_redact and not words
        made = write(Path(arguments.export), store, session, redact=redact)
    if words and not arguments.no_redact:
        screen.note(f"nothing is masked, as {listing(words)} approved")
    if not made.report.redacted:
        screen.warn("nothing is masked: whatever secrets and personal data the session holds are in the file")
    return screen.answer(arguments, _told(made, arguments.export), *_shown(made, arguments.export))


def _told(made: File, out: str) -> dict[str, Any]:
    report = made.report
    masked = [{"kind": one.kind, "number": one.number, "times": one.times, "where": one.where} for one in report.masked]
    counts = {"session": made.session, "bytes": len(made.content), "calls": made.calls, "pages": made.pages}
    told = {"redacted": report.redacted, "counts": report.counts, "masked": masked}
    return {"out": out, **counts, "texts": made.texts, **told, "unseen": report.unseen, "shown": report.shown}


def _shown(made: File, out: str) -> list[Block]:
    amount = f"{count(made.calls, 'call')}, {count(made.pages, 'page')}, {size(len(made.content))}"
    found: list[Block] = [(Span("exported", "good"), f" {made.session} to {out}: {amount}")]
    if not made.report.redacted:
        return found
    kinds = ", ".join(f"{kind} {number(times)}" for kind, times in made.report.counts.items())
    found.append(("masked: ", kinds or Span("nothing was found that had to be", "dim")))
    if made.report.unseen:
        found.append(Span(f"{count(made.report.unseen, 'content')} {UNSEEN}", "warn"))
    if made.report.masked:
        columns = (Column("shown as", style="name"), Column("times", right=True), Column("where", style="dim"))
        found += ["", Table(columns, [_row(one) for one in made.report.masked])]
    return found


def _row(one: Masked) -> tuple[str, str, str]:
    places = list(one.where)
    more = f" and {len(places) - PLACES_MAX} more" if len(places) > PLACES_MAX else ""
    return f"[{one.kind.name} {one.number}]", number(one.times), ", ".join(places[:PLACES_MAX]) + more
