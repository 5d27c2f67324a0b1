"""The proxy's hand on its writer: passes calls on piece by piece, never waits, and counts what became of them.

Where the writer ends, which only a kill should make it do, another one is started, and the calls that
the first had not settled are gaps: whether they are in the store is not known here.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from contextlib import suppress
from typing import cast

import msgspec

from vmstore.core.clock import Stopwatch
from vmstore.errors import StoreError
from vmstore.proxy.figures import ProxyFigures
from vmstore.proxy.frames import (
    AnswerHead,
    CallBegin,
    CallEnd,
    CallMiss,
    FrameKind,
    FrameReader,
    Managed,
    OpenStore,
    Settled,
    WindowAsk,
    frame,
    packed,
)

BUFFER_BYTES_MAX = 256 << 20  # on the way to the writer; what comes while there are more becomes gaps
READY_S = 600.0  # a store whose views are gone is folded again first
RETRY_S, RETRY_MAX_S = 0.25, 30.0

BEHIND = f"over {BUFFER_BYTES_MAX >> 20} MiB were on their way to the writer"
WRITER_ENDED = "the writer of the proxy ended before it said that this call was in the store"
BACKLOG_MAX = 200  # calls that wait for the store; a request does not wait behind more of them
WINDOW_S = 10.0  # that a request waits for its memory at most; then it goes on as it came


class CallWriter(asyncio.Protocol):
    """The writer of one store, and the calls it has not settled."""

    def __init__(self, opening: OpenStore, figures: ProxyFigures, clock: Stopwatch) -> None:
        self.clock = clock
        self._opening = opening
        self._figures = figures
        self._count = 0
        self._unsettled: dict[int, str | None] = {}  # the session of each
        self._ended: set[int] = set()  # of those, calls that are over and wait to be written
        self._missed: dict[int, str] = {}  # calls of which no more is passed on, and why
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._held: list[bytes] = []  # frames that go out together when the loop turns, or a call ends
        self._held_size = 0
        self._ready: asyncio.Future[None] | None = None
        self._waiting: dict[int, asyncio.Future[Managed]] = {}  # for what is sent of a request
        self._restart: asyncio.Task[None] | None = None
        self._closing = False

    # ---- its life

    async def start(self) -> None:
        """Starts the process, and returns when its store is open; StoreError where it cannot be."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "vmstore.proxy.writer_process"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C of the terminal is the proxy's to answer
            )
        loop = asyncio.get_running_loop()
        self._reader, self._ready = FrameReader(), loop.create_future()
        transport, _ = await loop.create_connection(lambda: self, sock=ours)
        transport.write(packed(FrameKind.OPEN, 0, self._opening))
        try:
            await asyncio.wait_for(self._ready, READY_S)
        except TimeoutError:
            raise StoreError(f"the writer of {self._opening.path} did not get ready in {READY_S:.0f} s") from None

    async def close(self, timeout: float) -> bool:
        """Tells the writer to finish; whether it did within a time. One that did not goes on by itself."""
        self._closing = True
        if self._restart is not None:
            self._restart.cancel()
        if self._process is None:
            return True
        self._flush()
        if self._transport is not None:
            self._transport.write(frame(FrameKind.CLOSE, 0))
        loop = asyncio.get_running_loop()
        with suppress(subprocess.TimeoutExpired):
            await loop.run_in_executor(None, self._process.wait, timeout)
        return self._process.poll() is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """From here on calls are told to this writer."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Takes in what the writer says."""
        for kind, call, content in self._reader.take(data):
            if kind is FrameKind.SETTLED:
                self._settle(call, msgspec.msgpack.decode(content, type=Settled).gap)
            elif kind is FrameKind.MANAGED:
                if (waiting := self._waiting.get(call)) is not None and not waiting.done():
                    waiting.set_result(msgspec.msgpack.decode(content, type=Managed))
            elif kind is FrameKind.TROUBLE:
                self._figures.problems.append(content.decode("utf-8", "replace"))
            elif self._ready is not None and not self._ready.done():
                if kind is FrameKind.READY:
                    self._ready.set_result(None)
                else:
                    self._ready.set_exception(StoreError(content.decode("utf-8", "replace")))

    def connection_lost(self, error: Exception | None) -> None:
        """Starts another writer, unless this one was to end."""
        self._transport = None
        self._held.clear()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(Managed(None, "the writer of the proxy ended", failed=True))
        for call in self._unsettled:  # those too that were told to one that never got ready
            self._missed.setdefault(call, WRITER_ENDED)
        if self._ready is None or self._ready.cancelled():
            return
        if not self._ready.done():
            self._ready.set_exception(StoreError("the writer of the proxy ended before it was ready"))
        elif self._ready.exception() is None and not self._closing and self._restart is None:
            self._figures.problems.append("the writer of the proxy ended; another one is started")
            self._restart = asyncio.ensure_future(self._started_again())

    async def _started_again(self) -> None:
        pause = RETRY_S
        while True:
            try:
                await self.start()
                if self._transport is not None:  # else it ended as soon as it was ready
                    break
            except (StoreError, OSError) as error:
                self._figures.problems.append(f"the writer of the proxy cannot start: {error}")
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_MAX_S)
        self._restart = None
        self._figures.writer_restarts += 1
        for call in [call for call in self._missed if call in self._ended]:
            self._send_miss(call)

    # ---- calls

    async def managed(self, ask: WindowAsk) -> tuple[int, Managed]:
        """Asks what is sent for a request: the number to go on with it by, and the answer."""
        self._count += 1
        if self._figures.waiting > BACKLOG_MAX:
            return self._count, Managed(None, f"over {BACKLOG_MAX} calls wait for the store", failed=True)
        number = self._count
        try:
            return number, await self._asked(packed(FrameKind.WINDOW, number, ask), number)
        except asyncio.CancelledError:
            self.over(number)  # the client hung up: nobody goes on with it by its number
            raise

    async def again(self, number: int) -> Managed:
        """The request that follows the last answer, where that asked the memory."""
        return await self._asked(frame(FrameKind.ROUND, number), number)

    def over(self, number: int) -> None:
        """Says that nothing more is asked of a managed request."""
        if self._transport is not None:
            self._hold(frame(FrameKind.WINDOW_END, number))

    async def _asked(self, data: bytes, number: int) -> Managed:
        if self._transport is None or self._restart is not None:
            return Managed(None, "the writer of the proxy is being started", failed=True)
        self._waiting[number] = waiting = asyncio.get_running_loop().create_future()
        try:
            self._hold(data)
            self._flush()
            return await asyncio.wait_for(waiting, WINDOW_S)
        except TimeoutError:
            return Managed(None, f"the memory took over {WINDOW_S:.0f} s", failed=True)
        finally:
            del self._waiting[number]

    def begin(
        self, session: str | None, encoding: str, secrets: list[str], window: int | None = None, why: str = ""
    ) -> int:
        """A call begins; its number."""
        self._count += 1
        call = self._count
        self._unsettled[call] = session
        self._figures.calls += 1
        self._figures.open += 1
        if self._transport is None:
            self._missed[call] = WRITER_ENDED
        self._send(
            call, packed(FrameKind.BEGIN, call, CallBegin(session, self.clock.now(), encoding, secrets, window, why))
        )
        return call

    def ask(self, call: int, data: bytes) -> None:
        """Passes on a piece of the request's body."""
        self._send(call, frame(FrameKind.REQUEST, call, data))

    def head(self, call: int, status: int, type: str, encoding: str) -> None:
        """Passes on what the answer's head says."""
        self._send(call, packed(FrameKind.HEAD, call, AnswerHead(status, type, encoding)))

    def answer(self, call: int, data: bytes) -> None:
        """Passes on a piece of the answer's body."""
        self._send(call, frame(FrameKind.ANSWER, call, data))

    def end(self, call: int, latency: int, error: BaseException | None = None, *, aborted: bool = False) -> None:
        """A call ended, for good; `aborted` by its client."""
        self._figures.open -= 1
        self._figures.waiting += 1
        self._ended.add(call)
        if call in self._missed:
            self._send_miss(call)
            return
        name, text = (None, "") if error is None else (type(error).__name__, str(error))
        self._send(call, packed(FrameKind.END, call, CallEnd(latency, name, text, aborted)))
        if call in self._missed:
            self._send_miss(call)
        self._flush()  # now, since its client is told next

    def miss(self, session: str | None, reason: str) -> None:
        """Notes a call that cannot be recorded."""
        call = self.begin(session, "", [])
        self._missed[call] = reason
        self.end(call, 0)

    def _send(self, call: int, data: bytes) -> None:
        if call in self._missed:
            return
        if self._transport is None:
            self._missed[call] = WRITER_ENDED
            return
        if self._transport.get_write_buffer_size() + self._held_size + len(data) > BUFFER_BYTES_MAX:
            self._missed[call] = BEHIND
            return
        self._hold(data)

    def _hold(self, data: bytes) -> None:
        if not self._held:
            asyncio.get_running_loop().call_soon(self._flush)
        self._held.append(data)
        self._held_size += len(data)

    def _flush(self) -> None:
        if self._held and self._transport is not None:
            self._transport.write(b"".join(self._held))
        self._held.clear()
        self._held_size = 0

    def _send_miss(self, call: int) -> None:
        """Tells of a call that it is a gap, now or when there is a writer again."""
        if self._transport is not None and self._restart is None:
            reason = self._missed[call]
            self._hold(packed(FrameKind.MISS, call, CallMiss(self._unsettled[call], reason)))

    def _settle(self, call: int, gap: str | None) -> None:
        if call not in self._unsettled:
            return
        del self._unsettled[call]
        self._missed.pop(call, None)
        if call in self._ended:
            self._ended.discard(call)
            self._figures.waiting -= 1
        if gap is None:
            self._figures.recorded += 1
        else:
            self._figures.gaps += 1
            self._figures.problems.append(gap)

    def waiting_bytes(self) -> int:
        """How many bytes the writer has not taken yet."""
        return self._held_size + (0 if self._transport is None else self._transport.get_write_buffer_size())

    def unsettled(self) -> int:
        """How many calls are not in the store yet."""
        return len(self._unsettled)
