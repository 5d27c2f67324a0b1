"""What the commands that seal, prove, approve and encrypt take on the command line."""

from __future__ import annotations

import argparse

from vmstore.shell.commands.arguments.arguments import Command, add_store, steps


def add_approve(parser: argparse.ArgumentParser) -> None:
    """What may leave unmasked, of which sessions, by whose word."""
    parser.add_argument("artifacts", metavar="ARTIFACT", nargs="*", help="jsonl, parquet, sqlite, html, all")
    parser.add_argument("--of", action="append", metavar="SESSION", help="of this session; may be given again")
    parser.add_argument("--by", metavar="WHO", help="who says so")
    parser.add_argument("--until", metavar="T", help="when it ends, like 2027-01-01")
    parser.add_argument("--withdraw", action="store_true", help="put redaction back")


def add_seal(parser: argparse.ArgumentParser) -> None:
    """What is sealed, with which key, where to."""
    parser.add_argument("store", metavar="STORE", nargs="?", help="the store's folder, like agent.vms")
    parser.add_argument("--key", metavar="FILE", help="the secret key (default: seal.key in ~/.config/vmstore)")
    parser.add_argument("--new-key", action="store_true", help="make that key first, where nothing is yet")
    parser.add_argument("--out", metavar="FILE", help="the seal's file (default: a new one in the folder STORE.seals)")


def add_key(parser: argparse.ArgumentParser) -> None:
    """Where a store key is made."""
    parser.add_argument("--new", metavar="FILE", required=True, help="the file to make; nothing may stand there yet")


def add_rekey(parser: argparse.ArgumentParser) -> None:
    """Which store, and by which key its keys are wrapped from now on."""
    add_store(parser)
    parser.add_argument("--new-store-key", metavar="FILE", required=True, help="the key to be used from now on")


def add_prove(parser: argparse.ArgumentParser) -> None:
    """What is proven, by which seal, or which proof is checked."""
    parser.add_argument("store", metavar="STORE", nargs="?", help="the store's folder, like agent.vms")
    parser.add_argument("session", metavar="SESSION", nargs="?", help="may be left out where the store holds only one")
    parser.add_argument(
        "page", metavar="PAGE", nargs="?", help="a name like p17, or a hint; without it, what a live call was sent"
    )
    parser.add_argument("--call", type=steps, metavar="N", help="the call whose context it was in, or whose request")
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


TRUST = (
    Command(
        "seal",
        "keep",
        "sign where all sessions stand",
        "Signs a root over where every session stands, and writes it to a file. Kept apart from the store\n"
        "the file shows later that nothing it covers was changed, cut or dropped (`vmstore verify --seal`).\n"
        "The store may grow on. Needs the extra `trust`.",
        (
            "vmstore seal --new-key",
            "vmstore seal agent.vms",
            "vmstore seal agent.vms --key /keys/seal.key --out /elsewhere/agent.seal",
        ),
        ("vmstore.shell.commands.trust.seals", "seal"),
        (add_seal,),
    ),
    Command(
        "prove",
        "keep",
        "a proof that a page was in a context",
        "Writes a small proof that this page, in this version, was in the context of this call, and that it\n"
        "was sealed then. Whoever knows the public key checks it without the store: with --check, or with\n"
        "verify_proof.py, one file that needs Python alone. The content is proven by a file of its own.\n"
        "Without a page it is proven what a call of a live session was sent.",
        (
            "vmstore prove agent.vms planning-220 p17 --call 3 --out proof.json --content p17.salted",
            "vmstore prove agent.vms live --call 3 --out proof.json --content request.json",
            "vmstore prove --check proof.json --public-key seal.key.pub --content p17.salted",
        ),
        ("vmstore.shell.commands.trust.seals", "prove"),
        (add_prove,),
    ),
    Command(
        "approve",
        "hand on",
        "let sessions leave without masks",
        "Lifts redaction for kinds of export (jsonl, parquet, sqlite, html, all) of sessions, all there are\n"
        "unless --of names them; it is logged with whose word it is, and --withdraw takes it back. Without\n"
        "ARTIFACT it lists what was approved and withdrawn.",
        (
            "vmstore approve agent.vms",
            "vmstore approve agent.vms sqlite --of planning-220 --by Ada --until 2027-01-01",
            "vmstore approve agent.vms sqlite --by Ada --withdraw",
        ),
        ("vmstore.shell.commands.trust.approvals", "approve_artifacts"),
        (add_store, add_approve),
    ),
    Command(
        "key",
        "keep",
        "make a store key",
        "Makes the file of a store key, which encrypts what a store keeps of contents and names. Everything\n"
        "it encrypts is lost with it, so keep a copy apart. Needs the extra `trust`.",
        ("vmstore key --new store.key", "vmstore key --new /keys/agent.key"),
        ("vmstore.shell.commands.care.encryption", "key"),
        (add_key,),
    ),
    Command(
        "encrypt",
        "keep",
        "put a store's contents under keys",
        "Encrypts a store in place: contents and names lie under a key for each user, or session without\n"
        "one, and those are wrapped by the store key. The log is verified first; where it is stopped, the\n"
        "same command goes on. Hashes, positions and answers stay; views are then kept in memory alone.",
        ("vmstore encrypt agent.vms --store-key store.key",),
        ("vmstore.shell.commands.care.encryption", "encrypt"),
        (add_store,),
    ),
    Command(
        "rekey",
        "keep",
        "change the key of an encrypted store",
        "Wraps the keys of an encrypted store by another store key, all or none. Contents are not written\n"
        "again. Whoever has the store open has to open it again, with the new key.",
        ("vmstore rekey agent.vms --store-key store.key --new-store-key other.key",),
        ("vmstore.shell.commands.care.encryption", "rekey"),
        (add_rekey,),
    ),
)
