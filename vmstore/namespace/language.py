"""States the language of a namespace's texts in the namespace's own session."""

from __future__ import annotations

import msgspec

from vmstore.core.mutation import NamespacePolicy
from vmstore.core.namespace_policy import PolicySubject
from vmstore.engine.batch import Batch
from vmstore.errors import InputError
from vmstore.namespace import system_session
from vmstore.namespace.namespace import Namespace
from vmstore.relevance.words import LANGUAGES

NAME = "texts"  # what the policy is about; one day another may be about another part of a namespace


def state_language(ns: Namespace, language: str) -> None:
    """States the language of a namespace's texts; InputError names those there are rules for."""
    if language not in LANGUAGES:
        raise InputError(
            f"there are no rules for the language {language!r}; choose one of {', '.join(LANGUAGES)}",
            code="no-language",
        )
    ns.follow()
    if language == ns.language:
        return

    def write(batch: Batch) -> None:
        value = batch.cell(msgspec.json.encode(language))
        batch.add(NamespacePolicy(PolicySubject.LANGUAGE, batch.cell(NAME.encode()), value))

    system_session.append(ns, write)
