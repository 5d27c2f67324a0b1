r"""The shell's own commands as data: `\mode json` or `.mode json`; any beginning that only one has will do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from vmstore.core.text.suggest import suggest
from vmstore.errors import InputError
from vmstore.shell.terminal.layout import Block, StyledText, TableColumn, TextTable
from vmstore.shell.vmql import favourites
from vmstore.shell.vmql.repl import Repl
from vmstore.shell.vmql.script import MARKS, ScriptPiece
from vmstore.shell.vmql.settings import mode_named, parameter, turn, value_of

CARD = Path(__file__).with_name("card.vmql")


def text() -> str:
    """The card, which is a script: what is no statement on it is a comment."""
    return CARD.read_text(encoding="utf-8")


WATCH_S = 2.0


class Quit(Exception):  # noqa: N818  an end, not an error
    """The reader leaves."""


class ShellCommand(NamedTuple):
    """One command: what it takes, what it does, the function that does it."""

    name: str
    takes: str
    summary: str
    run: Callable[[Repl, str], None]


def run(desk: Repl, piece: ScriptPiece) -> None:
    """Does what a command says."""
    name, _, argument = piece.text.lstrip("".join(MARKS)).rstrip("; ").partition(" ")
    named(name).run(desk, argument.strip())


ALIASES = {"?": "help", "exit": "quit", "timer": "timing", "dt": "tables", "d": "schema"}


def named(name: str) -> ShellCommand:
    """The command of a name or of its beginning; raises InputError naming the nearest."""
    word = ALIASES.get(name.lower(), name.lower())
    matches = (
        [COMMANDS[word]] if word in COMMANDS else [c for c in COMMANDS.values() if word and c.name.startswith(word)]
    )
    if len(matches) == 1:
        return matches[0]
    if matches:
        several = ", ".join(f"\\{match.name}" for match in matches)
        raise InputError(f"\\{name} could be {several}; write one more letter")
    near = suggest(word, COMMANDS)
    hint = f"the nearest is \\{near}; " if near else ""
    raise InputError(f"there is no command \\{name}; {hint}\\help lists them")


# ---- about the shell


def _help(desk: Repl, argument: str) -> None:
    with desk.outputs.screen(desk.settings.pager) as screen:
        if argument:
            command = named(argument.lstrip("".join(MARKS)))
            screen.show((StyledText(f"\\{command.name} {command.takes}".rstrip(), "bold"), f"  {command.summary}"))
            return
        rows = [(f"\\{command.name} {command.takes}", command.summary) for command in COMMANDS.values()]
        blocks: list[Block] = [
            "A statement ends with ; and may take several lines. A command takes one line and begins with \\ or a dot.",
            "",
            TextTable((TableColumn("", style="name"), TableColumn("")), rows),
            "",
            "\\card shows the language on one page, \\tour what it can answer here, DESCRIBE PAGES; its columns.",
        ]
        screen.show(*blocks)


def _card(desk: Repl, _: str) -> None:
    with desk.outputs.screen(desk.settings.pager) as screen:
        screen.show(*text().rstrip("\n").split("\n"))


def _tour(desk: Repl, _: str) -> None:
    from vmstore.shell.vmql.tour import walk

    walk(desk)


def _quit(desk: Repl, _: str) -> None:
    raise Quit


# ---- what is asked


def _open(desk: Repl, argument: str) -> None:
    desk.open(_required(argument, "\\open STORE"))
    desk.outputs.note(f"{desk.place} is open")


def _session(desk: Repl, argument: str) -> None:
    if argument:
        desk.set("session", None if argument == "-" else argument.strip("'"))
    _show_setting(desk, "session")


def _turn(desk: Repl, argument: str) -> None:
    if argument:
        desk.set("as_of", turn(argument))
    _show_setting(desk, "as_of")


def _param(desk: Repl, argument: str) -> None:
    if argument:
        name, value = parameter(argument)
        desk.settings.params[name] = value
    _show_setting(desk, "params")


def _limit(desk: Repl, argument: str) -> None:
    if argument:
        desk.set("limit", value_of(argument))
    _show_setting(desk, "limit")


# ---- how answers are shown


def _mode(desk: Repl, argument: str) -> None:
    if argument:
        desk.set("mode", argument)
    _show_setting(desk, "mode")


def _timing(desk: Repl, argument: str) -> None:
    desk.set("timing", argument or not desk.settings.timing)
    _show_setting(desk, "timing")


def _pager(desk: Repl, argument: str) -> None:
    if argument:
        desk.set("pager", argument)
    _show_setting(desk, "pager")


def _output(desk: Repl, argument: str) -> None:
    desk.outputs.to(argument or None)
    desk.outputs.note(f"answers go to {argument}" if argument else "answers come here")


def _once(desk: Repl, argument: str) -> None:
    desk.outputs.once(_required(argument, "\\once FILE, or \\once | COMMAND"))


# ---- statements again


def _last(desk: Repl, argument: str) -> None:
    desk.again(mode_named(argument) if argument else None)


def _explain(desk: Repl, argument: str) -> None:
    desk.explain(argument)


def _tables(desk: Repl, _: str) -> None:
    desk.ask("SHOW RELATIONS", remember=False)


def _schema(desk: Repl, argument: str) -> None:
    desk.ask(f"DESCRIBE {_required(argument, '.schema pages')}", remember=False)


def _sql(desk: Repl, argument: str) -> None:
    desk.sql(argument)


def _watch(desk: Repl, argument: str) -> None:
    try:
        pause = float(argument or WATCH_S)
    except ValueError:
        raise InputError(f"{argument!r} is no number of seconds") from None
    text = desk.asked()
    desk.outputs.note(f"every {pause:g} s, until Ctrl-C: {' '.join(text.split())}")
    while True:
        desk.ask(text, remember=False)
        time.sleep(pause)


def _read(desk: Repl, argument: str) -> None:
    desk.read(Path(_required(argument, "\\read FILE")).expanduser(), run)


def _save(desk: Repl, argument: str) -> None:
    name, _, text = _required(argument, "\\save NAME").partition(" ")
    favourites.save(name, text or desk.asked())
    desk.outputs.note(f"\\fav {name} asks it again")


def _fav(desk: Repl, argument: str) -> None:
    if argument:
        desk.run(favourites.text(argument) + "\n;", run)
        return
    rows = [(name, " ".join(text.split())) for name, text in favourites.every()]
    if not rows:
        desk.outputs.note("no statement is kept yet; \\save NAME keeps the last one")
        return
    with desk.outputs.screen(desk.settings.pager) as screen:
        screen.show(TextTable((TableColumn("name", style="name"), TableColumn("statement")), rows))


def _forget(desk: Repl, argument: str) -> None:
    favourites.forget(_required(argument, "\\forget NAME"))


def _required(argument: str, usage: str) -> str:
    if not argument:
        raise InputError(f"something is missing; write {usage}")
    return argument


def _show_setting(desk: Repl, name: str) -> None:
    desk.outputs.note(f"{name}: {dict(desk.settings.shown())[name] or 'none'}")


COMMANDS: dict[str, ShellCommand] = {
    name: ShellCommand(name, takes, summary, run_it)
    for name, takes, summary, run_it in (
        ("help", "[COMMAND]", "the commands, or one of them", _help),
        ("card", "", "the language on one page", _card),
        ("tour", "", "ten statements that say something about this store", _tour),
        ("session", "[NAME]", "the session of statements that name none; - for none", _session),
        ("turn", "[N]", "the turn that statements are about which name no moment; HEAD for now", _turn),
        ("param", "[NAME=VALUE]", "what $NAME stands for", _param),
        ("mode", "[MODE]", "how answers are written: auto, table, line, json, jsonl, csv, markdown", _mode),
        ("limit", "[N]", "how many rows of an answer a terminal shows; 0 for all", _limit),
        ("timing", "[on/off]", "whether each answer says how long it took", _timing),
        ("pager", "[on/off/COMMAND]", "how long answers are read: by the page, at once, in a program", _pager),
        ("output", "[FILE]", "write answers to a file; without a name, here again", _output),
        ("once", "FILE", "write the next answer to a file, or send it to a program: \\once | COMMAND", _once),
        ("last", "[MODE]", "show the last answer again", _last),
        ("explain", "[STATEMENT]", "how the last statement, or this one, is answered, with times", _explain),
        ("tables", "", "what can be asked: the relations", _tables),
        ("schema", "RELATION", "the columns of a relation", _schema),
        ("sql", "STATEMENT", "ask in SQL over the relations: \\sql SELECT type, count(*) FROM pages GROUP BY 1", _sql),
        ("watch", "[SECONDS]", "ask the last statement again and again, until Ctrl-C", _watch),
        ("read", "FILE", "run the statements and commands of a file", _read),
        ("save", "NAME [STATEMENT]", "keep the last statement, or this one, under a name", _save),
        ("fav", "[NAME]", "ask a kept statement, or list them", _fav),
        ("forget", "NAME", "drop a kept statement", _forget),
        ("open", "STORE", "ask another store", _open),
        ("quit", "", "leave; so does Ctrl-D", _quit),
    )
}
