"""Commands that check a store and rebuild its views: verify, rebuild."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import CorruptError, InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import Problem, Verdict

SHOWN = 50
SEAL = "seal"
VIEWS = {"view", "views", "columns"}  # kinds of problem that say nothing against the log


def verify(arguments: argparse.Namespace, screen: Screen) -> int:
    """Checks a store and names what is wrong with it; 1 where anything is."""
    if arguments.public_key is not None and not arguments.seal:
        raise InputError("a public key is what a seal is checked with; name the seal with --seal")
    result = verdict(arguments, screen)
    if arguments.json:
        screen.json(result)
    elif not result.ok:
        screen.show(*problems(result, arguments.store))
    elif not screen.quiet:
        screen.show(sound(result, views=not arguments.log, rules=not (arguments.log or arguments.views)))
        if arguments.seal:
            trust = "" if arguments.public_key else "; who signed it was not checked, --public-key says who must have"
            screen.show((StyledText("sealed", "good"), f": all that was sealed is there{trust}"))
    return 0 if result.ok else 1


def verdict(arguments: argparse.Namespace, screen: Screen) -> Verdict:
    """Runs the checks; a log that is too damaged to open is reported as a problem."""
    import apsw
    import msgspec

    from vmstore.namespace.reports import Problem, Verdict

    try:
        seals = [vmstore.read_seal(file, arguments.public_key) for file in arguments.seal]
    except CorruptError as error:
        return Verdict(False, 0, 0, 0, [Problem(SEAL, "seal", str(error))])
    try:
        with open_to_ask(arguments) as store, screen.progress("verifying") as tell:
            rules = not (arguments.log or arguments.views)
            return store.verify(tell, views=not arguments.log, rules=rules, seals=seals)
    except (CorruptError, apsw.Error, msgspec.MsgspecError) as error:
        return Verdict(False, 0, 0, 0, [Problem("log", str(arguments.store), str(error))])


def sound(result: Verdict, *, views: bool = True, rules: bool = True) -> Line:
    """Formats a verification without problems."""
    counts = ", ".join(
        count(number, noun)
        for number, noun in (
            (result.sessions, "session"),
            (result.commits, "commit"),
            (result.mutations, "mutation"),
        )
    )
    checked = (
        "every hash, every rule and every view" if rules else "every hash and every view" if views else "every hash"
    )
    return (StyledText("ok", "good"), f": {counts}; {checked} holds")


def problems(result: Verdict, store: str) -> list[Line | TextTable]:
    """Formats the problems of a verification, with their remedies."""
    head = (StyledText(count(len(result.problems), "problem"), "bad"), f" in {count(result.commits, 'commit')}")
    columns = (TableColumn("kind", style="bad"), TableColumn("where", style="bad"), TableColumn("what"))
    rows = [(problem.kind, problem.where, problem.what) for problem in result.problems[:SHOWN]]
    lines: list[Line | TextTable] = [head, TextTable(columns, rows)]
    if len(result.problems) > SHOWN:
        lines.append(StyledText(f"and {len(result.problems) - SHOWN} more; --json has them all", "dim"))
    return [*lines, *(StyledText(remedy, "bold") for remedy in remedies(result.problems, store))]


def remedies(listed: list[Problem], store: str) -> list[str]:
    """Returns the remedies for the kinds of problems present."""
    from vmstore.engine.verify.verify import ARCHIVE, ERASURE, UNREADABLE

    kinds = {problem.kind for problem in listed}
    advice = []
    if SEAL in kinds:
        advice.append(
            "What was sealed is not what the store holds: keep a copy, and find out who wrote to its files. "
            "A backup made after the seal can be held against it too."
        )
    if ARCHIVE in kinds:
        advice.append(
            "An archive is not what the log says: the log itself and all other sessions are sound without it."
        )
    if ERASURE in kinds:
        advice.append(
            "What is recorded as erased is still there, and no damage: "
            f"`vmstore erase {store} --finish` destroys it. A backup from before would bring it all back."
        )
    if UNREADABLE in kinds:
        advice.append(
            "What an earlier version took in by hand cannot be read: it is answered as damaged, and all else is sound. "
            f"Write it again, or be rid of it with `vmstore erase {store} --session SESSION`."
        )
    if kinds - VIEWS - {SEAL, ARCHIVE, ERASURE, UNREADABLE}:
        advice.append(
            "The log is damaged: stop writing to it, keep a copy, and put back a backup. "
            "What stands before the first commit named is sound."
        )
    if kinds & VIEWS:
        advice.append(f"The views are only a copy: `vmstore rebuild {store}` folds them from the log again.")
    return advice


def rebuild(arguments: argparse.Namespace, screen: Screen) -> int:
    """Folds the views from the log again."""
    with open_to_change(arguments) as store, screen.progress("rebuilding") as tell:
        positions = store.admin.rebuild(arguments.view, tell)
    chosen = positions if arguments.view is None else {arguments.view: positions[arguments.view]}
    ordinal = max(chosen.values())
    return screen.answer(
        arguments,
        {"positions": positions},
        (StyledText("rebuilt", "good"), f": {', '.join(sorted(chosen))}; at commit {ordinal} of the log"),
    )


def _add_view(parser: Parser) -> None:
    parser.add_argument("--view", metavar="V", help="only this view (default: all); `info` lists them")


def _add_seals(parser: Parser) -> None:
    parser.add_argument(
        "--seal", action="append", default=[], metavar="FILE", help="hold it against this seal; may be given again"
    )
    parser.add_argument("--public-key", metavar="KEY", help="64 hex digits, or a file of them: whose seal it must be")


def _add_parts(parser: Parser) -> None:
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--log", action="store_true", help="only the log and its cells")
    parts.add_argument("--views", action="store_true", help="the log and the views, without the rules")


COMMANDS = (
    Command(
        "verify",
        "maintain",
        "check every hash, rule and view",
        "Checks every hash of the log, every rule, and every view against a fresh fold of the log. With\n"
        "--seal also that all that was sealed is still there: a cut end, a dropped session or an old copy\n"
        "put back is found by nothing else. Leaves with 1 and names each problem where anything is wrong.",
        (
            "vmstore verify agent.vms",
            "vmstore verify agent.vms --log",
            "vmstore verify agent.vms --seal /elsewhere/agent.seal --public-key /elsewhere/seal.key.pub",
        ),
        verify,
        (add_store, _add_parts, _add_seals),
    ),
    Command(
        "rebuild",
        "maintain",
        "fold the views from the log again",
        "Forgets the views, or one of them, and folds them again from the log, which is the only truth.\n"
        "--view columns cuts the column segments again, --view text rebuilds the text index.",
        ("vmstore rebuild agent.vms", "vmstore rebuild agent.vms --view lineage"),
        rebuild,
        (add_store, _add_view),
    ),
)
