"""Commands about encryption: key, encrypt, rekey."""

from __future__ import annotations

import argparse

import vmstore
from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser, add_store
from vmstore.shell.open_store import KEY_FILE, key_named, namespace_of
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen


def key(arguments: argparse.Namespace, screen: Screen) -> int:
    """Makes the file of a store key."""
    path = vmstore.new_store_key(arguments.new)
    text = f" {path}, for you alone; keep a copy apart from the store: what it encrypts cannot be read without it"
    return screen.answer(arguments, {"key": str(path)}, (StyledText("made a store key", "good"), text))


def encrypt(arguments: argparse.Namespace, screen: Screen) -> int:
    """Encrypts a namespace in place."""
    key_file = _required_key(arguments)
    with screen.progress("encrypting") as tell:
        report = vmstore.encrypt(arguments.store, key_file, namespace=namespace_of(arguments), progress=tell)
    text = f": {count(report.cells, 'cell')} of {count(report.subjects, 'data subject')}, each under its own key"
    return screen.answer(
        arguments,
        report,
        (StyledText("encrypted", "good"), text),
        StyledText("older backups and exports are in the clear, and what deleted files leave on the disk", "dim"),
    )


def rekey(arguments: argparse.Namespace, screen: Screen) -> int:
    """Changes the store key."""
    report = vmstore.rekey(
        arguments.store, _required_key(arguments), arguments.new_store_key, namespace=namespace_of(arguments)
    )
    text = f": keys of {count(report.subjects, 'data subject')}, by {arguments.new_store_key}"
    return screen.answer(
        arguments,
        report,
        (StyledText("wrapped again", "good"), text),
        StyledText("backups made before still open with the old key", "dim"),
    )


def _required_key(arguments: argparse.Namespace) -> str:
    key_file = key_named(arguments.store_key)
    if key_file is None:
        raise InputError(f"name the file of the store key, with --store-key or in {KEY_FILE}; `vmstore key` makes one")
    return key_file


def _add_key(parser: Parser) -> None:
    parser.add_argument("--new", metavar="FILE", required=True, help="the file to make; nothing may stand there yet")


def _add_rekey(parser: Parser) -> None:
    add_store(parser)
    parser.add_argument("--new-store-key", metavar="FILE", required=True, help="the key to be used from now on")


COMMANDS = (
    Command(
        "key",
        "privacy",
        "make a store key",
        "Makes the file of a store key, which encrypts what a store keeps of contents and names. Everything\n"
        "it encrypts is lost with it, so keep a copy apart. Needs the extra `trust`.",
        ("vmstore key --new store.key", "vmstore key --new /keys/agent.key"),
        key,
        (_add_key,),
    ),
    Command(
        "encrypt",
        "privacy",
        "put a store's contents under keys",
        "Encrypts a store in place: contents and names lie under a key for each user, or session without\n"
        "one, and those are wrapped by the store key. The log is verified first; where it is stopped, the\n"
        "same command resumes. Hashes, positions and answers stay; views are then kept in memory alone.",
        ("vmstore encrypt agent.vms --store-key store.key",),
        encrypt,
        (add_store,),
    ),
    Command(
        "rekey",
        "privacy",
        "change the key of an encrypted store",
        "Wraps the keys of an encrypted store by another store key, all or none. Contents are not written\n"
        "again. Every process with the store open has to open it again, with the new key.",
        ("vmstore rekey agent.vms --store-key store.key --new-store-key other.key",),
        rekey,
        (_add_rekey,),
    ),
)
