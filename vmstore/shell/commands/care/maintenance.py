"""Commands that keep house: fork, verify, rebuild."""

from __future__ import annotations

import argparse

import apsw
import msgspec

from vmstore.engine.verify.verify import ARCHIVE, ERASURE, UNREADABLE
from vmstore.errors import CorruptError, InputError
from vmstore.namespace.reports import Problem, Verdict
from vmstore.namespace.results import to_json
from vmstore.seals.seals import read_seal
from vmstore.shell.open_store import moment_of, open_to_ask, open_to_change, session_of
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Column, Line, Span, Table
from vmstore.shell.terminal.render import Screen

SHOWN = 50
SEAL = "seal"
VIEWS = {"view", "views", "columns"}  # kinds of problem that say nothing against the log
DAMAGE = (CorruptError, apsw.Error, msgspec.MsgspecError)


def fork(arguments: argparse.Namespace, screen: Screen) -> int:
    """Makes a session that shares another's past."""
    with open_to_change(arguments) as store:
        parent = session_of(store, arguments)
        found = parent.fork(arguments.name, moment_of(arguments)).info()
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        place = f"turn {found.turns}, call {found.calls}, position {found.fork_position}"
        screen.show((Span(found.session, "head"), f" shares the past of {parent.name} up to {place}"))
    return 0


def verify(arguments: argparse.Namespace, screen: Screen) -> int:
    """Checks a store and names what is wrong with it; 1 where anything is."""
    if arguments.public_key is not None and not arguments.seal:
        raise InputError("a public key is what a seal is checked with; name the seal with --seal")
    found = verdict(arguments, screen)
    if arguments.json:
        screen.json(to_json(found))
    elif not found.ok:
        screen.show(*problems(found, arguments.store))
    elif not screen.quiet:
        screen.show(sound(found, views=not arguments.log, rules=not (arguments.log or arguments.views)))
        if arguments.seal:
            trust = "" if arguments.public_key else "; who signed it was not checked, --public-key says who must have"
            screen.show((Span("sealed", "good"), f": all that was sealed is there{trust}"))
    return 0 if found.ok else 1


def verdict(arguments: argparse.Namespace, screen: Screen) -> Verdict:
    """What verify finds; a log too damaged to be opened is a finding too."""
    try:
        seals = [read_seal(file, arguments.public_key) for file in arguments.seal]
    except CorruptError as error:
        return Verdict(False, 0, 0, 0, [Problem(SEAL, "seal", str(error))])
    try:
        with open_to_ask(arguments) as store, screen.progress("verifying") as tell:
            rules = not (arguments.log or arguments.views)
            return store.verify(tell, views=not arguments.log, rules=rules, seals=seals)
    except DAMAGE as error:
        return Verdict(False, 0, 0, 0, [Problem("log", str(arguments.store), str(error))])


def sound(found: Verdict, *, views: bool = True, rules: bool = True) -> Line:
    """The good news of a verify."""
    told = ", ".join(
        count(number, noun)
        for number, noun in (
            (found.sessions, "session"),
            (found.commits, "commit"),
            (found.mutations, "mutation"),
        )
    )
    held = "every hash, every rule and every view" if rules else "every hash and every view" if views else "every hash"
    return (Span("ok", "good"), f": {told}; {held} holds")


def problems(found: Verdict, store: str) -> list[Line | Table]:
    """The bad news of a verify, and what to do about it."""
    head = (Span(count(len(found.problems), "problem"), "bad"), f" in {count(found.commits, 'commit')}")
    columns = (Column("kind", style="bad"), Column("where", style="bad"), Column("what"))
    rows = [(one.kind, one.where, one.what) for one in found.problems[:SHOWN]]
    lines: list[Line | Table] = [head, Table(columns, rows)]
    if len(found.problems) > SHOWN:
        lines.append(Span(f"and {len(found.problems) - SHOWN} more; --json has them all", "dim"))
    return [*lines, *(Span(remedy, "bold") for remedy in remedies(found.problems, store))]


def remedies(found: list[Problem], store: str) -> list[str]:
    """What to do about problems, by what is damaged."""
    kinds = {one.kind for one in found}
    told = []
    if SEAL in kinds:
        told.append(
            "What was sealed is not what the store holds: keep a copy, and find out who wrote to its files. "
            "A backup made after the seal can be held against it too."
        )
    if ARCHIVE in kinds:
        told.append("An archive is not what the log says: the log itself and all other sessions are sound without it.")
    if ERASURE in kinds:
        told.append(
            "What is recorded as erased is still there, and no damage: "
            f"`vmstore erase {store} --finish` destroys it. A backup from before would bring it all back."
        )
    if UNREADABLE in kinds:
        told.append(
            "What an earlier version took in by hand cannot be told: it is answered as damaged, and all else is sound. "
            f"Write it again, or be rid of it with `vmstore erase {store} --session SESSION`."
        )
    if kinds - VIEWS - {SEAL, ARCHIVE, ERASURE, UNREADABLE}:
        told.append(
            "The log is damaged: stop writing to it, keep a copy, and put back a backup. "
            "What stands before the first commit named is sound."
        )
    if kinds & VIEWS:
        told.append(f"The views are only a copy: `vmstore rebuild {store}` folds them from the log again.")
    return told


def rebuild(arguments: argparse.Namespace, screen: Screen) -> int:
    """Folds the views from the log again."""
    with open_to_change(arguments) as store, screen.progress("rebuilding") as tell:
        positions = store.admin.rebuild(arguments.view, tell)
    if arguments.json:
        screen.json({"positions": positions})
    elif not screen.quiet:
        chosen = positions if arguments.view is None else {arguments.view: positions[arguments.view]}
        ordinal = max(chosen.values())
        screen.show((Span("rebuilt", "good"), f": {', '.join(sorted(chosen))}; at commit {ordinal} of the log"))
    return 0
