"""The command that says where the bytes are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vmstore.shell.commands.arguments import Command, add_store
from vmstore.shell.open_store import open_to_ask
from vmstore.shell.terminal.format import bar, number, size
from vmstore.shell.terminal.layout import Block, StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import StoredContents, Usage

SHOWN = 20  # sessions; JSON has them all


def du(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints where the bytes are."""
    with open_to_ask(arguments) as store, screen.progress("weighing") as tell:
        usage = store.admin.usage(tell)
    if arguments.json:
        screen.json(usage)
    else:
        screen.show(*usage_blocks(usage))
    return 0


def usage_blocks(usage: Usage) -> list[Block]:
    """Files first, then contents by kind and by session."""
    largest = usage.files[0].bytes if usage.files else 0
    columns = (
        TableColumn("part", style="name"),
        TableColumn("what"),
        TableColumn("bytes", right=True),
        TableColumn("", right=True),
    )
    rows = [
        (part.part, part.what, number(part.bytes), f"{100 * part.bytes / usage.bytes:.1f} %", bar(part.bytes, largest))
        for part in usage.files
    ]
    blocks: list[Block] = [
        (StyledText(size(usage.bytes), "bold"), " on disk"),
        TextTable((*columns, TableColumn("")), rows),
    ]
    blocks += [
        "",
        (StyledText(size(sum(part.bytes for part in usage.kinds)), "bold"), " of contents, as they were accepted"),
    ]
    blocks.append(_share_table("kind", usage.kinds))
    if len(usage.sessions) > 1:
        blocks += ["", _share_table("session", usage.sessions[:SHOWN])]
    if len(usage.sessions) > SHOWN:
        blocks.append(StyledText(f"and {len(usage.sessions) - SHOWN} more sessions; --json has them all", "dim"))
    return blocks


def _share_table(title: str, shares: Sequence[StoredContents]) -> TextTable:
    largest = shares[0].bytes if shares else 0
    columns = (
        TableColumn(title, style="name"),
        TableColumn("cells", right=True),
        TableColumn("bytes", right=True),
        TableColumn(""),
    )
    return TextTable(
        columns, [(share.what, number(share.cells), number(share.bytes), bar(share.bytes, largest)) for share in shares]
    )


COMMANDS = (
    Command(
        "du",
        "maintain",
        "where the bytes are",
        "Says where the bytes are: each table of the log and the views, free pages, blobs and columns as\n"
        "they lie on disk, and the contents, as they were accepted, by kind and by session.",
        ("vmstore du agent.vms", "vmstore du agent.vms --json"),
        du,
        (add_store,),
    ),
)
