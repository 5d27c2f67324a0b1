"""Opens stores for commands (queries never create one), and resolves their session and moment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import vmstore
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError, UnknownError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from vmstore.core.address import Address
    from vmstore.store.fleet.fleet import Fleet

NAMESPACE = "default"
KEY_FILE = "VMSTORE_KEY_FILE"


def open_to_ask(arguments: argparse.Namespace) -> vmstore.Store:
    """The store a command names, for questions, with the prices that it names."""
    return opened_to_ask(
        arguments.store,
        namespace_of(arguments),
        store_key=_store_key(arguments),
        prices=getattr(arguments, "prices", None),
        wait_s=_wait_s(arguments),
    )


def open_to_read(arguments: argparse.Namespace) -> vmstore.Store:
    """The store a command names, for one who may change nothing in it, its views neither."""
    return opened_to_ask(
        arguments.store,
        namespace_of(arguments),
        read_only=True,
        store_key=_store_key(arguments),
        wait_s=_wait_s(arguments),
    )


def opened_to_ask(
    path: str,
    namespace: str,
    *,
    read_only: bool = False,
    store_key: str | None = None,
    prices: str | None = None,
    wait_s: float = WAIT_S,
) -> vmstore.Store:
    """An existing store, for questions; its views are kept where they may be written. `prices` is a file of them."""
    from vmstore.namespace.backends.address import backend_of

    backend = backend_of(path)
    backend.check(namespace)
    mode = "r" if read_only else backend.mode(namespace)
    key = key_of(store_key, path, namespace)
    return vmstore.open(path, mode, namespace=namespace, key=key, prices=prices, wait_s=wait_s)


def opened_fleet(
    stores: Sequence[str],
    namespaces: str,
    *,
    read_only: bool = False,
    store_key: str | None = None,
    prices: str | None = None,
    wait_s: float = WAIT_S,
) -> Fleet:
    """Namespaces of existing stores, named with commas between them or `*` for all, to be asked as one."""
    from vmstore.store.fleet.fleet import open_fleet

    names = [name for name in namespaces.split(",") if name]
    return open_fleet(stores, names, key=key_named(store_key), prices=prices, wait_s=wait_s, read_only=read_only)


def open_to_change(arguments: argparse.Namespace) -> vmstore.Store:
    """An existing store that may be written to."""
    from vmstore.namespace.backends.address import backend_of

    backend_of(arguments.store).check_writable(namespace_of(arguments))
    return open_to_import(arguments)


def open_to_import(arguments: argparse.Namespace) -> vmstore.Store:
    """A store to import into, made where there is none, encrypted where a key is named."""
    namespace = namespace_of(arguments)
    key = key_of(_store_key(arguments), arguments.store, namespace)
    return vmstore.open(arguments.store, "rw", namespace=namespace, key=key, wait_s=_wait_s(arguments))


def exists(arguments: argparse.Namespace) -> bool:
    """Returns whether the store and its namespace exist; raises if the path cannot be a store."""
    from vmstore.namespace.backends.address import backend_of

    return backend_of(arguments.store).exists(namespace_of(arguments))


def namespace_of(arguments: argparse.Namespace) -> str:
    """The namespace asked for, by option or by a reference in full."""
    from vmstore.core.address import parse

    option: str | None = arguments.namespace
    reference = parse(arguments.page).namespace if getattr(arguments, "page", None) else None
    if option is not None and reference is not None and option != reference:
        raise InputError(f"{arguments.page} stands in namespace {reference!r}, not {option!r}; leave --namespace out")
    return option or reference or NAMESPACE


def key_named(option: str | None) -> str | None:
    """The file of the store key that a command names, or else the environment."""
    return option or os.environ.get(KEY_FILE) or None


def key_of(option: str | None, path: str, namespace: str) -> str | None:
    """The file of the key to open a namespace with; the environment's is none of a plain one's."""
    from vmstore.namespace.backends.address import backend_of

    file = key_named(option)
    return file if option else backend_of(path).key_for(namespace, file)


def session_of(store: vmstore.Store, arguments: argparse.Namespace) -> vmstore.Session:
    """The session asked for, by name, its beginning or a reference, or the only one there is."""
    from vmstore.core.address import parse

    name: str | None = arguments.session
    if name is None and getattr(arguments, "page", None):
        name = parse(arguments.page).session
    if name is not None:
        return store.catalog.find_session(name)
    names = [info.session for info in store.sessions()]
    if len(names) == 1:
        return store.session(names[0])
    if not names:
        raise UnknownError(f"{arguments.store} holds no session yet; import one: vmstore import {arguments.store} FILE")
    page = getattr(arguments, "page", None)
    if page in names:
        raise InputError(f"{page!r} is a session; name one of its pages after it")
    if page:
        return store.catalog.find_page(page)[0]
    newest = [info.session for info in store.catalog.overview(limit=5)]
    raise InputError(
        f"which session? {arguments.store} holds {len(names)}; give the beginning of a name, or - for the newest: "
        f"{', '.join(newest)}{' …' if len(names) > 5 else ''}; `vmstore sessions {arguments.store}` lists them",
        code="which-session",
    )


def moment_of(arguments: argparse.Namespace) -> vmstore.AsOf:
    """The moment asked for, the head where none is."""
    from vmstore.core.address import parse
    from vmstore.core.asof import as_of

    reference: Address | None = parse(arguments.page) if getattr(arguments, "page", None) else None
    moment = {word: getattr(arguments, word, None) for word in ("turn", "call", "position", "time")}
    if moment["time"] is not None:
        moment["time"] = _time_of(moment["time"])
    if reference is not None and any(value is not None for value in moment.values()):
        inside = [word for word in ("turn", "call", "position") if getattr(reference, word) is not None]
        if inside:
            raise InputError(f"{arguments.page} names its {inside[0]} already; leave one of the two moments out")
    return as_of(**moment)


def _time_of(text: str) -> int:
    """Microseconds since 1970 of a time as people write it, like 2026-11-21T22:55:01Z, yesterday or 2 hours ago."""
    from vmstore.core.clock import SystemClock
    from vmstore.vmql.planner.times import instant
    from vmstore.vmql.syntax.nodes import NOWHERE

    return instant(text, SystemClock().now(), NOWHERE)


def _store_key(arguments: argparse.Namespace) -> str | None:
    file: str | None = getattr(arguments, "store_key", None)
    return file


def _wait_s(arguments: argparse.Namespace) -> float:
    """Returns the seconds to wait for another process."""
    from vmstore.core.system.waits import WAIT_S

    seconds: float | None = getattr(arguments, "wait", None)
    return WAIT_S if seconds is None else seconds
