"""The writer's process: takes calls from the proxy piece by piece and records them.

It is a process of its own, so that nothing it does holds up a call, and so that a proxy that is
killed takes no call with it: what it had passed on is here, and is written.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO, TypeVar, cast

import msgspec

from vmstore.capture.client.body import ANSWER_BYTES_MAX, EVENT_STREAM, ResponseBody
from vmstore.capture.client.recorder import ClientExchange, MissedCall, Recorder
from vmstore.core.clock import SystemClock
from vmstore.errors import VmstoreError
from vmstore.namespace.backends.address import backend_of
from vmstore.proxy.bodies import unpacked, without
from vmstore.proxy.frames import (
    AnswerHead,
    CallBegin,
    CallEnd,
    CallMiss,
    FrameKind,
    OpenStore,
    Settled,
    WindowAsk,
    frame,
    packed,
    read_frame,
)
from vmstore.proxy.open_request import ManagedRequests
from vmstore.proxy.past import past_calls
from vmstore.store.recorder import record_together
from vmstore.store.store import open_store

REQUEST_BYTES_MAX = 128 << 20  # of one request; a larger one is a gap
WAITING_BYTES_MAX = 256 << 20  # of calls that wait for a store that is slow or fails
NICENESS = 5  # a call that passes goes before one that is written
COLLECTED_MIN = 20_000  # new objects until the collector comes by: a call makes hundreds, and few of them in cycles
CLOSE_S = 600.0  # how long the writer stays for a store that takes nothing, once the proxy is gone

S = TypeVar("S", bound=msgspec.Struct)


class ProxyExchange(ClientExchange, frozen=True):
    """A call that ended, and its number at the proxy."""

    call: int = 0


class ProxyMiss(MissedCall, frozen=True):
    """A call that cannot be recorded, and its number at the proxy."""

    call: int = 0


class PartialBody:
    """A body as far as it has come; of one that is too large only the size is kept."""

    def __init__(self, size_max: int) -> None:
        self.size = 0
        self._size_max = size_max
        self._pieces: list[bytes] = []

    def take(self, data: bytes) -> None:
        """Takes the next piece."""
        self.size += len(data)
        if self.cut:
            self._pieces.clear()
        else:
            self._pieces.append(data)

    @property
    def cut(self) -> bool:
        """Whether there was more than is kept."""
        return self.size > self._size_max

    def joined(self) -> bytes:
        """The bytes; none where there were too many."""
        return b"".join(self._pieces)


class CallUnderWay:
    """One call as far as it has come."""

    def __init__(self, begin: CallBegin) -> None:
        self.begin = begin
        self.request = PartialBody(REQUEST_BYTES_MAX)
        self.answer = PartialBody(ANSWER_BYTES_MAX)
        self.head = AnswerHead(0, "", "")

    def ended(self, call: int, end: CallEnd, requests: ManagedRequests) -> ProxyExchange | ProxyMiss:
        """The call as a job for the recorder; `requests` know what it was made of."""
        begin, head = self.begin, self.head
        if self.request.cut:
            reason = f"the request has {self.request.size} bytes, over {REQUEST_BYTES_MAX}"
            return ProxyMiss(reason, begin.session, call=call)
        try:
            body = without(unpacked(self.request.joined(), begin.encoding), begin.secrets)
        except VmstoreError as error:
            return ProxyMiss(str(error), begin.session, call=call)
        broken = _broken(end, begin.secrets, streamed=head.type == EVENT_STREAM)
        try:
            data = without(unpacked(self.answer.joined(), head.encoding), begin.secrets)
        except VmstoreError as error:
            data, broken = b"", broken or error
        answer = ResponseBody(head.status or None, head.type, "", data, broken, None, self.answer.cut)
        exchange = ProxyExchange(begin.session, body, answer, begin.at, end.latency, call=call)
        session, asked, beside = requests.recorded(begin, exchange)
        return msgspec.structs.replace(exchange, session=session, asked=asked, beside=beside)


def _broken(end: CallEnd, secrets: list[str], *, streamed: bool) -> BaseException | None:
    """An exception that says what broke a call off: its name, and its text without keys.

    A client that hangs up aborts its call; a stream tells by itself whether its end arrived.
    """
    if end.error is None or (end.aborted and streamed):
        return None
    text = without(end.text.encode("utf-8", "replace"), secrets).decode("utf-8", "replace")
    error: BaseException = type(end.error, (BaseException if end.aborted else Exception,), {})(text)
    return error


class ProxyLink:
    """The socket to the proxy, which may be gone."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()

    def send(self, data: bytes) -> None:
        """Sends a frame; nothing where nobody listens any more."""
        with self._lock, suppress(OSError):
            self._channel.sendall(data)


class TroubleHandler(logging.Handler):
    """Sends what is logged to the proxy."""

    def __init__(self, link: ProxyLink) -> None:
        super().__init__(logging.WARNING)
        self._link = link

    def emit(self, record: logging.LogRecord) -> None:
        """Sends one record's text."""
        with suppress(Exception):
            self._link.send(frame(FrameKind.TROUBLE, 0, record.getMessage().encode("utf-8", "replace")))


def recorder_of(opening: OpenStore, link: ProxyLink) -> Recorder:
    """The recorder of a store, which is opened once now; VmstoreError where it cannot be."""

    def opened(path: str) -> Any:
        key = opening.key or backend_of(path).key_for(opening.namespace, opening.encrypted_key)
        return open_store(path, "rw", namespace=opening.namespace, key=key, wait_s=opening.wait_s)

    def settled(jobs: Sequence[ClientExchange | MissedCall], gap: str | None) -> None:
        ours = [job for job in jobs if isinstance(job, ProxyExchange | ProxyMiss)]
        link.send(b"".join(packed(FrameKind.SETTLED, job.call, Settled(gap)) for job in ours))

    opened(opening.path).close()
    return Recorder(
        opening.path,
        opening.base,
        None,
        opened,
        SystemClock(),
        opening.redaction,
        waiting_bytes_max=WAITING_BYTES_MAX,
        record_together=record_together,
        past=past_calls,
        settled=settled,
    )


def serve(channel: socket.socket) -> None:
    """Records the calls that come over a socket, until it ends and all of them are in the store."""
    link = ProxyLink(channel)
    stream = cast(BinaryIO, channel.makefile("rb", buffering=1 << 20))
    first = read_frame(stream)
    if first is None:
        return
    try:
        recorder = recorder_of(_struct(first[2], OpenStore), link)
    except (VmstoreError, OSError) as error:
        link.send(frame(FrameKind.REFUSED, 0, str(error).encode("utf-8", "replace")))
        return
    logging.getLogger("vmstore").addHandler(TroubleHandler(link))
    link.send(frame(FrameKind.READY, 0))
    calls = CallsUnderWay(recorder, ManagedRequests(recorder, link.send, _struct(first[2], OpenStore).redaction))
    while (received := read_frame(stream)) is not None and received[0] is not FrameKind.CLOSE:
        calls.take(*received)
    calls.end()
    recorder.close(CLOSE_S)


class CallsUnderWay:
    """The calls that have not ended, and the requests they were made of."""

    def __init__(self, recorder: Recorder, requests: ManagedRequests) -> None:
        self._recorder, self._requests = recorder, requests
        self._calls: dict[int, CallUnderWay] = {}

    def take(self, kind: FrameKind, call: int, content: bytes) -> None:
        """Takes in what the proxy says of a call, or of a request."""
        if kind is FrameKind.BEGIN:
            self._calls[call] = CallUnderWay(_struct(content, CallBegin))
        elif kind is FrameKind.MISS:
            self._calls.pop(call, None)
            miss = _struct(content, CallMiss)
            self._recorder.submit(ProxyMiss(self._recorder.trouble(miss.reason), miss.session, call=call))
        elif kind is FrameKind.WINDOW:
            self._requests.ask(call, _struct(content, WindowAsk))
        elif kind is FrameKind.ROUND:
            self._requests.again(call)
        elif kind is FrameKind.WINDOW_END:
            self._requests.over(call)
        elif (passing := self._calls.get(call)) is not None:
            if kind is FrameKind.REQUEST:
                passing.request.take(content)
            elif kind is FrameKind.HEAD:
                passing.head = _struct(content, AnswerHead)
            elif kind is FrameKind.ANSWER:
                passing.answer.take(content)
            elif kind is FrameKind.END:
                self._ended(call, _struct(content, CallEnd))

    def end(self) -> None:
        """Ends the calls that the proxy ended amid."""
        for call in list(self._calls):
            self._ended(call, CallEnd(0, "ProxyEnded", "the proxy ended before the answer did", True))

    def _ended(self, call: int, end: CallEnd) -> None:
        self._recorder.submit(self._calls.pop(call).ended(call, end, self._requests))


def _struct(content: bytes, kind: type[S]) -> S:
    return msgspec.msgpack.decode(content, type=kind)


def main() -> None:
    """Runs over the socket that is the standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the proxy says when it is over
    with suppress(OSError):
        os.nice(NICENESS)
    gc.freeze()
    gc.set_threshold(COLLECTED_MIN, 20, 50)
    serve(socket.socket(fileno=os.dup(sys.stdin.fileno())))


if __name__ == "__main__":
    main()
