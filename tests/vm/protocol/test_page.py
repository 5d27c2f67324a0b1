"""The page of the specs says what the protocol does: its tables are held against the code."""

from __future__ import annotations

from tests.prose import CHECKOUT, quoted, section, tables
from vmstore.vm.protocol import SCHEMAS, Paging, Rules
from vmstore.vm.protocol.context import PREFIXES

PAGE = (CHECKOUT / "specs" / "protocol.md").read_text(encoding="utf-8")


def first_column(title: str, table: int = 0) -> list[str]:
    """The first column of a table of a section."""
    return [quoted(row[0])[0] for row in tables(section(PAGE, title))[table]]


def test_the_letters_are_the_codes() -> None:
    """Every letter a page can stand under is in the table, with what it means."""
    rows = tables(section(PAGE, "VM:CONTEXT"))[0]
    assert {quoted(row[0])[0]: row[1] for row in rows} == PREFIXES


def test_the_schemas_are_the_codes() -> None:
    """Every published schema is in the table, and no other."""
    assert first_column("Tools, envelopes, schemas") == list(SCHEMAS)


def test_the_settings_are_the_codes() -> None:
    """Both settings are told with each of their values."""
    title = "VM:RULES and the developer message"
    assert first_column(title) == [rules.word for rules in Rules]
    assert first_column(title, 1) == [paging.word for paging in Paging]
