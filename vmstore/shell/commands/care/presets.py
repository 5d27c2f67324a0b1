"""The command that lists presets of settings, shows one, and checks a file of settings."""

from __future__ import annotations

import argparse
import json
from typing import Any

from vmstore.errors import InputError
from vmstore.shell.commands.arguments import Command, Parser
from vmstore.shell.terminal.layout import TableColumn, TextTable
from vmstore.shell.terminal.render import Screen


def presets(arguments: argparse.Namespace, screen: Screen) -> int:
    """Lists presets, shows one, or checks a file."""
    if arguments.check is not None:
        return _check(arguments, screen)
    return _list(arguments, screen) if arguments.preset is None else _show(arguments, screen)


def _list(arguments: argparse.Namespace, screen: Screen) -> int:
    from vmstore.vm.kernel.presets import ABOUT, PRESETS

    rows = [{"preset": name, "about": ABOUT[name], "settings": values} for name, values in PRESETS.items()]
    if arguments.json:
        screen.json({"presets": rows})
        return 0
    columns = (TableColumn("preset", style="name"), TableColumn("for"), TableColumn("changes"))
    table = [(name, ABOUT[name], ", ".join(f"{key} = {_toml(value)}" for key, value in values.items()))
             for name, values in PRESETS.items()]  # fmt: skip
    screen.show(TextTable(columns, table))
    return 0


def _show(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints a preset as a file of settings has it, every setting of it."""
    import msgspec

    from vmstore.vm.kernel.presets import preset
    from vmstore.vm.kernel.settings import KernelSettings, changed

    chosen = preset(arguments.preset)
    settings = msgspec.structs.asdict(changed(KernelSettings(), dict(chosen)))
    shown = {name: value for name, value in settings.items() if value not in (None, {})}
    lines = [f"{name} = {_toml(value)}" for name, value in shown.items()]
    return screen.answer(arguments, {"preset": arguments.preset, "settings": settings}, *lines)


def _check(arguments: argparse.Namespace, screen: Screen) -> int:
    """Says every fault of a file of settings; 1 where there is any."""
    from vmstore.store.settings_file import values_in
    from vmstore.vm.kernel.presets import faults_of, settings_from

    values = values_in(arguments.check)
    faults = faults_of(values)
    if arguments.json:
        settings = None if faults else settings_from(values)
        screen.json({"file": arguments.check, "ok": not faults, "faults": faults, "settings": settings})
    elif faults:
        for fault in faults:
            screen.warn(fault)
    else:
        screen.answer(arguments, {}, f"{arguments.check}: ok, {len(values)} settings")
    return 1 if faults else 0


def _toml(value: Any) -> str:
    """A value as TOML writes it: numbers, words, true and false are written as in JSON."""
    if not isinstance(value, str | int | float | bool | dict):
        raise InputError(f"{value!r:.40} is nothing that a file of settings holds")
    return json.dumps(value)


def _add_preset(parser: Parser) -> None:
    parser.add_argument("preset", nargs="?", metavar="NAME", help="show this one, every setting of it")
    parser.add_argument("--check", metavar="FILE", help="check a file of settings, TOML or JSON, and say every fault")


COMMANDS = (
    Command(
        "presets",
        "more",
        "settings that go together; a file of settings checked",
        "Lists presets of a live session's settings, shows one as a file of settings has it, or checks such a\n"
        "file. In a program: vmstore.preset(NAME) and vmstore.read_settings(FILE).",
        (
            "vmstore presets",
            "vmstore presets coding > agent.toml",
            "vmstore presets --check agent.toml",
        ),
        presets,
        (_add_preset,),
    ),
)
