"""What a query needs of the store around it: handed in, because the store stands above."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import apsw

from vmstore.core.asof import AsOf
from vmstore.log.port import Log
from vmstore.prices.price_list import PriceList
from vmstore.views.branch import Branch
from vmstore.views.reads.system_entries import Languages

if TYPE_CHECKING:
    from vmstore.views.projectors.redactions import UntoldFiles


class StoredContext(Protocol):
    """A context as the store tells it."""

    basis: Any
    tokens: int
    fidelity: str

    @property
    def pages(self) -> list[Any]:
        """Its pages in order."""

    @property
    def page_ids(self) -> list[int]:
        """The same by position."""

    def contents(self) -> dict[str, bytes]:
        """What each page showed."""

    def messages(self) -> list[Any]:
        """The chat messages of its request."""

    def text(self) -> str:
        """All of it as text, checked against the pack's root."""


class PageLineage(Protocol):
    """What is known of single pages of a session."""

    def history(self, page: str | int, at: AsOf | None = None) -> list[Any]:
        """What happened to a page."""

    def ancestors(self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None) -> list[Any]:
        """The links walked towards a page's sources."""

    def evidence(self, page: str | int, *, limit: int | None = 3) -> list[Any]:
        """What an answer may have come from, best first."""

    def descendants(
        self, page: str | int, *, depth: int | None = None, kinds: Iterable[str] | None = None
    ) -> list[Any]:
        """The links walked towards what was made from it."""


class HostSession(Protocol):
    """A session as the store's users hold it."""

    name: str

    def context(self, at: AsOf | None = None) -> StoredContext:
        """What the model saw at a call."""

    @property
    def lineage(self) -> PageLineage:
        """What is known of single pages."""

    def fork(self, name: str, at: AsOf | None = None) -> HostSession:
        """A new session that shares this one's past up to a moment."""


class Host(Protocol):
    """A namespace as a query sees it. Within `asking` all that is read is of one moment."""

    @property
    def log(self) -> Log:
        """The log."""

    @property
    def views(self) -> apsw.Connection:
        """The views' database."""

    @property
    def languages(self) -> Languages:
        """The languages by whose rules words are read."""

    def damaged(self) -> bool:
        """Whether the views' tables are not those that they should be."""

    def asking(self) -> AbstractContextManager[int]:
        """Holds one moment; its ordinal."""

    @property
    def prices(self) -> PriceList:
        """What models cost."""

    def spent(self, lane: Branch, low: int, position: int) -> list[tuple[int, float | None, float | None]]:
        """Turn and cost of each call between two positions of a session, as recorded and as estimated, in dollars."""

    def saved(self, lane: Branch, name: str, low: int, position: int) -> tuple[int, int] | None:
        """The tokens of a session's calls of tools between two positions, and of their shorter forms; None of none."""

    def now(self) -> int:
        """Microseconds since 1970."""

    @property
    def ticks(self) -> Callable[[], int]:
        """Tells microseconds since some moment; never runs backwards."""

    def lane(self, session: int) -> Branch:
        """What a session sees, by its key."""

    def session(self, name: str) -> HostSession:
        """A session by its name."""

    def page_position(self, session: str, page: str) -> int:
        """The position of the page that a name, a hint or a reference says; UnknownError names the nearest."""

    def differences(self, before: tuple[str, AsOf], after: tuple[str, AsOf]) -> tuple[Any, Mapping[str, Any]]:
        """What differs between the contexts of two sessions, each at a moment; and both bases."""

    def numbers(self, lane: Branch, position: int, check: Callable[[], object]) -> Iterator[tuple[Any, ...]]:
        """The numbers of a session's memory at a position, each after policy and budget; none without a kernel."""

    def replayed(self, session: str, settings: Mapping[str, Any], check: Callable[[], object]) -> Any:
        """A session decided again under other settings; without any as it was recorded. `check` may end it."""

    def response(self, session: int, reply: tuple[int, int, int, int | None, bytes | None]) -> Any:
        """The body of a response to a call of a session, by the reply: call, where both stand, its cell.

        None where none is held whole.
        """

    def texts(self, moments: Sequence[tuple[Branch, int]]) -> Any:
        """The texts in force at the moments of some lanes, as `vmstore.relevance.texts.Texts`."""

    def ask(self, question: str) -> None:
        """Has the embedder asked about what is searched for, before the views are held: it may take its time."""

    def closeness(self, question: str, moments: Sequence[tuple[Branch, int]], texts: Any) -> tuple[Any, str | None]:
        """How close the texts of some lanes are to a question by an embedder; a note to go with the answer."""

    def columns(self, beside: Any = None, suffix: str = "") -> Any:
        """A DuckDB connection with the tables of the column segments at the moment that is held; None without them.

        With a `suffix` it is a new one, or the one `beside`, in which the names of the tables end so.
        """

    def untold(self) -> UntoldFiles:
        """The files that no prompt may hold by now."""

    def verified(self, session: str | None, check: Callable[[], object]) -> Any:
        """What verify finds in the store, or in one session; `check` may end it."""
