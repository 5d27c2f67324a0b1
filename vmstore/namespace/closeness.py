"""Asks the embedder about the words of a search, and says how close texts are to them, or why nobody can say."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol

from vmstore.core.clock import Clock
from vmstore.embedders.embedder import QUERY_TIMEOUT_S, Embedder, vectors_of
from vmstore.errors import EmbedderError
from vmstore.redact.find import spans
from vmstore.views.branch import Branch

if TYPE_CHECKING:
    from vmstore.log.port import Log
    from vmstore.relevance.closeness import Closeness, RowVectors
    from vmstore.search.vectors import PlacedTexts, VectorTable
    from vmstore.views.projection import Projection

KEPT = 64  # questions whose vectors are remembered
SILENCE_US = 30_000_000  # after a failure nobody waits for the embedder again so soon
CHARS_MAX = 4_000  # of a question that are embedded


class QuestionVector(NamedTuple):
    """The vector of a question; or, without one, why there is none, which is noted beside the answer."""

    numbers: Sequence[float] | None
    model: str
    note: str | None = None


def unsecret(text: str) -> str:
    """A text with what is secret in it left out."""
    kept, at = [], 0
    for secret in spans(text):
        kept += [text[at : secret.start], "[secret]"]
        at = secret.end
    return "".join([*kept, text[at:]])


class ClosenessHost(Protocol):
    """A namespace as far as this asks it."""

    clock: Clock
    embedder: Embedder | None

    @property
    def log(self) -> Log:
        """The log."""
        ...

    @property
    def projection(self) -> Projection:
        """The views."""
        ...


class MomentCloseness:
    """The vectors of a namespace, asked of moments; and those of what was asked last."""

    def __init__(self, ns: ClosenessHost) -> None:
        self._ns = ns
        self._asked: dict[tuple[str, str], list[float]] = {}
        # By embedder, which is held so that no other has its place: until when it is not asked, and why.
        self._silent: dict[int, tuple[Embedder, int, str]] = {}
        self._table: VectorTable | None = None
        self._last: tuple[object, RowVectors] | None = None

    def question(self, words: str) -> QuestionVector | None:
        """The vector of a question; None where no embedder was handed in. Never raises for what an embedder does.

        Ask before the views are held: an embedder may take its time.
        """
        embedder = self._ns.embedder
        if embedder is None:
            return None
        if find_spec("numpy") is None:
            return QuestionVector(None, embedder.name, "vectors need numpy (the extra search): answered by words alone")
        text = unsecret(words[:CHARS_MAX])
        found = self._asked.get((embedder.name, text))
        if found is not None:
            return QuestionVector(found, embedder.name)
        _, until, why = self._silent.get(id(embedder), (embedder, 0, ""))
        if self._ns.clock.now() < until:
            return QuestionVector(None, embedder.name, f"{why}: answered by words alone")
        try:
            found = vectors_of(embedder, [text], QUERY_TIMEOUT_S)[0]
        except EmbedderError as error:
            self._silent[id(embedder)] = embedder, self._ns.clock.now() + SILENCE_US, str(error)
            return QuestionVector(None, embedder.name, f"{error}: answered by words alone")
        while len(self._asked) >= KEPT:
            self._asked.pop(next(iter(self._asked)))
        self._asked[embedder.name, text] = found
        return QuestionVector(found, embedder.name)

    def of(
        self, asked: QuestionVector | None, moments: Sequence[tuple[Branch, int]], texts: PlacedTexts
    ) -> tuple[Closeness | None, str | None]:
        """How close texts at some moments are to a question, and a note for the answer.

        Within one moment of the namespace.
        """
        if asked is None or asked.numbers is None:
            return None, None if asked is None else asked.note
        from vmstore.search.vectors import VectorTable

        projection = self._ns.projection
        if self._table is None:
            self._table = VectorTable(self._ns.log, projection.db)
        ordinal, erased = projection.ordinal, projection.last_erasure
        found = self._table.of(asked.model, len(asked.numbers), ordinal, erased)
        key = (asked.model, ordinal, erased, [lane.upto(position) for lane, position in moments])
        if self._last is None or self._last[0] != key:
            self._last = key, found.at(moments, texts)
        vectors = self._last[1]
        if not vectors.embedded:
            return None, self._without(asked.model, len(asked.numbers))
        closeness = vectors.to(asked.numbers)
        return closeness, closeness.coverage if vectors.embedded < vectors.count else None

    def _without(self, model: str, dimension: int) -> str:
        """Says what keeps the texts of a moment from being close to a question of a model."""
        other = self._ns.projection.db.execute(_DIMENSION, (model, dimension)).get
        if other is None:
            return f"no text here has a vector of {model} yet (`vmstore embed`): answered by words alone"
        return (
            f"the embedder {model!r} answered with {dimension} numbers, and vectors here have {other}; another model"
            " has another name: answered by words alone"
        )

    def forget(self) -> None:
        """Drops every vector and question."""
        self._table = self._last = None
        self._asked.clear()


_DIMENSION = "SELECT dimension FROM vectors WHERE model = ? AND dimension <> ? LIMIT 1"
