"""States the language of a namespace's texts, or of a session's, in the namespace's own session."""

from __future__ import annotations

import msgspec

from vmstore.core.mutation import NamespacePolicy
from vmstore.core.namespace_policy import PolicySubject
from vmstore.engine.batch import Batch
from vmstore.errors import InputError
from vmstore.namespace import system_session
from vmstore.namespace.namespace import Namespace
from vmstore.relevance.words import LANGUAGES
from vmstore.views.reads.system_entries import OF_SESSION

NAME = "texts"  # what the policy of a namespace is about


def state_language(ns: Namespace, language: str, session: str | None = None) -> None:
    """States the language of all texts, or of those of a session and its forks.

    InputError names the languages there are rules for.
    """
    if language not in LANGUAGES:
        raise InputError(
            f"there are no rules for the language {language!r:.60}; choose one of {', '.join(LANGUAGES)}",
            code="no-language",
        )
    ns.follow()
    languages = ns.languages
    if (languages.default if session is None else dict(languages.stated).get(session)) == language:
        return

    def write(batch: Batch) -> None:
        name = NAME if session is None else f"{OF_SESSION}{session}"
        value = batch.cell(msgspec.json.encode(language))
        batch.add(NamespacePolicy(PolicySubject.LANGUAGE, batch.cell(name.encode()), value))

    system_session.append(ns, write)
