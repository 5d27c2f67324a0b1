"""What a model cites is found, in whatever form it writes it, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vm.protocol.leaves import names
from vmstore.vm.protocol import citations
from vmstore.vm.protocol.escape import printed


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Postgres [ref: msg_123].", [("msg_123", None)]),
        ("[ref: p1] and [ref: p1]", [("p1", None), ("p1", None)]),
        ("[ref: p1, p2; claim_db]", [("p1", None), ("p2", None), ("claim_db", None)]),
        ("[ref: tool:page_fault(img_045)]", [("img_045", "page_fault")]),
        ("[ref: p1, tool:page_fault(p2, 0), p3]", [("p1", None), ("p2", "page_fault"), ("p3", None)]),
        ('[Refs:"p1", `p2`]', [("p1", None), ("p2", None)]),
        ("[ref: vm://default/s/p17@turn:3#level=2]", [("vm://default/s/p17@turn:3#level=2", None)]),
        ("[ref: p1\np2]", []),
        ("[ref:]", []),
        ("[ref: ]", []),
        ("[ref: [ref: p1]]", [("p1", None)]),
        ("[reference: p1] [ref p1] (ref: p1)", []),
        ("[ref: tool:page_fault()]", []),
        ("", []),
    ],
)
def test_a_citation_is_found(text: str, rows: list[tuple[str, str | None]]) -> None:
    """Each form names its pages, in order, with the tool that gave them."""
    assert [(citation.page, citation.tool) for citation in citations(text)] == rows


@given(
    st.lists(names, min_size=1, max_size=4),
    st.text(alphabet=st.characters(exclude_characters="[]")),
)
def test_any_printed_name_is_cited(pages: list[str], around: str) -> None:
    """A name cited as the prompt prints it is found, wherever it stands."""
    text = f"{around}[ref: {', '.join(map(printed, pages))}]{around}"
    actual_citations = citations(text)
    assert [actual_citation.page for actual_citation in actual_citations] == pages
    assert {text[actual_citation.start : actual_citation.end] for actual_citation in actual_citations} == {
        text[len(around) : len(text) - len(around)]
    }


def test_a_text_of_brackets_costs_its_length() -> None:
    """A megabyte of opened brackets is read without finding anything."""
    assert citations("[ref: " * 200_000) == []
