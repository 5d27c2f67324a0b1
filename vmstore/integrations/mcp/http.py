"""The MCP server over streamable HTTP, for this machine alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import ClassVar

from mcp.server.transport_security import TransportSecuritySettings

from vmstore.core.system.sockets import listening
from vmstore.debug.guard import App, Guard, Message, Receive, Scope, Send, ServerAddress, same_token
from vmstore.debug.http_errors import HttpError, body
from vmstore.debug.serve import HttpServer
from vmstore.integrations.mcp.server import MemoryServer

HOST = "127.0.0.1"
PORT = 7118
PATH = "/mcp"
BODY_BYTES_MAX = 16 << 20
DRAINED_BYTES_MAX = 1 << 30  # of a body that is refused: its sender reads no answer before all is sent
POLICY = "default-src 'none'; frame-ancestors 'none'"


class TokenGuard(Guard):
    """Lets in programs of this machine, with the token where there is one: in a header, never in an address."""

    METHODS: ClassVar[tuple[str, ...]] = ("POST", "GET", "DELETE")
    WHY_NOT_OTHERS: ClassVar[str] = "the protocol has no such method"
    CHALLENGE: ClassVar[list[tuple[bytes, bytes]]] = [(b"www-authenticate", b"Bearer")]

    def _admit(self, scope: Scope, headers: dict[str, str]) -> None:
        """Checks the token, where one is needed, and that nothing stands in the address that might be one."""
        if scope["query_string"]:
            raise HttpError(
                400,
                "the address has a query, and this server takes none: an address is logged on its way",
                "send a token in the header: Authorization: Bearer TOKEN",
            )
        token = self._door.token
        if token is None:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not same_token([given.strip()], token):
            raise HttpError(
                401, "this server asks for its token", "send the one in its file: Authorization: Bearer TOKEN"
            )


class LargeBodies:
    """Answers those who send too much in words, once all is sent: who still sends would see a broken connection."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        taken, is_whole, is_refused = 0, scope["type"] != "http", False

        async def counted() -> Message:
            nonlocal taken, is_whole
            message = await receive()
            taken += len(message.get("body", b""))
            is_whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] == 413:
                is_refused = True
                expects = any(name == b"expect" for name, _ in scope["headers"])
                while not is_whole and not expects and taken < DRAINED_BYTES_MAX:
                    await counted()
            if is_refused:
                message = _too_large(message)
            await send(message)

        await self._app(scope, counted, answer)


def mcp_http(server: MemoryServer, port: int | None = None, token: str | None = None) -> HttpServer:
    """A server that has its port, by default 7118, and answers once it is run; `token` is what a request must carry."""

    def application(door: ServerAddress, _: Callable[[], bool]) -> App:
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=BODY_BYTES_MAX,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard's
        )
        return TokenGuard(LargeBodies(app), door, POLICY)

    return HttpServer(application, listening(HOST, PORT if port is None else port), HOST, token, lifespan="on")


def _too_large(message: Message) -> Message:
    """The answer to a body over the limit, or the part of it that a message is."""
    content = json.dumps(
        body(f"the body is larger than {BODY_BYTES_MAX >> 20} MiB", "send it in parts: fewer messages a call")
    ).encode()
    if message["type"] == "http.response.start":
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        return {"type": "http.response.start", "status": 413, "headers": headers}
    return {"type": "http.response.body", "body": content}
