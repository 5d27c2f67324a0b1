"""Side effects that foreign data would have here beside its contents: listed, and applied only with consent.

An erasure that comes along destroys what is here, a policy that comes along is obeyed from then on.
All of it takes effect or nothing of what brought it is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from vmstore.core.mutation import Approve, Erase, Redact, Settings, decode
from vmstore.core.redaction import Redaction
from vmstore.engine.transfer.ingest import ForeignCommits
from vmstore.errors import RefusedError
from vmstore.log.commit import Commit
from vmstore.namespace.namespace import Namespace
from vmstore.views.erased_cells import erased_among

Agree = bool | Callable[[Sequence[str]], bool]
"""Whether somebody agrees to effects: said beforehand, or asked with what they are."""


def settle(agreed: Agree, effects: Sequence[str], source: object) -> None:
    """Raises RefusedError unless somebody agrees to what a source would do here."""
    if not effects or agreed is True or (callable(agreed) and agreed(effects)):
        return
    raise RefusedError(
        f"nothing was taken from {source}: {'; '.join(effects)}. Where that is meant, say --yes, in Python agreed=True",
        code="effect-not-allowed",
    )


def lost_here(ns: Namespace, session: int, commits: Iterable[Commit]) -> set[int]:
    """The cells of a session that are here and that commits of another copy of it record as erased."""
    found: set[int] = set()
    rows: Any = []
    for erase in (m for commit in commits for m in mutations_of(commit) if isinstance(m, Erase)):
        if not rows:
            sql = "SELECT first, last, cell, cells FROM commits WHERE session = ? AND cells > 0"
            rows = ns.views.execute(sql, (session,)).fetchall()
        named: dict[int, list[int]] = {}
        for position, index in erase.cells:
            named.setdefault(position, []).append(index)
        for first, last, cell, cells in rows:
            whole = range(cells) if last <= erase.upto else ()
            found.update(cell + index for index in (*whole, *named.get(first, ())) if index < cells)
    return found - set(erased_among(ns.views, sorted(found)))


def effects_on(ns: Namespace, session: int, name: str, commits: ForeignCommits) -> tuple[int, list[str]]:
    """How many cells here the new commits of a session that is here destroy; all they would do to it, in words."""
    lost, rules = len(lost_here(ns, session, commits)), list(dict.fromkeys(_rules(commits, name)))
    if lost:
        cells = "1 cell" if lost == 1 else f"{lost:,} cells"
        rules.insert(0, f"an erasure that comes along destroys {cells} of session {name!r} here for good")
    return lost, rules


def _rules(commits: Iterable[Commit], name: str) -> Iterator[str]:
    """The redaction and other policies that commits set for a session."""
    for m in (m for commit in commits for m in mutations_of(commit)):
        if isinstance(m, Redact) and m.policy is not None:
            word = Redaction(m.policy).word if m.policy in tuple(Redaction) else f"number {m.policy}"
            yield f"session {name!r} has the redaction {word!r} from there on"
        elif isinstance(m, Approve) and m.page:
            yield f"session {name!r} has files approved for its prompts that nobody approved here"
        elif isinstance(m, Settings):
            yield f"session {name!r} manages its memory by other settings from there on"


def mutations_of(commit: Commit) -> Sequence[Any]:
    """The mutations of a commit."""
    return decode(commit.body)
