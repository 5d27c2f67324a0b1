"""The sessions of a store as people look for them: by what was said first, by the beginning of a name, by a page."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from vmstore.core.asof import Time, as_of
from vmstore.errors import UnknownError
from vmstore.namespace.resolve import page_named
from vmstore.namespace.results import SessionOverview
from vmstore.namespace.session_rows import overviews
from vmstore.store.host import StoreHost
from vmstore.store.reads.pages_across import SessionFilter, sessions_of
from vmstore.store.reads.session_choice import SessionChoice
from vmstore.views.session_names import meant

if TYPE_CHECKING:
    from vmstore.store.session import Session


class Catalog:
    """The sessions as people look for them: `store.catalog`."""

    def __init__(self, store: StoreHost) -> None:
        self._store = store
        self._ns = store._ns

    def overview(
        self, *, order_by: str = "newest", limit: int | None = None, matching: str | None = None,
        model: str | None = None, outcome: str | None = None, since: str | int | datetime | None = None,
        user: str | None = None, agent: str | None = None,
    ) -> list[SessionOverview]:  # fmt: skip
        """The sessions as one who looks for one wants them: newest first, with what was said first and what they cost.

        `order_by` is newest, oldest, name, turns, calls, tokens, cost or outcome; unknown times stand last.
        `matching` are words of name, title, first line or source, `model` a part of the model's name, `outcome` the
        source's verdict, `since` the time something must have happened at or after.
        """
        wanted = SessionChoice(order_by, limit, matching, model, None if since is None else _at(since), outcome)
        with self._ns.asking():
            keys = [key for key, _ in sessions_of(self._ns, SessionFilter(user, agent))]
            return wanted.of(overviews(self._ns.views, self._ns.log, self._ns.price_list, keys))

    def find_session(self, name: str) -> Session:
        """The session that a name, the beginning that only its name has, or `-` for the newest means.

        `Store.session` takes whole names alone, so that a program never gets another's. UnknownError names those it
        could be.
        """
        with self._ns.asking():
            found = meant(self._ns.views, name)
        if len(found) > 1:
            raise UnknownError(
                f"several sessions begin with {name!r}: {', '.join(found[:5])}; write more of the name",
                code="which-session",
            )
        session: Session = self._store.session(found[0] if found else name)
        return session

    def find_page(self, reference: str) -> tuple[Session, str]:
        """The session and page that a reference is an unambiguous tail of: `p17`, `s1/p17`, `vm://…`.

        Raises UnknownError naming the nearest page, or the pages it could be.
        """
        with self._ns.asking():
            session, page = page_named(self._ns, reference)
            return self._store.session(session), page


def _at(since: str | int | datetime) -> int:
    """A time as microseconds since 1970."""
    moment = as_of(time=since)
    assert isinstance(moment, Time), "a time is asked for"
    return moment.at
