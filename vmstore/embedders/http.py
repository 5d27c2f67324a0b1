"""An embedder behind an address: any server that answers `POST /embeddings` as OpenAI's does.

Address, model and key come from the caller; nothing is read from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from vmstore.embedders.http_client import ATTEMPTS, TIMEOUT_S, HttpClient, Wait
from vmstore.errors import EmbedderError, InputError

TEXTS_MAX = 256  # of one request


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int = -1


class _Answer(msgspec.Struct):
    data: list[_Row]


class HttpEmbedder:
    """Asks `base_url` + "/embeddings" for the vectors of texts.

    `dimension` is sent only where it is given; else the first answer tells it. `name` is what the log calls the
    model, the model's own name unless it is given. Threads may share one.
    """

    def __init__(
        self, base_url: str, model: str, *, api_key: str | None = None, dimension: int | None = None,
        name: str | None = None, timeout_s: float = TIMEOUT_S, attempts: int = ATTEMPTS, texts_max: int = TEXTS_MAX,
        headers: Mapping[str, str] | None = None, wait: Wait | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(model, str) or not model:
            raise InputError(f"model {model!r:.40} is no name; give the one the server knows")
        if timeout_s <= 0 or attempts < 1 or texts_max < 1:
            raise InputError("timeout_s, attempts and texts_max are greater than 0")
        key = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._client = HttpClient(
            base_url, "/embeddings", EmbedderError, headers={**(headers or {}), **key}, secret=api_key,
            timeout_s=timeout_s, attempts=attempts, wait=wait,
        )  # fmt: skip
        self.name = name or model
        self.dimension = dimension
        self._model, self._asks_dimension, self._texts_max = model, dimension is not None, texts_max

    def __repr__(self) -> str:
        return f"HttpEmbedder({self._client.host!r}, {self._model!r})"

    def embed(self, texts: list[str]) -> list[list[float]]:
        """One vector a text, in order; EmbedderError where the server does not give them."""
        found: list[list[float]] = []
        for start in range(0, len(texts), self._texts_max):
            found += self._some(texts[start : start + self._texts_max])
        if found and self.dimension is None:
            self.dimension = len(found[0])
        return found

    def close(self) -> None:
        """Lets go of the connections that are kept."""
        self._client.close()

    def _some(self, texts: list[str]) -> list[list[float]]:
        asked = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asks_dimension:
            asked["dimensions"] = self.dimension  # type: ignore[assignment]
        answer = self._client.asked(msgspec.json.encode(asked))
        try:
            rows = msgspec.json.decode(answer, type=_Answer).data
        except (msgspec.DecodeError, RecursionError) as error:
            raise EmbedderError(
                f"{self._client.host} answered what holds no embeddings ({error})", code="not-embeddings"
            ) from error
        if sorted(row.index for row in rows) == list(range(len(rows))):
            rows.sort(key=lambda row: row.index)
        return [row.embedding for row in rows]
