"""Retention: rules stated in the namespace's own session, and what is due by them erased.

A rule is a mark of that session, called `retention:NAME`, whose note holds it; the last mark of a
name holds, and one without a note takes the rule away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from vmstore.core.mutation import Mark
from vmstore.engine.batch import Batch
from vmstore.erasure.erase import Asked, erase_wanted
from vmstore.errors import ErasedError, InputError, UnknownError
from vmstore.namespace import system_session
from vmstore.namespace.namespace import session_name
from vmstore.namespace.reports import Erased
from vmstore.retention.rules import Due, Rule, Spared, due, span

if TYPE_CHECKING:
    from vmstore.namespace.signing_keys import Key

MARK = "retention:"
RULE = "default"  # the name of a rule that was given none


class Retained(msgspec.Struct, frozen=True):
    """What the rules of a namespace took, or would take where not `done`; `erased` is None where nothing was due."""

    rules: list[Rule]
    sessions: list[str]
    pages: list[str]
    spared: list[Spared]
    done: bool
    erased: Erased | None


def rules(store: Asked) -> list[Rule]:
    """The rules that hold, by name."""
    found: dict[str, Rule | None] = {}
    for entry in system_session.entries(store._ns):
        mark = entry.mutation
        if isinstance(mark, Mark) and mark.reason == Mark.NAMED:
            name = entry.text(mark.name) or ""
            try:
                told = entry.text(mark.note)
            except ErasedError:  # with the user it was about
                told = None
            if name.startswith(MARK):
                found[name.removeprefix(MARK)] = None if told is None else msgspec.json.decode(told, type=Rule)
    return [rule for _, rule in sorted(found.items()) if rule is not None]


def keep(store: Asked, time: str, *, where: str | None = None, user: str | None = None, name: str = RULE) -> Rule:
    """States how long contents are kept, like `90d`; a rule of the same name is replaced. Nothing is erased yet.

    Without `where`, a condition on PAGES, it is about whole sessions. Raises QueryError where that is none.
    """
    rule = Rule(session_name(name), span(time), where, user)
    if where is not None:
        list(store.query(f"PAGES page ACROSS SESSIONS WHERE ({where}) LIMIT 1"))
    if rule not in rules(store):
        _say(store, name, msgspec.json.encode(rule))
    return rule


def drop(store: Asked, name: str) -> None:
    """Takes a rule away; UnknownError names those there are."""
    there = [rule.name for rule in rules(store)]
    if name not in there:
        raise UnknownError(f"there is no rule {name!r}; {store._ns.nearest(name, there)}")
    _say(store, name, None)


def apply(store: Asked, *, dry_run: bool = False, key: Key | None = None) -> Retained:
    """Erases what is due by the rules, with a certificate; or only says what that is.

    Raises InputError where there is no rule.
    """
    stated, ns = rules(store), store._ns
    if not stated:
        raise InputError("there is no rule how long to keep contents; state one with --keep 90d")
    found: list[Due] = []

    def choose() -> Due:
        found.append(due(store, stated, ns.clock.now()))
        return found[-1]

    if dry_run:
        with ns.asking():
            choose()
        erased = None
    else:
        erased = erase_wanted(store, lambda: choose().wanted, "retention", key)
    last = found[-1]
    taken = erased if erased is not None and erased.commits else None
    return Retained(stated, last.sessions, last.pages, last.spared, not dry_run, taken)


def _say(store: Asked, name: str, told: bytes | None) -> None:
    def write(batch: Batch) -> None:
        note = None if told is None else batch.cell(told)
        batch.add(Mark(Mark.NAMED, name=batch.cell((MARK + name).encode()), note=note))

    system_session.append(store._ns, write)
