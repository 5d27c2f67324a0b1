"""Pages of a session that were superseded, and those of them that are in the prompt still."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from vmstore.core.page import Standing
from vmstore.vm.kernel.managed_page import Held


class Retracted(msgspec.Struct):
    """`pages` hold no more, and only a program brings one back; those `here` go once nothing pins them."""

    pages: dict[int, None] = {}
    here: dict[int, None] = {}

    def __contains__(self, page: int) -> bool:
        return page in self.pages

    def say(self, page: int, status: int, there: Container[int]) -> None:
        """Notes how a page stands from here on; `there` are those in the prompt."""
        if status != Standing.SUPERSEDED:
            self.pages.pop(page, None)
            self.here.pop(page, None)
        elif page not in self.pages:
            self.pages[page] = None
            if page in there:
                self.here[page] = None

    def leaving(self, there: Mapping[int, Held]) -> list[int]:
        """Those in the prompt that nothing pins, oldest first."""
        return sorted(page for page in self.here if not there[page].pinned)
