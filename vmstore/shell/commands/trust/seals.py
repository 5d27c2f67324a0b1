"""Commands that seal a store and prove what was in it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import vmstore
from vmstore.errors import CorruptError, InputError
from vmstore.shell.commands.arguments import STORE_HELP, Command, Parser, positive_number
from vmstore.shell.open_store import open_to_ask, session_of
from vmstore.shell.terminal.format import count
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.terminal.render import Screen

KEY = "seal.key"


def seal(arguments: argparse.Namespace, screen: Screen) -> int:
    """Signs where a namespace's sessions stand, or makes the key to sign with, or both."""
    from vmstore.shell.vmql.settings import config_folder

    key = config_folder() / KEY if arguments.key is None else Path(arguments.key)
    if arguments.new_key:
        if arguments.key is None:
            key.parent.mkdir(parents=True, exist_ok=True)
        public = vmstore.new_key(key).public.hex()
        if arguments.store is None and arguments.json:
            screen.json({"key": str(key), "public": public})
        elif not (screen.quiet or arguments.json):
            text = f" {key}, for you alone, and its public half {key}.pub: {public}"
            screen.show((StyledText("made a key", "good"), text))
    elif arguments.store is None:
        raise InputError("name the store to seal, or make a key with --new-key")
    if arguments.store is None:
        return 0
    with open_to_ask(arguments) as store, screen.progress("sealing") as tell:
        report = vmstore.seal(store, key, arguments.out, progress=tell)
    summary = f": {count(report.sessions, 'session')} up to commit {report.ordinal:,}, root {report.root}"
    return screen.answer(
        arguments,
        report,
        (StyledText("sealed", "good"), summary),
        StyledText(f"keep a copy apart from the store: {report.path}", "dim"),
    )


def prove(arguments: argparse.Namespace, screen: Screen) -> int:
    """Writes a proof, or checks one."""
    from vmstore.core.system.atomic_file import check_free, new_file

    if arguments.since is not None:
        return _prove_growth(arguments, screen)
    if arguments.check is not None:
        return _check_proof(arguments, screen)
    if arguments.page is None:
        arguments.session, arguments.page = None, arguments.session
    if arguments.store is None or arguments.call is None or arguments.out is None:
        raise InputError(
            "a proof needs a store, a --call, the file to write, --out, and a page or none; or --check FILE"
        )
    for file in (arguments.out, arguments.content):
        if file is not None:
            check_free(Path(file))
    sealed = None if arguments.seal is None else vmstore.read_seal(arguments.seal, arguments.public_key)
    with open_to_ask(arguments) as store:
        if arguments.session is None and any(info.session == arguments.page for info in store.sessions()):
            arguments.session, arguments.page = arguments.page, None  # without a page it is of the call's request
        session = session_of(store, arguments)
        proof = store.trust.prove(session, arguments.page, call=arguments.call, seal=sealed)
    if arguments.content is not None:
        if proof.content is None:
            what = arguments.page or f"the request of call {arguments.call}"
            raise InputError(f"{what} has no content in the store; leave --content out")
        with new_file(Path(arguments.content)) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(proof.content)
    with new_file(Path(arguments.out)) as file:
        file.write(proof.proof)
    return screen.answer(
        arguments,
        {"out": arguments.out, "bytes": len(proof.proof), "content": arguments.content, "proves": proof.says},
        (StyledText("proven", "good"), f": {proof.says}"),
        StyledText(f"{len(proof.proof):,} bytes", "dim"),
    )


def _prove_growth(arguments: argparse.Namespace, screen: Screen) -> int:
    """Proves that a later seal holds all that an earlier one did, or checks that proof."""
    from vmstore.core.system.atomic_file import new_file
    from vmstore.seals.consistency_proof import check_growth, growth

    if arguments.seal is None:
        raise InputError("growth lies between two seals; name the later one with --seal")
    earlier, later = (vmstore.read_seal(file, arguments.public_key) for file in (arguments.since, arguments.seal))
    if arguments.check is not None:
        if arguments.public_key is None:
            raise InputError("who sealed it is what makes it a proof: name their key with --public-key")
        check_growth(earlier, later, _read_bytes(arguments.check))
    elif arguments.store is None or arguments.out is None:
        raise InputError("a proof of growth needs a store and the file to write, --out; or --check FILE")
    else:
        with open_to_ask(arguments) as store:
            proof = growth(store.admin.log, earlier, later)
        with new_file(Path(arguments.out)) as file:
            file.write(proof)
    summary = {"sessions": len(earlier.heads), "sessions_later": len(later.heads), "from": earlier.at, "to": later.at}
    before = f"what was sealed of {count(len(earlier.heads), 'session')} at commit {earlier.ordinal:,}"
    return screen.answer(
        arguments, summary, (StyledText("proven", "good"), f": {before} grew into what was at commit {later.ordinal:,}")
    )


def _read_bytes(file: str) -> bytes:
    from vmstore.core.system.safe_files import read_within

    try:
        return read_within(file)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); name another file") from error


def _check_proof(arguments: argparse.Namespace, screen: Screen) -> int:
    """Checks a proof as the stand-alone verifier does, whose very code this is."""
    from vmstore.cells.verify_proof import check
    from vmstore.namespace.signing_keys import public_key

    if arguments.public_key is None:
        raise InputError("who sealed it is what makes it a proof: name their key with --public-key")
    key = public_key(arguments.public_key)
    proof = _read_bytes(arguments.check)
    content = None if arguments.content is None else _read_bytes(arguments.content)
    try:
        says = check(proof, key, content)
    except Exception as error:  # whatever stumbles over a proof, it is none; the stand-alone verifier says so too
        raise CorruptError(f"{arguments.check} proves nothing: {error}") from error
    return screen.answer(arguments, {"proves": says}, (StyledText("proven", "good"), f": {says}"))


def _add_seal(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", nargs="?", help=STORE_HELP)
    parser.add_argument("--key", metavar="FILE", help="the secret key (default: seal.key in ~/.config/vmstore)")
    parser.add_argument("--new-key", action="store_true", help="make that key first, where nothing is yet")
    parser.add_argument("--out", metavar="FILE", help="the seal's file (default: a new one in the folder STORE.seals)")


def _add_prove(parser: Parser) -> None:
    parser.add_argument("store", metavar="STORE", nargs="?", help=STORE_HELP)
    parser.add_argument("session", metavar="SESSION", nargs="?", help="may be left out where the store holds only one")
    parser.add_argument(
        "page", metavar="PAGE", nargs="?", help="a name like p17, or a hint; without it, what a live call was sent"
    )
    parser.add_argument(
        "--call", type=positive_number, metavar="N", help="the call whose context it was in, or whose request"
    )
    parser.add_argument("--seal", metavar="FILE", help="the seal to prove by (default: the oldest kept that covers it)")
    parser.add_argument("--out", metavar="FILE", help="where the proof is written")
    parser.add_argument(
        "--content",
        metavar="FILE",
        help="where the page's salt and bytes, or the request, are written too; with --check read from",
    )
    parser.add_argument("--since", metavar="FILE", help="prove instead that --seal holds all that this older seal did")
    parser.add_argument("--check", metavar="PROOF", help="check a proof instead; no store is needed")
    parser.add_argument("--public-key", metavar="KEY", help="64 hex digits, or a file of them: whose seal it must be")


COMMANDS = (
    Command(
        "seal",
        "maintain",
        "sign where all sessions stand",
        "Signs a root over where every session stands, and writes it to a file. Kept apart from the store\n"
        "the file shows later that nothing it covers was changed, cut or dropped (`vmstore verify --seal`).\n"
        "The store may grow on. Needs the extra `trust`.",
        (
            "vmstore seal --new-key",
            "vmstore seal agent.vms",
            "vmstore seal agent.vms --key /keys/seal.key --out /elsewhere/agent.seal",
        ),
        seal,
        (_add_seal,),
    ),
    Command(
        "prove",
        "maintain",
        "a proof that a page was in a context",
        "Writes a small proof that this page, in this version, was in the context of this call, and that it\n"
        "was sealed then. Anybody with the public key checks it without the store: with --check, or with\n"
        "verify_proof.py, one file that needs Python alone. The content is proven by a file of its own.\n"
        "Without a page it is proven what a call of a live session was sent.",
        (
            "vmstore prove agent.vms planning-220 p17 --call 3 --out proof.json --content p17.salted",
            "vmstore prove agent.vms live --call 3 --out proof.json --content request.json",
            "vmstore prove --check proof.json --public-key seal.key.pub --content p17.salted",
        ),
        prove,
        (_add_prove,),
    ),
)
