"""What counts as a use of an earlier page, where a source tells none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.vm.recall.used_pages import Evidence, PageUse, WrittenPage, references

TEXT = "the night train leaves Kyoto at ten and arrives in Tokyo at six in the morning"


def used(*texts: str, ids: tuple[str, ...] = ()) -> list[tuple[int, int, Evidence]]:
    """What the pages use, numbered from 1; the first has the ids."""
    written = [WrittenPage(n, text, ids if n == 1 else ()) for n, text in enumerate(texts, 1)]
    return [tuple(reference) for reference in references(written)]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("before", "after", "evidence"),
    [
        (TEXT, f"You said that {TEXT[4:70]}, is that right?", Evidence.QUOTED),
        (TEXT, TEXT, Evidence.SAME),
        ("ok", "ok", Evidence.SAME),
        ("I wrote src/agent/main.py for you.", "Now open src/agent/main.py again.", Evidence.NAMED),
        ("Your reservation is HXK-8812.", '{"reservation": "HXK-8812"}', Evidence.NAMED),
        ("line one of it\nand line two of the whole file", r'{"old": "one of it\nand line two of the whole file"}', 2),
        (f"{TEXT} to src/main.py", f"{TEXT}? src/main.py", Evidence.QUOTED),
    ],
)
def test_a_use_is_seen(before: str, after: str, evidence: Evidence) -> None:
    """Eight words in a row, a name, or the same text make a page used; the strongest evidence counts."""
    assert used(before, "nothing to see here", after) == [(3, 1, evidence)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT, "the night train leaves Kyoto at ten"),  # seven words
        ("What a day", "Another day"),
        ("see a.b", "see a.b"[:5]),
        ("", ""),
    ],
)
def test_what_is_common_is_no_use(before: str, after: str) -> None:
    """Short runs, plain words and nothing at all are no evidence."""
    assert used(before, after) == []


def test_an_id_cites_its_page() -> None:
    """A page's own id in a later page is a citation, however many repeat it."""
    cites = ["see [ref: msg_042]"] * 6
    assert used("Postgres it is.", *(f"{cite} {n}" for n, cite in enumerate(cites)), ids=("msg_042",))[-1] == (
        7,
        1,
        Evidence.CITED,
    )


def test_the_newest_holder_counts() -> None:
    """What two pages hold is owed to the later one."""
    assert used("from src/agent/main.py", "and src/agent/main.py", "or src/agent/main.py") == [
        (2, 1, Evidence.NAMED),
        (3, 2, Evidence.NAMED),
    ]


def test_what_everybody_says_is_evidence_of_nothing() -> None:
    """A name in more than four pages stops counting; the pages before it had been used."""
    pages = [f"{word} /usr/bin/python3" for word in ("a", "b", "c", "d", "e", "f", "g")]
    assert [row[0] for row in used(*pages)] == [2, 3, 4, 5]


def test_within_a_page_older_uses_come_first() -> None:
    """A page that uses two others names them in the order they were written."""
    assert used("first src/a_file.py", "then src/b_file.py", "both src/b_file.py and src/a_file.py") == [
        (3, 1, Evidence.NAMED),
        (3, 2, Evidence.NAMED),
    ]


@given(st.lists(st.text(alphabet="ab/ 1\\n", max_size=60), max_size=8))
def test_only_earlier_pages_are_used(texts: list[str]) -> None:
    """Whatever the texts, a use goes back, is told once, and is the same when told again."""
    written = [WrittenPage(n, text) for n, text in enumerate(texts)]
    actual_references = list(references(written))
    assert actual_references == list(references(written))
    assert all(
        isinstance(actual_reference, PageUse) and actual_reference.page < actual_reference.by
        for actual_reference in actual_references
    )
    assert len({(actual_reference.by, actual_reference.page) for actual_reference in actual_references}) == len(
        actual_references
    )
