"""The approve command: lifts redaction for what leaves, puts it back, lists both."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import moment
from vmstore.shell.terminal.layout import Line, TableColumn, TextTable, table
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.store.approvals import ApprovalInfo


def approve_artifacts(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lifts or puts back redaction for artifacts; without one, lists what was said."""
    from vmstore.core.asof import as_of

    if arguments.artifacts:
        if arguments.by is None:
            raise InputError("an approval is somebody's; say whose with --by")
        ends = as_of(time=arguments.until)
        with open_to_change(arguments) as store:
            grants = vmstore.approve(
                store,
                arguments.artifacts,
                arguments.of or None,
                who=arguments.by,
                until_us=ends.at if isinstance(ends, vmstore.Time) else None,
                granted=not arguments.withdraw,
            )
    elif arguments.withdraw or arguments.by or arguments.until:
        raise InputError("name what is approved: jsonl, parquet, sqlite, markdown, chat, html or all")
    else:
        with open_to_ask(arguments) as store:
            grants = vmstore.approvals(store)
    if arguments.json:
        screen.json({"approvals": grants})
    elif grants and not screen.quiet:
        screen.show(_table(grants))
    elif not screen.quiet:
        screen.show("nothing is approved: all that leaves for others is masked")
    return 0


def _table(grants: list[ApprovalInfo]) -> TextTable:
    cells: dict[TableColumn, Callable[[ApprovalInfo], Line]] = {
        TableColumn("session", style="name"): lambda approval: approval.session,
        TableColumn("artifact"): lambda approval: approval.artifact,
        TableColumn("said"): lambda approval: "granted" if approval.granted else "withdrawn",
        TableColumn("by"): lambda approval: approval.who or "",
        TableColumn("at (UTC)"): lambda approval: moment(approval.at),
        TableColumn("until"): lambda approval: "" if approval.until is None else moment(approval.until),
        TableColumn("now"): lambda approval: "not masked" if approval.in_force else "masked",
    }
    return table(grants, cells)


def _add_approve(parser: Parser) -> None:
    parser.add_argument(
        "artifacts", metavar="ARTIFACT", nargs="*", help="jsonl, parquet, sqlite, markdown, chat, html, all"
    )
    parser.add_argument("--of", action="append", metavar="SESSION", help="of this session; may be given again")
    parser.add_argument("--by", metavar="WHO", help="who says so")
    parser.add_argument("--until", metavar="T", help="when it ends, like 2027-01-01")
    parser.add_argument("--withdraw", action="store_true", help="put redaction back")


COMMANDS = (
    Command(
        "approve",
        "privacy",
        "let sessions leave without masks",
        "Lifts redaction for kinds of export (jsonl, html, all and the others) of sessions, all there are\n"
        "unless --of names them; it is logged with whose word it is, and --withdraw takes it back. Without\n"
        "ARTIFACT it lists what was approved and withdrawn.",
        (
            "vmstore approve agent.vms",
            "vmstore approve agent.vms sqlite --of planning-220 --by Ada --until 2027-01-01",
            "vmstore approve agent.vms sqlite --by Ada --withdraw",
        ),
        approve_artifacts,
        (add_store, _add_approve),
    ),
)
