"""Sessions asked by themselves, of a store in a cold tier: one archive is fetched, where all would be for all views."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from vmstore.namespace.namespace import Namespace

if TYPE_CHECKING:
    from vmstore.vmql.execution.engine import QueryEngine
    from vmstore.vmql.syntax.nodes import Statement

OPEN_MAX = 8


class Askable(Protocol):
    """A store of one session, as far as it is needed here."""

    @property
    def _questions(self) -> QueryEngine:
        """The engine that answers its queries."""
        ...

    def close(self) -> None:
        """Closes the files."""
        ...


S = TypeVar("S", bound=Askable)


class SingleSessions(Generic[S]):
    """The sessions of a namespace that were asked by themselves, the last used last."""

    def __init__(self, namespace: Namespace, make: Callable[[Namespace], S]) -> None:
        self._ns = namespace
        self._make = make
        self._open: OrderedDict[str, S] = OrderedDict()

    def of(self, name: str) -> S | None:
        """A store of one session; None where views of all are at hand, or none has the name."""
        ns = self._ns
        if ns.place is None or not ns.place.parted:
            return None
        if name not in self._open:
            found = ns.place.alone(name)
            if found is None or ns.projection.ordinal == ns.log.ordinal:
                return None
            alone = Namespace(
                *found.opened(), place=None, readonly=True, clock=ns.clock, ids=ns.ids, opened=found.again
            )
            alone.prices, alone.embedder, alone.wait_s = ns.prices, ns.embedder, ns.wait_s
            self._open[name] = self._make(alone)
            while len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(name)
        return self._open[name]

    def asker(self, text: str | Statement, session: str | None, params: Mapping[str, Any]) -> QueryEngine | None:
        """The engine for a statement that asks one session, of that one alone; None where all have to be at hand."""
        if self._ns.place is None or not self._ns.place.parted:
            return None
        from vmstore.vmql.parse import parse
        from vmstore.vmql.planner.asked_session import asked_session

        name = asked_session(parse(text) if isinstance(text, str) else text, dict(params), session)
        alone = None if name is None else self.of(name)
        return None if alone is None else alone._questions

    def close(self) -> None:
        """Closes them."""
        for store in self._open.values():
            store.close()
        self._open.clear()
