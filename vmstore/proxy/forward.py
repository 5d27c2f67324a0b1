"""Forwards one request byte for byte, and passes a copy of a call to the writer as it goes by.

The client waits for nothing of ours: pieces go to it as they come, and the writer takes them or they
are counted as missed. An answer ends for the client once the writer has been told that it ended.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import aiohttp
from aiohttp import web
from yarl import URL

from vmstore.capture.client.body import EVENT_STREAM, Endpoint, endpoint
from vmstore.core.clock import SystemIds
from vmstore.core.text.prometheus import CONTENT_TYPE
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.debug.guard import ServerAddress
from vmstore.debug.http_errors import HttpError, body
from vmstore.proxy.bodies import without
from vmstore.proxy.figures import ProxyFigures
from vmstore.proxy.frames import Managed, WindowAsk
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
from vmstore.proxy.tool_stream import ToolBody, ToolStream
from vmstore.proxy.writer import CallWriter

AUTOMATIC = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")  # headers that are the client's to send
UPSTREAM_ERRORS = (aiohttp.ClientError, OSError, ValueError)
WINDOW_BYTES_MAX = 64 << 20  # of a request that a memory is asked of
ROUND_ATTEMPTS, ROUND_PAUSE_S = 2, 1.0  # of the memory's rounds, whose client knows nothing of them
UNRECORDABLE = "calls to {} cannot be recorded; chat completions, responses, messages and generateContent can"


class PassingCall:
    """One call on its way: what the writer is told of it. Whatever ends it first ends it for good."""

    marker: str | None = None  # that goes into its answer

    def __init__(
        self,
        writer: CallWriter,
        session: str | None,
        encoding: str,
        secrets: list[str],
        window: int | None = None,
        why: str = "",
    ) -> None:
        self.window = window  # the managed request that it is made of
        self._writer = writer
        self._started = writer.clock.ticks()
        self._number = writer.begin(session, encoding, secrets, window, why)
        self._ended = False

    def ask(self, data: bytes) -> None:
        """Copies a piece of the request."""
        self._writer.ask(self._number, data)

    def head(self, response: aiohttp.ClientResponse) -> None:
        """Copies what the head of the answer says."""
        self._writer.head(self._number, response.status, _kind(response), response.headers.get("content-encoding", ""))

    def answer(self, data: bytes) -> None:
        """Copies a piece of the answer."""
        self._writer.answer(self._number, data)

    def end(self, error: BaseException | None = None, *, aborted: bool = False) -> None:
        """The call is over."""
        if not self._ended:
            self._ended = True
            self._writer.end(self._number, self._writer.clock.ticks() - self._started, error, aborted=aborted)


class PassingRequest(NamedTuple):
    """A request on its way: its call, its body where that was read, the number by which its memory knows it."""

    call: PassingCall | None
    body: bytes | None
    window: int | None
    managed: Managed


class PassingAnswer(NamedTuple):
    """An answer on its way, and its call."""

    upstream: aiohttp.ClientResponse
    call: PassingCall


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

    def _begun(
        self, request: web.BaseRequest, headers: dict[str, str], window: int | None = None, why: str = ""
    ) -> PassingCall | None:
        """The call that a request makes; None where it asks no model for an answer."""
        match endpoint(request.method, request.path):
            case Endpoint.CALL:
                secrets = secrets_of(headers, request.query_string)
                encoding = headers.get("content-encoding", "")
                return PassingCall(self._writer, self._session(headers), encoding, secrets, window, why)
            case Endpoint.GAP:
                self._writer.miss(self._session(headers), UNRECORDABLE.format(request.path))
        return None

    async def _forwarded(self, request: web.BaseRequest, headers: dict[str, str]) -> web.StreamResponse:
        body, window, managed = None, None, Managed(None)
        form = form_of(request.path) if request.method == "POST" else None
        is_packed = "content-encoding" in headers
        wanted = form is not None and self._is_to_be_managed(request)
        if form is not None and not is_packed and (self._port.markers or wanted):
            body = await request.content.read()
        if body is not None and self._port.markers:
            body, headers = self._unmarked(body, headers)
        if wanted:
            window, managed = await self._managed(request, headers, body)
        call = self._begun(request, headers, window, managed.why if managed.failed else "")
        self._figures.forwarded += 1
        if call is not None and body is not None and self._port.markers:
            call.marker = marker_of(headers[SESSION])
        try:
            return await self._exchanged(
                request, headers, PassingRequest(call, body if managed.body is None else managed.body, window, managed)
            )
        finally:
            if window is not None:
                self._writer.over(window)

    def _is_to_be_managed(self, request: web.BaseRequest) -> bool:
        """Whether a call may be larger than the window of its port, as far as its length tells."""
        if self._port.window is None or endpoint(request.method, request.path) is not Endpoint.CALL:
            return False
        size = request.content_length
        return size is None or size > self._port.window * CHARACTERS_PER_TOKEN

    async def _managed(
        self, request: web.BaseRequest, headers: dict[str, str], body: bytes | None
    ) -> tuple[int | None, Managed]:
        """Asks what is sent for a request, and its number; the body itself where it fits, or its memory cannot say."""
        assert self._port.window is not None, "asked where there is one"
        if body is not None and len(body) <= self._port.window * CHARACTERS_PER_TOKEN:
            return None, Managed(None)
        number, managed = (
            None,
            Managed(None, "its body is packed, or over 64 MiB", failed=True),
        )
        if body is not None and len(body) <= WINDOW_BYTES_MAX:
            is_list = request.path.endswith(":streamGenerateContent") and request.query.get("alt") != "sse"
            rounds = 0 if is_list else self._port.rounds  # a list that streams is no events, and is not taken apart
            secrets = secrets_of(headers, request.query_string)
            ask = WindowAsk(self._session(headers), self._port.window, rounds, secrets, body)
            number, managed = await self._writer.managed(ask)
        self._figures.managed += managed.body is not None
        if managed.failed:
            self._figures.unmanaged += 1
            self._figures.problems.append(f"a request went on as it came: {managed.why}")
        return number, managed

    async def _exchanged(
        self, request: web.BaseRequest, headers: dict[str, str], passing: PassingRequest
    ) -> web.StreamResponse:
        """Sends a request on and passes its answer back, with those of the rounds of the memory's tools."""
        call, managed = passing.call, passing.managed
        try:
            upstream = await self._asked(request, headers, call, passing.body)
        except asyncio.CancelledError as error:
            _end(call, error, aborted=True)
            raise
        except UPSTREAM_ERRORS as error:
            if passing.body is None:
                await _rest_copied(request, call)
            _end(call, error)
            return self._unreachable(secrets_of(headers, request.query_string), error)
        edits: list[AnswerEdit] = []
        is_stream = _kind(upstream) == EVENT_STREAM
        again = None
        if (form := form_of(request.path)) is not None and call is not None:
            if managed.tools and upstream.status == 200:
                tools = (ToolStream if is_stream else ToolBody)(form, managed.tools)
                again = Rounds(self, request, headers, passing, tools, _kind(upstream))
                edits.append(tools)
            if call.marker is not None:
                edits.append(MarkedAnswer(form, call.marker, streamed=is_stream))
        try:
            return await _passed(request, upstream, call, edits, again)
        finally:
            _end(call)  # whatever went wrong: a call that never ends is never written
            upstream.close()  # gives the connection back where all of it was read
            if again is not None:
                again.close()

    async def _asked(
        self, request: web.BaseRequest, headers: dict[str, str], call: PassingCall | None, body: bytes | None
    ) -> aiohttp.ClientResponse:
        """The answer's head to a request, sent with a body of its own where one is given."""
        target = request.raw_path if request.raw_path.startswith("/") else f"/{request.raw_path}"
        base = self._port.upstream_of(request.path, request.query_string, headers)
        passed = passed_on(request.raw_headers, to_upstream=True)
        data: bytes | AsyncIterator[bytes] | None = _copied(request, call) if request.body_exists else None
        if body is not None:
            passed.popall("content-length", None)
            passed["Content-Length"] = str(len(body))
            if self._port.markers or (call is not None and call.window is not None):
                passed.popall("accept-encoding", None)
                passed["Accept-Encoding"] = "identity"
            data = body
            if call is not None:
                call.ask(body)
        return await self._client.request(
            request.method,
            URL(base + target, encoded=True),
            headers=passed,
            skip_auto_headers=AUTOMATIC,
            data=data,
            allow_redirects=False,
            proxy=self._proxies[base],
        )

    async def next_round(
        self, request: web.BaseRequest, headers: dict[str, str], window: int, marker: str | None, kind: str
    ) -> PassingAnswer | None:
        """The answer, of a content type, to what the memory was asked and answered; None where there is none."""
        managed = await self._writer.again(window)
        if managed.body is None:
            return None
        for attempt in range(ROUND_ATTEMPTS):
            call = self._begun(request, headers, window)
            assert call is not None, "only a call is managed"
            call.marker = marker
            try:
                upstream = await self._asked(request, headers, call, managed.body)
            except asyncio.CancelledError as error:
                call.end(error, aborted=True)
                raise
            except UPSTREAM_ERRORS as error:
                call.end(error)
                continue
            if upstream.status == 200 and _kind(upstream) == kind:
                self._figures.rounds += 1
                return PassingAnswer(upstream, call)
            call.head(upstream)
            call.answer(await upstream.read())
            call.end()
            if upstream.status < 500:
                break
            if attempt + 1 < ROUND_ATTEMPTS:
                await asyncio.sleep(ROUND_PAUSE_S)
        return None

    def _unmarked(self, body: bytes, headers: dict[str, str]) -> tuple[bytes, dict[str, str]]:
        """A request's body without markers, and the headers with the session that they name, or a new one."""
        session = self._session(headers) or session_in(body) or self._new_session()
        return without_markers(body), {**headers, SESSION: session}

    def _new_session(self) -> str:
        return str(uuid.UUID(bytes=self._ids.salt(), version=4))

    def _unreachable(self, secrets: list[str], error: BaseException) -> web.StreamResponse:
        self._figures.unreachable += 1
        text = without(f"{type(error).__name__}: {error}".encode("utf-8", "replace"), secrets).decode()
        reason = f"the upstream cannot be reached ({text})"
        return _json(502, body(reason, "look whether it runs, and whether --upstream of the proxy names it"))


def _kind(response: aiohttp.ClientResponse) -> str:
    """The content type of an answer."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


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


class AnswerEdit(Protocol):
    """A change of an answer on its way to the client."""

    def take(self, data: bytes) -> bytes:
        """The part of the answer that can go on."""
        ...

    def rest(self) -> bytes:
        """The part that is left at its end."""
        ...


class MarkedAnswer:
    """An answer on its way to a client that is to have a marker in it: a stream event by event, another one whole."""

    def __init__(self, form: AnswerForm, marker: str, *, streamed: bool) -> None:
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


class Rounds:
    """The further rounds of an answer: each asks the same upstream again, with what the memory answered."""

    def __init__(
        self,
        forwarder: Forwarder,
        request: web.BaseRequest,
        headers: dict[str, str],
        passing: PassingRequest,
        tools: ToolStream | ToolBody,
        kind: str,
    ) -> None:
        self._kind = kind
        self._forwarder, self._request, self._headers = forwarder, request, headers
        self._passing, self._tools = passing, tools
        self._answers: list[PassingAnswer] = []

    async def following(self) -> PassingAnswer | None:
        """The answer of the next round, None where this one was the last."""
        window, call = self._passing.window, self._passing.call
        if not self._tools.asks or window is None or call is None:
            return None
        answer = await self._forwarder.next_round(self._request, self._headers, window, call.marker, self._kind)
        if answer is not None:
            self._tools.follow()
            self._answers.append(answer)
        return answer

    def close(self) -> None:
        """Ends the calls, and gives the connections back."""
        for answer in self._answers:
            answer.call.end()
            answer.upstream.close()


async def _passed(
    request: web.BaseRequest,
    upstream: aiohttp.ClientResponse,
    call: PassingCall | None,
    edits: Sequence[AnswerEdit] = (),
    rounds: Rounds | None = None,
) -> web.StreamResponse:
    """Passes an answer on as it comes; one that breaks off breaks off for the client too."""
    headers = passed_on(upstream.raw_headers, to_upstream=False)
    if edits:
        headers.popall("content-length", None)
    response = web.StreamResponse(status=upstream.status, reason=upstream.reason, headers=headers)
    try:
        if call is not None:
            call.head(upstream)
        await _prepared(response, request)
        while True:
            await _pieces_passed(response, upstream, call, edits)
            _end(call)
            following = None if rounds is None else await rounds.following()
            if following is None:
                break
            upstream, call = following
            call.head(upstream)
        rest = b""
        for edit in edits:
            rest = edit.take(rest) + edit.rest()
        if rest:
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


async def _pieces_passed(
    response: web.StreamResponse,
    upstream: aiohttp.ClientResponse,
    call: PassingCall | None,
    edits: Sequence[AnswerEdit],
) -> None:
    """Passes the pieces of an answer on, each copied as it goes by."""
    left = upstream.content_length
    async for data in upstream.content.iter_any():
        if call is not None:
            call.answer(data)
            left = None if left is None else left - len(data)
            if left == 0:
                call.end()  # before the client has the last byte
        for edit in edits:
            data = edit.take(data)
        if data:
            await _written(response, data)


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
