"""The command that says where the bytes are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from vmstore.namespace.reports import Sealed, Usage
from vmstore.namespace.results import to_json
from vmstore.shell.open_store import open_to_ask
from vmstore.shell.terminal.format import bar, number, size
from vmstore.shell.terminal.layout import Block, Column, Span, Table
from vmstore.shell.terminal.render import Screen

SHOWN = 20  # sessions; JSON has them all


def du(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints where the bytes are."""
    with open_to_ask(arguments) as store, screen.progress("weighing") as tell:
        found = store.admin.usage(tell)
    if arguments.json:
        screen.json(to_json(found))
    else:
        screen.show(*sheet(found))
    return 0


def sheet(found: Usage) -> list[Block]:
    """Files first, then contents by kind and by session."""
    largest = found.files[0].bytes if found.files else 0
    columns = (Column("part", style="name"), Column("what"), Column("bytes", right=True), Column("", right=True))
    rows = [
        (one.part, one.what, number(one.bytes), f"{100 * one.bytes / found.bytes:.1f} %", bar(one.bytes, largest))
        for one in found.files
    ]
    blocks: list[Block] = [(Span(size(found.bytes), "bold"), " on disk"), Table((*columns, Column("")), rows)]
    blocks += ["", (Span(size(sum(one.bytes for one in found.kinds)), "bold"), " of contents, as they were accepted")]
    blocks.append(_sealed("kind", found.kinds))
    if len(found.sessions) > 1:
        blocks += ["", _sealed("session", found.sessions[:SHOWN])]
    if len(found.sessions) > SHOWN:
        blocks.append(Span(f"and {len(found.sessions) - SHOWN} more sessions; --json has them all", "dim"))
    return blocks


def _sealed(title: str, found: Sequence[Sealed]) -> Table:
    largest = found[0].bytes if found else 0
    columns = (Column(title, style="name"), Column("cells", right=True), Column("bytes", right=True), Column(""))
    return Table(columns, [(one.what, number(one.cells), number(one.bytes), bar(one.bytes, largest)) for one in found])
