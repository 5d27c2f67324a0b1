"""The command that has another one run in the background: a watcher, the proxy, a server."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from vmstore.errors import ConflictError, InputError, UnknownError
from vmstore.shell.background.unit import Supervisor, Unit, named, run, supervisor
from vmstore.shell.commands.arguments import Command, Parser
from vmstore.shell.terminal.layout import TableColumn, TextTable
from vmstore.shell.terminal.render import Screen

LASTING = ("watch", "proxy", "debug", "serve", "mcp")  # commands that run until they are stopped
ONCE = ("--once", "--hooks", "--hook", "--export", "--help", "-h")  # options with which they do not
NAME = "default"
KEY = "VMSTORE_KEY_FILE"
ACTS = ("install", "status", "start", "stop", "restart", "uninstall")


def daemon(arguments: argparse.Namespace, screen: Screen) -> int:
    """Installs, starts, stops or forgets a daemon, or says how each stands."""
    keeper = supervisor(sys.platform)
    if arguments.act == "install":
        return _install(keeper, arguments, screen)
    if arguments.act == "status":
        return _status(keeper, arguments, screen)
    name = named(arguments.name or NAME)
    if name not in keeper.names():
        known = ", ".join(keeper.names()) or "none yet; `vmstore daemon install` makes one"
        raise UnknownError(f"there is no daemon {name!r}; there are {known}", code="no-daemon")
    run(keeper.acts(arguments.act, name))
    if arguments.act == "uninstall":
        keeper.file(name).unlink(missing_ok=True)
        run(keeper.acts("forget", name))
    state = "uninstalled" if arguments.act == "uninstall" else keeper.state(name)
    return screen.answer(arguments, {"daemon": name, "state": state}, f"{name}: {state}")


def _install(keeper: Supervisor, arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.namespace or arguments.store_key:
        raise InputError('--namespace and --store-key are of the command that runs; write them within --run "…"')
    unit = _unit(named(arguments.name or NAME), arguments.run)
    definition, file = keeper.definition(unit), keeper.file(unit.name)
    if arguments.print:
        answer = {"daemon": unit.name, "file": str(file), "definition": definition}
        return screen.answer(arguments, answer, *definition.splitlines())
    if file.exists():
        raise ConflictError(
            f"there is a daemon {unit.name!r} already, {file}; uninstall it, or take another name", code="name-taken"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(definition, encoding="utf-8")
    try:
        run(keeper.acts("install", unit.name))
    except BaseException:
        file.unlink(missing_ok=True)  # what was not started is not started by the next login either
        raise
    state = keeper.state(unit.name)
    answer = {"daemon": unit.name, "state": state, "file": str(file), "command": shlex.join(unit.words)}
    return screen.answer(arguments, answer, f"{unit.name}: {state}, {file}")


def _unit(name: str, command: str | None) -> Unit:
    """What is to run, as a unit: the same Python, the same folder, the same key."""
    from vmstore.shell.commands import registry

    try:
        words = shlex.split(command or "")
    except ValueError as error:
        raise InputError(f"--run {command!r:.80} cannot be read ({error}); close its quotes") from error
    if not words or words[0] not in LASTING:
        listed = ", ".join(LASTING)
        raise InputError(f'--run takes a command that runs until it is stopped ({listed}), as --run "watch agent.vms"')
    if once := [word for word in words if word.partition("=")[0] in ONCE]:
        raise InputError(f"{words[0]} {once[0]} ends by itself, so there is nothing to keep running; leave it out")
    registry.COMMANDS[words[0]].parser().parse_intermixed_args(words[1:])  # else it would fail unseen, for ever
    key = os.environ.get(KEY)
    variables = ((KEY, os.path.abspath(key)),) if key else ()
    return Unit(name, (sys.executable, "-m", "vmstore", *words), os.getcwd(), variables)


def _status(keeper: Supervisor, arguments: argparse.Namespace, screen: Screen) -> int:
    names = keeper.names() if arguments.name is None else [named(arguments.name)]
    if missing := [name for name in names if name not in keeper.names()]:
        raise UnknownError(f"there is no daemon {missing[0]!r}; `vmstore daemon install` makes one", code="no-daemon")
    rows: list[dict[str, Any]] = [
        {"daemon": name, "state": keeper.state(name), "file": str(keeper.file(name))} for name in names
    ]
    if arguments.json:
        screen.json({"daemons": rows})
    elif not rows:
        screen.note('no daemon; `vmstore daemon install --run "watch agent.vms --discover"` makes one')
    else:
        columns = (TableColumn("daemon", style="name"), TableColumn("state"), TableColumn("file"))
        screen.show(TextTable(columns, [(row["daemon"], row["state"], row["file"]) for row in rows]))
    return 0


def _add_daemon(parser: Parser) -> None:
    parser.add_argument("act", metavar="ACT", choices=ACTS, help=", ".join(ACTS))
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"of several daemons which (default: {NAME})")
    parser.add_argument("--run", metavar="COMMAND", help="with install: what is to run, without `vmstore`")
    parser.add_argument("--print", action="store_true", help="with install: print the definition, and install nothing")


COMMANDS = (
    Command(
        "daemon",
        "more",
        "a watcher, the proxy or the debugger in the background",
        "Has a command of vmstore run in the background, from now on and after each login, and again where it\n"
        "fails: a unit of the user's systemd, on macOS a job of launchd. Its paths are of this folder.",
        (
            'vmstore daemon install --run "watch agent.vms --discover"',
            'vmstore daemon install proxy --run "proxy agent.vms --port 5757"',
            "vmstore daemon status",
        ),
        daemon,
        (_add_daemon,),
    ),
)
