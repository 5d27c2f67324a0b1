"""The index of a store: the language that its texts are read by, and their vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vmstore.errors import InputError
from vmstore.namespace.reports import EmbeddingReport
from vmstore.store.host import StoreHost
from vmstore.views.projection import Progress


class SearchIndex:
    """The index that a search looks in: `store.index`."""

    def __init__(self, store: StoreHost) -> None:
        self._store = store
        self._ns = store._ns

    def language(self, session: str | None = None) -> str:
        """The code of the language by whose rules a search takes texts apart; `en` until another is stated.

        With a session that of its texts: the one stated for it or its parent, else that of all.
        """
        with self._ns.asking():
            languages = self._ns.languages
            return languages.default if session is None else languages.of(self._key(session))

    def languages(self) -> dict[str, str]:
        """The sessions for which a language of their own is stated, and which."""
        with self._ns.asking():
            return dict(self._ns.languages.stated)

    def set_language(self, language: str, session: str | None = None) -> None:
        """States the language the texts are in, for every moment; the text index is rebuilt when it is next used.

        With a session that of its texts and its forks'. A search over sessions of several languages reads each text
        by the rules of its own. InputError names the languages there are rules for.
        """
        from vmstore.namespace.language import state_language

        if session is not None:
            self._key(session)
        state_language(self._ns, language, session)

    def _key(self, session: str) -> int:
        return int(self._store.session(session)._key)

    def embed(
        self, sessions: str | Iterable[str] | None = None, *, inherited: bool = False, batch: int = 64,
        quantisation: str = "int8", limit: int | None = None, timeout_s: float = 120.0,
        progress: Progress | None = None,
    ) -> EmbeddingReport:  # fmt: skip
        """Asks the embedder about every text that has no vector of it yet, `batch` chunks at a time, and logs them.

        Of all sessions, or of those named; with `inherited` also what a fork has of its past. It can be stopped and
        resumes where it was; each question may take `timeout_s`. Vectors are kept as `int8` or `float16`. What the
        embedder does wrong is in the report. InputError where no embedder was handed in.
        """
        from vmstore.maintenance.embeddings import EmbeddingRun, sessions_to_embed

        if (embedder := self._ns.embedder) is None:
            raise InputError(
                "no embedder was handed in: set `store.embedder`; see specs/embeddings.md", code="no-embedder"
            )
        run_options: dict[str, Any] = {"batch": batch, "quantisation": quantisation, "timeout_s": timeout_s}
        run = EmbeddingRun(self._ns, embedder, progress=progress, **run_options)
        return run.over(sessions_to_embed(self._store, sessions), inherited=inherited, limit=limit)
