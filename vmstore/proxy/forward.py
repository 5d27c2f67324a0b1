"""Forwards one request byte for byte, and passes a copy of a call to the writer as it goes by.

The client waits for nothing of ours: pieces go to it as they come, and the writer takes them or they
are counted as missed. An answer ends for the client once the writer has been told that it ended.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from vmstore.capture.client.body import Endpoint, endpoint
from vmstore.core.clock import SystemIds
from vmstore.core.text.prometheus import CONTENT_TYPE
from vmstore.debug.guard import ServerAddress
from vmstore.debug.http_errors import HttpError, body
from vmstore.proxy.bodies import without
from vmstore.proxy.figures import ProxyFigures
from vmstore.proxy.guard import check
from vmstore.proxy.headers import SESSION, passed_on, secrets_of
from vmstore.proxy.markers import (
    AnswerForm,
    MarkedStream,
    form_of,
    marked_body,
    marker_of,
    session_in,
    without_markers,
)
from vmstore.proxy.ports import PortSettings, proxy_before
from vmstore.proxy.writer import CallWriter

AUTOMATIC = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")  # headers that are the client's to send
UNRECORDABLE = "calls to {} cannot be recorded; chat completions, responses, messages and generateContent can"


class PassingCall:
    """One call on its way: what the writer is told of it. Whatever ends it first ends it for good."""

    marker: str | None = None  # that goes into its answer

    def __init__(self, writer: CallWriter, session: str | None, encoding: str, secrets: list[str]) -> None:
        self._writer = writer
        self._started = writer.clock.ticks()
        self._number = writer.begin(session, encoding, secrets)
        self._ended = False

    def ask(self, data: bytes) -> None:
        """Copies a piece of the request."""
        self._writer.ask(self._number, data)

    def head(self, response: aiohttp.ClientResponse) -> None:
        """Copies what the head of the answer says."""
        type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._writer.head(self._number, response.status, type, response.headers.get("content-encoding", ""))

    def answer(self, data: bytes) -> None:
        """Copies a piece of the answer."""
        self._writer.answer(self._number, data)

    def end(self, error: BaseException | None = None, *, aborted: bool = False) -> None:
        """The call is over."""
        if not self._ended:
            self._ended = True
            self._writer.end(self._number, self._writer.clock.ticks() - self._started, error, aborted=aborted)


class Forwarder:
    """Answers the requests of one port."""

    def __init__(
        self,
        port: PortSettings,
        address: ServerAddress,
        client: aiohttp.ClientSession,
        writer: CallWriter,
        figures: ProxyFigures,
    ) -> None:
        self._port = port
        self._address = address
        self._client = client
        self._writer = writer
        self._figures = figures
        self._ids = SystemIds()
        # Asked once: the library would ask the environment in a thread at each request, and ~/.netrc for keys.
        self._proxies = {upstream: proxy_before(upstream) for upstream in port.upstreams.values()}

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request: forwarded, refused, or with the proxy's own figures."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            check(self._address, headers)
            if request.path in ("/vmstore", "/vmstore/metrics"):
                return self._own(request)
            if "upgrade" in headers and "websocket" in headers["upgrade"].lower():
                self._writer.miss(self._session(headers), "the traffic of a websocket cannot be recorded")
                raise HttpError(501, "this proxy forwards no websockets", "let the client use HTTP")
        except HttpError as refusal:
            self._figures.refused += 1
            return _json(refusal.status, body(refusal.reason, refusal.remedy))
        try:
            return await self._forwarded(request, headers)
        except ClientGoneError:
            return web.Response(status=499)  # nobody reads it

    def _own(self, request: web.BaseRequest) -> web.StreamResponse:
        self._figures.waiting_bytes = self._writer.waiting_bytes()
        if request.path == "/vmstore/metrics":
            return web.Response(text=self._figures.prometheus(), headers={"content-type": CONTENT_TYPE})
        return _json(
            200,
            {"port": self._address.port, "upstreams": self._port.upstreams, **self._figures.numbers()}
            | {"problems": list(self._figures.problems)},
        )

    def _session(self, headers: dict[str, str]) -> str | None:
        return headers.get(SESSION) or self._port.session

    def _begun(self, request: web.BaseRequest, headers: dict[str, str]) -> PassingCall | None:
        """The call that a request makes; None where it asks no model for an answer."""
        match endpoint(request.method, request.path):
            case Endpoint.CALL:
                secrets = secrets_of(headers, request.query_string)
                return PassingCall(self._writer, self._session(headers), headers.get("content-encoding", ""), secrets)
            case Endpoint.GAP:
                self._writer.miss(self._session(headers), UNRECORDABLE.format(request.path))
        return None

    async def _forwarded(self, request: web.BaseRequest, headers: dict[str, str]) -> web.StreamResponse:
        body: bytes | None = None
        form = form_of(request.path) if self._port.markers and request.method == "POST" else None
        if form is not None and "content-encoding" not in headers:
            body, headers = await self._unmarked(request, headers)
        target = request.raw_path if request.raw_path.startswith("/") else f"/{request.raw_path}"
        base = self._port.upstream_of(request.path, request.query_string, headers)
        call = self._begun(request, headers)
        self._figures.forwarded += 1
        passed = passed_on(request.raw_headers, to_upstream=True)
        data: bytes | AsyncIterator[bytes] | None = _copied(request, call) if request.body_exists else None
        if body is not None:
            passed.update({"Content-Length": str(len(body)), "Accept-Encoding": "identity"})
            data = body
            if call is not None:
                call.ask(body)
                call.marker = marker_of(headers[SESSION])
        try:
            upstream = await self._client.request(
                request.method,
                URL(base + target, encoded=True),
                headers=passed,
                skip_auto_headers=AUTOMATIC,
                data=data,
                allow_redirects=False,
                proxy=self._proxies[base],
            )
        except asyncio.CancelledError as error:
            _end(call, error, aborted=True)
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            await _rest_copied(request, call)
            _end(call, error)
            return self._unreachable(secrets_of(headers, request.query_string), error)
        try:
            if call is not None and call.marker is not None and (form := form_of(request.path)) is not None:
                return await _passed(request, upstream, call, MarkedAnswer(upstream, form, call.marker))
            return await _passed(request, upstream, call)
        finally:
            upstream.close()  # gives the connection back where all of it was read

    async def _unmarked(self, request: web.BaseRequest, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
        """A request's body without markers, and the headers with the session that they name, or a new one."""
        body = await request.content.read()
        session = self._session(headers) or session_in(body) or self._new_session()
        return without_markers(body), {**headers, SESSION: session}

    def _new_session(self) -> str:
        return str(uuid.UUID(bytes=self._ids.salt(), version=4))

    def _unreachable(self, secrets: list[str], error: BaseException) -> web.StreamResponse:
        self._figures.unreachable += 1
        text = without(f"{type(error).__name__}: {error}".encode("utf-8", "replace"), secrets).decode()
        reason = f"the upstream cannot be reached ({text})"
        return _json(502, body(reason, "look whether it runs, and whether --upstream of the proxy names it"))


class ClientGoneError(Exception):
    """The client hung up amid its answer."""


async def _copied(request: web.BaseRequest, call: PassingCall | None) -> AsyncIterator[bytes]:
    """The pieces of a request's body, each copied as it goes by."""
    async for data in request.content.iter_any():
        if call is not None:
            call.ask(data)
        yield data


async def _rest_copied(request: web.BaseRequest, call: PassingCall | None) -> None:
    """Copies what no upstream took of a request's body."""
    with suppress(ConnectionError, aiohttp.ClientError):
        async for _ in _copied(request, call):
            pass


class MarkedAnswer:
    """An answer on its way to a client that is to have a marker in it: a stream event by event, another one whole."""

    def __init__(self, upstream: aiohttp.ClientResponse, form: AnswerForm, marker: str) -> None:
        streamed = upstream.headers.get("content-type", "").startswith("text/event-stream")
        self._stream = MarkedStream(form, marker) if streamed else None
        self._form, self._marker = form, marker
        self._whole = b""

    def take(self, data: bytes) -> bytes:
        """The part of the answer that can go on."""
        if self._stream is not None:
            return self._stream.take(data)
        self._whole += data
        return b""

    def rest(self) -> bytes:
        """The part of the answer that is left at its end."""
        return self._stream.rest() if self._stream is not None else marked_body(self._whole, self._form, self._marker)


async def _passed(
    request: web.BaseRequest,
    upstream: aiohttp.ClientResponse,
    call: PassingCall | None,
    marked: MarkedAnswer | None = None,
) -> web.StreamResponse:
    """Passes an answer on as it comes; one that breaks off breaks off for the client too."""
    headers = passed_on(upstream.raw_headers, to_upstream=False)
    if marked is not None:
        headers.popall("content-length", None)
    response = web.StreamResponse(status=upstream.status, reason=upstream.reason, headers=headers)
    left = upstream.content_length
    try:
        if call is not None:
            call.head(upstream)
        await _prepared(response, request)
        async for data in upstream.content.iter_any():
            if call is not None:
                call.answer(data)
                left = None if left is None else left - len(data)
                if left == 0:
                    call.end()  # before the client has the last byte
            if piece := data if marked is None else marked.take(data):
                await _written(response, piece)
        _end(call)
        if marked is not None and (rest := marked.rest()):
            await _written(response, rest)
        await _written(response)
    except (asyncio.CancelledError, ClientGoneError) as error:
        _end(call, error, aborted=True)
        raise
    except (aiohttp.ClientError, OSError) as error:
        _end(call, error)
        if request.transport is not None:
            request.transport.abort()
    return response


async def _prepared(response: web.StreamResponse, request: web.BaseRequest) -> None:
    try:
        await response.prepare(request)
    except ConnectionError as error:
        raise ClientGoneError("the client hung up") from error


async def _written(response: web.StreamResponse, data: bytes | None = None) -> None:
    """Writes a piece to the client, or the end; ClientGoneError where it hung up."""
    try:
        await (response.write_eof() if data is None else response.write(data))
    except ConnectionError as error:
        raise ClientGoneError("the client hung up") from error


def _end(call: PassingCall | None, error: BaseException | None = None, *, aborted: bool = False) -> None:
    if call is not None:
        call.end(error, aborted=aborted)


def _json(status: int, value: Any) -> web.Response:
    return web.Response(status=status, body=json.dumps(value).encode(), content_type="application/json")
