"""The table of commands: which module declares each. A module is loaded when its command is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from vmstore.core.text.suggest import suggest
from vmstore.shell.commands.arguments import Command

# The order is that of the help. Each module has a tuple COMMANDS, and imports the store only inside functions.
MODULES = {
    "import": "vmstore.shell.commands.data.import_files",
    "watch": "vmstore.shell.commands.data.watch",
    "proxy": "vmstore.shell.commands.data.proxy",
    "chat": "vmstore.shell.commands.data.chat",
    "info": "vmstore.shell.commands.queries.inspect",
    "sessions": "vmstore.shell.commands.queries.sessions",
    "turns": "vmstore.shell.commands.queries.inspect",
    "calls": "vmstore.shell.commands.queries.inspect",
    "cost": "vmstore.shell.commands.queries.sessions",
    "context": "vmstore.shell.commands.queries.inspect",
    "assemble": "vmstore.shell.commands.queries.assemble",
    "diff": "vmstore.shell.commands.queries.inspect",
    "compactions": "vmstore.shell.commands.queries.sessions",
    "search": "vmstore.shell.commands.queries.sessions",
    "pages": "vmstore.shell.commands.queries.pages",
    "faults": "vmstore.shell.commands.queries.pages",
    "tools": "vmstore.shell.commands.queries.tools",
    "page": "vmstore.shell.commands.queries.inspect",
    "history": "vmstore.shell.commands.queries.inspect",
    "versions": "vmstore.shell.commands.queries.pages",
    "affinity": "vmstore.shell.commands.queries.pages",
    "sources": "vmstore.shell.commands.queries.inspect",
    "derived": "vmstore.shell.commands.queries.inspect",
    "tail": "vmstore.shell.commands.queries.inspect",
    "replay": "vmstore.shell.commands.queries.replay",
    "debug": "vmstore.shell.commands.queries.debug",
    "serve": "vmstore.shell.commands.queries.serve",
    "token": "vmstore.shell.commands.queries.serve",
    "mcp": "vmstore.shell.commands.queries.mcp",
    "export": "vmstore.shell.commands.data.export",
    "doctor": "vmstore.shell.commands.care.doctor",
    "compact": "vmstore.shell.commands.care.upkeep",
    "archive": "vmstore.shell.commands.care.archives",
    "unarchive": "vmstore.shell.commands.care.archives",
    "publish": "vmstore.shell.commands.care.publish",
    "merge": "vmstore.shell.commands.data.merge",
    "migrate": "vmstore.shell.commands.data.migrate",
    "checkpoint": "vmstore.shell.commands.care.checkpoint",
    "embed": "vmstore.shell.commands.care.embeddings",
    "language": "vmstore.shell.commands.care.language",
    "sweep": "vmstore.shell.commands.care.upkeep",
    "upgrade": "vmstore.shell.commands.care.upkeep",
    "du": "vmstore.shell.commands.care.usage",
    "backup": "vmstore.shell.commands.care.backups",
    "restore": "vmstore.shell.commands.care.backups",
    "fork": "vmstore.shell.commands.data.sessions",
    "annotate": "vmstore.shell.commands.data.sessions",
    "tags": "vmstore.shell.commands.data.tags",
    "segments": "vmstore.shell.commands.data.tags",
    "facts": "vmstore.shell.commands.data.facts",
    "learn": "vmstore.shell.commands.data.work",
    "observations": "vmstore.shell.commands.data.work",
    "brief": "vmstore.shell.commands.data.work",
    "plans": "vmstore.shell.commands.data.work",
    "tasks": "vmstore.shell.commands.data.tasks",
    "digest": "vmstore.shell.commands.data.tasks",
    "artifacts": "vmstore.shell.commands.data.tasks",
    "close": "vmstore.shell.commands.data.sessions",
    "retract": "vmstore.shell.commands.trust.retract",
    "verify": "vmstore.shell.commands.care.verify",
    "seal": "vmstore.shell.commands.trust.seals",
    "prove": "vmstore.shell.commands.trust.seals",
    "approve": "vmstore.shell.commands.trust.approvals",
    "key": "vmstore.shell.commands.trust.encryption",
    "encrypt": "vmstore.shell.commands.trust.encryption",
    "rekey": "vmstore.shell.commands.trust.encryption",
    "erase": "vmstore.shell.commands.trust.erase",
    "retain": "vmstore.shell.commands.trust.retain",
    "share": "vmstore.shell.commands.trust.regions",
    "revoke": "vmstore.shell.commands.trust.regions",
    "regions": "vmstore.shell.commands.trust.regions",
    "rebuild": "vmstore.shell.commands.care.verify",
    "presets": "vmstore.shell.commands.care.presets",
    "daemon": "vmstore.shell.commands.care.daemon",
    "demo": "vmstore.shell.demo.demo",
    "completion": "vmstore.shell.commands.completion",
}

GROUPS = {
    "import": "Import",
    "query": "Query",
    "export": "Export",
    "maintain": "Maintain",
    "privacy": "Privacy",
    "more": "More",
}


class Registry(Mapping[str, Command]):
    """Every command by its name; the names alone load nothing."""

    def __getitem__(self, name: str) -> Command:
        module = importlib.import_module(MODULES[name])
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
        "A flight recorder for AI agents: see what the model was sent at any call, what was dropped, and why.",
    ]
    wide = max(map(len, COMMANDS)) + 1
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {c.name:<{wide}}{c.summary}" for c in COMMANDS.values() if c.group == group]
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


def nearest(name: str) -> str | None:
    """The command that a wrong one was likely meant to be; None where none is like it."""
    return suggest(name, COMMANDS)
