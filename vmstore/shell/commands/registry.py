"""The commands as data: what each says of itself, its examples, its arguments, what runs it."""

from __future__ import annotations

from vmstore.core.text.suggest import ANY, suggest
from vmstore.shell.commands.arguments.arguments import (
    Command,
    add_annotate,
    add_backup,
    add_close,
    add_debug,
    add_export,
    add_fork,
    add_import,
    add_keep,
    add_moment,
    add_page,
    add_parts,
    add_replay,
    add_restore,
    add_seals,
    add_session,
    add_shell,
    add_store,
    add_sweep,
    add_view,
)
from vmstore.shell.commands.arguments.care import add_archive, add_doctor, add_merge, add_unarchive, add_upgrade
from vmstore.shell.commands.arguments.erase import ERASE
from vmstore.shell.commands.arguments.inspect import QUESTIONS
from vmstore.shell.commands.arguments.regions import SHARING
from vmstore.shell.commands.arguments.retain import RETAIN
from vmstore.shell.commands.arguments.retract import add_retract
from vmstore.shell.commands.arguments.trust import TRUST

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
            ("vmstore.shell.commands.data.import_files", "import_files"),
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
            ("vmstore.shell.commands.queries.replay", "replay"),
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
            ("vmstore.shell.commands.queries.debug", "debug"),
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
            ("vmstore.shell.commands.data.export", "export"),
            (add_store, add_export, add_moment),
        ),
        Command(
            "doctor",
            "keep",
            "look at a store and say what is to be done",
            "Looks at a store and says what is to be done, each with the command that does it: damage, seals that\n"
            "do not hold, views behind the log, strays and leftovers, unfinished imports, missing archives, a full\n"
            "disk, who uses it. It writes nothing. Leaves with 0 where there is nothing to do, with 1 otherwise.",
            ("vmstore doctor agent.vms", "vmstore doctor agent.vms --full --json"),
            ("vmstore.shell.commands.care.doctor", "doctor"),
            (add_doctor,),
        ),
        Command(
            "compact",
            "keep",
            "pack the contents of the log",
            "Packs the contents of the log, so that it takes less room. It happens by itself as a store is\n"
            "written; this packs what is left, and cuts much that is new into column segments where the extra\n"
            "for them is installed. Others may read and write meanwhile.",
            ("vmstore compact agent.vms",),
            ("vmstore.shell.commands.care.upkeep", "compact"),
            (add_store,),
        ),
        Command(
            "archive",
            "keep",
            "move the contents of old sessions to one file each",
            "Moves the contents of sessions that rest to one dense file each, in the folder archive/ of the\n"
            "namespace. Their commits stay in the log: views, hashes, seals and every answer stay the same, and\n"
            "contents are read from the file when asked for. The file can be asked alone: `vmql FILE.archive`.",
            (
                "vmstore archive agent.vms planning-220",
                "vmstore archive agent.vms --older-than 90d --dry-run",
                "vmstore archive agent.vms --list",
            ),
            ("vmstore.shell.commands.data.archives", "archive"),
            (add_archive,),
        ),
        Command(
            "unarchive",
            "keep",
            "bring archived sessions back",
            "Moves the contents of archived sessions back into the log, and deletes their archives.",
            ("vmstore unarchive agent.vms planning-220",),
            ("vmstore.shell.commands.data.archives", "unarchive"),
            (add_unarchive,),
        ),
        Command(
            "merge",
            "keep",
            "bring the sessions of another store into one",
            "Brings every session of another store, or of the namespace named, into a store, its chain kept: one\n"
            "that is not there whole, of one that both have what is missing. Where both went on differently,\n"
            "or a name is taken, nothing of it is written and what to do is said; leaves with 1 then.",
            ("vmstore merge agent.vms laptop.vms --dry-run", "vmstore merge agent.vms laptop.vms"),
            ("vmstore.shell.commands.data.merge", "merge"),
            (add_merge,),
        ),
        Command(
            "sweep",
            "keep",
            "delete files that a crash left behind",
            "Deletes files of large contents that no commit names, as a crash between the two leaves them.",
            ("vmstore sweep agent.vms --dry-run", "vmstore sweep agent.vms --grace 0"),
            ("vmstore.shell.commands.care.upkeep", "sweep"),
            (add_store, add_sweep),
        ),
        Command(
            "upgrade",
            "keep",
            "bring a store of an older format up to date",
            "Writes the log of an older format anew, beside it, checks it against the old one and puts it in\n"
            "its place; the old one is kept beside it. Hashes, positions and answers stay the same.",
            ("vmstore upgrade agent.vms --rehearse", "vmstore upgrade agent.vms"),
            ("vmstore.shell.commands.care.upkeep", "upgrade"),
            (add_upgrade,),
        ),
        Command(
            "du",
            "keep",
            "where the bytes are",
            "Says where the bytes are: each table of the log and the views, free pages, blobs and columns as\n"
            "they lie on disk, and the contents, as they were accepted, by kind and by session.",
            ("vmstore du agent.vms", "vmstore du agent.vms --json"),
            ("vmstore.shell.commands.queries.usage", "du"),
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
            ("vmstore.shell.commands.data.backups", "backup"),
            (add_backup,),
        ),
        Command(
            "restore",
            "keep",
            "a store from a backup",
            "Makes a store of a backup where none is: compares every byte and verifies the log in full.",
            ("vmstore restore /backups/agent-monday agent.vms",),
            ("vmstore.shell.commands.data.backups", "restore"),
            (add_restore,),
        ),
        Command(
            "fork",
            "keep",
            "a new session that shares another's past",
            "Makes a new session that shares a session's past up to a moment and nothing after. It copies\n"
            "nothing; parent and child never see each other's later mutations.",
            ("vmstore fork agent.vms planning-220 --at-turn 42 --as try-b",),
            ("vmstore.shell.commands.care.maintenance", "fork"),
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
            ("vmstore.shell.commands.queries.pages", "annotate"),
            (add_store, add_session, add_page, add_annotate),
        ),
        Command(
            "close",
            "keep",
            "say that a session ended",
            "Says that a session was completed or abandoned, and why. Nothing is deleted, and every question about it\n"
            "is answered as before; what is said in it later takes it up again.",
            (
                "vmstore close agent.vms planning-220",
                "vmstore close agent.vms planning-221 --status abandoned --because 'the plan changed'",
            ),
            ("vmstore.shell.commands.queries.pages", "close"),
            (add_store, add_session, add_close),
        ),
        Command(
            "retract",
            "keep",
            "mark what came of a cause superseded",
            "Marks everything that stands on a page, a session, an actor or a tool superseded, with the reason,\n"
            "in every session that sees it: what was made from it, at first or second hand, forks and spawned\n"
            "sessions included. It says first what that is and what speaks against it, and asks. Nothing is\n"
            "deleted, and the past answers as before; a session that manages its memory sends it no more.",
            (
                "vmstore retract agent.vms --tool web_search --reason 'poisoned results' --dry-run",
                "vmstore retract agent.vms --page s1/p17 --rebuild",
                "vmstore retract agent.vms --session s1 --reason 'went wrong' --yes",
            ),
            ("vmstore.shell.commands.trust.retract", "retract"),
            (add_retract,),
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
            ("vmstore.shell.commands.care.maintenance", "verify"),
            (add_store, add_parts, add_seals),
        ),
        *TRUST,
        ERASE,
        RETAIN,
        *SHARING,
        Command(
            "rebuild",
            "keep",
            "fold the views from the log again",
            "Forgets the views, or one of them, and folds them again from the log, which is the only truth.\n"
            "--view columns cuts the column segments again.",
            ("vmstore rebuild agent.vms", "vmstore rebuild agent.vms --view lineage"),
            ("vmstore.shell.commands.care.maintenance", "rebuild"),
            (add_store, add_view),
        ),
        Command(
            "demo",
            "more",
            "a tour through a session of 220 turns",
            "Imports a session that ships with vmstore into a store of its own and shows, step by step, what\n"
            "can be asked of it, each with the command that asks the same.",
            ("vmstore demo", "vmstore demo --keep /tmp/demo"),
            ("vmstore.shell.demo.demo", "demo"),
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
            ("vmstore.shell.commands.queries.completion", "completion"),
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
        "`vmstore COMMAND --help` says more, with examples. Every command takes --namespace NS, --store-key FILE,",
        "--json and --quiet; --version names the versions at work. Exit codes: 0, 1 refused or not ok, 2 usage,",
        "130 Ctrl-C.",
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
    return str(suggest(name, COMMANDS, ANY))
