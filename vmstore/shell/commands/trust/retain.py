"""The command that states how long contents are kept, and erases what is due."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.confirm import consent
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Block, StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.retention.apply import RetentionReport
    from vmstore.retention.rules import RetentionRule

SHOWN_MAX = 20


def retain(arguments: argparse.Namespace, screen: Screen) -> int:
    """States, removes, lists or applies rules."""
    from vmstore.retention.apply import RULE, drop, keep, rules

    _check(arguments)
    if arguments.apply:
        return _apply(arguments, screen)
    changes = arguments.keep is not None or arguments.remove is not None
    with (open_to_change if changes else open_to_ask)(arguments) as store:
        if arguments.keep is not None:
            scope = {"where": arguments.where, "user": arguments.user, "name": arguments.name or RULE}
            keep(store, arguments.keep, **scope)
        if arguments.remove is not None:
            drop(store, arguments.remove)
        current = rules(store)
    return screen.answer(
        arguments,
        {"rules": current},
        _rules_table(current) if current else "no rule says how long contents are kept, so all are kept",
    )


def _check(arguments: argparse.Namespace) -> None:
    chosen = [word for word in ("keep", "remove", "apply") if getattr(arguments, word)]
    if len(chosen) > 1:
        raise InputError(f"--{chosen[0]} and --{chosen[1]} are two things; do one after the other")
    if arguments.keep is None and any((arguments.where, arguments.user, arguments.name)):
        raise InputError("--where, --user and --name are of a rule; give --keep TIME with them")
    if not arguments.apply and (arguments.dry_run or arguments.key):
        raise InputError("--dry-run and --key go with --apply")


def _apply(arguments: argparse.Namespace, screen: Screen) -> int:
    from vmstore.namespace.signing_keys import read_key
    from vmstore.retention.apply import apply

    open_as_needed = open_to_ask if arguments.dry_run else open_to_change
    with open_as_needed(arguments) as store:
        report = apply(store, dry_run=True)
        if not arguments.dry_run:
            if not arguments.yes and not arguments.json and not screen.quiet:
                screen.show(*_due_blocks(report))
            if (report.sessions or report.pages) and not consent(arguments, "erase it for good?"):
                screen.note("nothing was erased")
                return 1
            report = apply(store, key=None if arguments.key is None else read_key(arguments.key))
    if arguments.json:
        screen.json(report)
    elif not screen.quiet:
        screen.show(*(_due_blocks(report) if arguments.dry_run or arguments.yes else ()))
        if report.done:
            screen.show(*_done_blocks(report))
    return 0


def _rules_table(rules: list[RetentionRule]) -> TextTable:
    from vmstore.retention.rules import words

    columns = [TableColumn("rule", style="name"), TableColumn("keeps"), TableColumn("user"), TableColumn("of")]
    return TextTable(
        columns, [(rule.name, words(rule.keep), rule.user or "", rule.where or "whole sessions") for rule in rules]
    )


def _due_blocks(report: RetentionReport) -> list[Block]:
    blocks: list[Block] = []
    for names, what in ((report.sessions, "session"), (report.pages, "page")):
        if names:
            more = f" and {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
            blocks.append(
                (StyledText("due", "bad"), f": {count(len(names), what)}: {', '.join(names[:SHOWN_MAX])}{more}")
            )
    for spared in report.spared[:SHOWN_MAX]:
        where = f"{spared.session}/{spared.page}" if spared.page else spared.session
        blocks.append((StyledText("spared", "good"), f": {where}, {spared.why} (rule {spared.rule})"))
    if len(report.spared) > SHOWN_MAX:
        blocks.append(StyledText(f"{len(report.spared) - SHOWN_MAX:,} more are spared; --json lists all", "dim"))
    return blocks or ["nothing is due"]


def _done_blocks(report: RetentionReport) -> list[Block]:
    if report.erased is None:
        return ["nothing was erased: what is due is gone already"] if report.sessions or report.pages else []
    blocks: list[Block] = [(StyledText("erased", "good"), f": {count(report.erased.plan.cells, 'cell')}")]
    return [
        *blocks,
        *([StyledText(f"certificate: {certificate}", "dim")] if (certificate := report.erased.certificate) else []),
    ]


def _add_retain(parser: Parser) -> None:
    parser.add_argument("--keep", metavar="TIME", help="state a rule: keep for so long, like 90d, 12h, 6w or 2y")
    parser.add_argument("--where", metavar="VMQL", help="with --keep: the pages for which a condition on PAGES holds")
    parser.add_argument("--user", metavar="U", help="with --keep: in sessions of this user alone")
    parser.add_argument("--name", metavar="R", help="with --keep: what the rule is called (default: default)")
    parser.add_argument("--remove", metavar="R", help="take a rule away")
    parser.add_argument("--apply", action="store_true", help="erase what is due by the rules")
    parser.add_argument("--key", metavar="FILE", help="with --apply: sign the certificate with this secret key")
    parser.add_argument("--dry-run", action="store_true", help="with --apply: only say what is due")
    parser.add_argument("--yes", action="store_true", help="do not ask; needed where nobody can be asked")


COMMANDS = (
    Command(
        "retain",
        "privacy",
        "rules for how long contents are kept",
        "States rules for how long contents are kept, lists them, and erases what is due by them: sessions that\n"
        "were not used for so long, or pages that were made so long ago. Pages that are tagged `hold` or pinned\n"
        "by hand stay, and the sessions they are in. --apply is meant for cron; it leaves a certificate.",
        (
            "vmstore retain agent.vms --keep 90d",
            'vmstore retain agent.vms --keep 30d --where "role = tool" --name tools',
            "vmstore retain agent.vms --apply --yes",
        ),
        retain,
        (add_store, _add_retain),
    ),
)
