"""Many namespaces as one that can be asked: of a store, or of several, in folders and in databases."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import msgspec

from vmstore.core.asof import Moment, When, one_moment
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError, VmstoreError
from vmstore.namespace.backends.address import Address, backend_of
from vmstore.namespace.encryption import Key
from vmstore.store.store import Store, open_store
from vmstore.vmql.execution.result import Result
from vmstore.vmql.fleet.engine import FleetEngine
from vmstore.vmql.fleet.member import FleetMember
from vmstore.vmql.fleet.relation import NAMESPACE, STORE
from vmstore.vmql.syntax.nodes import Statement

ALL = "*"


class LeftOut(msgspec.Struct, frozen=True):
    """A namespace that was not named and could not be opened, and why: no answer says anything of it."""

    store: str
    namespace: str
    reason: str


class Fleet:
    """Many namespaces, each with its own log, asked as one. Close it, or use it in a `with`; any thread may use it.

    It reads: what is written goes to one namespace, by its own handle.
    """

    def __init__(self, stores: Sequence[Store], *, left_out: Sequence[LeftOut] = (), own: bool = True) -> None:
        if not stores:
            reasons = "; ".join(f"{each.namespace} of {each.store}: {each.reason}" for each in left_out)
            raise InputError(
                f"there is no namespace to ask{f' ({reasons})' if reasons else ''}; name a store that has one",
                code="no-namespaces",
            )
        self.left_out = tuple(left_out)
        self._stores, self._own = tuple(stores), own
        addresses = [_address(store) for store in stores]
        several = len(set(addresses) | {each.store for each in left_out}) > 1
        members = [
            FleetMember(({STORE: address} if several else {}) | {NAMESPACE: store._ns.name}, store._questions)
            for address, store in zip(addresses, stores, strict=True)
        ]
        places = [tuple(member.place.values()) for member in members]
        if twice := next((place for place in places if places.count(place) > 1), None):
            name = " of ".join(reversed(twice))
            raise InputError(
                f"namespace {name} is named twice, and its rows would count twice; name it once", code="named-twice"
            )
        missing = [({STORE: each.store} if several else {}) | {NAMESPACE: each.namespace, "reason": each.reason}
                   for each in left_out]  # fmt: skip
        self._engine = FleetEngine(members, missing)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes every store that was opened for it; closing twice does nothing."""
        self._engine.close()
        for store in self._stores if self._own else ():
            store.close()

    @property
    def stores(self) -> tuple[Store, ...]:
        """The handle of each namespace."""
        return self._stores

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that say whose a row is: `namespace`, and before it `store` where there are several."""
        return self._engine.places

    def query(
        self,
        text: str | Statement,
        /,
        *,
        params: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
        rows: int | None = None,
        memory: int | None = None,
        **named: Any,
    ) -> Result:
        """Answers a VMQL statement over a relation of all namespaces, as `Store.query` does of one.

        Every relation has a column `namespace`. The limits hold for the whole answer, and its `basis` names the
        moment of each namespace. Raises QueryError for what is asked of one session (`one-namespace`).
        """
        limits = (timeout_s, rows, memory)
        return self._engine.ask(text, params={**(params or {}), **named}, limits=limits)

    def sql(
        self,
        text: str,
        *,
        at: When | None = None,
        params: Mapping[str, Any] | None = None,
        timeout_s: float | None = 30.0,
        rows: int = 100_000,
        memory: int = 256 << 20,
        **moment: Unpack[Moment],
    ) -> Result:
        """Answers one statement of SQL over the relations of all namespaces, as `Store.sql` does of one."""
        limits = (timeout_s, rows, memory)
        return self._engine.sql(text, at=one_moment(at, moment), params=params or {}, limits=limits)

    def interrupt(self, thread: int | None = None) -> None:
        """Stops every query of this handle, or those that a thread asked: their callers get a QueryError."""
        self._engine.interrupt(thread)


def open_fleet(
    stores: Address | Store | Iterable[Address | Store], namespaces: str | Iterable[str] = ALL, *,
    key: Key | None = None, wait_s: float | None = WAIT_S, prices: object = None, read_only: bool = False,
) -> Fleet:  # fmt: skip
    """Opens namespaces of a store, or of several, to be asked as one.

    `namespaces` are names, or `*` for all that the stores have: of these one that cannot be opened is left out, and
    every answer names it; one that is named is refused. A handle that is open already, as of a region, is taken as it
    is and stays open. `key`, `wait_s` and `prices` are as in `vmstore.open`; `read_only` writes no views either.
    """
    given = [stores] if isinstance(stores, str | os.PathLike | Store) else list(stores)
    names = [namespaces] if isinstance(namespaces, str) else list(namespaces)
    opened: list[Store] = []
    taken: list[Store] = []
    left_out: list[LeftOut] = []
    try:
        for one in given:
            if isinstance(one, Store):
                taken.append(one)
                continue
            backend = backend_of(one)
            backend.check()
            for name in backend.namespaces() if names == [ALL] else names:
                try:
                    backend.check(name)
                    mode = "r" if read_only else backend.mode(name)
                    own_key = backend.key_for(name, key)
                    opened.append(open_store(one, mode, namespace=name, key=own_key, wait_s=wait_s, prices=prices))
                except VmstoreError as error:
                    if names != [ALL]:
                        raise
                    left_out.append(LeftOut(backend.address, name, str(error)))
        fleet = Fleet([*opened, *taken], left_out=left_out)
        fleet._stores = tuple(opened)
        return fleet
    except BaseException:
        for store in opened:
            store.close()
        raise


def _address(store: Store) -> str:
    place = store._ns.place
    return "memory" if place is None else place.backend.address
