"""Retention: rules stated in the namespace's own session, and what is due by them erased.

A rule is a policy of the namespace whose value holds it; the last of a name holds, and one without a
value takes the rule away. Earlier versions wrote marks called `retention:NAME`, with the rule as their
note; those still mean what they meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from vmstore.core.mutation import CellRef, Mark, NamespacePolicy
from vmstore.core.namespace_policy import PolicySubject
from vmstore.engine.batch import Batch
from vmstore.erasure.erase import Erasable, erase_wanted, pages_where
from vmstore.errors import ErasedError, InputError, UnknownError
from vmstore.namespace import system_session
from vmstore.namespace.namespace import session_name
from vmstore.namespace.reports import ErasureReport
from vmstore.retention.rules import DueErasures, RetentionRule, SparedPage, due, span
from vmstore.views.reads.system_entries import SystemEntry

if TYPE_CHECKING:
    from vmstore.namespace.signing_keys import SigningKey

MARK = "retention:"  # begins the names of marks that stated rules before there was a kind for them
RULE = "default"  # the name of a rule that was given none


class RetentionReport(msgspec.Struct, frozen=True):
    """Result of retention, or its plan where not `done`; `erased` is None where nothing was due."""

    rules: list[RetentionRule]
    sessions: list[str]
    pages: list[str]
    spared: list[SparedPage]
    done: bool
    erased: ErasureReport | None


def rules(store: Erasable) -> list[RetentionRule]:
    """The rules that hold, by name."""
    stated: dict[str, RetentionRule | None] = {}
    for entry in system_session.entries(store._ns):
        if (cells := _rule_cells(entry)) is not None:
            name, value = cells
            try:
                text = entry.text(value)
            except ErasedError:  # with the user it was about
                text = None
            stated[name] = None if text is None else msgspec.json.decode(text, type=RetentionRule)
    return [rule for _, rule in sorted(stated.items()) if rule is not None]


def _rule_cells(entry: SystemEntry) -> tuple[str, CellRef | None] | None:
    """The name of the rule that an entry states, and the cell with the rule; None where it states none."""
    m = entry.mutation
    if isinstance(m, NamespacePolicy) and m.subject == PolicySubject.RETENTION:
        return entry.text(m.name) or "", m.value
    if isinstance(m, Mark) and m.reason == Mark.NAMED and (name := entry.text(m.name) or "").startswith(MARK):
        return name.removeprefix(MARK), m.note
    return None


def keep(
    store: Erasable, time: str, *, where: str | None = None, user: str | None = None, name: str = RULE
) -> RetentionRule:
    """States how long contents are kept, like `90d`; a rule of the same name is replaced. Nothing is erased yet.

    Without `where`, a condition on PAGES, it is about whole sessions. Raises QueryError where that is none.
    """
    rule = RetentionRule(session_name(name), span(time), where, user)
    if where is not None:
        next(iter(pages_where(store, where)), None)
    if rule not in rules(store):
        _say(store, name, msgspec.json.encode(rule))
    return rule


def drop(store: Erasable, name: str) -> None:
    """Takes a rule away; UnknownError names those there are."""
    there = [rule.name for rule in rules(store)]
    if name not in there:
        raise UnknownError(f"there is no rule {name!r}; {store._ns.nearest(name, there)}", code="no-rule")
    _say(store, name, None)


def apply(store: Erasable, *, dry_run: bool = False, key: SigningKey | None = None) -> RetentionReport:
    """Erases what is due by the rules, with a certificate; or only says what that is.

    Raises InputError where there is no rule.
    """
    stated, ns = rules(store), store._ns
    if not stated:
        raise InputError("there is no rule how long to keep contents; state one with --keep 90d", code="no-rule")
    found: list[DueErasures] = []

    def choose() -> DueErasures:
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
    return RetentionReport(stated, last.sessions, last.pages, last.spared, not dry_run, taken)


def _say(store: Erasable, name: str, rules: bytes | None) -> None:
    def write(batch: Batch) -> None:
        value = None if rules is None else batch.cell(rules)
        batch.add(NamespacePolicy(PolicySubject.RETENTION, batch.cell(name.encode()), value))

    system_session.append(store._ns, write)
