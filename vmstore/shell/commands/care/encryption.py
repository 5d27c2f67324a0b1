"""Commands about encryption: key, encrypt, rekey."""

from __future__ import annotations

import argparse

from vmstore.errors import InputError
from vmstore.namespace.results import to_json
from vmstore.namespace.storekey import new_store_key
from vmstore.shell.open_store import KEY_FILE, key_named, namespace_of
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Span
from vmstore.shell.terminal.render import Screen
from vmstore.store.encrypt import encrypt as encrypt_store
from vmstore.store.encrypt import rekey as rekey_store


def key(arguments: argparse.Namespace, screen: Screen) -> int:
    """Makes the file of a store key."""
    made = new_store_key(arguments.new)
    if arguments.json:
        screen.json({"key": str(made)})
    elif not screen.quiet:
        text = f" {made}, for you alone; keep a copy apart from the store: what it encrypts cannot be read without it"
        screen.show((Span("made a store key", "good"), text))
    return 0


def encrypt(arguments: argparse.Namespace, screen: Screen) -> int:
    """Encrypts a namespace in place."""
    told = _needed(arguments)
    with screen.progress("encrypting") as tell:
        found = encrypt_store(arguments.store, told, namespace=namespace_of(arguments), progress=tell)
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        text = f": {count(found.cells, 'cell')} of {count(found.subjects, 'data subject')}, each under its own key"
        screen.show((Span("encrypted", "good"), text))
        screen.show(Span("older backups and exports are in the clear, and what deleted files leave on the disk", "dim"))
    return 0


def rekey(arguments: argparse.Namespace, screen: Screen) -> int:
    """Changes the store key."""
    found = rekey_store(arguments.store, _needed(arguments), arguments.new_store_key, namespace=namespace_of(arguments))
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        text = f": keys of {count(found.subjects, 'data subject')}, by {arguments.new_store_key}"
        screen.show((Span("wrapped anew", "good"), text))
        screen.show(Span("backups made before still open with the old key", "dim"))
    return 0


def _needed(arguments: argparse.Namespace) -> str:
    told = key_named(arguments.store_key)
    if told is None:
        raise InputError(f"name the file of the store key, with --store-key or in {KEY_FILE}; `vmstore key` makes one")
    return told
