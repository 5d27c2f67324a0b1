"""Pages that no prompt is given: those that were retracted, and files that nobody approved."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from vmstore.core.decision import Cause
from vmstore.core.page import Standing

WAITS, APPROVED, DENIED = range(3)
"""Words on a file: nobody's yet, or somebody's."""


class BarredPages(msgspec.Struct):
    """Pages that no prompt is given; those `here` are in it all the same, and go once nothing pins them.

    `retracted` ones hold no more, and only a program brings one back. `files` are artifacts that stand in no message,
    with what was said of each; barred are denied ones and, where the session `asks`, those that nobody approved.
    """

    retracted: dict[int, None] = {}
    files: dict[int, int] = {}
    asks: bool = False
    here: dict[int, None] = {}

    def __contains__(self, page: int) -> bool:
        return page in self.retracted or self.unapproved(page)

    def unapproved(self, page: int) -> bool:
        """Whether a page is a file that somebody denied, or that waits for somebody's word."""
        word = self.files.get(page, APPROVED)
        return word == DENIED or (self.asks and word == WAITS)

    @property
    def pages(self) -> set[int]:
        """All of them."""
        return {*self.retracted, *filter(self.unapproved, self.files)}

    # ---- what is said of them

    def retract(self, page: int, status: int, there: Container[int]) -> None:
        """Notes how a page stands from here on; `there` are those in the prompt."""
        if status == Standing.SUPERSEDED:
            self.retracted.setdefault(page, None)
        else:
            self.retracted.pop(page, None)
        self._note(page, there)

    def file(self, page: int, there: Container[int]) -> None:
        """Notes a file, or a new content of one: an approval was of what it held before, a denial goes on."""
        if self.files.get(page) != DENIED:
            self.files[page] = WAITS
        self._note(page, there)

    def approve(self, page: int, granted: int, there: Container[int]) -> None:
        """Notes somebody's word on what a file holds; of anything else it says nothing."""
        if page in self.files:
            self.files[page] = APPROVED if granted else DENIED
            self._note(page, there)

    def ask(self, asks: bool, there: Container[int]) -> None:
        """Notes whether files wait for somebody's word from here on."""
        self.asks = asks
        for page in self.files:
            self._note(page, there)

    def _note(self, page: int, there: Container[int]) -> None:
        if page not in self:
            self.here.pop(page, None)
        elif page in there:
            self.here[page] = None

    def leaving(self, there: Mapping[int, object], cause: Cause) -> list[int]:
        """Those in the prompt that nothing pins and that leave it for a cause, oldest first."""
        return sorted(
            page
            for page in self.here
            if not getattr(there[page], "pinned", False) and (cause is Cause.RETRACTED) == (page in self.retracted)
        )
