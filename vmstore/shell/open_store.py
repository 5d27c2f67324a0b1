"""Opens stores for commands: questions never make a store, and each finds its session and moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.core.address import Reference, parse
from vmstore.core.asof import AsOf, as_of
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import InputError, ReadOnlyError, UnknownError
from vmstore.namespace.encryption import key_for
from vmstore.namespace.folder import LOG, find, is_archive, namespaces
from vmstore.shell.terminal.format import listing
from vmstore.store.session import Session
from vmstore.store.store import Store, open_store

if TYPE_CHECKING:
    import argparse

NAMESPACE = "default"
KEY_FILE = "VMSTORE_KEY_FILE"


def open_to_ask(arguments: argparse.Namespace) -> Store:
    """The store a command names, for questions."""
    wait_s = _waited(arguments)
    return opened_to_ask(arguments.store, namespace_of(arguments), store_key=_told(arguments), wait_s=wait_s)


def opened_to_ask(
    path: str, namespace: str, *, read_only: bool = False, store_key: str | None = None, wait_s: float = WAIT_S
) -> Store:
    """An existing store, for questions; its views are kept where they may be written."""
    if is_archive(Path(path)):
        return open_store(path, "r", namespace=namespace, key=key_of(store_key, path, namespace))
    folder = find(Path(path), namespace, create=False)
    mode = "rw" if _writable(folder) and not read_only else "r"
    return open_store(path, mode, namespace=namespace, key=key_of(store_key, path, namespace), wait_s=wait_s)


def open_to_change(arguments: argparse.Namespace) -> Store:
    """An existing store that may be written to."""
    if is_archive(Path(arguments.store)):
        raise ReadOnlyError(f"{arguments.store} is an archive, which is only read; name the store it came from")
    folder = find(Path(arguments.store), namespace_of(arguments), create=False)
    if not _writable(folder):
        raise ReadOnlyError(f"{folder} is not writable for you; copy the store, or change its permissions")
    return open_to_import(arguments)


def open_to_import(arguments: argparse.Namespace) -> Store:
    """A store to import into, made where there is none, encrypted where a key is named."""
    namespace = namespace_of(arguments)
    key = key_of(_told(arguments), arguments.store, namespace)
    return open_store(arguments.store, "rw", namespace=namespace, key=key, wait_s=_waited(arguments))


def exists(arguments: argparse.Namespace) -> bool:
    """Whether the store and its namespace are there already; a path that can be no store is an error."""
    path, namespace = Path(arguments.store), namespace_of(arguments)
    if not path.exists() and not path.is_symlink():
        return False
    if path.is_dir() and (there := namespaces(path)) and namespace not in there:
        return False
    find(path, namespace, create=False)
    return True


def namespace_of(arguments: argparse.Namespace) -> str:
    """The namespace asked for, by option or by a reference in full."""
    asked: str | None = arguments.namespace
    told = parse(arguments.page).namespace if getattr(arguments, "page", None) else None
    if asked is not None and told is not None and asked != told:
        raise InputError(f"{arguments.page} stands in namespace {told!r}, not {asked!r}; leave --namespace out")
    return asked or told or NAMESPACE


def key_named(told: str | None) -> str | None:
    """The file of the store key that a command names, or else the environment."""
    return told or os.environ.get(KEY_FILE) or None


def key_of(told: str | None, path: str, namespace: str) -> str | None:
    """The file of the key to open a namespace with; the environment's is none of a plain one's."""
    found = key_named(told)
    return found if told else key_for(Path(path), namespace, found)


def session_of(store: Store, arguments: argparse.Namespace) -> Session:
    """The session asked for, by name or by a reference, or the only one there is."""
    name: str | None = arguments.session
    if name is None and getattr(arguments, "page", None):
        name = parse(arguments.page).session
    if name is not None:
        return store.session(name)
    names = [info.session for info in store.sessions()]
    if len(names) == 1:
        return store.session(names[0])
    if not names:
        raise UnknownError(
            f"{arguments.store} holds no session yet; `vmstore import {arguments.store} FILE` brings one"
        )
    page = getattr(arguments, "page", None)
    if page in names:
        raise InputError(f"{page!r} is a session; name one of its pages after it")
    if page:
        return store.admin.find(page)[0]
    raise InputError(f"{arguments.store} holds {len(names)} sessions; name one: {listing(names)}")


def moment_of(arguments: argparse.Namespace) -> AsOf:
    """The moment asked for, the head where none is."""
    told: Reference | None = parse(arguments.page) if getattr(arguments, "page", None) else None
    asked = {word: getattr(arguments, word, None) for word in ("turn", "call", "position", "time")}
    if told is not None and any(value is not None for value in asked.values()):
        inside = [word for word in ("turn", "call", "position") if getattr(told, word) is not None]
        if inside:
            raise InputError(f"{arguments.page} names its {inside[0]} already; leave one of the two moments out")
    return as_of(**asked)


def _told(arguments: argparse.Namespace) -> str | None:
    told: str | None = getattr(arguments, "store_key", None)
    return told


def _waited(arguments: argparse.Namespace) -> float:
    """How long a command waits for another process."""
    told: float | None = getattr(arguments, "wait", None)
    return WAIT_S if told is None else told


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and os.access(folder / LOG, os.W_OK)
