"""Stands before the application: who may ask, how, and what every answer says to the browser.

A page of another site may not read from here (Origin, Referer, Sec-Fetch-Site), nor reach it under
a name of its own (Host); nothing may be written (any method but GET and HEAD); where others than
this machine can reach it, every request carries the token.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from vmstore.debug.http_errors import HttpError, body

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
ANY_HOST = ("0.0.0.0", "::")
DEFAULT_PORTS = {"http": "80", "https": "443"}
TARGET_BYTES_MAX = 32 << 10  # of path and query
OUR_SITE = ("same-origin", "none")  # none: typed, or opened from a program


class ServerAddress(NamedTuple):
    """Where the server listens: the host it was given, its port, and the token a request must carry, if any.

    `scheme` is https where it has a certificate; `public` is the address that others know it by, where another
    server stands before it.
    """

    host: str
    port: int
    token: str | None = None
    scheme: str = "http"
    public: str | None = None

    @property
    def url(self) -> str:
        """The address to open, token included."""
        host = "127.0.0.1" if self.host in ANY_HOST else f"[{self.host}]" if ":" in self.host else self.host
        query = "" if self.token is None else "?" + urlencode({"token": self.token})
        return f"{self.scheme}://{host}:{self.port}/{query}"

    @property
    def cookie(self) -> str:
        """The cookie's name: cookies of one host are shared among ports."""
        return f"vmstore-{self.port}"

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server."""
        if self.public is not None and host.lower() == urlsplit(self.public).netloc:
            return True
        name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
        if (port or DEFAULT_PORTS[self.scheme]) != str(self.port):
            return False
        name = name.lower()
        own = f"[{self.host}]" if ":" in self.host else self.host
        return name in (*LOOPBACK, own.lower()) or (self.host in ANY_HOST and _is_address(name))

    def is_own(self, address: str) -> bool:
        """Whether an Origin or a Referer is of this server."""
        try:
            found = urlsplit(address)
        except ValueError:
            return False
        if "@" in found.netloc or not self.is_ours(found.netloc):
            return False
        return found.scheme == self.scheme or (self.public is not None and found.scheme == urlsplit(self.public).scheme)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    """Whether a name is an address: no other site can have one resolved to us."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """Lets in who may ask, and puts the headers on every answer."""

    METHODS: ClassVar[tuple[str, ...]] = ("GET", "HEAD")
    WHY_NOT_OTHERS: ClassVar[str] = "nothing is written here"
    CHALLENGE: ClassVar[list[tuple[bytes, bytes]]] = []  # said to one who has no token

    def __init__(self, app: App, door: ServerAddress, policy: str) -> None:
        self._app = app
        self._door = door
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-frame-options", b"DENY"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or refuses it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [*message.get("headers", ())]
                said = {name.lower() for name, _ in own}
                message["headers"] = [*own, *(header for header in self._headers if header[0] not in said)]
            await send(message)

        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check(scope, headers)
            shown = self._admit(scope, headers)
        except HttpError as refusal:
            extra = [(b"allow", ", ".join(self.METHODS).encode())] if refusal.status == 405 else []
            extra += self.CHALLENGE if refusal.status == 401 else []
            await answer(guarded, refusal.status, body(refusal.reason, refusal.remedy), extra)
            return
        if shown is not None:  # the token was in the address: from now on it is in a cookie
            cookie = f"{self._door.cookie}={self._door.token}; Path=/; HttpOnly; SameSite=Strict"
            await answer(guarded, 303, None, [(b"location", shown.encode()), (b"set-cookie", cookie.encode())])
            return
        await self._app(scope, receive, guarded)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        """Raises TurnedAwayError where a request is none of ours."""
        hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) != 1 or not self._door.is_ours(headers["host"]):
            own = self._door._replace(token=None).url
            raise HttpError(403, "this server goes by another name", f"open {own}")
        foreign: list[str] = [
            name for name in ("origin", "referer") if name in headers and not self._door.is_own(headers[name])
        ]
        foreign += ["sec-fetch-site"] * (headers.get("sec-fetch-site", "none") not in OUR_SITE)
        if foreign:
            raise HttpError(403, f"a page of another site asks ({foreign[0]})", "only pages of this server may ask it")
        if scope["method"] not in self.METHODS:
            raise HttpError(
                405, f"{scope['method'][:20]} is refused: {self.WHY_NOT_OTHERS}", f"ask with {self.METHODS[0]}"
            )
        if "upgrade" in headers or "http2-settings" in headers:
            raise HttpError(400, "there is no other protocol to change to", "listen at /api/live")
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > TARGET_BYTES_MAX:
            raise HttpError(414, f"the address is longer than {TARGET_BYTES_MAX >> 10} KiB", "ask in parts")

    def _admit(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """Checks the token, where one is needed; the address without it, where a page was asked for with it."""
        token = self._door.token
        if token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == "token"]
        if not same_token(tokens or [cookie_of(headers, self._door.cookie)], token):
            raise HttpError(
                401, "this debugger is open to other machines and asks for its token", "use the address it printed"
            )
        if tokens and scope["path"] == "/":
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            return f"/?{rest}" if rest else "/"
        return None


def same_token(given: Iterable[str], token: str) -> bool:
    return all(hmac.compare_digest(candidate.encode("utf-8", "replace"), token.encode()) for candidate in given)


def cookie_of(headers: dict[str, str], name: str) -> str:
    """The value of a cookie; empty where there is none."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def answer(send: Send, status: int, value: Any, headers: list[tuple[bytes, bytes]]) -> None:
    """Sends a value as JSON, None as nothing."""
    content = b"" if value is None else json.dumps(value).encode()
    headers_sent = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers_sent})
    await send({"type": "http.response.body", "body": content})
