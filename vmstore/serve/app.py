"""The web application: probes, figures, the login, and under each namespace the debugger's page with its API.

A token that does not reach a namespace is answered as if there were none of that name.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import IO, Annotated, Any, Literal
from urllib.parse import parse_qs, quote

import apsw
import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from vmstore.core.clock import Stopwatch
from vmstore.core.text.prometheus import CONTENT_TYPE
from vmstore.debug.api import QUERY_S
from vmstore.debug.app import JSON
from vmstore.debug.guard import App, ServerAddress
from vmstore.debug.http_errors import HttpError, refused
from vmstore.debug.json_bytes import encoded
from vmstore.debug.params import QueryParams
from vmstore.debug.sse import grown
from vmstore.errors import InputError, VmstoreError
from vmstore.serve.figures import NOBODY, ServerFigures, code_of
from vmstore.serve.guard import BEARER, EVERYBODY, TeamGuard
from vmstore.serve.login import STYLE, login_page, namespaces_page
from vmstore.serve.namespaces import Answering, Namespaces, OpenNamespace
from vmstore.serve.tokens import AccessToken, TokenFile

BODY_BYTES_MAX = 1 << 20
READY_S = 5.0  # that a store has to answer a probe
ROWS_MAX = 100_000  # of one statement
CHUNK_BYTES = 1 << 16
STREAMS = ("jsonl", "markdown", "chat", "otlp")
COOKIE_S = 30 * 24 * 3600
NAMESPACE, SHOWN = "vmstore.namespace", "vmstore.shown"  # in the scope of a request: of what an error is told
KINDS = ("store", "film", "texts", "request", "search", "vmql", "sweep", "until", "progress", "digests", "complete")


Positive = Annotated[int, msgspec.Meta(ge=1)]


class StatementBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a statement that is asked by POST: its text, the values of its `$names`, and what it may take."""

    query: str
    session: str | None = None
    params: dict[str, Any] = {}
    rows: Positive = 1_000
    timeout_s: Positive = QUERY_S
    memory: Positive | None = None


class TeamApp:
    """Answers about the namespaces of a store to those who may ask."""

    def __init__(
        self,
        namespaces: Namespaces,
        tokens: TokenFile | None,
        door: ServerAddress,
        stopped: Callable[[], bool],
        figures: ServerFigures,
        clock: Stopwatch,
    ) -> None:
        self._namespaces = namespaces
        self._tokens = tokens
        self._door = door
        self._stopped = stopped
        self._figures = figures
        self._clock = clock
        self._probe: asyncio.Task[None] | None = None

    def routes(self) -> Starlette:
        """The routes, and the words of every refusal."""

        async def failed(request: Request, error: Exception) -> Response:
            self._figures.refused(request.scope.get(NAMESPACE, NOBODY), error)
            status, reason = refused(error)
            shown = request.scope.get(SHOWN)
            return Response(
                encoded(reason if shown is None else await run_in_threadpool(shown, reason)), status, media_type=JSON
            )

        routes = [
            Route("/health", _health, methods=["GET"]),
            Route("/ready", self._ready, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/style.css", _style, methods=["GET"]),
            Route("/namespaces", self._names, methods=["GET"]),
            Route("/n/{name}", _with_slash, methods=["GET"]),
            Route("/n/{name}/query", self._asked(self._query), methods=["POST"]),
            Route("/n/{name}/export", self._asked(self._export), methods=["GET"]),
            Route("/n/{name}/api/live", self._live, methods=["GET"]),
            Route("/", self._index, methods=["GET"]),
            Route("/n/{name}/{rest:path}", _PagesRoute(self)),
            Route("/{rest:path}", _nothing, methods=["GET", "POST"]),
        ]
        kinds = (HttpError, VmstoreError, OSError, apsw.Error, Exception)
        return Starlette(routes=routes, exception_handlers=dict.fromkeys(kinds, failed))

    # ---- who may

    def _bearer(self, request: Request | Scope, role: Literal["metrics", "read"] = "read") -> AccessToken:
        """The token of a request; HttpError where it is of a lesser role."""
        scope = request.scope if isinstance(request, Request) else request
        token: AccessToken | None = scope.get(BEARER)
        if token is None or not token.may(role):
            raise HttpError(403, "this token reads figures alone", "ask with one of the role read")
        return token

    def _visible(self, token: AccessToken) -> list[str]:
        return [name for name in self._namespaces.names() if token.reaches(name)]

    async def reached(self, scope: Scope, name: str) -> tuple[OpenNamespace, Answering]:
        """A namespace for who asks, and what answers about it; HttpError where there is none, or none for them."""
        token = self._bearer(scope)
        if name not in await run_in_threadpool(self._visible, token):
            reason = f"there is no namespace {name[:80]!r} for this token"
            raise HttpError(404, reason, "/namespaces lists those there are")
        found = await run_in_threadpool(self._namespaces.get, name)
        answering = found.plain if token.may("unmasked") else found.masked
        scope[NAMESPACE], scope[SHOWN] = name, answering.api.shown
        return found, answering

    # ---- probes and figures

    async def _ready(self, request: Request) -> Response:
        """200 where the store answers within some seconds; else 503, with the reason for who may read it."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.ensure_future(run_in_threadpool(self._namespaces.check))
        try:
            if self._tokens is not None:
                self._tokens.all()
            await asyncio.wait_for(asyncio.shield(self._probe), READY_S)
        except Exception as error:
            self._figures.refused(NOBODY, error)
            code = "slow" if isinstance(error, TimeoutError) else code_of(error)
            words = f"it has not answered for {READY_S:.0f} s" if isinstance(error, TimeoutError) else str(error)
            reason = words if request.scope.get(BEARER) is not None else "the store does not answer"
            return Response(encoded({"error": {"reason": reason, "code": code}}), 503, media_type=JSON)
        return Response(encoded({"status": "ready"}), media_type=JSON)

    async def _metrics(self, request: Request) -> Response:
        token = request.scope.get(BEARER) or EVERYBODY  # the guard lets nobody here unless figures are open

        def counted() -> list[Any]:
            return [figure for name in self._visible(token) for figure in self._namespaces.get(name).figures()]

        text = self._figures.text(await run_in_threadpool(counted), token.reaches)
        return Response(text, headers={"content-type": CONTENT_TYPE})

    # ---- the door

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(login_page())
        fields = parse_qs((await _body(request)).decode("latin-1"))
        given = (fields.get("token") or [""])[0].strip()
        if self._tokens is not None and self._tokens.bearer(given) is None:
            self._figures.refused(NOBODY, HttpError(401, "no token", "ask for one"))
            return HTMLResponse(login_page("That is no token, or no longer one."), 403)
        answer = RedirectResponse("/", 303)
        self._set_cookie(answer, given, COOKIE_S)
        return answer

    async def _logout(self, request: Request) -> Response:
        answer = RedirectResponse("/login", 303)
        self._set_cookie(answer, "", 0)
        return answer

    def _set_cookie(self, answer: Response, value: str, seconds: int) -> None:
        public = self._door.public or self._door.url
        secure = public.startswith("https:")
        answer.set_cookie(
            self._door.cookie, value, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict"
        )

    async def _index(self, request: Request) -> Response:
        """The list of namespaces, or the page of the only one."""
        token = self._bearer(request)
        names = await run_in_threadpool(self._visible, token)
        if len(names) == 1:
            return RedirectResponse(f"/n/{quote(names[0], safe='')}/", 303)
        return HTMLResponse(namespaces_page(names, None if self._tokens is None else token.name))

    async def _names(self, request: Request) -> Response:
        names = await run_in_threadpool(self._visible, self._bearer(request))
        return Response(encoded({"namespaces": names}), media_type=JSON)

    # ---- questions

    def _asked(
        self, make: Callable[[Request, OpenNamespace, Answering], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An answer about a namespace, timed."""

        async def answered(request: Request) -> Response:
            began = self._clock.ticks()
            found, answering = await self.reached(request.scope, request.path_params["name"])
            try:
                return await make(request, found, answering)
            finally:
                self.timed(found.name, make.__name__.strip("_"), began)

        return answered

    def timed(self, namespace: str, kind: str, began: int) -> None:
        """Counts a question that began at some ticks of the clock."""
        self._figures.asked(namespace, kind, (self._clock.ticks() - began) / 1e6)

    @property
    def ticks(self) -> Callable[[], int]:
        """The clock that questions are timed by."""
        return self._clock.ticks

    async def _query(self, request: Request, found: OpenNamespace, answering: Answering) -> Response:
        """A statement of VMQL, within limits of time, rows and memory."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise HttpError(415, "a statement is asked as JSON", f"send the header Content-Type: {JSON}")
        try:
            question = msgspec.json.decode(await _body(request), type=StatementBody)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HttpError(
                400, f"the body is no question ({error})", 'send one like {"query": "SESSIONS LIMIT 5"}'
            ) from error
        fields = {
            "q": question.query,
            "session": question.session or "",
            "limit": str(min(question.rows, ROWS_MAX)),
            "timeout": str(question.timeout_s),
            "bytes": "" if question.memory is None else str(question.memory),
        }
        asked = QueryParams(fields, question.params)
        answer = answering.api.table["/api/vmql"]
        content = await self._namespaces.slow.answered(request, asked, lambda: answer(asked))
        return Response(content, media_type=JSON)

    async def _export(self, request: Request, found: OpenNamespace, answering: Answering) -> Response:
        """A session, or all, as a file that others read; masked unless the token reads what is."""
        asked = QueryParams(request.query_params)
        format = asked.text("format") or "jsonl"
        if format not in STREAMS:
            raise InputError(f"{format[:40]!r} cannot be sent; ask with format={', '.join(STREAMS)}", code="no-stream")
        plain = answering is found.plain

        def written() -> IO[bytes]:
            name = None if asked.text("session") is None else answering.api.named(asked)
            file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was sent
            try:
                found.store.export(file, name, format=format, redact=not plain)
                file.seek(0)
                return file
            except BaseException:
                file.close()
                raise

        file = await self._namespaces.slow.answered(request, QueryParams({"q": "export"}), written)
        headers = {"content-disposition": f'attachment; filename="sessions.{format}"'}
        return StreamingResponse(_chunks(file), media_type="application/octet-stream", headers=headers)

    async def _live(self, request: Request) -> Response:
        """Tells which sessions grow, until the server stops or the token is one no longer."""
        found, answering = await self.reached(request.scope, request.path_params["name"])
        token = self._bearer(request)

        def ended() -> bool:
            if self._stopped():
                return True
            with suppress(VmstoreError):
                return self._tokens is not None and not self._tokens.holds(token)
            return True

        return StreamingResponse(grown(found.store, ended, answering.api.shown), media_type="text/event-stream")


class _PagesRoute:
    """Hands a request on to the debugger's pages of a namespace."""

    def __init__(self, app: TeamApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = self._app.ticks()
        found, answering = await self._app.reached(scope, scope["path_params"]["name"])
        path = "/" + scope["path_params"]["rest"]
        kind = path.removeprefix("/api/") if path.startswith("/api/") else ""

        async def shown(message: Message) -> None:
            if message["type"] == "http.response.start":
                policy = (b"content-security-policy", found.policy.encode())
                message["headers"] = [*message.get("headers", ()), policy]
            await send(message)

        try:
            await answering.pages({**scope, "path": path, "raw_path": path.encode(), "root_path": ""}, receive, shown)
        finally:
            if kind in KINDS:
                self._app.timed(found.name, kind, began)


async def _health(request: Request) -> Response:
    return Response(encoded({"status": "alive"}), media_type=JSON)


async def _with_slash(request: Request) -> Response:
    return RedirectResponse(f"/n/{quote(request.path_params['name'], safe='')}/", 303)


async def _style(request: Request) -> Response:
    return Response(STYLE, media_type="text/css")


async def _nothing(request: Request) -> Response:
    raise HttpError(404, f"there is nothing at {request.scope['path'][:80]!r}", "the page is at /")


async def _body(request: Request) -> bytes:
    """The body of a request; HttpError where it is too large."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > BODY_BYTES_MAX:
            raise HttpError(413, f"the body is larger than {BODY_BYTES_MAX >> 20} MiB", "ask in parts")
    return content


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def guarded(
    app: TeamApp, door: ServerAddress, tokens: TokenFile | None, figures: ServerFigures, *, open_metrics: bool
) -> App:
    """The application behind its guard."""
    paths = ("/style.css", *(("/metrics",) if open_metrics else ()))
    return TeamGuard(
        app.routes(), door, tokens, open_paths=paths, on_refusal=lambda error: figures.refused(NOBODY, error)
    )
