"""Commands that check a store and rebuild its views: verify, rebuild."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import vmstore
from vmstore.errors import CorruptError, InputError
from vmstore.shell.commands.arguments import Command, Parser, add_namespaces, add_store, add_workers
from vmstore.shell.open_store import open_to_ask, open_to_change
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

if TYPE_CHECKING:
    from vmstore.namespace.reports import Problem, Verdict
    from vmstore.store.fleet.care import NamespacePart

SHOWN = 50
SEAL = "seal"
VIEWS = {"view", "views", "columns"}  # kinds of problem that say nothing against the log


def verify(arguments: argparse.Namespace, screen: Screen) -> int:
    """Checks a store and names what is wrong with it; 1 where anything is."""
    if arguments.public_key is not None and not arguments.seal:
        raise InputError("a public key is what a seal is checked with; name the seal with --seal")
    if arguments.namespaces is not None or arguments.workers is not None or arguments.results is not None:
        return _verify_many(arguments, screen)
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


def _verify_many(arguments: argparse.Namespace, screen: Screen) -> int:
    """Checks namespaces by many workers; 1 where anything is wrong with any of them."""
    from vmstore.store.fleet.care import verify_all

    if arguments.seal:
        raise InputError("a seal is of one namespace, and one process holds it against that; leave --workers out")
    rules = not (arguments.log or arguments.views)
    with screen.progress("verifying") as tell:
        found = verify_all(
            parts_of(arguments), views=not arguments.log, rules=rules, workers=arguments.workers,
            results=results_of(arguments), progress=tell,
        )  # fmt: skip
    ok = all(result.ok for result in found.values())
    if arguments.json and arguments.namespaces is None:
        screen.json(next(iter(found.values())))
    elif arguments.json:
        screen.json({"ok": ok, "namespaces": found})
    else:
        for name, result in found.items():
            head = [StyledText(name, "head")] if arguments.namespaces is not None else []
            if not result.ok:
                screen.show(*head, *problems(result, arguments.store))
            elif not screen.quiet:
                screen.show(*head, sound(result, views=not arguments.log, rules=rules))
    return 0 if ok else 1


def parts_of(arguments: argparse.Namespace) -> list[NamespacePart]:
    """The namespaces that a command means, each as a part of its work."""
    from vmstore.namespace.backends.address import backend_of
    from vmstore.shell.open_store import key_named, namespace_of
    from vmstore.store.fleet.care import NamespacePart

    if arguments.namespaces is not None and arguments.namespace is not None:
        raise InputError("--namespaces names many, and --namespace one; leave one of them out")
    backend = backend_of(arguments.store)
    backend.check()
    asked = arguments.namespaces
    names = [namespace_of(arguments)] if asked is None else asked.split(",")
    names = backend.namespaces() if asked == "*" else names
    for name in names:
        backend.check(name)
    key = key_named(arguments.store_key)
    return [NamespacePart(backend, name, backend.key_for(name, key)) for name in names]


def results_of(arguments: argparse.Namespace) -> Path | None:
    """The file that keeps what is done."""
    return None if arguments.results is None else Path(arguments.results)


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
    if arguments.namespaces is not None or arguments.workers is not None or arguments.results is not None:
        return _rebuild_many(arguments, screen)
    with open_to_change(arguments) as store, screen.progress("rebuilding") as tell:
        positions = store.admin.rebuild(arguments.view, tell)
    chosen = positions if arguments.view is None else {arguments.view: positions[arguments.view]}
    ordinal = max(chosen.values())
    return screen.answer(
        arguments,
        {"positions": positions},
        (StyledText("rebuilt", "good"), f": {', '.join(sorted(chosen))}; at commit {ordinal} of the log"),
    )


def _rebuild_many(arguments: argparse.Namespace, screen: Screen) -> int:
    """Folds the views of namespaces again by many workers."""
    from vmstore.store.fleet.care import rebuild_all

    with screen.progress("rebuilding") as tell:
        found = rebuild_all(
            parts_of(arguments), view=arguments.view, workers=arguments.workers, results=results_of(arguments),
            progress=tell,
        )  # fmt: skip
    if arguments.json:
        screen.json({"namespaces": {name: {"positions": positions} for name, positions in found.items()}})
        return 0
    for name, positions in found.items():
        chosen = positions if arguments.view is None else {arguments.view: positions[arguments.view]}
        which = ", ".join(sorted(chosen))
        screen.show((StyledText("rebuilt", "good"), f" {name}: {which}; at commit {max(chosen.values())} of the log"))
    return 0


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
            "vmstore verify agents.vms --namespaces '*' --workers 2 --results verified.jsonl",
            "vmstore verify agent.vms --seal /elsewhere/agent.seal --public-key /elsewhere/seal.key.pub",
        ),
        verify,
        (add_store, _add_parts, _add_seals, add_namespaces, add_workers),
    ),
    Command(
        "rebuild",
        "maintain",
        "fold the views from the log again",
        "Forgets the views, or one of them, and folds them again from the log, which is the only truth.\n"
        "--view columns cuts the column segments again, --view text rebuilds the text index.",
        (
            "vmstore rebuild agent.vms",
            "vmstore rebuild agent.vms --view lineage",
            "vmstore rebuild agents.vms --namespaces '*' --workers 2",
        ),
        rebuild,
        (add_store, _add_view, add_namespaces, add_workers),
    ),
)
