"""Statements kept under a name, each a file of its own beside the rc file."""

from __future__ import annotations

import re
from pathlib import Path

from vmstore.core.text.suggest import suggest
from vmstore.errors import InputError, UnknownError
from vmstore.shell.vmql.settings import config_folder

NAME = re.compile(r"[\w-]{1,64}")


def save(name: str, statement: str) -> None:
    """Keeps a statement, in the place of one of the same name."""
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(statement.strip() + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); check the folder's permissions") from None


def text(name: str) -> str:
    """The statement of a name; raises UnknownError naming the nearest."""
    path = _path(name)
    if not path.is_file():
        names = [name_of for name_of, _ in every()]
        near = suggest(name, names)
        hint = f"the nearest is {near}" if near else "\\save NAME keeps the last statement"
        raise UnknownError(f"no statement is kept as {name!r}; {hint}")
    return path.read_text(encoding="utf-8")


def every() -> list[tuple[str, str]]:
    """Every kept statement with its name, by name."""
    folder = config_folder() / "favourites"
    return [(path.stem, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.vmql"))]


def forget(name: str) -> None:
    """Drops a kept statement."""
    text(name)
    _path(name).unlink()


def _path(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name to keep a statement under; use letters, digits, - and _")
    return config_folder() / "favourites" / f"{name}.vmql"
