"""What was asked before: a file under the state folder, or nothing but memory where that cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.shell.vmql.settings import state_folder

if TYPE_CHECKING:
    from prompt_toolkit.history import History

PRIVATE = 0o600  # questions may quote what pages hold


def history(note: Callable[[str], None]) -> History:
    """The history of this user; `note` is told where it cannot be kept."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    path = state_folder() / "vmql_history"

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
    with path.open("ab"):
        pass
