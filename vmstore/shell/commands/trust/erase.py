"""The command that destroys contents: says what it would take, asks, and tells what was done."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.confirm import asker
from vmstore.shell.terminal.format import count, size
from vmstore.shell.terminal.layout import Block, StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import ErasurePlan

SUBJECTS = ("page", "session", "user", "where", "in_session")
LISTED_MAX = 40
NOBODY = "nobody can be asked here whether to go on; say --yes, or look first with --dry-run"
REASONS = ("asked", "retention", "mistake", "secret", "law")


def erase(arguments: argparse.Namespace, screen: Screen) -> int:
    """Plans, asks and erases; or finishes what was interrupted."""
    from vmstore.erasure.erase import beyond
    from vmstore.namespace.signing_keys import read_key

    subject = {name: getattr(arguments, name) for name in SUBJECTS}
    if arguments.finish:
        if arguments.dry_run or any(value is not None for value in subject.values()):
            raise InputError("--finish ends what was begun and takes nothing else; give it alone, then erase the rest")
        return _finish(arguments, screen)
    if arguments.again is not None:
        if any(value is not None for value in subject.values()):
            raise InputError("--again erases what certificates name; leave --page, --session, --user and --where out")
        return _again(arguments, screen)
    if arguments.public_key is not None:
        raise InputError("--public-key is of --again; --key signs the certificate of an erasure")
    if arguments.page is not None and "://" in arguments.page:
        subject["page"] = arguments.page
    flags = {"derived": arguments.derived, "copies": arguments.copies}
    open_as_needed = open_to_ask if arguments.dry_run else open_to_change
    with open_as_needed(arguments) as store:
        if arguments.dry_run or not arguments.yes:
            with screen.progress("looking"):
                plan = vmstore.plan_erasure(store, **flags, **subject)
            if arguments.dry_run or (arguments.json and not plan.cells):
                return _show_plan(plan, beyond(store._ns), arguments, screen)
            if arguments.json:
                raise InputError(NOBODY)
            screen.show(*_plan_blocks(plan, beyond(store._ns)))
            if not plan.cells or not _is_confirmed(screen):
                return 1 if plan.cells else 0
        key = None if arguments.key is None else read_key(arguments.key)
        with screen.progress("erasing"):
            report = vmstore.erase(store, **flags, reason=arguments.reason, key=key, **subject)
    if arguments.json:
        screen.json(report)
    elif not screen.quiet:
        if not report.commits:
            screen.show("nothing was there that is not erased already")
            return 0
        screen.show((StyledText("erased", "good"), f": {_amount(report.plan)}"))
        for address in report.left:
            what = "could not be reached and may still hold it: run `vmstore erase --finish`"
            screen.show((StyledText("open", "bad"), f": {address} {what}"))
        if report.certificate is not None:
            screen.show(StyledText(f"certificate: {report.certificate}", "dim"))
        for path in _typed_files():
            screen.show(StyledText(f"{path} holds what you typed, maybe words of it: look, or delete it", "dim"))
    return 0


def _typed_files() -> list[Path]:
    """The files of this user that hold what was typed in the shell, which an erasure does not reach."""
    from vmstore.shell.vmql.history import history_file
    from vmstore.shell.vmql.settings import config_folder

    return [path for path in (history_file(), config_folder() / "favourites") if path.exists()]


def _finish(arguments: argparse.Namespace, screen: Screen) -> int:
    from vmstore.erasure.erase import finish_erasing

    with open_to_change(arguments) as store, screen.progress("erasing"):
        cells = finish_erasing(store)
    return screen.answer(
        arguments,
        {"cells": cells},
        (StyledText("finished", "good"), f": {count(cells, 'cell')} recorded as erased were still there"),
    )


def _again(arguments: argparse.Namespace, screen: Screen) -> int:
    """Erases what certificates name and what another tool put back."""
    open_as_needed = open_to_ask if arguments.dry_run else open_to_change
    with open_as_needed(arguments) as store, screen.progress("erasing again"):
        options = {"public_key": arguments.public_key, "dry_run": arguments.dry_run, "agreed": asker(arguments)}
        report = store.trust.erase_again(arguments.again, **options)
    done = "erased again" if report.done else "would be erased again"
    proof = f"by {count(report.certificates, 'certificate')}, {report.signed} signed by the key named"
    return screen.answer(arguments, report, (StyledText(done, "good"), f": {count(report.cells, 'cell')}, {proof}"))


def _is_confirmed(screen: Screen) -> bool:
    """Asks for confirmation at the terminal."""
    if not (sys.stdin.isatty() and screen.terminal):
        raise InputError(NOBODY)
    return input("This cannot be undone. Type 'erase' to go on: ").strip() == "erase"


def _show_plan(plan: ErasurePlan, unreached: Sequence[str], arguments: argparse.Namespace, screen: Screen) -> int:
    from vmstore.namespace.results import to_json

    return screen.answer(arguments, {**to_json(plan), "beyond": unreached}, *_plan_blocks(plan, unreached))


def _amount(plan: ErasurePlan) -> str:
    where = count(len(plan.sessions), "session")
    return f"{count(plan.cells, 'cell')} of {size(plan.bytes)} that {where} brought"


def _plan_blocks(plan: ErasurePlan, unreached: Sequence[str]) -> Iterator[Block]:
    if not plan.cells:
        yield "nothing is there that is not erased already"
        return
    yield (StyledText("goes", "bad"), f": {_amount(plan)}")
    for session in plan.sessions:
        if session.whole:
            yield f"  all of session {session.session} ({session.uid}), its name too"
    if plan.pages:
        rows = [(entry.page, entry.type, size(entry.bytes), entry.why) for entry in plan.pages[:LISTED_MAX]]
        columns = (
            TableColumn("page", style="name"),
            TableColumn("type"),
            TableColumn("bytes", right=True),
            TableColumn("why", style="dim"),
        )
        yield TextTable(columns, rows)
        yield from _rest(len(plan.pages))
    if plan.untaken:
        yield (StyledText("stays", "good"), f": {count(len(plan.untaken), 'thing')} that hang on it")
        rows_left = [(entry.what, entry.kind, f"--{entry.flag}", entry.why) for entry in plan.untaken[:LISTED_MAX]]
        yield TextTable(
            (
                TableColumn("what", style="name"),
                TableColumn("kind"),
                TableColumn("goes with"),
                TableColumn("why", style="dim"),
            ),
            rows_left,
        )
        yield from _rest(len(plan.untaken))
    for names, what in ((plan.forks, "lose it too, being forks"), (plan.children, "stay: spawned by it, or going on")):
        if names:
            yield f"{', '.join(names[:LISTED_MAX])}: {what}"
    for stored in plan.objects:
        yield (StyledText("written again", "bad"), f": {stored}")
    yield (StyledText("beyond reach", "warn"), ":")
    for entry in (*(f"the file it was imported from: {source}" for source in plan.sources), *unreached):
        yield f"  {entry}"


def _rest(number: int) -> Iterator[Block]:
    if number > LISTED_MAX:
        yield StyledText(f"and {number - LISTED_MAX:,} more; --json lists all", "dim")


def _add_erase(parser: Parser) -> None:
    parser.add_argument("--page", metavar="P", help="a page: all its versions, forms, names and what was said of it")
    parser.add_argument("--session", metavar="S", help="all of a session, by its name or its uid")
    parser.add_argument("--user", metavar="U", help="all sessions of a user")
    parser.add_argument("--where", metavar="VMQL", help="the pages for which a condition on PAGES holds")
    parser.add_argument("--in-session", metavar="S", help="where the page is, or the condition holds")
    parser.add_argument("--derived", action="store_true", help="also pages that were made from it, and from those")
    parser.add_argument("--copies", action="store_true", help="also what says the same, or quotes it whole")
    parser.add_argument("--reason", choices=REASONS, default="asked", help="what the log says of why (default: asked)")
    parser.add_argument("--key", metavar="FILE", help="sign the certificate with this secret key")
    parser.add_argument("--dry-run", action="store_true", help="say what would go and what would stay; write nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask; needed where nobody can be asked")
    parser.add_argument("--again", metavar="FOLDER", help="erase again what the certificates in FOLDER name")
    parser.add_argument("--public-key", metavar="KEY", help="with --again: obey what this key signed: hex, or a file")
    parser.add_argument("--finish", action="store_true", help="finish an erasure that was interrupted")


COMMANDS = (
    Command(
        "erase",
        "privacy",
        "destroy contents for good",
        "Destroys contents in the log, its views, its indexes and on every fork, while every hash keeps holding\n"
        "and every other answer stays; answers name where it was erased. It lists what goes, what hangs on\n"
        "it and stays by default, and what is beyond reach, then asks. A certificate beside the store says what\n"
        "was destroyed, without a word of it, and keeps backups from bringing it back.",
        (
            "vmstore erase agent.vms --page p17 --in-session planning-220 --dry-run",
            "vmstore erase agent.vms --user ann --derived --copies --yes",
            "vmstore erase agent.vms --where \"tag = 'trial'\" --reason retention --yes",
        ),
        erase,
        (add_store, _add_erase),
    ),
)
