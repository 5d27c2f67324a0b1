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
from vmstore.shell.vmql.options import PROG, USAGE, Asked, UsageError

if TYPE_CHECKING:
    from vmstore.shell.vmql.output.pager import Keys
    from vmstore.shell.vmql.output.targets import Outputs
    from vmstore.shell.vmql.repl import Desk
    from vmstore.shell.vmql.settings import Settings


def run() -> int:
    """The process: `main`, with no search for garbage while it loads nor at its end, where there is none to find."""
    gc.disable()
    code = main()
    gc.freeze()
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `vmql` with these arguments, by default the process's; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        asked = options.read(words)
        if asked.has("--help"):
            print(options.help_text())
            return 0
        if asked.has("--card"):
            from vmstore.shell.vmql.card import text

            print(text(), end="")
            return 0
        if asked.store is None and not asked.has("--version"):
            raise UsageError("no store is named")
    except UsageError as error:
        print(f"{PROG}: {error}; `{PROG} --help` shows how", file=sys.stderr)
        return USAGE
    from vmstore.shell.terminal.exit_codes import leaving

    return leaving(lambda: _versions() if asked.has("--version") else _ask(asked), USAGE)


def _versions() -> int:
    from vmstore.shell.versions import sentence

    print(sentence())
    return 0


def _ask(asked: Asked) -> int:
    """Opens the store and has everything asked answered; 1 where something is refused."""
    from vmstore.shell.terminal.exit_codes import refusal
    from vmstore.shell.vmql.output.targets import Outputs

    assert asked.store is not None
    one_shot = bool(asked.inputs) or not sys.stdin.isatty()
    outputs = Outputs(quiet=asked.has("--quiet"), keys=None if one_shot else _keys())
    try:
        settings = _settings(asked, one_shot=one_shot)
        desk = _desk(asked, asked.store, settings, outputs)
    except UsageError as error:
        outputs.warn(f"{error}; `{PROG} --help` shows how")
        return USAGE
    except Exception as error:
        if (told := refusal(error, asked.store)) is None:
            raise
        outputs.warn(told)
        return 1
    gc.enable()
    try:
        return _shot(desk, asked) if one_shot else _sit(desk, asked)
    finally:
        desk.close()


def _keys() -> Keys:
    from vmstore.shell.vmql.output.pager import read_key

    return read_key


def _settings(asked: Asked, *, one_shot: bool) -> Settings:
    from vmstore.errors import InputError
    from vmstore.shell.vmql.settings import AUTO, LIMIT, Settings, parameter, turn

    settings = Settings(mode=asked.mode or AUTO, timing=asked.has("--timing"), limit=0 if one_shot else LIMIT)
    settings.session = asked.last("--session")
    settings.history = not (asked.has("--no-history") or asked.has("--read-only"))
    told = asked.last("--turn")
    try:
        settings.params = dict(parameter(text) for text in asked.values.get("--param", ()))
        settings.moment = None if told is None else turn(told)
    except InputError as error:
        raise UsageError(str(error)) from None
    return settings


def _desk(asked: Asked, place: str, settings: Settings, outputs: Outputs) -> Desk:
    from vmstore.shell.open_store import NAMESPACE, opened_to_ask
    from vmstore.shell.vmql.repl import Desk
    from vmstore.store.store import Store

    def opener(place: str) -> Store:
        namespace = asked.last("--namespace") or NAMESPACE
        told = asked.last("--store-key")
        return opened_to_ask(place, namespace, read_only=asked.has("--read-only"), store_key=told)

    return Desk(opener, place, settings, outputs)


def _shot(desk: Desk, asked: Asked) -> int:
    """Has everything answered in order; the first that is refused ends it."""
    from vmstore.shell.vmql import commands
    from vmstore.shell.vmql.repl_loop import attempt

    try:
        for option, value in asked.inputs or (("-f", "-"),):
            if not attempt(desk, partial(_take, desk, option, value)):
                return 1
    except commands.Quit:
        pass
    return 0


def _take(desk: Desk, option: str, value: str) -> None:
    from vmstore.shell.vmql import commands

    if option == "-c":
        desk.run(value, commands.run)
    else:
        desk.read(Path(value), commands.run)


def _sit(desk: Desk, asked: Asked) -> int:
    from vmstore.shell.vmql.prompt import lines
    from vmstore.shell.vmql.repl_loop import sit

    desk.outputs.note(f"{desk.place}: statements end with ;  \\help lists commands, \\tour shows what can be asked")
    return sit(desk, lines(desk), rc=not asked.has("--no-rc"))
