"""Stands before the server: who asks, by a token in a header or a cookie, never in an address.

Where there is a file of tokens each request is of its bearer; without one the server is of this machine
alone, and everybody on it may ask. What a probe asks for tells nothing and needs no token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from urllib.parse import parse_qsl

from vmstore.debug.guard import App, Guard, Message, Receive, Scope, Send, ServerAddress, cookie_of
from vmstore.debug.http_errors import HttpError
from vmstore.errors import InputError
from vmstore.serve.tokens import AccessToken, TokenFile

BEARER = "vmstore.token"  # where in a request's scope the application finds who asks
PROBES = ("/health", "/ready")
LOGIN = "/login"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
EVERYBODY = AccessToken("this machine", "unmasked", "", 0)


class TeamGuard(Guard):
    """Lets in who has a token, and says to the application whose it is."""

    METHODS: ClassVar[tuple[str, ...]] = ("GET", "HEAD", "POST")
    WHY_NOT_OTHERS: ClassVar[str] = "there is nothing to put, patch or delete here"
    CHALLENGE: ClassVar[list[tuple[bytes, bytes]]] = [(b"www-authenticate", b"Bearer")]

    def __init__(
        self,
        app: App,
        door: ServerAddress,
        tokens: TokenFile | None,
        *,
        open_paths: tuple[str, ...] = (),
        on_refusal: Callable[[Exception], None],
    ) -> None:
        super().__init__(app, door, POLICY)
        self._tokens = tokens
        self._open_paths = (LOGIN, *PROBES, *open_paths)
        self._on_refusal = on_refusal

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        """Raises HttpError where a request is none of ours; a probe comes by whatever name it knows."""
        if scope["path"] in PROBES and scope["method"] in ("GET", "HEAD"):
            return
        try:
            super()._check(scope, headers)
        except HttpError as refusal:
            self._on_refusal(refusal)
            raise

    def _admit(self, scope: Scope, headers: dict[str, str]) -> None:
        """Finds who asks; raises HttpError where nobody with a token does."""
        try:
            scope[BEARER] = self._bearer(scope, headers)
        except HttpError as refusal:
            self._on_refusal(refusal)
            raise

    def _bearer(self, scope: Scope, headers: dict[str, str]) -> AccessToken | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name in ("token", "access_token") for name, _ in query):
            raise HttpError(
                400,
                "a token stands in the address, where it is logged on its way",
                "send it in the header: Authorization: Bearer TOKEN; and revoke this one",
            )
        if self._tokens is None:
            return EVERYBODY
        scheme, _, given = headers.get("authorization", "").partition(" ")
        given = given.strip() if scheme.lower() == "bearer" else cookie_of(headers, self._door.cookie)
        try:
            found = self._tokens.bearer(given) if given else None
        except InputError as error:
            self._on_refusal(error)
            if scope["path"] in PROBES:
                return None
            raise HttpError(
                503, "the server cannot read its file of tokens", "who runs it finds the reason in its output"
            ) from error
        if found is None and scope["path"] not in self._open_paths:
            remedy = "send one: Authorization: Bearer TOKEN; or open /login"
            raise HttpError(401, "this server asks for a token", remedy)
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request; a browser that has no token is shown where to give one."""
        headers = {name.lower(): value for name, value in scope.get("headers", ())}
        asks = scope["type"] == "http" and scope["method"] == "GET" and b"text/html" in headers.get(b"accept", b"")

        async def shown(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 401:
                kept = [header for header in message["headers"] if not header[0].startswith(b"content-le")]
                message = {**message, "status": 303, "headers": [*kept, (b"location", LOGIN.encode())]}
            await send(message)

        await super().__call__(scope, receive, shown if asks else send)
