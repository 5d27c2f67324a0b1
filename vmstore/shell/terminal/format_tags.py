"""Formats what sessions are about: tags, names that may mean the same, segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import number
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable, table

if TYPE_CHECKING:
    from vmstore.store.recall.segments import SegmentInfo
    from vmstore.store.recall.tags import AliasSuggestion, TagInfo


def tags(found: Sequence[TagInfo]) -> TextTable:
    """Tags by name; one that counts as another tells which."""
    cells: dict[TableColumn, Callable[[TagInfo], Line]] = {
        TableColumn("tag"): lambda tag: StyledText(tag.tag, "name"),
        TableColumn("pages", right=True): lambda tag: number(tag.pages),
        TableColumn("turns", right=True): lambda tag: number(tag.turns),
        TableColumn("from", right=True): lambda tag: number(tag.first_turn),
        TableColumn("to", right=True): lambda tag: number(tag.last_turn),
        TableColumn("tokens", right=True): lambda tag: number(tag.tokens),
        TableColumn("share", right=True): lambda tag: f"{100 * tag.share:.0f} %",
        TableColumn("found by"): lambda tag: StyledText(" ".join(tag.methods), "dim"),
        TableColumn("beside"): _beside,
    }
    return table(found, cells)


def _beside(tag: TagInfo) -> Line:
    if tag.canonical != tag.tag:
        return f"counts as {tag.canonical}"
    return ", ".join(tag.related + [f"={name}" for name in tag.aliases])


def suggestions(found: Sequence[AliasSuggestion]) -> TextTable:
    """Names that may mean the same, and what speaks for it."""
    cells: dict[TableColumn, Callable[[AliasSuggestion], Line]] = {
        TableColumn("alias"): lambda one: StyledText(one.alias, "name"),
        TableColumn("tag"): lambda one: one.canonical,
        TableColumn("why"): lambda one: StyledText(one.why, "dim"),
    }
    return table(found, cells)


def segments(found: Sequence[SegmentInfo]) -> TextTable:
    """Segments in order; a tag's summary has no number."""
    cells: dict[TableColumn, Callable[[SegmentInfo], Line]] = {
        TableColumn("segment", right=True): lambda one: "tag" if one.number is None else number(one.number),
        TableColumn("from", right=True): lambda one: number(one.first_turn),
        TableColumn("to", right=True): lambda one: number(one.last_turn),
        TableColumn("pages", right=True): lambda one: number(one.pages),
        TableColumn("said", right=True): lambda one: number(one.tokens_before),
        TableColumn("tokens", right=True): lambda one: number(one.tokens_after),
        TableColumn("summary"): lambda one: one.summary or "",
        TableColumn("state"): lambda one: StyledText(one.state, "dim"),
        TableColumn("title"): lambda one: StyledText(one.title or "", "name"),
    }
    return table(found, cells)
