"""An embedder behind an address: any server that answers `POST /embeddings` as OpenAI's does.

Address, model and key come from the caller; nothing is read from the environment. Connections are kept and used
again, each question is bounded in time, and what may pass is tried again after a pause.
"""

from __future__ import annotations

import http.client
import math
import threading
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from vmstore.errors import EmbedderError, InputError

TIMEOUT_S = 30.0
ATTEMPTS = 3
PAUSE_S, PAUSE_S_MAX = 0.5, 20.0  # before the second attempt, and twice that before the next; of what a server asks for
PASSING = frozenset((408, 409, 425, 429, 500, 502, 503, 504))  # answers that another attempt may better
ANSWER_BYTES_MAX = 256 << 20
TEXTS_MAX = 256  # of one request
SAID_CHARS_MAX = 200


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int = -1


class _Answer(msgspec.Struct):
    data: list[_Row]


class HttpReply(NamedTuple):
    """What a server answered: status, body, and how long it asks to be left alone."""

    status: int
    body: bytes
    pause_s: float = 0.0


class Wait(Protocol):
    """Waits some seconds."""

    def __call__(self, seconds: float, /) -> object: ...


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
        address = urlsplit(base_url if isinstance(base_url, str) else "")
        if address.scheme not in ("http", "https") or not address.hostname or address.username or address.query:
            raise InputError(f"{base_url!r:.80} is no address of embeddings; give one like https://host/v1")
        if not isinstance(model, str) or not model:
            raise InputError(f"model {model!r:.40} is no name; give the one the server knows")
        if timeout_s <= 0 or attempts < 1 or texts_max < 1:
            raise InputError("timeout_s, attempts and texts_max are greater than 0")
        self.name = name or model
        self.dimension = dimension
        self._model, self._asks_dimension = model, dimension is not None
        self._key, self._attempts, self._texts_max = api_key, attempts, texts_max
        self._timeout_s = timeout_s
        self._secure, self._host, self._port = address.scheme == "https", address.hostname, address.port
        self._path = address.path.rstrip("/") + "/embeddings"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._wait: Wait = wait or threading.Event().wait

    def __repr__(self) -> str:
        return f"HttpEmbedder({self._host!r}, {self._model!r})"

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
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _some(self, texts: list[str]) -> list[list[float]]:
        asked = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asks_dimension:
            asked["dimensions"] = self.dimension  # type: ignore[assignment]
        body = msgspec.json.encode(asked)
        reply = self._asked(body)
        if reply.status != 200:
            raise EmbedderError(f"{self._host} answered {reply.status}: {self._said(reply.body)}")
        try:
            rows = msgspec.json.decode(reply.body, type=_Answer).data
        except (msgspec.DecodeError, RecursionError) as error:
            raise EmbedderError(f"{self._host} answered what holds no embeddings ({error})") from error
        if sorted(row.index for row in rows) == list(range(len(rows))):
            rows.sort(key=lambda row: row.index)
        return [row.embedding for row in rows]

    def _asked(self, body: bytes) -> HttpReply:
        """The last answer of some attempts; raises where none came."""
        for attempt in range(1, self._attempts + 1):
            pause = PAUSE_S * 2 ** (attempt - 1)
            try:
                reply = self._reply(body)
                if reply.status not in PASSING or attempt == self._attempts:
                    return reply
                pause = max(pause, min(reply.pause_s, PAUSE_S_MAX))
            except (OSError, http.client.HTTPException) as error:
                if attempt == self._attempts:
                    times = "once" if attempt == 1 else f"{attempt} times"
                    raise EmbedderError(f"{self._host} could not be asked ({error!r:.120}), tried {times}") from error
            self._wait(pause)
        raise AssertionError("the last attempt answers or raises")

    def _reply(self, body: bytes) -> HttpReply:
        with self._lock:
            kept = self._idle.pop() if self._idle else None
        if kept is not None:
            try:
                return self._over(kept, body)
            except (http.client.RemoteDisconnected, ConnectionError):
                pass  # the server had closed it meanwhile
        return self._over(self._connection(), body)

    def _connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host or "", self._port, timeout=self._timeout_s)

    def _over(self, connection: http.client.HTTPConnection, body: bytes) -> HttpReply:
        try:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            content = answer.read(ANSWER_BYTES_MAX + 1)
            if len(content) > ANSWER_BYTES_MAX:
                raise EmbedderError(f"{self._host} answered with more than {ANSWER_BYTES_MAX:,} bytes")
            reply = HttpReply(answer.status, content, _seconds(answer.headers.get("Retry-After")))
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        return reply

    def _said(self, body: bytes) -> str:
        """What a server says of a failure, without the key, should it repeat that."""
        said = " ".join(body[: 4 * SAID_CHARS_MAX].decode("utf-8", "replace").split())
        return (said.replace(self._key, "…") if self._key else said)[:SAID_CHARS_MAX]


def _seconds(told: str | None) -> float:
    try:
        seconds = float(told or 0)
    except ValueError:  # a date: the pause of the attempt will do
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
