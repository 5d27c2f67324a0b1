"""The command that retracts what came of a cause."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import Command, Parser
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.confirm import consent
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Block, Column, Span, Table
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.retraction.results import Conflict, Rebuilt, Retracted, Retraction, SessionRetracted

SHOWN_MAX = 20  # of each list; --json has all


def retract(arguments: argparse.Namespace, screen: Screen) -> int:
    """Says what stands on a cause and what speaks against marking it, asks, and marks it."""
    cause = {word: getattr(arguments, word) for word in ("page", "session", "actor", "tool", "in_session")}
    told = {**cause, "reason": arguments.reason, "rebuild": arguments.rebuild}
    with (open_to_ask if arguments.dry_run else open_to_change)(arguments) as store:
        found = vmstore.retract(store, **told, dry_run=True)
        is_silent = arguments.json or screen.quiet
        if not arguments.dry_run and found.work:
            if not arguments.yes and not is_silent:
                screen.show(*_blocks(found))
            if not consent(arguments, f"mark {count(found.pages, 'page')} superseded?"):
                screen.note("nothing was marked")
                return 1
            found = vmstore.retract(store, **told)
    return screen.answer(
        arguments, found, *(_blocks(found) if arguments.dry_run or arguments.yes else ()), *_end(found)
    )


def _blocks(found: Retraction) -> list[Block]:
    """What is marked in each session, and every conflict."""
    blocks: list[Block] = []
    for one in found.sessions:
        if one.pages or one.rebuilt:
            blocks += [_head(one), _pages(one.pages), *_more(len(one.pages))]
        if one.rebuilt:
            blocks += [_rebuilt(one.rebuilt), *_more(len(one.rebuilt))]
    if found.conflicts:
        blocks += [(Span(count(len(found.conflicts), "conflict"), "warn"),), _conflicts(found.conflicts)]
        blocks += _more(len(found.conflicts))
    return blocks


def _head(one: SessionRetracted) -> tuple[Span | str, ...]:
    sent = "no call was sent any of it"
    if one.calls:
        sent = f"{count(one.calls, 'call')} from {one.first_call} to {one.last_call} were sent some of it"
    return Span(one.session, "head"), f": {count(len(one.pages), 'page')}; {sent}"


def _end(found: Retraction) -> list[Block]:
    places = count(sum(bool(one.pages) for one in found.sessions), "session")
    already = sum(one.already for one in found.sessions)
    if not found.work:
        return [(f"nothing to mark: what stands on {found.cause} is superseded already ({count(already, 'page')})",)]
    told = "marked superseded" if found.done else "would be marked superseded"
    made = sum(len(one.rebuilt) for one in found.sessions)
    rebuilt = f"; {count(made, 'page')} {'made' if found.done else 'would be made'} anew" if made else ""
    return [(Span(told, "good" if found.done else "warn"), f": {count(found.pages, 'page')} of {places}{rebuilt}")]


def _pages(pages: list[Retracted]) -> Table:
    columns = [Column("page"), Column("type"), Column("because"), Column("text")]
    return Table(columns, [[one.page, one.type, one.because, one.text] for one in pages[:SHOWN_MAX]])


def _rebuilt(pages: list[Rebuilt]) -> Table:
    columns = [Column("anew"), Column("type"), Column("for"), Column("text")]
    return Table(columns, [[one.page or "-", one.type, one.replaces, one.text] for one in pages[:SHOWN_MAX]])


def _conflicts(conflicts: list[Conflict]) -> Table:
    columns = [Column("conflict"), Column("session"), Column("page"), Column("about")]
    return Table(columns, [[one.kind, one.session, one.page or "", one.about] for one in conflicts[:SHOWN_MAX]])


def _more(total: int) -> list[Block]:
    return [(Span(f"{total - SHOWN_MAX} more; --json has them all", "dim"),)] if total > SHOWN_MAX else []


def _add_retract(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", help="the store's folder, like agent.vms")
    cause = parser.add_mutually_exclusive_group(required=True)
    cause.add_argument("--page", metavar="P", help="a page: a name like p17, a hint, or s1/p17")
    cause.add_argument("--session", metavar="S", help="every page that a session made")
    cause.add_argument(
        "--actor", metavar="A", help="every page made by them: whom pages name, a role, a session's user or agent"
    )
    cause.add_argument("--tool", metavar="T", help="every result of a tool")
    parser.add_argument("--in-session", metavar="S", help="look for the cause in this session alone")
    parser.add_argument("--reason", metavar="TEXT", help="why, in your words; kept with every page that is marked")
    parser.add_argument(
        "--rebuild", action="store_true", help="make anew, from what is left, what can be: claims and summaries"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be marked, and what speaks against")
    parser.add_argument("--yes", action="store_true", help="do not ask")


COMMANDS = (
    Command(
        "retract",
        "keep",
        "mark what came of a cause superseded",
        "Marks everything that stands on a page, a session, an actor or a tool superseded, with the reason,\n"
        "in every session that sees it: what was made from it, at first or second hand, forks and spawned\n"
        "sessions included. It says first what that is and what speaks against it, and asks. Nothing is\n"
        "deleted, and the past answers as before; a session that manages its memory sends it no more.",
        (
            "vmstore retract agent.vms --tool web_search --reason 'poisoned results' --dry-run",
            "vmstore retract agent.vms --page s1/p17 --rebuild",
            "vmstore retract agent.vms --session s1 --reason 'went wrong' --yes",
        ),
        retract,
        (_add_retract,),
    ),
)
