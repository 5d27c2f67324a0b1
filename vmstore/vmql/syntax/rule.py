"""A rule of the grammar in one declaration: the node it makes, and how that node is written.

    @rule("not_between", "{operand} NOT BETWEEN {low} AND {high}", TEST, negated=True)

In the text the fields of the node stand where the rule has its parts, in their order; constants are what
its keywords say. `build` reads by these declarations, `printer` writes by them.

    {by:, }      parts with a text between them: the field is a tuple
    {name!l}     a name as a text: in small letters (l), in capitals (u), as it is written (a)
    {left!s}     a side of an operator that is as strong as the whole, without parentheses
    {items!p:, } a list in parentheses
    [ AS {name}] what is left out where its field is empty
    …            the clauses of a statement
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

N = TypeVar("N")

# How strongly a rule binds its parts: what binds less stands in parentheses within it.
ANYTHING, OR, AND, NOT, TEST, SUM, PRODUCT, ATOM = range(8)


class RulePart(msgspec.Struct, frozen=True):
    """A field in a rule's text: the form it is written in, and what stands between the members of a list."""

    field: str
    form: str
    joint: str


class SyntaxRule(msgspec.Struct, frozen=True, eq=False):
    """A rule: its names in the grammar, its node, its text, what its keywords set.

    `rank` says how strongly it binds where it is a part, `within` what its own parts must be stronger than.
    A clause `fills` a field of its statement with its node; without a node it fills those in its text.
    """

    names: str
    node: type | None
    text: str
    constants: dict[str, Any]
    rank: int
    within: int
    fills: str

    def parts(self) -> list[RulePart]:
        """The fields in the order of the text."""
        return [part for part in pieces(self.text.replace("[", "").replace("]", "")) if isinstance(part, RulePart)]


def pieces(text: str) -> list[str | RulePart]:
    """A text taken apart where fields stand in it."""
    texts = text.replace("}", "{").split("{")
    return [_part(piece) if place % 2 else piece for place, piece in enumerate(texts) if piece]


def _part(text: str) -> RulePart:
    field, _, joint = text.partition(":")
    field, _, form = field.partition("!")
    return RulePart(field, form, joint)


RULES: Final[list[SyntaxRule]] = []
CLAUSES: Final[list[SyntaxRule]] = []  # in the order in which a statement is written


def rule(
    names: str, text: str, rank: int = ATOM, fills: str = "", within: int = TEST, **constants: Any
) -> Callable[[type[N]], type[N]]:
    """Declares that rules of some names make a node, written so."""
    # Where nothing binds, no bare condition can stand, unless it is said that one can.
    within = rank if rank < ATOM else within

    def enter(node: type[N]) -> type[N]:
        (CLAUSES if fills else RULES).append(SyntaxRule(names, node, text, constants, rank, within, fills))
        return node

    return enter


def clause(names: str, text: str, within: int = TEST, **constants: Any) -> None:
    """Declares a clause that fills fields of its statement."""
    CLAUSES.append(SyntaxRule(names, None, text, constants, ATOM, within, ""))
