"""Commands that seal a store and prove what was in it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from vmstore.cells.verify_proof import check
from vmstore.core.system.atomic_file import check_free, new_file
from vmstore.core.system.safe_files import read_within
from vmstore.errors import CorruptError, InputError
from vmstore.namespace.results import to_json
from vmstore.namespace.signing_keys import new_key, public_key
from vmstore.seals.consistency_proof import check_growth, growth
from vmstore.seals.seals import read_seal
from vmstore.seals.seals import seal as seal_store
from vmstore.shell.open_store import open_to_ask, session_of
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import Span
from vmstore.shell.terminal.render import Screen
from vmstore.shell.vmql.settings import config_folder

KEY = "seal.key"


def seal(arguments: argparse.Namespace, screen: Screen) -> int:
    """Signs where a namespace's sessions stand, or makes the key to sign with, or both."""
    key = config_folder() / KEY if arguments.key is None else Path(arguments.key)
    if arguments.new_key:
        if arguments.key is None:
            key.parent.mkdir(parents=True, exist_ok=True)
        made = new_key(key).public.hex()
        if arguments.store is None and arguments.json:
            screen.json({"key": str(key), "public": made})
        elif not (screen.quiet or arguments.json):
            text = f" {key}, for you alone, and its public half {key}.pub: {made}"
            screen.show((Span("made a key", "good"), text))
    elif arguments.store is None:
        raise InputError("name the store to seal, or make a key with --new-key")
    if arguments.store is None:
        return 0
    with open_to_ask(arguments) as store, screen.progress("sealing") as tell:
        found = seal_store(store, key, arguments.out, progress=tell)
    if arguments.json:
        screen.json(to_json(found))
    elif not screen.quiet:
        told = f": {count(found.sessions, 'session')} up to commit {found.ordinal:,}, root {found.root}"
        screen.show((Span("sealed", "good"), told), Span(f"keep a copy apart from the store: {found.path}", "dim"))
    return 0


def prove(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes a proof, or checks one."""
    if arguments.since is not None:
        return _growth(arguments, screen)
    if arguments.check is not None:
        return _check(arguments, screen)
    if arguments.page is None:
        arguments.session, arguments.page = None, arguments.session
    if arguments.store is None or arguments.call is None or arguments.out is None:
        raise InputError(
            "a proof needs a store, a --call, the file to write, --out, and a page or none; or --check FILE"
        )
    for file in (arguments.out, arguments.content):
        if file is not None:
            check_free(Path(file))
    sealed = None if arguments.seal is None else read_seal(arguments.seal, arguments.public_key)
    with open_to_ask(arguments) as store:
        if arguments.session is None and any(info.session == arguments.page for info in store.sessions()):
            arguments.session, arguments.page = arguments.page, None  # without a page it is of the call's request
        session = session_of(store, arguments)
        found = store.trust.prove(session, arguments.page, call=arguments.call, seal=sealed)
    if arguments.content is not None:
        if found.content is None:
            what = arguments.page or f"the request of call {arguments.call}"
            raise InputError(f"{what} has no content in the store; leave --content out")
        with new_file(Path(arguments.content)) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(found.content)
    with new_file(Path(arguments.out)) as file:
        file.write(found.proof)
    if arguments.json:
        screen.json(
            {"out": arguments.out, "bytes": len(found.proof), "content": arguments.content, "proves": found.says}
        )
    elif not screen.quiet:
        screen.show((Span("proven", "good"), f": {found.says}"), Span(f"{len(found.proof):,} bytes", "dim"))
    return 0


def _growth(arguments: argparse.Namespace, screen: Screen) -> int:
    """Proves that a later seal holds all that an earlier one did, or checks that proof."""
    if arguments.seal is None:
        raise InputError("growth lies between two seals; name the later one with --seal")
    earlier, later = (read_seal(file, arguments.public_key) for file in (arguments.since, arguments.seal))
    if arguments.check is not None:
        if arguments.public_key is None:
            raise InputError("who sealed it is what makes it a proof: name their key with --public-key")
        check_growth(earlier, later, _bytes_of(arguments.check))
    elif arguments.store is None or arguments.out is None:
        raise InputError("a proof of growth needs a store and the file to write, --out; or --check FILE")
    else:
        with open_to_ask(arguments) as store:
            proof = growth(store.admin.log, earlier, later)
        with new_file(Path(arguments.out)) as file:
            file.write(proof)
    told = {"sessions": len(earlier.heads), "sessions_later": len(later.heads), "from": earlier.at, "to": later.at}
    if arguments.json:
        screen.json(told)
    elif not screen.quiet:
        held = f"what was sealed of {count(len(earlier.heads), 'session')} at commit {earlier.ordinal:,}"
        screen.show((Span("proven", "good"), f": {held} grew into what was at commit {later.ordinal:,}"))
    return 0


def _bytes_of(file: str) -> bytes:
    try:
        return read_within(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); name another file") from error


def _check(arguments: argparse.Namespace, screen: Screen) -> int:
    """Checks a proof as the stand-alone verifier does, whose very code this is."""
    if arguments.public_key is None:
        raise InputError("who sealed it is what makes it a proof: name their key with --public-key")
    key = public_key(arguments.public_key)
    proof = _bytes_of(arguments.check)
    content = None if arguments.content is None else _bytes_of(arguments.content)
    try:
        says = check(proof, key, content)
    except Exception as error:  # whatever stumbles over a proof, it is none; the stand-alone verifier says so too
        raise CorruptError(f"{arguments.check} proves nothing: {error}") from error
    if arguments.json:
        screen.json({"proves": says})
    elif not screen.quiet:
        screen.show((Span("proven", "good"), f": {says}"))
    return 0
