"""Citations in what a model wrote: `[ref: p17]`, `[ref: p17, p18]`, `[ref: tool:page_fault(p19)]`."""

from __future__ import annotations

import re
from typing import NamedTuple

from vmstore.vm.protocol.escape import name_of

# Bounded, so that a text of open brackets costs no more than its length.
BRACKET = re.compile(r"\[refs?:([^\[\]\n]{1,2000})\]", re.IGNORECASE)
ITEM = re.compile(r"tool:(?P<tool>\w{1,64})\((?P<asked>[^()]*)\)|(?P<page>[^\s,;()]+)")
QUOTES = "\"'`\u201c\u201d\u2018\u2019"  # and the typographic ones


class Citation(NamedTuple):
    """A page the text leans on, by its name or address; `tool` is the tool that gave it, None for the context.

    `start` and `end` are the characters of the bracket it stands in.
    """

    page: str
    tool: str | None
    start: int
    end: int


def citations(text: str) -> list[Citation]:
    """Every citation of a text, in order; a bracket may name several pages, and a page may be cited again."""
    found = []
    for bracket in BRACKET.finditer(text):
        for item in ITEM.finditer(bracket[1]):
            page = item["page"] if item["tool"] is None else item["asked"].partition(",")[0]
            page = page.strip().strip(QUOTES)
            if page:
                found.append(Citation(name_of(page), item["tool"], bracket.start(), bracket.end()))
    return found
