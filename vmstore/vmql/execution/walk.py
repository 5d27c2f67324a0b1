"""The shortest walk between two pages over links, whichever way each leads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vmstore.core.page import LinkKind
from vmstore.errors import InputError


class WalkedLink(NamedTuple):
    """A link between two pages, and the position that said so."""

    source: int
    target: int
    kind: int
    position: int


Walk = list[tuple[WalkedLink, int]]
"""Each link of a walk, and the page that it is met from."""


def kinds_of(words: Iterable[str]) -> set[int]:
    """The numbers of some kinds of link; InputError names one that there is none of."""
    found = {word: LinkKind.of(word) for word in words}
    if unknown := [word for word, kind in found.items() if kind is None]:
        raise InputError(f"{unknown[0]!r} is no kind of link; there are {', '.join(kind.word for kind in LinkKind)}")
    return {int(kind) for kind in found.values() if kind is not None}


def shortest(edges: Sequence[WalkedLink], first: int, last: int, depth: int | None) -> Walk:
    """The walk of the fewest links, at most so many; of several the one whose links were said first."""
    near: dict[int, list[tuple[int, int, WalkedLink]]] = {}
    for edge in edges:
        near.setdefault(edge.source, []).append((edge.position, edge.target, edge))
        near.setdefault(edge.target, []).append((edge.position, edge.source, edge))
    came: dict[int, tuple[WalkedLink, int]] = {}
    reached, border, steps = {first}, [first], 0
    while border and last not in reached and (depth is None or steps < depth):
        following: list[int] = []
        for page in border:
            for _, other, edge in sorted(near.get(page, ())):
                if other not in reached:
                    reached.add(other)
                    came[other] = edge, page
                    following.append(other)
        border, steps = following, steps + 1
    walk: Walk = []
    while last in came:
        edge, last = came[last]
        walk.append((edge, last))
    return walk[::-1]
