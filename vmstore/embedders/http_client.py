"""Questions to a server over HTTP: connections are kept and used again, and what may pass is tried again.

Each question is bounded in time; before another attempt there is a pause, twice as long each time. Threads may share
one client. Nothing is read from the environment.
"""

from __future__ import annotations

import http.client
import math
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from vmstore.errors import InputError, VmstoreError

TIMEOUT_S = 30.0
ATTEMPTS = 3
CONNECT_S = 10.0  # to reach the server of a stream, which may then think for long
PAUSE_S, PAUSE_S_MAX = 0.5, 20.0  # before the second attempt, and twice that before the next; of what a server asks for
PASSING = frozenset((408, 409, 425, 429, 500, 502, 503, 504))  # answers that another attempt may better
ANSWER_BYTES_MAX = 256 << 20
SAID_CHARS_MAX = 200


class HttpReply(NamedTuple):
    """A server's reply: status, body, and the pause it asks for."""

    status: int
    body: bytes
    pause_s: float = 0.0


class Wait(Protocol):
    """Waits some seconds."""

    def __call__(self, seconds: float, /) -> object: ...


class HttpClient:
    """Posts to `base_url` + `path`; what fails raises `failure`. `secret` is never repeated in what is said of it."""

    def __init__(
        self, base_url: str, path: str, failure: type[VmstoreError], *, headers: Mapping[str, str] | None = None,
        secret: str | None = None, timeout_s: float = TIMEOUT_S, attempts: int = ATTEMPTS, wait: Wait | None = None,
    ) -> None:  # fmt: skip
        address = urlsplit(base_url if isinstance(base_url, str) else "")
        if address.scheme not in ("http", "https") or not address.hostname or address.username or address.query:
            raise InputError(f"{base_url!r:.80} is no address of {path[1:]}; give one like https://host/v1")
        if timeout_s <= 0 or attempts < 1:
            raise InputError("timeout_s and attempts are greater than 0")
        self.host: str = address.hostname
        self._secure, self._port = address.scheme == "https", address.port
        self._path = address.path.rstrip("/") + path
        self._failure, self._secret = failure, secret
        self._timeout_s, self._attempts = timeout_s, attempts
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._wait: Wait = wait or threading.Event().wait
        self._streams: set[socket.socket] = set()

    def close(self) -> None:
        """Lets go of the connections that are kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def asked(self, body: bytes) -> bytes:
        """The body of the server's 200 reply; raises for any other."""
        reply = self._asked(body)
        if reply.status != 200:
            raise self._refused(reply.status, reply.body)
        return reply.body

    @contextmanager
    def streaming(self, body: bytes, stopped: threading.Event) -> Iterator[http.client.HTTPResponse]:
        """The server's 200 reply while it comes, over a connection of its own; raises for any other.

        Only what fails before the reply begins is tried again. Another thread ends it: it sets `stopped`, which keeps
        a connection under way from being used, and then calls `hang_up`.
        """
        connection, stream, answer = self._begun(body, stopped)
        try:
            yield answer
        finally:
            self._let_go(connection, stream)

    def _begun(
        self, body: bytes, stopped: threading.Event
    ) -> tuple[http.client.HTTPConnection, socket.socket, http.client.HTTPResponse]:
        """A reply with status 200 that is not read yet, its connection, and the socket of that."""
        for attempt in range(1, self._attempts + 1):
            connection, pause = self._connection(), PAUSE_S * 2 ** (attempt - 1)
            stream: socket.socket | None = None
            try:
                connection.timeout = min(self._timeout_s, CONNECT_S)
                connection.connect()
                stream = connection.sock  # which the connection forgets where the server closes it
                stream.settimeout(self._timeout_s)
                self._streams.add(stream)
                if stopped.is_set():
                    raise ConnectionAbortedError("hung up")
                connection.request("POST", self._path, body, self._headers)
                answer = connection.getresponse()
                if answer.status == 200:
                    return connection, stream, answer
                if answer.status not in PASSING or attempt == self._attempts:
                    raise self._refused(answer.status, answer.read(4 * SAID_CHARS_MAX))
                pause = max(pause, min(_seconds(answer.headers.get("Retry-After")), PAUSE_S_MAX))
            except (OSError, http.client.HTTPException) as error:
                self._let_go(connection, stream)
                if attempt == self._attempts or stopped.is_set():
                    raise self._unreached(error, attempt) from error
            except BaseException:
                self._let_go(connection, stream)
                raise
            else:
                self._let_go(connection, stream)
            self._wait(pause)
        raise AssertionError("the last attempt answers or raises")

    def _let_go(self, connection: http.client.HTTPConnection, stream: socket.socket | None) -> None:
        if stream is not None:
            self._streams.discard(stream)
        connection.close()

    def hang_up(self) -> None:
        """Ends every stream that is being read, whichever thread reads it."""
        for stream in list(self._streams):
            with suppress(OSError):
                socket.socket.shutdown(stream, socket.SHUT_RDWR)  # below TLS, whose reader has to see an end

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
                    raise self._unreached(error, attempt) from error
            self._wait(pause)
        raise AssertionError("the last attempt answers or raises")

    def _refused(self, status: int, body: bytes) -> VmstoreError:
        return self._failure(f"{self.host} answered {status}: {self._said(body)}", code="answered-an-error")

    def _unreached(self, error: Exception, attempts: int) -> VmstoreError:
        times = "once" if attempts == 1 else f"{attempts} times"
        return self._failure(f"{self.host} could not be asked ({error!r:.120}), tried {times}", code="not-reached")

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
        return kind(self.host, self._port, timeout=self._timeout_s)

    def _over(self, connection: http.client.HTTPConnection, body: bytes) -> HttpReply:
        try:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            content = answer.read(ANSWER_BYTES_MAX + 1)
            if len(content) > ANSWER_BYTES_MAX:
                raise self._failure(f"{self.host} answered with more than {ANSWER_BYTES_MAX:,} bytes")
            reply = HttpReply(answer.status, content, _seconds(answer.headers.get("Retry-After")))
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        return reply

    def _said(self, body: bytes) -> str:
        """The server's description of a failure, with the key removed should it repeat that."""
        said = " ".join(body[: 4 * SAID_CHARS_MAX].decode("utf-8", "replace").split())
        return (said.replace(self._secret, "…") if self._secret else said)[:SAID_CHARS_MAX]


def _seconds(header: str | None) -> float:
    try:
        seconds = float(header or 0)
    except ValueError:  # a date: the pause of the attempt will do
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
