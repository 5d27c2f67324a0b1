"""The commands as data: what each says of itself, its examples, its arguments, what runs it."""

from __future__ import annotations

import difflib

from vmstore.shell.arguments import (
    Command,
    add_annotate,
    add_approve,
    add_backup,
    add_debug,
    add_export,
    add_fork,
    add_import,
    add_keep,
    add_moment,
    add_page,
    add_parts,
    add_prove,
    add_replay,
    add_restore,
    add_seal,
    add_seals,
    add_session,
    add_shell,
    add_store,
    add_sweep,
    add_view,
)
from vmstore.shell.questions import QUESTIONS

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command(
            "import",
            "take in",
            "take session files into a store, which is made where there is none",
            "Takes session files into a store: those of pi, Claude Code, Codex, Letta, SWE-agent and tau-bench,\n"
            "LoCoMo, messages as the providers' APIs write them, and bundles of `vmstore export`, told apart by\n"
            "their content. The same file again changes nothing, a grown one adds its new part. What cannot be\n"
            "read is kept as it stands, counted and named. --discover lists the sessions on this machine.",
            (
                "vmstore import --discover",
                "vmstore import agent.vms live.jsonl --session today --follow",
                "vmstore import agent.vms session.jsonl --vm budget=64000,policy=default",
            ),
            ("vmstore.shell.take", "import_files"),
            (add_import,),
        ),
        *QUESTIONS,
        Command(
            "replay",
            "ask",
            "what another policy or budget would have done",
            "Decides a session that has a budget again, from the same references and without a model: under\n"
            "other policies and budgets beside the recorded run, or, with --check, under its own, when it\n"
            "leaves with 1 and names the first decision that is another. What the model would have asked\n"
            "otherwise, no replay can know. With --until it stops where a condition holds first, in any session.",
            (
                "vmstore replay agent.vms s1 --policy lru --policy default --budget 8000,32000",
                "vmstore replay agent.vms s1 --check",
                "vmstore replay agent.vms s1 --until 'p42 LEAVES L0'",
            ),
            ("vmstore.shell.replay", "replay"),
            (add_store, add_session, add_replay),
        ),
        Command(
            "debug",
            "ask",
            "scrub through a session's memory in the browser",
            "Serves a page on this machine that shows what the model saw at each call, what came and went,\n"
            "and why; what-ifs beside the original, and a line for VMQL. A session that is still written is\n"
            "followed. Nothing is written to the store. Ctrl-C stops it. With --export the page and a session\n"
            "become one file for others, secrets and personal data masked.",
            (
                "vmstore debug agent.vms --open",
                "vmstore debug agent.vms planning-220 --port 8000",
                "vmstore debug agent.vms planning-220 --export planning.html",
            ),
            ("vmstore.shell.debug", "debug"),
            (add_store, add_session, add_debug),
        ),
        Command(
            "export",
            "hand on",
            "sessions as a file that others read",
            "Writes sessions to a file: jsonl is a bundle that `vmstore import` takes in again, with the very\n"
            "same commits and hashes where told --exact; parquet is a folder of tables, sqlite a database with\n"
            "full text that Datasette opens. A fork brings the past it shares. What is written appears when it\n"
            "is whole.",
            (
                "vmstore export agent.vms --out agent.jsonl",
                "vmstore export agent.vms planning-220 --turn 42 > part.jsonl",
                "vmstore export agent.vms --format sqlite --out agent.db",
            ),
            ("vmstore.shell.handing", "export"),
            (add_store, add_export, add_moment),
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
            ("vmstore.shell.approvals", "approve_artifacts"),
            (add_store, add_approve),
        ),
        Command(
            "compact",
            "keep",
            "pack the contents of the log",
            "Packs the contents of the log, so that it takes less room. It happens by itself as a store is\n"
            "written; this packs what is left, and cuts much that is new into column segments where the extra\n"
            "for them is installed. Others may read and write meanwhile.",
            ("vmstore compact agent.vms",),
            ("vmstore.shell.upkeep", "compact"),
            (add_store,),
        ),
        Command(
            "sweep",
            "keep",
            "delete files that a crash left behind",
            "Deletes files of large contents that no commit names, as a crash between the two leaves them.",
            ("vmstore sweep agent.vms --dry-run", "vmstore sweep agent.vms --grace 0"),
            ("vmstore.shell.upkeep", "sweep"),
            (add_store, add_sweep),
        ),
        Command(
            "upgrade",
            "keep",
            "bring a store of an older format up to date",
            "Writes the log of an older format anew, beside it, checks it against the old one and puts it in\n"
            "its place; the old one is kept beside it. Hashes, positions and answers stay the same.",
            ("vmstore upgrade agent.vms",),
            ("vmstore.shell.upkeep", "upgrade"),
            (add_store,),
        ),
        Command(
            "du",
            "keep",
            "where the bytes are",
            "Says where the bytes are: each table of the log and the views, free pages, blobs and columns as\n"
            "they lie on disk, and the contents, as they were accepted, by kind and by session.",
            ("vmstore du agent.vms", "vmstore du agent.vms --json"),
            ("vmstore.shell.usage", "du"),
            (add_store,),
        ),
        Command(
            "backup",
            "keep",
            "a verified copy, while others write",
            "Copies a store, or the namespace named, to a new folder, while others may write to it. Each log\n"
            "is copied as it stood at one moment and verified in full; the folder appears when it is whole.\n"
            "Views are left out: they are folded again.",
            ("vmstore backup agent.vms /backups/agent-monday", "vmstore backup agent.vms nightly --namespace default"),
            ("vmstore.shell.backups", "backup"),
            (add_backup,),
        ),
        Command(
            "restore",
            "keep",
            "a store from a backup",
            "Makes a store of a backup where none is: compares every byte and verifies the log in full.",
            ("vmstore restore /backups/agent-monday agent.vms",),
            ("vmstore.shell.backups", "restore"),
            (add_restore,),
        ),
        Command(
            "fork",
            "keep",
            "a new session that shares another's past",
            "Makes a new session that shares a session's past up to a moment and nothing after. It copies\n"
            "nothing; parent and child never see each other's later mutations.",
            ("vmstore fork agent.vms planning-220 --at-turn 42 --as try-b",),
            ("vmstore.shell.keep", "fork"),
            (add_store, add_session, add_fork),
        ),
        Command(
            "annotate",
            "keep",
            "say what is known of a page",
            "Says what is known of a page from here on: how important it is, its tags, how what it says stands\n"
            "and when it holds. What is left out stays as it was; what was said before stays asked as of then.",
            (
                "vmstore annotate agent.vms planning-220 p17 --importance 0.9 --tag decision",
                "vmstore annotate agent.vms claim_storage_4 --untag open --status completed",
                "vmstore annotate agent.vms p4 --anchor user.name=Ada --valid-from 2026-03-02",
            ),
            ("vmstore.shell.catalog", "annotate"),
            (add_store, add_session, add_page, add_annotate),
        ),
        Command(
            "verify",
            "keep",
            "check every hash, rule and view",
            "Checks every hash of the log, every rule, and every view against a fresh fold of the log. With\n"
            "--seal also that all that was sealed is still there: a cut end, a dropped session or an old copy\n"
            "put back is found by nothing else. Leaves with 1 and names each problem where anything is wrong.",
            (
                "vmstore verify agent.vms",
                "vmstore verify agent.vms --log",
                "vmstore verify agent.vms --seal /elsewhere/agent.seal --public-key /elsewhere/seal.key.pub",
            ),
            ("vmstore.shell.keep", "verify"),
            (add_store, add_parts, add_seals),
        ),
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
            ("vmstore.shell.seals", "seal"),
            (add_seal,),
        ),
        Command(
            "prove",
            "keep",
            "a proof that a page was in a context",
            "Writes a small proof that this page, in this version, was in the context of this call, and that it\n"
            "was sealed then. Whoever knows the public key checks it without the store: with --check, or with\n"
            "verify_proof.py, one file that needs Python alone. The content is proven by a file of its own.",
            (
                "vmstore prove agent.vms planning-220 p17 --call 3 --out proof.json",
                "vmstore prove agent.vms planning-220 p17 --call 3 --out proof.json --content p17.salted",
                "vmstore prove --check proof.json --public-key seal.key.pub --content p17.salted",
            ),
            ("vmstore.shell.seals", "prove"),
            (add_prove,),
        ),
        Command(
            "rebuild",
            "keep",
            "fold the views from the log again",
            "Forgets the views, or one of them, and folds them again from the log, which is the only truth.\n"
            "--view columns cuts the column segments again.",
            ("vmstore rebuild agent.vms", "vmstore rebuild agent.vms --view lineage"),
            ("vmstore.shell.keep", "rebuild"),
            (add_store, add_view),
        ),
        Command(
            "demo",
            "more",
            "a tour through a session of 220 turns",
            "Imports a session that ships with vmstore into a store of its own and shows, step by step, what\n"
            "can be asked of it, each with the command that asks the same.",
            ("vmstore demo", "vmstore demo --keep /tmp/demo"),
            ("vmstore.shell.demo", "demo"),
            (add_keep,),
        ),
        Command(
            "completion",
            "more",
            "tab completion for bash, zsh or fish",
            "Prints a script that completes commands, options, sessions and pages on tab, of `vmstore` and of `vmql`.\n"
            "Where bash or fish load it by the name of a command, link it to that of `vmql` too.",
            (
                "vmstore completion bash > ~/.local/share/bash-completion/completions/vmstore",
                'vmstore completion zsh > "${fpath[1]}/_vmstore"',
                "vmstore completion fish > ~/.config/fish/completions/vmstore.fish",
            ),
            ("vmstore.shell.complete", "completion"),
            (add_shell,),
        ),
    )
}

GROUPS = {"take in": "Take in", "ask": "Ask", "hand on": "Hand on", "keep": "Keep", "more": "More"}


def overview() -> str:
    """The help of `vmstore` itself."""
    lines = [
        "usage: vmstore COMMAND [ARGUMENTS]",
        "",
        "Remembers everything an AI agent's memory ever did, and answers any question about any moment of it.",
    ]
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {c.name:<12}{c.summary}" for c in COMMANDS.values() if c.group == group]
    lines += [
        "",
        "`vmstore COMMAND --help` says more, with examples. Every command takes --namespace NS, --json and",
        "--quiet; --version names the versions at work. Exit codes: 0, 1 refused or not ok, 2 usage, 130 Ctrl-C.",
        "",
        "start with:",
        "  vmstore demo",
        "  vmstore import agent.vms session.jsonl",
        "  vmstore context agent.vms",
        "  vmql agent.vms",
    ]
    return "\n".join(lines)


def nearest(name: str) -> str:
    """The command that a wrong one was most likely meant to be."""
    return difflib.get_close_matches(name, list(COMMANDS), n=1, cutoff=0.0)[0]
