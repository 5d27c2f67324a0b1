"""Names that callers use for pages of a live session: a name, a number, an address."""

from __future__ import annotations

from typing import NamedTuple

from vmstore.core.address import page_name, parse
from vmstore.errors import InputError, UnknownError
from vmstore.live.runtime import Act
from vmstore.namespace.namespace import Namespace

NAME_CHARS_MAX = 200


class PageFinder(NamedTuple):
    """Finds the pages of one session."""

    namespace: str
    session: str

    def known(self, act: Act, page: str | int) -> int | None:
        """The page of a name, a number or an address; None where the session has none of it."""
        if isinstance(page, int) and page > 0:
            return act.spoken.number(page_name(page))
        if not isinstance(page, str):
            raise InputError(f"{page!r:.60} is no page's name and no number from 1 up")
        if (named := act.spoken.number(page)) is not None:  # a name may hold what would be a code
            return named
        address = parse(page)
        here = address.session in (None, self.session) and address.namespace in (None, self.namespace)
        return act.spoken.number(address.page) if here else None

    def asked(self, act: Act, page: str | int) -> int | None:
        """The same; what cannot be read names no page, as the caller may be a model."""
        try:
            return self.known(act, page)
        except InputError:
            return None

    def number(self, act: Act, page: str | int) -> int:
        """The same; UnknownError names the nearest page where the session has none of it."""
        number = self.known(act, page)
        if number is None:
            names = [*act.spoken.named, *map(page_name, act.spoken.pages)]
            near = Namespace.nearest(str(page), names)
            raise UnknownError(f"there is no page {page!r:.80} in session {self.session!r}; {near}", code="no-page")
        return number


def titled(name: str | None, *, needed: bool = False) -> None:
    """Checks a name that somebody gives a page or a moment; InputError where it could not be printed."""
    if name is None and not needed:
        return
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= NAME_CHARS_MAX:
        raise InputError(
            f"{name!r:.60} cannot be a name: 1 to {NAME_CHARS_MAX} printable characters can", code="not-a-name"
        )
