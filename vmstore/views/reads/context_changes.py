"""Changes of the prompt by each pack, with the decision behind each."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.mutation_kind import MUTATION_NAMES
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import Decision
from vmstore.views.projectors.residency import stays
from vmstore.views.reads.context import ShownPage, contents
from vmstore.views.reads.faults import gone, moves, packs_of, shown_by
from vmstore.views.reads.reasons import reason_of

_LEVEL = ShownPage._fields.index("level") - ShownPage._fields.index("message")
_TOKENS = ShownPage._fields.index("tokens") - ShownPage._fields.index("message")
assert 0 < _LEVEL < _TOKENS, "`contents` gives a page's fields from its message on, the level before the tokens"


class Move(NamedTuple):
    """A page that came into the prompt, left it or was shown otherwise or in another place there, at a pack.

    A level is None where the page was not in the prompt; `tokens` are those of what is shown, or,
    where it left, was. `cause` is the position of the decision that the pack shows.
    """

    position: int
    page: int
    level_before: int | None
    level_after: int | None
    tokens: int
    cause: int | None = None
    reason: str | None = None

    @property
    def came(self) -> bool:
        """Whether the page was not in the prompt before."""
        return self.level_before is None

    @property
    def left(self) -> bool:
        """Whether it is not there after."""
        return self.level_after is None


def moves_at(lane: Branch, position: int) -> list[Move]:
    """Every move up to a position, in order; at one pack those that leave before those that come."""
    found = _shown(lane, position)
    decisions, asked = moves(lane, position)
    packs = packs_of(lane, position, (each.position for each in found)) if decisions else []
    rows = []
    for each in sorted(found, key=lambda move: (move.position, not move.left, move.page)):
        because = shown_by(decisions.get(each.page, ()), packs, each.position)
        if because is not None and gone(because) == each.left:
            each = each._replace(cause=because.position, reason=_said(because, reason_of(because, asked.get)))
        rows.append(each)
    return rows


def _shown(lane: Branch, position: int) -> list[Move]:
    """The moves that the packs show."""
    here = stays(lane, position)
    what = contents(lane, {content for _, content, _, _ in here.values()})
    before = {(t, page): (content, rank) for (_, page), (t, content, _, rank) in here.items() if t is not None}
    found = []
    for (f, page), (_, content, _, rank) in here.items():
        was = before.pop((f, page), None)
        if was != (content, rank):
            levels = None if was is None else what[was[0]][_LEVEL], what[content][_LEVEL]
            found.append(Move(f, page, *levels, what[content][_TOKENS]))
    left = [Move(t, page, what[was][_LEVEL], None, what[was][_TOKENS]) for (t, page), (was, _) in before.items()]
    return found + left


def _said(decision: Decision, reason: str | None) -> str:
    kind = MUTATION_NAMES[decision.kind]
    return kind if reason is None else f"{kind}: {reason}"
