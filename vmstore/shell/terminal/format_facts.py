"""Formats what is known: facts, since when and from where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vmstore.core.times import iso
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable, table

if TYPE_CHECKING:
    from vmstore.store.recall.results import KnownFact

DAY_CHARS = 10


def facts(found: Sequence[KnownFact]) -> TextTable:
    """Facts in their order, the session where there are several, what replaced one where something did."""
    cells: dict[TableColumn, Callable[[KnownFact], Line]] = {
        TableColumn("page"): lambda fact: StyledText(fact.page, "name"),
        TableColumn("subject"): lambda fact: fact.subject,
        TableColumn("verb"): lambda fact: fact.verb,
        TableColumn("what"): lambda fact: " ".join(fact.what.split()),
        TableColumn("type"): lambda fact: fact.type,
        TableColumn("status"): lambda fact: fact.status,
        TableColumn("since"): lambda fact: _day(fact.valid_from_us),
        TableColumn("until"): lambda fact: _day(fact.valid_to_us),
        TableColumn("replaced by"): lambda fact: fact.superseded_by or "",
        TableColumn("from"): lambda fact: StyledText(" ".join(fact.sources), "dim"),
    }
    if len({fact.session for fact in found}) > 1:
        cells = {TableColumn("session"): lambda fact: fact.session, **cells}
    return table(found, cells)


def _day(at: int | None) -> str:
    return "" if at is None else iso(at)[:DAY_CHARS]
