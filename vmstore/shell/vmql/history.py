"""What was asked before: a file under the state folder, or nothing but memory where that cannot or must not be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.shell.vmql.settings import state_folder

if TYPE_CHECKING:
    from prompt_toolkit.history import History

PRIVATE = 0o600  # questions may quote what pages hold
BYTES_MAX = 256 << 10  # of the file as a shell begins; then the older half goes
_ENTRY = b"\n# "  # how prompt_toolkit begins one


def history_file() -> Path:
    """Where what was asked is kept."""
    return state_folder() / "vmql_history"


def history(note: Callable[[str], None], *, keeps: bool = True) -> History:
    """The history of this user, or one that is forgotten; `note` is called where it cannot be kept."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if not keeps:
        return InMemoryHistory()
    path = history_file()

    class Kept(FileHistory):
        def store_string(self, string: str) -> None:
            try:
                super().store_string(string)
            except OSError as error:  # a disk that filled up while somebody asks
                note(f"{path} cannot be written ({error.strerror}); this question is remembered until you leave")

    try:
        _prepared(path)
    except OSError as error:
        note(f"{path} cannot be written ({error.strerror}); questions are remembered until you leave")
        return InMemoryHistory()
    return Kept(str(path))


def _prepared(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(PRIVATE)
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size <= BYTES_MAX:
            return
        file.seek(size - BYTES_MAX // 2)
        content = file.read()
        newest = content[content.find(_ENTRY) :] if _ENTRY in content else b""
        file.seek(0)
        file.write(newest)
        file.truncate()
