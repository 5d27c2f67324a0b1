"""Formats an assembled prompt: its parts, what stands in it and why, what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import number
from vmstore.shell.terminal.layout import Block, Line, StyledText, TableColumn, table

if TYPE_CHECKING:
    from vmstore.store.recall.assembly.results import AssembledPrompt, PromptChoice, PromptOmission

LEFT_MAX = 10
PAGES_MAX = 3


def head(prompt: AssembledPrompt) -> Line:
    """What it takes, and which turns it shows."""
    first, last = prompt.turns
    shown = f"turns {first} to {last}" if last else "no turn yet"
    taken = f"{number(prompt.tokens)} of {number(prompt.budget)} tokens"
    return (StyledText(prompt.basis.session, "name"), f", position {prompt.basis.position}: {taken}, {shown}")


def prompt(prompt: AssembledPrompt) -> Iterator[Block]:
    """All of it: the parts, the choices, what was left out."""
    yield head(prompt)
    yield ", ".join(f"{part} {number(tokens)}" for part, tokens in prompt.breakdown.items() if tokens)
    yield table(
        prompt.chosen,
        {
            TableColumn("part"): lambda one: one.part,
            TableColumn("what", style="name"): _what,
            TableColumn("level", right=True): lambda one: str(one.level),
            TableColumn("tokens", right=True): lambda one: number(one.tokens),
            TableColumn("score", right=True): lambda one: f"{one.score:.3g}",
            TableColumn("why"): lambda one: one.reason,
        },
    )
    if prompt.left:
        yield f"left out: {len(prompt.left)}"
        yield table(prompt.left[:LEFT_MAX], _OMITTED)
    if prompt.note:
        yield StyledText(prompt.note, "dim")


def _what(one: PromptChoice) -> str:
    more = len(one.pages) - PAGES_MAX
    named = ", ".join(one.pages[:PAGES_MAX]) + (f" and {more} more" if more > 0 else "")
    return named or one.name


def _left_tokens(one: PromptOmission) -> Line:
    return number(one.tokens)


_OMITTED = {
    TableColumn("part"): lambda one: one.part,
    TableColumn("what", style="name"): lambda one: one.name,
    TableColumn("tokens", right=True): _left_tokens,
    TableColumn("score", right=True): lambda one: f"{one.score:.3g}",
    TableColumn("why"): lambda one: one.why,
}
