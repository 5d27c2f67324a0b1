"""Writes a session with the debugger's page as one file, and tells what was masked in it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from vmstore.debug.export import File, write
from vmstore.debug.export_data import UNSEEN
from vmstore.errors import InputError
from vmstore.redact.mask import MaskedValue
from vmstore.shell.open_store import open_to_ask, session_of
from vmstore.shell.terminal.format import count, listing, number, size
from vmstore.shell.terminal.layout import Block, StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen
from vmstore.transfer.redacted_export import lifted

PLACES_MAX = 4  # of one value that are named


def share(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes the file; it appears when it is whole."""
    if arguments.open or arguments.port is not None:
        raise InputError("--export writes a file, and --open and --port are of a server; leave one of them out")
    if Path(arguments.export).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--export writes a page of HTML; name it {arguments.export}.html", code="unlike-ending")
    with open_to_ask(arguments) as store, screen.progress("exporting"):
        session = session_of(store, arguments)
        approvals = lifted(store._ns, [stretch.session for stretch in session._lane().stretches], "html")
        redact = not arguments.no_redact and not approvals
        file = write(Path(arguments.export), store, session, redact=redact)
    if approvals and not arguments.no_redact:
        screen.note(f"nothing is masked, as {listing(approvals)} approved")
    if not file.report.redacted:
        screen.warn("nothing is masked: whatever secrets and personal data the session holds are in the file")
    return screen.answer(arguments, _answer(file, arguments.export), *_file_blocks(file, arguments.export))


def _answer(file: File, out: str) -> dict[str, Any]:
    report = file.report
    masked = [
        {"kind": value.kind, "number": value.number, "times": value.times, "where": value.where}
        for value in report.masked
    ]
    counts = {"session": file.session, "bytes": len(file.content), "calls": file.calls, "pages": file.pages}
    redaction = {"redacted": report.redacted, "counts": report.counts, "masked": masked}
    return {"out": out, **counts, "texts": file.texts, **redaction, "unseen": report.unseen, "shown": report.shown}


def _file_blocks(file: File, out: str) -> list[Block]:
    amount = f"{count(file.calls, 'call')}, {count(file.pages, 'page')}, {size(len(file.content))}"
    blocks: list[Block] = [(StyledText("exported", "good"), f" {file.session} to {out}: {amount}")]
    if not file.report.redacted:
        return blocks
    kinds = ", ".join(f"{kind} {number(times)}" for kind, times in file.report.counts.items())
    blocks.append(("masked: ", kinds) if kinds else StyledText("nothing needed masking", "dim"))
    if file.report.unseen:
        blocks.append(StyledText(f"{count(file.report.unseen, 'content')} {UNSEEN}", "warn"))
    if file.report.masked:
        columns = (
            TableColumn("shown as", style="name"),
            TableColumn("times", right=True),
            TableColumn("where", style="dim"),
        )
        blocks += ["", TextTable(columns, [_row(value) for value in file.report.masked])]
    return blocks


def _row(value: MaskedValue) -> tuple[str, str, str]:
    places = list(value.where)
    more = f" and {len(places) - PLACES_MAX} more" if len(places) > PLACES_MAX else ""
    return f"[{value.kind.name} {value.number}]", number(value.times), ", ".join(places[:PLACES_MAX]) + more
