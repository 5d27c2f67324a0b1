"""The command that states how long contents are kept, and erases what is due."""

from __future__ import annotations

import argparse

from vmstore.errors import InputError
from vmstore.namespace.results import to_json
from vmstore.namespace.signing_keys import read_key
from vmstore.retention.apply import RULE, Retained, apply, drop, keep, rules
from vmstore.retention.rules import Rule, words
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.confirm import consent
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Block, Column, Span, Table
from vmstore.shell.terminal.render import Screen

SHOWN_MAX = 20


def retain(arguments: argparse.Namespace, screen: Screen) -> int:
    """States, removes, lists or applies rules."""
    _check(arguments)
    if arguments.apply:
        return _apply(arguments, screen)
    changes = arguments.keep is not None or arguments.remove is not None
    with (open_to_change if changes else open_to_ask)(arguments) as store:
        if arguments.keep is not None:
            told = {"where": arguments.where, "user": arguments.user, "name": arguments.name or RULE}
            keep(store, arguments.keep, **told)
        if arguments.remove is not None:
            drop(store, arguments.remove)
        found = rules(store)
    if arguments.json:
        screen.json({"rules": to_json(found)})
    elif not screen.quiet:
        screen.show(_rules(found) if found else "no rule says how long contents are kept, so all are kept")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    chosen = [word for word in ("keep", "remove", "apply") if getattr(arguments, word)]
    if len(chosen) > 1:
        raise InputError(f"--{chosen[0]} and --{chosen[1]} are two things; do one after the other")
    if arguments.keep is None and any((arguments.where, arguments.user, arguments.name)):
        raise InputError("--where, --user and --name are of a rule; give --keep TIME with them")
    if not arguments.apply and (arguments.dry_run or arguments.key):
        raise InputError("--dry-run and --key go with --apply")


def _apply(arguments: argparse.Namespace, screen: Screen) -> int:
    opened = open_to_ask if arguments.dry_run else open_to_change
    with opened(arguments) as store:
        found = apply(store, dry_run=True)
        if not arguments.dry_run:
            if not arguments.yes and not arguments.json and not screen.quiet:
                screen.show(*_due(found))
            if (found.sessions or found.pages) and not consent(arguments, "erase it for good?"):
                screen.note("nothing was erased")
                return 1
            found = apply(store, key=None if arguments.key is None else read_key(arguments.key))
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        screen.show(*(_due(found) if arguments.dry_run or arguments.yes else ()))
        if found.done:
            screen.show(*_done(found))
    return 0


def _rules(found: list[Rule]) -> Table:
    columns = [Column("rule", style="name"), Column("keeps"), Column("user"), Column("of")]
    return Table(columns, [(r.name, words(r.keep), r.user or "", r.where or "whole sessions") for r in found])


def _due(found: Retained) -> list[Block]:
    blocks: list[Block] = []
    for names, what in ((found.sessions, "session"), (found.pages, "page")):
        if names:
            more = f" and {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
            blocks.append((Span("due", "bad"), f": {count(len(names), what)}: {', '.join(names[:SHOWN_MAX])}{more}"))
    for one in found.spared[:SHOWN_MAX]:
        where = f"{one.session}/{one.page}" if one.page else one.session
        blocks.append((Span("spared", "good"), f": {where}, {one.why} (rule {one.rule})"))
    if len(found.spared) > SHOWN_MAX:
        blocks.append(Span(f"{len(found.spared) - SHOWN_MAX:,} more are spared; --json lists all", "dim"))
    return blocks or ["nothing is due"]


def _done(found: Retained) -> list[Block]:
    if found.erased is None:
        return ["nothing was erased: what is due is gone already"] if found.sessions or found.pages else []
    blocks: list[Block] = [(Span("erased", "good"), f": {count(found.erased.plan.cells, 'cell')}")]
    return [*blocks, *([Span(f"certificate: {c}", "dim")] if (c := found.erased.certificate) else [])]
