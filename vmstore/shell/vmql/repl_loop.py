"""A reader at the desk: what is typed is answered until the reader leaves."""

from __future__ import annotations

from collections.abc import Callable

from vmstore.shell.terminal.exit_codes import refusal
from vmstore.shell.vmql import commands
from vmstore.shell.vmql.repl import Repl
from vmstore.shell.vmql.settings import config_folder
from vmstore.vmql.syntax.errors import QueryError

Lines = Callable[[], str]


def sit(desk: Repl, lines: Lines, *, rc: bool = True) -> int:
    """Answers line after line until the end of them or `\\quit`; the exit code."""
    try:
        if rc:
            _read_rc(desk)
        while True:
            try:
                text = lines()
            except KeyboardInterrupt:  # Ctrl-C clears the line
                continue
            except EOFError:
                return 0
            try:
                attempt(desk, lambda: desk.run(text, commands.run))  # noqa: B023  it is run at once
            except KeyboardInterrupt:
                desk.outputs.note("cancelled")
            except commands.Quit:
                return 0
            except Exception:  # a fault of our own: it is shown whole, and the reader keeps the desk
                import traceback

                traceback.print_exc()
    except commands.Quit:
        return 0


def attempt(desk: Repl, work: Callable[[], None]) -> bool:
    """Does some work, with refusals on stderr; whether all was well."""
    try:
        work()
    except QueryError as error:
        desk.outputs.warn(f"{error}")
        for line in error.pointed().splitlines():
            desk.outputs.point(line)
    except Exception as error:
        message = refusal(error, desk.place)
        if message is None:
            raise
        desk.outputs.warn(message)
    else:
        return True
    return False


def _read_rc(desk: Repl) -> None:
    path = config_folder() / "vmqlrc"
    if path.is_file():
        attempt(desk, lambda: desk.read(path, commands.run))
