"""Entries of the namespace's own session, and the language of its texts.

The language is a policy there: by its rules a search takes texts and what is asked apart. The last one holds for
every text, those before it too, as of any moment; the text index is made again by its rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import apsw
import msgspec

from vmstore.core.mutation_kind import CHARTER
from vmstore.errors import ErasedError
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.log_reader import LogReader
from vmstore.views.stored_cells import read_cells

if TYPE_CHECKING:
    from vmstore.core.mutation import AnyMutation
    from vmstore.core.mutation_kind import CellRef

DEFAULT = "en"


class SystemEntry(NamedTuple):
    """A mutation of the charter: what was logged, where and when (microseconds since 1970)."""

    position: int
    ordinal: int
    at: int
    logged_at: int
    mutation: AnyMutation
    places: dict[int, Commit]  # the commits that brought cells, by every position of theirs
    log: Log
    views: apsw.Connection

    def text(self, ref: CellRef | None) -> str | None:
        """The text of the cell that the mutation names; None where it names none. UnknownError where it was erased."""
        if ref is None:
            return None
        position, index = (self.position, ref) if isinstance(ref, int) else ref
        commit = self.places[position]
        number = commit.cell + index
        return read_cells(self.log, self.views, {number: commit.commitment(index)})[number].decode("utf-8", "replace")


def entries_of(log: Log, views: apsw.Connection, key: int, after: int = 0) -> list[SystemEntry]:
    """All that was logged in the charter with a key, as far as the views are."""
    from vmstore.core.mutation import Open, decode

    places: dict[int, Commit] = {}
    found: list[SystemEntry] = []
    for commit in LogReader(log, views).commits(key):
        places.update(dict.fromkeys(range(commit.first, commit.last + 1), commit))
        for index, mutation in enumerate(decode(commit.body) if commit.ordinal > after else ()):
            if not isinstance(mutation, Open):
                entry = (commit.first + index, commit.ordinal, commit.at, commit.logged_at, mutation)
                found.append(SystemEntry(*entry, places, log, views))
    return found


class StatedLanguage:
    """The language that was stated last, read again where something was stated since."""

    def __init__(self) -> None:
        self._position = 0
        self._language = DEFAULT

    def read(self, log: Log, views: apsw.Connection) -> str:
        """The language, as far as the views are."""
        row = views.execute(_CHARTER, (CHARTER,)).fetchone()
        if row is None:
            return DEFAULT
        key, position = row
        if position != self._position:
            self._language = _stated(log, views, key)
            self._position = position
        return self._language


def _stated(log: Log, views: apsw.Connection, key: int) -> str:
    from vmstore.core.mutation import NamespacePolicy
    from vmstore.core.namespace_policy import PolicySubject

    language = DEFAULT
    for entry in entries_of(log, views, key):
        mutation = entry.mutation
        if isinstance(mutation, NamespacePolicy) and mutation.subject == PolicySubject.LANGUAGE:
            try:
                language = _read(entry.text(mutation.value))
            except ErasedError:
                language = DEFAULT
    return language


def _read(value: str | None) -> str:
    """The language that a policy states; a later version may know more of them."""
    from vmstore.relevance.words import LANGUAGES

    language = DEFAULT if value is None else msgspec.json.decode(value)
    return language if language in LANGUAGES else DEFAULT


_CHARTER = "SELECT session, position FROM sessions WHERE hidden = ? ORDER BY session LIMIT 1"
