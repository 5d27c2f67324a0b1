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
OF_SESSION = "session:"  # the name of a policy about one session begins so


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


class Languages(NamedTuple):
    """The language of the texts, and those of the sessions that have another."""

    default: str = DEFAULT
    stated: tuple[tuple[str, str], ...] = ()
    """By the names of sessions, as it was stated."""
    sessions: tuple[tuple[int, str], ...] = ()
    """By the keys of these sessions and of their forks."""

    def of(self, session: int) -> str:
        """The language of what a session writes."""
        return dict(self.sessions).get(session, self.default)


class StatedLanguage:
    """The languages that were stated last, read again where something was stated or a session began since."""

    def __init__(self) -> None:
        self._position = 0
        self._newest = 0
        self._languages = Languages()

    def read(self, log: Log, views: apsw.Connection) -> Languages:
        """The languages, as far as the views are."""
        row = views.execute(_CHARTER, (CHARTER,)).fetchone()
        if row is None:
            return Languages()
        key, position = row
        if position != self._position:
            self._languages = _stated(log, views, key)
            self._position = position
            self._newest = 0
        if self._languages.stated:
            newest = int(views.execute("SELECT max(session) FROM sessions").get)
            if newest != self._newest:
                self._languages = self._languages._replace(sessions=_spoken(views, dict(self._languages.stated)))
                self._newest = newest
        return self._languages


def _stated(log: Log, views: apsw.Connection, key: int) -> Languages:
    from vmstore.core.mutation import NamespacePolicy
    from vmstore.core.namespace_policy import PolicySubject

    stated: dict[str, str] = {}
    for entry in entries_of(log, views, key):
        mutation = entry.mutation
        if isinstance(mutation, NamespacePolicy) and mutation.subject == PolicySubject.LANGUAGE:
            try:
                name, language = entry.text(mutation.name) or "", _read(entry.text(mutation.value))
            except ErasedError:
                continue
            stated[name.removeprefix(OF_SESSION) if name.startswith(OF_SESSION) else ""] = language
    default = stated.pop("", DEFAULT)
    return Languages(default, tuple(sorted(stated.items())))


def _spoken(views: apsw.Connection, stated: dict[str, str]) -> tuple[tuple[int, str], ...]:
    """The languages of sessions by their keys; a fork has that of its parent, unless another is stated for it."""
    languages: dict[int, str] = {}
    for session, name, parent in views.execute("SELECT session, name, parent FROM sessions ORDER BY session"):
        language = stated.get(name) or languages.get(parent)
        if language is not None:
            languages[session] = language
    return tuple(languages.items())


def _read(value: str | None) -> str:
    """The language that a policy states; a later version may know more of them."""
    from vmstore.relevance.words import LANGUAGES

    language = DEFAULT if value is None else msgspec.json.decode(value)
    return language if language in LANGUAGES else DEFAULT


_CHARTER = "SELECT session, position FROM sessions WHERE hidden = ? ORDER BY session LIMIT 1"
