"""Whether redaction is lifted for what is about to leave."""

from __future__ import annotations

from collections.abc import Iterable

from vmstore.core.redaction import Artifact
from vmstore.errors import UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.views.projectors.redactions import approved


def lifted(ns: Namespace, sessions: Iterable[int], artifact: str) -> list[str]:
    """Who lifted redaction for a kind of export of all these sessions; empty where one of them is not approved."""
    found = []
    for key in sessions:
        word = approved(ns.views, key, artifact_of(artifact), ns.clock.now())
        if word is None:
            return []
        found.append(word.who or "somebody")
    return list(dict.fromkeys(found))


def artifact_of(word: str) -> Artifact:
    """A kind of export by its word; UnknownError naming those there are."""
    found = Artifact.of(word) if isinstance(word, str) else None
    if found is None:
        words = ", ".join(one.word for one in Artifact)
        raise UnknownError(f"there is no artifact {word!r:.40}; there are {words}")
    return Artifact(found)
