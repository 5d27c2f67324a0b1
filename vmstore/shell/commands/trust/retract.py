"""The command that retracts what came of a cause."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import vmstore
from vmstore.shell.commands.arguments import STORE_HELP, Command, Parser
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.confirm import consent
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Block, StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.retraction.results import Conflict, RegeneratedPage, RetractedPage, RetractedSession, Retraction

SHOWN_MAX = 20  # of each list; --json has all


def retract(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists the dependents of a cause and the conflicts, asks, and marks them."""
    cause = {word: getattr(arguments, word) for word in ("page", "session", "actor", "tool", "in_session")}
    options = {**cause, "reason": arguments.reason, "rebuild": arguments.rebuild}
    with (open_to_ask if arguments.dry_run else open_to_change)(arguments) as store:
        retraction = vmstore.retract(store, **options, dry_run=True)
        is_silent = arguments.json or screen.quiet
        if not arguments.dry_run and retraction.work:
            if not arguments.yes and not is_silent:
                screen.show(*_session_blocks(retraction))
            if not consent(arguments, f"mark {count(retraction.pages, 'page')} superseded?"):
                screen.note("nothing was marked")
                return 1
            retraction = vmstore.retract(store, **options)
    return screen.answer(
        arguments,
        retraction,
        *(_session_blocks(retraction) if arguments.dry_run or arguments.yes else ()),
        *_outcome(retraction),
    )


def _session_blocks(retraction: Retraction) -> list[Block]:
    """Formats the marked pages of each session, and all conflicts."""
    blocks: list[Block] = []
    for session in retraction.sessions:
        if session.pages or session.rebuilt:
            blocks += [_session_line(session), _pages(session.pages), *_rest(len(session.pages))]
        if session.rebuilt:
            blocks += [_rebuilt(session.rebuilt), *_rest(len(session.rebuilt))]
    if retraction.conflicts:
        blocks += [
            (StyledText(count(len(retraction.conflicts), "conflict"), "warn"),),
            _conflicts(retraction.conflicts),
        ]
        blocks += _rest(len(retraction.conflicts))
    return blocks


def _session_line(session: RetractedSession) -> tuple[StyledText | str, ...]:
    calls = "no call was sent any of it"
    if session.calls:
        calls = f"{count(session.calls, 'call')} from {session.first_call} to {session.last_call} were sent some of it"
    return StyledText(session.session, "head"), f": {count(len(session.pages), 'page')}; {calls}"


def _outcome(retraction: Retraction) -> list[Block]:
    places = count(sum(bool(session.pages) for session in retraction.sessions), "session")
    already = sum(session.already for session in retraction.sessions)
    if not retraction.work:
        return [
            (f"nothing to mark: what stands on {retraction.cause} is superseded already ({count(already, 'page')})",)
        ]
    outcome = "marked superseded" if retraction.done else "would be marked superseded"
    remade = sum(len(session.rebuilt) for session in retraction.sessions)
    rebuilt = f"; {count(remade, 'page')} {'rebuilt' if retraction.done else 'would be rebuilt'}" if remade else ""
    return [
        (
            StyledText(outcome, "good" if retraction.done else "warn"),
            f": {count(retraction.pages, 'page')} of {places}{rebuilt}",
        )
    ]


def _pages(pages: list[RetractedPage]) -> TextTable:
    columns = [TableColumn("page"), TableColumn("type"), TableColumn("because"), TableColumn("text")]
    return TextTable(columns, [[page.page, page.type, page.because, page.text] for page in pages[:SHOWN_MAX]])


def _rebuilt(pages: list[RegeneratedPage]) -> TextTable:
    columns = [TableColumn("rebuilt"), TableColumn("type"), TableColumn("for"), TableColumn("text")]
    return TextTable(columns, [[page.page or "-", page.type, page.replaces, page.text] for page in pages[:SHOWN_MAX]])


def _conflicts(conflicts: list[Conflict]) -> TextTable:
    columns = [TableColumn("conflict"), TableColumn("session"), TableColumn("page"), TableColumn("about")]
    return TextTable(
        columns,
        [[conflict.kind, conflict.session, conflict.page or "", conflict.about] for conflict in conflicts[:SHOWN_MAX]],
    )


def _rest(total: int) -> list[Block]:
    return [(StyledText(f"{total - SHOWN_MAX} more; --json has them all", "dim"),)] if total > SHOWN_MAX else []


def _add_retract(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", help=STORE_HELP)
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
        "--rebuild", action="store_true", help="rebuild, from what is left, what can be: claims and summaries"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be marked, and what speaks against")
    parser.add_argument("--yes", action="store_true", help="do not ask")


COMMANDS = (
    Command(
        "retract",
        "privacy",
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
