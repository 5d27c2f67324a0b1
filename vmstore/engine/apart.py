"""The rule that keeps the namespace's own session apart from all others."""

from __future__ import annotations

from vmstore.core.mutation import AnyMutation, Open, Revoke, Share
from vmstore.engine.head import Head

OF_CHARTER: frozenset[type] = frozenset((Share, Revoke))
"""The kinds that stand in the namespace's own session alone."""

IN_CHARTER: frozenset[type] = OF_CHARTER | {Open}
"""All that it may hold; what may stand in any session is added here."""


def charter_stands_apart(head: Head, m: AnyMutation, place: object) -> str | None:
    """The namespace's own session holds what belongs to no other, and nothing else."""
    if head.charter and type(m) not in IN_CHARTER:
        return "this is the namespace's own session, which only the namespace writes to; use another"
    if not head.charter and type(m) in OF_CHARTER:
        return f"a {m.kind} stands in the namespace's own session; see specs/sharing.md"
    return None
