"""Changes of the prompt by each pack, with the decision behind each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from vmstore.core.mutation_kind import MUTATION_NAMES
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import Decision
from vmstore.views.projectors.residency import MoveWay, changes
from vmstore.views.reads.context import ShownPage, contents
from vmstore.views.reads.faults import gone, moves, packs_of, shown_by
from vmstore.views.reads.reasons import reason_of

_LEVEL = ShownPage._fields.index("level") - ShownPage._fields.index("message")
_TOKENS = ShownPage._fields.index("tokens") - ShownPage._fields.index("message")
assert 0 < _LEVEL < _TOKENS, "`contents` gives a page's fields from its message on, the level before the tokens"


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
) -> Iterable[Move]:
    """Every move up to a position that goes one of some ways, in order; at one pack those that leave come first.

    Of what is not `wanted` a level or tokens that are there are 0, and no decision is looked for.
    """
    found = _shown(lane, position, ways, sized=any(name in wanted for name in _SIZES))
    decisions, asked = moves(lane, position) if "cause" in wanted or "reason" in wanted else ({}, {})
    if not decisions:
        return found
    listed = list(found)
    packs, rows = packs_of(lane, position, (each.position for each in listed)), []
    for each in listed:
        because = shown_by(decisions.get(each.page, ()), packs, each.position)
        if because is not None and gone(because) == (each.level_after is None):
            each = each._replace(cause=because.position, reason=_said(because, reason_of(because, asked.get)))
        rows.append(each)
    return rows


def _shown(lane: Branch, position: int, ways: Container[MoveWay], *, sized: bool) -> Iterator[Move]:
    """The moves that the packs show, of some ways, in order."""
    found = changes(lane, position, ways)
    found.sort(key=lambda change: (change[0], change[3] is not None, change[1]))
    shown = {content for _, _, *both in found for content in both if content is not None} if sized else ()
    what = contents(lane, shown)
    for pack, page, before, after in found:
        level_before, tokens = (None, 0) if before is None else _size(what[before]) if sized else _UNSIZED
        level, tokens = (None, tokens) if after is None else _size(what[after]) if sized else _UNSIZED
        yield Move(pack, page, level_before, level, tokens)


_size = itemgetter(_LEVEL, _TOKENS)
_UNSIZED = (0, 0)


def _said(decision: Decision, reason: str | None) -> str:
    kind = MUTATION_NAMES[decision.kind]
    return kind if reason is None else f"{kind}: {reason}"
