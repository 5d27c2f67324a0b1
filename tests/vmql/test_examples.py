"""The examples beside the grammar: what is read, and what is refused in which words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vmstore.vmql.parse import parse
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import Statement
from vmstore.vmql.syntax.printer import show

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = CHECKOUT / "grammar" / "examples"
VALID = [line.partition("  # ") for line in (EXAMPLES / "valid.vmql").read_text().splitlines()]
INVALID = [line.partition("  # ") for line in (EXAMPLES / "invalid.vmql").read_text().splitlines()]
CODES = {text.partition(":")[0] for _, _, text in INVALID}
# The ten commonest mistakes, and what each is told to write.
MEANT = {
    "SELECT * FROM pages": "PAGES",
    "PAGES WHERE type == claim": "PAGES WHERE type = claim",
    'PAGES WHERE type = "claim"': "PAGES WHERE type = 'claim'",
    "PAGES AS OF 42": "PAGES AS OF TURN 42",
    "PAGES IN planning-220": "PAGES IN SESSION planning-220",
    "PAGES WHERE type <> claim": "PAGES WHERE type != claim",
    "PAGES; WHERE type = claim": "PAGES WHERE type = claim",
    "PAGES LIMIT 0,5": "PAGES LIMIT 5",
    "PAGES count()": "PAGES count(*)",
    "PAGES DISTINCT type": "PAGES BY type",
}


@pytest.mark.parametrize(("text", "_", "meaning"), VALID, ids=[text for text, _, _ in VALID])
def test_a_valid_example_is_read(text: str, _: str, meaning: str) -> None:
    """A valid example is read as its canonical text, which stands beside it where it is another."""
    assert show(parse(text)) == (meaning or text)


@pytest.mark.parametrize(("text", "_", "other_text"), INVALID, ids=[text for text, _, _ in INVALID])
def test_an_invalid_example_is_refused(text: str, _: str, other_text: str) -> None:
    """An invalid example is refused with the code and the words beside it, at a place within it."""
    with pytest.raises(QueryError) as refused:
        parse(text)
    error = refused.value
    assert f"{error.code}: {error}" == other_text
    assert error.text == text and 0 <= error.span.start <= error.span.end <= len(text)
    assert error.pointed().startswith(f"line 1: {text[:60]}")


@pytest.mark.parametrize(("text", "meant"), MEANT.items())
def test_a_common_mistake_is_told_what_was_meant(text: str, meant: str) -> None:
    """Each of the ten commonest mistakes is told the VMQL for what was meant, and that is VMQL."""
    with pytest.raises(QueryError) as refused:
        parse(text)
    assert refused.value.hint == f"write {meant}"
    assert show(parse(meant)) == meant


def test_a_reserved_word_as_a_name_is_told_so() -> None:
    """The tenth of them, a keyword for a column, is told that it is one."""
    with pytest.raises(QueryError) as refused:
        parse("PAGES limit, page")
    assert refused.value.code == "reserved-word" and "LIMIT begins a clause" in refused.value.message


def test_every_advice_is_vmql() -> None:
    """Whatever a refusal says to write parses."""
    for text, _, expected in INVALID:
        for written in re.findall(r"write (?:for example )?([A-Z]+ .*|PAGES)$", expected):
            if not written.startswith(("IS ", "IN ")):
                assert isinstance(parse(written), Statement), (text, written)


def test_the_reference_has_every_code() -> None:
    """Every code of the examples stands in the first table of codes, and no other but those of limits."""
    page = (CHECKOUT / "specs" / "vmql.md").read_text()
    table = page[page.index("| code | when |") :].partition("\n\n")[0]
    matches = set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE))
    assert matches - CODES == {"not-text", "too-large", "too-long", "too-deep", "empty"} and matches >= CODES
