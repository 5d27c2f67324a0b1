"""Citations taken out of what a user reads, also while it streams and a mark comes in pieces."""

from __future__ import annotations

import re

from vmstore.vm.protocol.citations import BRACKET

# With the blanks before it; a run of blanks is looked at once.
MARK = re.compile(rf"(?<![ \t])[ \t]*(?:{BRACKET.pattern})", BRACKET.flags)
# The beginning of one.
BEGUN = re.compile(r"\[(?:r(?:e(?:f(?:s?(?::[^\[\]\n]{0,2000})?)?)?)?)?\Z", re.IGNORECASE)
BLANKS = " \t"


def unmarked(text: str) -> str:
    """A text without its citations and the blanks before them."""
    return MARK.sub("", text)


class CitationFilter:
    """Takes the citations out of a text that comes in pieces: what may become one waits until it is sure."""

    def __init__(self) -> None:
        self._waiting = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown once another piece has come."""
        text = self._waiting + piece
        sure = max((mark.end() for mark in MARK.finditer(text)), default=0)
        shown, rest = unmarked(text[:sure]), text[sure:]
        bracket = rest.rfind("[")
        if bracket < 0 or not BEGUN.match(rest, bracket):
            bracket = len(rest)
        begins = len(rest[:bracket].rstrip(BLANKS))
        self._waiting = rest[begins:]
        return shown + rest[:begins]

    def end(self) -> str:
        """The rest that turned out to be no citation."""
        text, self._waiting = self._waiting, ""
        return text
