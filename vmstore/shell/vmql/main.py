"""The `vmql` command: one shot, or a shell, by what the command line and the terminal say.

Help, card and usage errors are answered before anything else is loaded.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.shell.vmql import options
from vmstore.shell.vmql.options import PROG, USAGE, CommandLine, UsageError

if TYPE_CHECKING:
    from vmstore.shell.terminal.pager import Keys
    from vmstore.shell.vmql.output.targets import Outputs
    from vmstore.shell.vmql.repl import Repl
    from vmstore.shell.vmql.settings import ShellSettings
    from vmstore.store.fleet.fleet import Fleet


def run() -> int:
    """The process: `main`, with no search for garbage while it loads nor at its end, where there is none to find."""
    gc.disable()
    code = main()
    gc.freeze()
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `vmql` with these arguments, by default the process's; the exit code."""
    from vmstore.shell.terminal.exit_codes import leaving

    words = list(sys.argv[1:] if argv is None else argv)
    return leaving(lambda: _answer(words), USAGE)


def _answer(words: list[str]) -> int:
    """What a command line asks for, printed; what needs no store is answered without one."""
    try:
        command_line = options.read(words)
        if command_line.has("--help"):
            print(options.help_text())
            return 0
        if command_line.has("--card"):
            from vmstore.shell.vmql.commands import text

            print(text(), end="")
            return 0
        if command_line.store is None and not command_line.has("--version"):
            raise UsageError("no store is named")
    except UsageError as error:
        print(f"{PROG}: {error}; `{PROG} --help` shows how", file=sys.stderr)
        return USAGE
    return _versions() if command_line.has("--version") else _ask(command_line)


def _versions() -> int:
    from vmstore.shell.versions import sentence

    print(sentence())
    return 0


def _ask(command_line: CommandLine) -> int:
    """Opens the store and has everything asked answered; 1 where something is refused."""
    from vmstore.shell.terminal.exit_codes import refusal
    from vmstore.shell.vmql.output.targets import Outputs

    assert command_line.store is not None
    one_shot = bool(command_line.inputs) or not sys.stdin.isatty()
    outputs = Outputs(quiet=command_line.has("--quiet"), keys=None if one_shot else _keys())
    try:
        settings = _settings(command_line, one_shot=one_shot)
        desk = _desk(command_line, command_line.store, settings, outputs)
    except UsageError as error:
        outputs.warn(f"{error}; `{PROG} --help` shows how")
        return USAGE
    except Exception as error:
        if (message := refusal(error, command_line.store)) is None:
            raise
        outputs.warn(message)
        return 1
    gc.enable()
    try:
        return _run_statements(desk, command_line) if one_shot else _run_shell(desk, command_line)
    finally:
        desk.close()


def _keys() -> Keys:
    from vmstore.shell.terminal.pager import read_key

    return read_key


def _settings(command_line: CommandLine, *, one_shot: bool) -> ShellSettings:
    from vmstore.errors import InputError
    from vmstore.shell.vmql.settings import AUTO, LIMIT, LIMITS, ShellSettings, parameter, turn

    settings = ShellSettings(
        mode=command_line.mode or AUTO, timing=command_line.has("--timing"), limit=0 if one_shot else LIMIT
    )
    settings.session = command_line.last("--session")
    settings.history = not (command_line.has("--no-history") or command_line.has("--read-only"))
    number = command_line.last("--turn")
    try:
        settings.params = dict(parameter(text) for text in command_line.values.get("--param", ()))
        settings.moment = None if number is None else turn(number)
        for name in LIMITS:
            settings.put(name, command_line.last(f"--{name}"))
    except InputError as error:
        raise UsageError(str(error)) from None
    return settings


def _desk(command_line: CommandLine, place: str, settings: ShellSettings, outputs: Outputs) -> Repl:
    from vmstore.shell.open_store import NAMESPACE, opened_fleet, opened_to_ask
    from vmstore.shell.vmql.repl import Repl
    from vmstore.store.store import Store

    def opener(place: str) -> Store | Fleet:
        key_file, prices = command_line.last("--store-key"), command_line.last("--prices")
        read_only = command_line.has("--read-only")
        if (names := command_line.last("--namespaces")) is not None:
            stores = [place, *command_line.others]
            return opened_fleet(stores, names, read_only=read_only, store_key=key_file, prices=prices)
        namespace = command_line.last("--namespace") or NAMESPACE
        return opened_to_ask(place, namespace, read_only=read_only, store_key=key_file, prices=prices)

    desk = Repl(opener, place, settings, outputs)
    if settings.session is not None:
        desk.set("session", settings.session)
    for left in () if isinstance(desk.store, Store) else desk.store.left_out:
        outputs.warn(f"namespace {left.namespace!r} of {left.store} is left out: {left.reason}")
    return desk


def _run_statements(desk: Repl, command_line: CommandLine) -> int:
    """Has everything answered in order; the first that is refused ends it."""
    from vmstore.shell.vmql import commands
    from vmstore.shell.vmql.repl_loop import attempt

    try:
        for option, value in command_line.inputs or (("-f", "-"),):
            if not attempt(desk, partial(_run_input, desk, option, value, command_line.has("--sql"))):
                return 1
    except commands.Quit:
        pass
    return 0


def _run_input(desk: Repl, option: str, value: str, sql: bool) -> None:
    from vmstore.shell.vmql import commands
    from vmstore.shell.vmql.script import file_text

    if sql:
        desk.sql(value if option == "-c" else file_text(Path(value)))
    elif option == "-c":
        desk.run(value, commands.run)
    else:
        desk.read(Path(value), commands.run)


def _run_shell(desk: Repl, command_line: CommandLine) -> int:
    from vmstore.shell.vmql.prompt import lines
    from vmstore.shell.vmql.repl_loop import sit

    desk.outputs.note(f"{desk.place}: statements end with ;  \\help lists commands, \\tour shows what can be asked")
    return sit(desk, lines(desk), rc=not command_line.has("--no-rc"))
