"""The table of commands: which module declares each. A module is loaded when its command is asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping

from vmstore.shell.commands.arguments import Command

# The order is that of the help. Each module has a tuple COMMANDS, and imports the store only inside functions.
MODULES = {
    "import": "commands.data.import_files",
    "info": "commands.queries.inspect",
    "sessions": "commands.queries.inspect",
    "turns": "commands.queries.inspect",
    "calls": "commands.queries.inspect",
    "context": "commands.queries.inspect",
    "diff": "commands.queries.inspect",
    "pages": "commands.queries.pages",
    "faults": "commands.queries.pages",
    "page": "commands.queries.inspect",
    "history": "commands.queries.inspect",
    "versions": "commands.queries.pages",
    "affinity": "commands.queries.pages",
    "sources": "commands.queries.inspect",
    "derived": "commands.queries.inspect",
    "tail": "commands.queries.inspect",
    "replay": "commands.queries.replay",
    "debug": "commands.queries.debug",
    "export": "commands.data.export",
    "doctor": "commands.care.doctor",
    "compact": "commands.care.upkeep",
    "archive": "commands.care.archives",
    "unarchive": "commands.care.archives",
    "merge": "commands.data.merge",
    "sweep": "commands.care.upkeep",
    "upgrade": "commands.care.upkeep",
    "du": "commands.care.usage",
    "backup": "commands.care.backups",
    "restore": "commands.care.backups",
    "fork": "commands.data.sessions",
    "annotate": "commands.data.sessions",
    "close": "commands.data.sessions",
    "retract": "commands.trust.retract",
    "verify": "commands.care.verify",
    "seal": "commands.trust.seals",
    "prove": "commands.trust.seals",
    "approve": "commands.trust.approvals",
    "key": "commands.trust.encryption",
    "encrypt": "commands.trust.encryption",
    "rekey": "commands.trust.encryption",
    "erase": "commands.trust.erase",
    "retain": "commands.trust.retain",
    "share": "commands.trust.regions",
    "revoke": "commands.trust.regions",
    "regions": "commands.trust.regions",
    "rebuild": "commands.care.verify",
    "demo": "demo.demo",
    "completion": "commands.completion",
}

GROUPS = {"take in": "Take in", "ask": "Ask", "hand on": "Hand on", "keep": "Keep", "more": "More"}


class Registry(Mapping[str, Command]):
    """Every command by its name; the names alone load nothing."""

    def __getitem__(self, name: str) -> Command:
        module = importlib.import_module(f"vmstore.shell.{MODULES[name]}")
        commands: tuple[Command, ...] = module.COMMANDS
        return next(command for command in commands if command.name == name)

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


COMMANDS = Registry()


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
    return difflib.get_close_matches(name, list(COMMANDS), n=1, cutoff=0.0)[0]
