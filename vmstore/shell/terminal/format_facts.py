"""Formats what is known: facts, since when and from where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from vmstore.core.times import iso
from vmstore.facts.verbs import of_another
from vmstore.shell.terminal.layout import Line, StyledText, TableColumn, TextTable, table

if TYPE_CHECKING:
    from vmstore.store.recall.results import KnownFact

DAY_CHARS = 10


def facts(found: Sequence[KnownFact]) -> TextTable:
    """Facts in their order, the text last; the session, the status and what replaced one where some fact has them."""
    cells: dict[TableColumn, Callable[[KnownFact], Line]] = {
        TableColumn("page"): lambda fact: StyledText(fact.page, "name"),
        TableColumn("type"): lambda fact: fact.type,
        TableColumn("since"): lambda fact: _day(fact.valid_from_us),
        TableColumn("until"): lambda fact: _day(fact.valid_to_us),
        TableColumn("from"): lambda fact: StyledText(" ".join(fact.sources), "dim"),
        TableColumn("fact"): _sentence,
    }
    if any(fact.status != "active" for fact in found):
        cells = _before(cells, "since", TableColumn("status"), lambda fact: fact.status)
    if any(fact.superseded_by for fact in found):
        cells = _before(cells, "from", TableColumn("replaced by"), lambda fact: fact.superseded_by or "")
    if len({fact.session for fact in found}) > 1:
        cells = {TableColumn("session"): lambda fact: fact.session, **cells}
    return table(found, cells)


def _before(
    cells: Mapping[TableColumn, Callable[[KnownFact], Line]],
    title: str,
    column: TableColumn,
    cell: Callable[[KnownFact], Line],
) -> dict[TableColumn, Callable[[KnownFact], Line]]:
    """The same columns with one more before another."""
    pairs = list(cells.items())
    place = next(at for at, (before, _) in enumerate(pairs) if before.title == title)
    return dict([*pairs[:place], (column, cell), *pairs[place:]])


def _sentence(fact: KnownFact) -> str:
    """What a fact states, of who speaks told as of somebody else: `user lives in Lyon`."""
    own = "'s " not in fact.subject and fact.status != "completed"
    return " ".join(f"{fact.subject} {of_another(fact.verb) if own else fact.verb} {fact.what}".split())


def _day(at: int | None) -> str:
    return "" if at is None else iso(at)[:DAY_CHARS]
