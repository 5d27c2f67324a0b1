"""The language of a namespace's texts: by its rules a search takes them and what is asked apart.

It is a policy in the namespace's own session. The last one holds for every text, those before it too, as of any
moment: it says in which language they are, and the text index is made anew by its rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import msgspec

from vmstore.core.mutation import NamespacePolicy, Open
from vmstore.core.namespace_policy import PolicySubject
from vmstore.engine.batch import Batch
from vmstore.errors import ErasedError, InputError
from vmstore.log.port import Log
from vmstore.namespace import system_session
from vmstore.relevance.words import LANGUAGES

if TYPE_CHECKING:
    from vmstore.namespace.namespace import Namespace

DEFAULT = "en"
NAME = "texts"  # what the policy is about; one day another may be about another part of a namespace


class StatedLanguage:
    """The language that was stated last, read again where something was stated since."""

    def __init__(self) -> None:
        self._position = 0
        self._language = DEFAULT

    def read(self, log: Log, views: apsw.Connection) -> str:
        """The language, as far as the views are."""
        row = views.execute(_CHARTER, (Open.CHARTER,)).fetchone()
        if row is None:
            return DEFAULT
        key, position = row
        if position != self._position:
            self._language = _stated(log, views, key)
            self._position = position
        return self._language


def _stated(log: Log, views: apsw.Connection, key: int) -> str:
    language = DEFAULT
    for entry in system_session.entries_of(log, views, key):
        mutation = entry.mutation
        if isinstance(mutation, NamespacePolicy) and mutation.subject == PolicySubject.LANGUAGE:
            try:
                language = _read(entry.text(mutation.value))
            except ErasedError:
                language = DEFAULT
    return language


def _read(value: str | None) -> str:
    """The language that a policy states; a later version may know more of them."""
    language = DEFAULT if value is None else msgspec.json.decode(value)
    return language if language in LANGUAGES else DEFAULT


def state_language(ns: Namespace, language: str) -> None:
    """States the language of a namespace's texts; InputError names those there are rules for."""
    if language not in LANGUAGES:
        raise InputError(f"there are no rules for the language {language!r}; choose one of {', '.join(LANGUAGES)}")
    ns.follow()
    if language == ns.language:
        return

    def write(batch: Batch) -> None:
        value = batch.cell(msgspec.json.encode(language))
        batch.add(NamespacePolicy(PolicySubject.LANGUAGE, batch.cell(NAME.encode()), value))

    system_session.append(ns, write)


_CHARTER = "SELECT session, position FROM sessions WHERE hidden = ? ORDER BY session LIMIT 1"
