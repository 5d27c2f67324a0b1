"""Changes of the prompt by each pack, with the decision behind each."""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
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


class MoveWay(Enum):
    """The ways of a move: into the prompt, out of it, or within."""

    CAME = "came"
    LEFT = "left"
    STAYED = "stayed"


EVERY_WAY = frozenset(MoveWay)


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


_SIZES = frozenset({"level_before", "level_after", "tokens"})


def moves_at(
    lane: Branch, position: int, wanted: Container[str] = Move._fields, ways: Container[MoveWay] = EVERY_WAY
) -> list[Move]:
    """Every move up to a position that goes one of some ways, in order; at one pack those that leave come first.

    Of what is not `wanted` a level or tokens that are there are 0, and no decision is looked for.
    """
    found = _shown(lane, position, ways, sized=any(name in wanted for name in _SIZES))
    found.sort(key=lambda move: (move[0], move[3] is not None, move[1]))
    decisions, asked = moves(lane, position) if "cause" in wanted or "reason" in wanted else ({}, {})
    if not decisions:
        return found
    packs, rows = packs_of(lane, position, (each.position for each in found)), []
    for each in found:
        because = shown_by(decisions.get(each.page, ()), packs, each.position)
        if because is not None and gone(because) == (each.level_after is None):
            each = each._replace(cause=because.position, reason=_said(because, reason_of(because, asked.get)))
        rows.append(each)
    return rows


def _shown(lane: Branch, position: int, ways: Container[MoveWay], *, sized: bool) -> list[Move]:
    """The moves that the packs show, of some ways."""
    came, left, stayed = (way in ways for way in MoveWay)
    here = stays(lane, position)
    shown = {content for _, content, _, _ in here.values()} if sized else ()
    what = {content: (row[_LEVEL], row[_TOKENS]) for content, row in contents(lane, shown).items()}
    before = {(t, page): (content, rank) for (_, page), (t, content, _, rank) in here.items() if t is not None}
    found = []
    for (f, page), (_, content, _, rank) in here.items():
        was = before.pop((f, page), None)
        if came if was is None else stayed and was != (content, rank):
            level, tokens = what.get(content, _UNSIZED)
            found.append(Move(f, page, None if was is None else what.get(was[0], _UNSIZED)[0], level, tokens))
    for (t, page), (content, _) in before.items() if left else ():
        level, tokens = what.get(content, _UNSIZED)
        found.append(Move(t, page, level, None, tokens))
    return found


_UNSIZED = (0, 0)


def _said(decision: Decision, reason: str | None) -> str:
    kind = MUTATION_NAMES[decision.kind]
    return kind if reason is None else f"{kind}: {reason}"
